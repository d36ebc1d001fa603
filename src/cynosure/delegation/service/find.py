"""Look a task up: as it is, or all it has been."""

from collections.abc import Sequence

from cynosure.common.delegated.record import TaskDetails
from cynosure.common.errors import NotFound
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.details import to_details
from cynosure.delegation.task_record import TaskRecord


async def find(context: TaskContext, task_id: str) -> TaskDetails | None:
    """The task as it is, and how far; `None` when there is none."""
    record = await context.store.find(task_id)
    if record is None:
        return None
    progress = await context.store.progress(task_id) if record.status.is_leased else None
    return to_details(record, progress)


async def history(context: TaskContext, task_id: str) -> Sequence[TaskDetails]:
    """All versions, the oldest first; empty when there is no such task."""
    return [to_details(each) for each in await context.store.history(task_id)]


async def load(context: TaskContext, task_id: str) -> TaskRecord:
    """The newest version; `NotFound` when there is no such task."""
    record = await context.store.find(task_id)
    if record is None:
        raise NotFound("There is no such task", task=task_id, fix="List the tasks to see which there are.")
    return record
