"""Take word that the task of a purge has ended, and look at it now rather than with the next round.

What the caller says about the task does not count: the executor is asked. So a word that is wrong, or comes
twice, does nothing.
"""

from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.load_tombstone import require_tombstone
from cynosure.catalog.purge_errors import PurgeConflict
from cynosure.catalog.purging.outbox import look_at
from cynosure.catalog.purging.tombstone import Tombstone
from cynosure.catalog.system import SYSTEM
from cynosure.persistence.spi import ObjId


async def end_purging(catalog: OpenCatalog, caller: Caller, entity_id: ObjId, task_id: str) -> None:
    """Look at the task of this tombstone, soon."""
    view = await catalog.read()
    await catalog.authorize(view, caller, ops.END_PURGING, catalog.target())
    tombstone, _ = await require_tombstone(view, entity_id)
    if tombstone.task_id != task_id:
        raise PurgeConflict(
            "Another task is to purge this table",
            fix="Tell about that one.",
            field="task-id",
            task=tombstone.task_id,
        )
    catalog.shared.background.start("purge.look", _look(catalog, tombstone))


async def _look(catalog: OpenCatalog, tombstone: Tombstone) -> None:
    await look_at(catalog, operator_caller(SYSTEM, catalog.realm), tombstone)
