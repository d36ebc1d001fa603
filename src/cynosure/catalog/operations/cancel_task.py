"""Give a task up that has not ended. What it has deleted or changed already stays so."""

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.tasks import MANAGING, find_task
from cynosure.common.delegated.record import TaskDetails


async def cancel_task(directory: Directory, caller: Caller, task_id: str) -> TaskDetails:
    """The task, as it is then. `Conflict` when it has ended, `NoSuchTask` when there is none."""
    task = await find_task(directory, caller, MANAGING, task_id)
    return await directory.shared.require_executor().cancel(caller.realm, task.task_id)
