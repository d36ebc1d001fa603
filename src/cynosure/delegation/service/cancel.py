"""Give a task up, because somebody asks for it.

Must not break: what a running task has changed stays changed, and its record says that it may have.
"""

from cynosure.common.delegated.record import TaskDetails
from cynosure.common.errors import Conflict
from cynosure.common.telemetry.logs import Log
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.details import to_details
from cynosure.delegation.service.find import load
from cynosure.delegation.service.settling import swap_settled
from cynosure.delegation.transitions import cancelled

_log = Log(__name__)


async def cancel(context: TaskContext, task_id: str) -> TaskDetails:
    """End a task that has not ended; `Conflict` for one that has.

    The worker of a running one learns it, here at once and elsewhere by its next heartbeat, and stops.
    """
    while True:
        record = await load(context, task_id)
        if record.status.is_terminal:
            raise Conflict(
                "The task has ended", task=task_id, status=record.status, fix="Nothing is left to give up."
            )
        wanted = cancelled(record, now_us=context.clock.now_us())
        swapped = await swap_settled(context.store, context.clock, record, wanted)
        if swapped is not None:
            _log.event("task.cancelled", task=task_id, was=record.status)
            context.changes.tell(task_id)
            return to_details(swapped)
