"""The end of a purge: the final drop, once the last file is gone; and what is noted when it cannot end.

Must not break: a tombstone that never was *purging* is not dropped for good, whatever anybody says: nobody
has been allowed to delete its files, so they must be there.
"""

from typing import Literal

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import forgetting
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import MAPPINGS, remove_mappings_of_target
from cynosure.catalog.purging.metrics import PURGES
from cynosure.catalog.purging.tombstone import Tombstone, find_tombstone_of, putting, removing
from cynosure.catalog.reports import forget_reports
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key

_log = Log(__name__)
_End = Literal["dropped", "ended before", "not begun"]


async def drop_for_good(catalog: OpenCatalog, caller: Caller, tombstone: Tombstone) -> bool:
    """Remove the last that is left of a purged table; `False` when it never was *purging*."""
    entity_id, drop_id = tombstone.entity_id, tombstone.drop_id

    async def prepare(view: View) -> Prepared[_End]:
        current = await find_tombstone_of(view, entity_id, drop_id)
        if current is None:
            return Prepared("ended before")
        if current.state != "purging":
            return Prepared("not begun")
        key = encode_id_key(drop_id)
        changes: Changes = {
            "dropped": {key: None},
            MAPPINGS: await remove_mappings_of_target(view, entity_id),
        }
        dropped = await find_object(view, "dropped", key, DROPPED)
        if dropped is not None:
            changes["locations"] = await forgetting(view, drop_id, dropped)
        merge(changes, removing(current))
        feed = Change(
            kind="table-purged",
            index="names",
            key=table_key(Identifier(current.path[:-1], current.path[-1])),
            detail=raw_detail({"id": entity_id, "path": current.path}),
        )
        return Prepared("dropped", changes, feed=[feed])

    end = await commit_part(catalog.committer, caller, "end-purge", prepare)
    if end == "dropped":
        PURGES.inc(outcome="dropped")
        _log.event("purge.ended", task=tombstone.task_id, table=".".join(tombstone.path))
        # After the entry has gone: reports of a table that is restored are kept.
        await forget_reports(catalog, caller, entity_id)
    return end != "not begun"


async def note_failure(catalog: OpenCatalog, caller: Caller, tombstone: Tombstone, error: str) -> None:
    """Keep with the tombstone what its purge failed with, for operators."""

    async def prepare(view: View) -> Prepared[bool]:
        current = await find_tombstone_of(view, tombstone.entity_id, tombstone.drop_id)
        if current is None or current.failed(error) == current:
            return Prepared(False)
        new, changes = putting(current.failed(error), catalog.shared.persistence.ids.next())
        return Prepared(True, changes, [new])

    if await commit_part(catalog.committer, caller, "note-purge-failure", prepare):
        PURGES.inc(outcome="failed")
        _log.event("purge.failed", level=WARNING, task=tombstone.task_id, reason=error)
