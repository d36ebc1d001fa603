"""Wait for the end of a task.

Must not break: whoever waits in the process that ends it is told at once; in any other, within a second.
"""

from typing import Final

from cynosure.common.delegated.payload import decode_order
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.delegation.service.changes import wait_or_sleep
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.find import find

_POLL_S: Final = 1.0


async def wait(context: TaskContext, task_id: str, timeout_s: float) -> TaskDetails | None:
    """The task when it has ended or the time is over, whichever comes first; `None` when there is none.

    A task with a schedule never ends by itself: waiting ends when it has been done once more.
    """
    until_s = context.clock.monotonic_s() + timeout_s
    first: TaskDetails | None = None
    while True:
        # Order: whatever changes after the look is told.
        with context.changes.watch(task_id) as event:
            details = await find(context, task_id)
            left_s = until_s - context.clock.monotonic_s()
            if details is None or details.status.is_terminal or left_s <= 0 or context.changes.is_closed:
                return details
            first = first or details
            if details.version > first.version and _waits_for_its_time(details):
                return details
            await wait_or_sleep(event, context.clock, min(left_s, _POLL_S))


def _waits_for_its_time(details: TaskDetails) -> bool:
    return details.status is TaskStatus.SUBMITTED and decode_order(details.task_payload).schedule is not None
