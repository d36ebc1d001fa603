"""The outbox: what one of all servers does for all tombstones of a catalog from time to time.

Orders what nobody has, ends what has ended, puts back what was given up. So a purge ends whoever was killed,
and whoever asked for it has long been gone.

Done by the server itself: no right is asked for.

Must not break: one tombstone's trouble is logged and does not keep the others waiting.
"""

import asyncio
from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.lifting import lift
from cynosure.catalog.purging.ordering import find_task, give_order, has_failed_unbegun
from cynosure.catalog.purging.settling import Settled, settle
from cynosure.catalog.purging.tombstone import IDS, PURGES, TOMBSTONE, TRACES, Tombstone
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import after
from cynosure.persistence.objects import ObjRef

_PAGE: Final = 256
_AT_ONCE: Final = 16
_log = Log(__name__)


async def look_after_purges(catalog: OpenCatalog, caller: Caller) -> int:
    """See to every tombstone of a catalog, once; how many came to an end."""
    state, start, ended = await catalog.read(), IDS, 0
    while page := await state.scan(PURGES, start=start, limit=_PAGE):
        start = after(page[-1][0])
        tombstones = await state.load_many(TOMBSTONE, [ObjRef.unpack(value).id for _, value in page])
        for first in range(0, len(tombstones), _AT_ONCE):
            some = tombstones[first : first + _AT_ONCE]
            ended += sum(await asyncio.gather(*(_look_after(catalog, caller, each) for each in some)))
    await _forget_traces(catalog, caller)
    return ended


async def look_at(catalog: OpenCatalog, caller: Caller, tombstone: Tombstone) -> bool:
    """Do what is to be done for one tombstone now; whether it came to an end."""
    task = await find_task(catalog, tombstone)
    if tombstone.is_given_up:
        # Its name may be free by now. Not while a worker has it: that one is refused, and ends it.
        if task is None or has_failed_unbegun(task):
            await lift(catalog, caller, tombstone, tombstone.last_error)
            return True
        return False
    if task is None:
        task = await give_order(catalog, tombstone)
    settled, _ = await settle(catalog, caller, tombstone, task)
    return settled in (Settled.DROPPED, Settled.BACK)


async def _look_after(catalog: OpenCatalog, caller: Caller, tombstone: Tombstone) -> bool:
    try:
        return await look_at(catalog, caller, tombstone)
    except CynosureError as error:
        _log.event("purge.not_looked_after", level=WARNING, task=tombstone.task_id, error=error)
        return False


async def _forget_traces(catalog: OpenCatalog, caller: Caller) -> None:
    """Remove traces that are older than any request that could be repeated."""

    async def prepare(view: View) -> Prepared[None]:
        entries = await view.scan(PURGES, prefix=TRACES, limit=_PAGE)
        traces = await view.load_many(TOMBSTONE, [ObjRef.unpack(value).id for _, value in entries])
        since_us = catalog.dropped_since_us()
        old = [key for (key, _), each in zip(entries, traces, strict=True) if each.created_us < since_us]
        return Prepared(None, {PURGES: dict.fromkeys(old)} if old else {})

    state = await catalog.read()
    if await state.scan(PURGES, prefix=TRACES, limit=1):
        await commit_part(catalog.committer, caller, "forget-lifted", prepare)
