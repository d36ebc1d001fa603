"""The service core: all that can be asked for of the tasks of one realm.

The operations are functions in files of their own; this puts them together.

Must not break: one `TaskService` in a process and realm, or those who wait are not told of what happens.
"""

from collections.abc import Mapping, Sequence

from cynosure.catalog.task_executor import TaskPage, TaskQuery
from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.jobs.port import Job
from cynosure.delegation.service import find as finding
from cynosure.delegation.service.cancel import cancel
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.list_tasks import list_tasks
from cynosure.delegation.service.retry import retry
from cynosure.delegation.service.submit import submit
from cynosure.delegation.service.wait import wait
from cynosure.delegation.store.port import TaskStore


class TaskService:
    """The tasks of one realm. What each method raises is said where it is done."""

    def __init__(
        self,
        store: TaskStore,
        *,
        realm: str,
        clock: Clock,
        jobs: Mapping[TaskType, Job],
        settings: DelegationSettings,
    ) -> None:
        self.context = TaskContext(store, realm, clock, jobs, settings)
        """For workers in the same process."""

    async def submit(self, order: TaskOrder) -> TaskDetails:
        """Accept an order: `submit.py`."""
        return await submit(self.context, order)

    async def find(self, task_id: str) -> TaskDetails | None:
        """The task as it is; `None` when there is none."""
        return await finding.find(self.context, task_id)

    async def history(self, task_id: str) -> Sequence[TaskDetails]:
        """All versions, the oldest first; empty when there is no such task."""
        return await finding.history(self.context, task_id)

    async def list(self, query: TaskQuery) -> TaskPage:
        """Tasks, the newest first: `list_tasks.py`."""
        return await list_tasks(self.context, query)

    async def wait(self, task_id: str, timeout_s: float) -> TaskDetails | None:
        """As `find`, when the task has ended or the time is over: `wait.py`."""
        return await wait(self.context, task_id, timeout_s)

    async def retry(self, task_id: str) -> TaskDetails:
        """Try it again now: `retry.py`."""
        return await retry(self.context, task_id)

    async def cancel(self, task_id: str) -> TaskDetails:
        """Give it up: `cancel.py`."""
        return await cancel(self.context, task_id)

    def stop_waiting(self) -> None:
        """Let everybody go who waits, with the task as it is: the process stops."""
        self.context.changes.close()
