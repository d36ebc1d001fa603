"""What a task that has ended means for its tombstone.

| task                          | requester was promised an end (`sync`) | was not                         |
|-------------------------------|----------------------------------------|---------------------------------|
| SUCCESS                       | the final drop                         | the final drop                  |
| FAILURE, nothing begun        | the table is put back                  | kept, with the error            |
| FAILURE, begun                | kept, with the error; to be retried    | the same                        |

Done alike by the request that waits and by the outbox, at once if need be: each step is one commit that
expects the tombstone as it was.
"""

from enum import Enum, auto

from cynosure.auth.caller import Caller
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.ending import drop_for_good, note_failure
from cynosure.catalog.purging.lifting import Lifted, lift
from cynosure.catalog.purging.ordering import has_failed_unbegun, reason_of
from cynosure.catalog.purging.tombstone import Tombstone, find_tombstone_of, find_trace
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.persistence.heads import forget_ahead


class Settled(Enum):
    """What became of a tombstone."""

    DROPPED = auto()
    """The last file is gone, and the table with it."""
    BACK = auto()
    """The table is there again."""
    GIVEN_UP = auto()
    """Nothing was purged; the table waits to be restored."""
    KEPT = auto()
    """It failed, and can be tried again."""
    OPEN = auto()
    """It has not ended."""


async def settle(
    catalog: OpenCatalog, caller: Caller, tombstone: Tombstone, task: TaskDetails
) -> tuple[Settled, str]:
    """Do what follows from the state of its task; what became of it, and why."""
    if task.status is TaskStatus.SUCCESS:
        if await drop_for_good(catalog, caller, tombstone):
            return await find_end(catalog, tombstone)
        reason = "PURGE_NOT_BEGUN: the task says that it is done, but it never asked to begin"
    elif task.status is TaskStatus.FAILURE:
        reason = reason_of(task)
        if has_failed_unbegun(task) and tombstone.mode == "sync":
            lifted = await lift(catalog, caller, tombstone, reason)
            if lifted is not Lifted.PURGING:
                return await find_end(catalog, tombstone)
    else:
        return Settled.OPEN, ""
    await note_failure(catalog, caller, tombstone, reason)
    return Settled.KEPT, reason


async def find_end(catalog: OpenCatalog, tombstone: Tombstone) -> tuple[Settled, str]:
    """What became of a tombstone, as the catalog knows it, and why."""
    # Asked by who has waited for others: what it read when it came is the past.
    forget_ahead()
    state = await catalog.read()
    current = await find_tombstone_of(state, tombstone.entity_id, tombstone.drop_id)
    if current is not None:
        return (Settled.GIVEN_UP if current.is_given_up else Settled.OPEN), current.last_error
    trace = await find_trace(state, tombstone.drop_id)
    return (Settled.DROPPED, "") if trace is None else (Settled.BACK, trace.last_error)
