"""One task of long work: as it is, and as it was."""

from collections.abc import Sequence

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.tasks import READING, find_task
from cynosure.common.delegated.record import TaskDetails


async def load_task(directory: Directory, caller: Caller, task_id: str) -> TaskDetails:
    """The task as it is; `NoSuchTask` when there is none."""
    return await find_task(directory, caller, READING, task_id)


async def load_task_history(directory: Directory, caller: Caller, task_id: str) -> Sequence[TaskDetails]:
    """All its versions, the oldest first; `NoSuchTask` when there is none."""
    task = await find_task(directory, caller, READING, task_id)
    return await directory.shared.require_executor().history(caller.realm, task.task_id)
