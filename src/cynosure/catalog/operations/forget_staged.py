"""Remove reservations of tables that were staged and never created. Their places are free from then on.

Done by the server itself: no right is asked for.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.staged import IDS, STAGED, expired_before_us, removing
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef

_BATCH = 500


async def forget_staged(catalog: OpenCatalog, caller: Caller) -> int:
    """Remove all that have expired; how many."""

    async def prepare(view: View) -> Prepared[int]:
        # Keys are in the order of time, so the oldest come first.
        entries = await view.scan("staged", start=IDS, limit=_BATCH)
        staged = await view.load_many(STAGED, [ObjRef.unpack(value).id for _, value in entries])
        before_us = expired_before_us(catalog)
        changes: Changes = {}
        expired = [each for each in staged if each.created_us < before_us]
        for each in expired:
            merge(changes, removing(each))
        return Prepared(len(expired), changes)

    forgotten = 0
    while True:
        count = await commit_part(catalog.committer, caller, "forget-staged", prepare)
        forgotten += count
        if count < _BATCH:
            return forgotten
