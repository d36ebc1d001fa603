"""Tasks of long work, the newest first."""

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.task_executor import TaskPage, TaskQuery
from cynosure.catalog.tasks import READING, authorize_tasks


async def list_tasks(directory: Directory, caller: Caller, query: TaskQuery) -> TaskPage:
    """One page. Who may not see all tasks names a catalog."""
    await authorize_tasks(directory, caller, READING, query.catalog)
    return await directory.shared.require_executor().list(caller.realm, query)
