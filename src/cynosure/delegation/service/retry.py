"""Try a task again now, because somebody asks for it."""

from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Conflict
from cynosure.common.telemetry.logs import Log
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.details import to_details
from cynosure.delegation.service.find import load
from cynosure.delegation.service.settling import swap_settled
from cynosure.delegation.transitions import resubmitted

_log = Log(__name__)


async def retry(context: TaskContext, task_id: str) -> TaskDetails:
    """Make a task due that failed, or waits for its next attempt; `Conflict` for any other.

    It may be attempted as often as a new one.
    """
    while True:
        record = await load(context, task_id)
        if record.status not in (TaskStatus.FAILURE, TaskStatus.RETRY_SCHEDULED):
            raise Conflict(
                "The task does not wait for another attempt",
                task=task_id,
                status=record.status,
                fix="Only tasks in FAILURE or RETRY_SCHEDULED can be tried again.",
            )
        wanted = resubmitted(record, now_us=context.clock.now_us())
        swapped = await swap_settled(context.store, context.clock, record, wanted)
        if swapped is not None:
            _log.event("task.retried", task=task_id)
            context.changes.tell(task_id)
            context.changes.tell_work()
            return to_details(swapped)
