"""Let the files of a table be deleted: from now on it cannot be restored any more.

Asked for by whoever is about to delete the first of them. This one commit is what all safety of purges rests
on (ADR 0024): a tombstone that was lifted or restored meanwhile is not there, and refuses; and one that is
*purging* is not lifted or restored any more.

Must not break: nothing that is not the table's own is in its places. That is asked of the very state that
the commit is made on.
"""

from typing import Final

from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Kept, Recall
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import claiming_alone
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.load_tombstone import require_tombstone
from cynosure.catalog.purge_errors import LocationShared, PurgeConflict
from cynosure.catalog.purging.tombstone import PurgeState, Tombstone, putting
from cynosure.catalog.resolve import require_open
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.spi import ObjId

_RECALL: Final[Recall[PurgeState]] = Kept(str)


async def begin_purging(catalog: OpenCatalog, caller: Caller, entity_id: ObjId, task_id: str) -> PurgeState:
    """Enter *purging*, for this task alone; the state it has. The same task may ask again."""

    async def prepare(view: View) -> Prepared[PurgeState]:
        await require_open(view)
        tombstone, dropped = await require_tombstone(view, entity_id)
        _require_task(tombstone, task_id)
        if tombstone.state == "purging":
            return Prepared(tombstone.state)
        try:
            changes: Changes = await claiming_alone(catalog, view, tombstone.drop_id, dropped)
        except LocationRefused as error:
            raise LocationShared(
                "A place of the table is not its own: nothing in it is deleted",
                fix="Move what else is there, or restore the table.",
                location=error.details.get("location", dropped.location),
            ) from error
        persistence = catalog.shared.persistence
        purging = replace(tombstone, state="purging", purging_us=persistence.clock.now_us(), last_error="")
        new, more = putting(purging, persistence.ids.next())
        merge(changes, more)
        return Prepared(purging.state, changes, [new])

    target = catalog.target()
    return (await catalog.commit(caller, ops.BEGIN_PURGING, (target,), prepare, _RECALL)).result


def _require_task(tombstone: Tombstone, task_id: str) -> None:
    if tombstone.task_id != task_id:
        raise PurgeConflict(
            "Another task is to purge this table",
            fix="Leave it to that one.",
            field="task-id",
            task=tombstone.task_id,
        )
    if tombstone.is_given_up:
        raise PurgeConflict(
            "The purge was given up: the table is to be put back",
            fix="Have it restored with 'cynosure tables restore', and dropped again.",
            task=tombstone.task_id,
        )
