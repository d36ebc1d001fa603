"""Try a task again that failed or waits for its next attempt."""

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.tasks import MANAGING, find_task
from cynosure.common.delegated.record import TaskDetails


async def retry_task(directory: Directory, caller: Caller, task_id: str) -> TaskDetails:
    """The task, due now. `Conflict` when it neither failed nor waits, `NoSuchTask` when there is none."""
    task = await find_task(directory, caller, MANAGING, task_id)
    return await directory.shared.require_executor().retry(caller.realm, task.task_id)
