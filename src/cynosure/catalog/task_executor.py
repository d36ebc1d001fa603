"""Where long work is done: the port that operations order it from.

Implementations: `cynosure.delegation.executors`. One does purges in this process, the other sends everything
to a delegation service.

A maintainer must not break: three outcomes never merge. An order that was refused or provably never arrived
is an error (`Unavailable` for the latter); one that may have arrived is `OutcomeUnknown`; and only `find`
that answers `None` says that there is no such task.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskDetails
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType


class TaskPage(Struct, frozen=True):
    """Some tasks, the newest first, and how to go on."""

    tasks: Sequence[TaskDetails]
    next_page_token: str | None = None


class TaskQuery(Struct, frozen=True):
    """Which tasks to list."""

    status: TaskStatus | None = None
    task_type: TaskType | None = None
    catalog: str | None = None
    page_size: int = 100
    page_token: str | None = None


class TaskExecutor(Protocol):
    """Does long work, now or later, once for each correlation id.

    Each method orders one kind of task and returns at once, with the task as it is; the same order again is
    the same task, another one under the same correlation id is `Conflict`.
    """

    @property
    def is_delegated(self) -> bool:
        """Whether another service does the work."""
        ...

    async def purge_table(self, order: TaskOrder) -> TaskDetails:
        """Delete all files of a table that has a tombstone."""
        ...

    async def expire_snapshots(self, order: TaskOrder) -> TaskDetails:
        """Let old snapshots go, with the files only they need."""
        ...

    async def compact_data(self, order: TaskOrder) -> TaskDetails:
        """Rewrite small files into larger ones."""
        ...

    async def remove_orphan_files(self, order: TaskOrder) -> TaskDetails:
        """Delete old files that no version of the table knows."""
        ...

    async def compact_metadata(self, order: TaskOrder) -> TaskDetails:
        """Rewrite manifests."""
        ...

    async def convert_format(self, order: TaskOrder) -> TaskDetails:
        """Upgrade the format version, or make a table of files that are there."""
        ...

    async def find(self, realm: str, task_id: str) -> TaskDetails | None:
        """The task as it is; `None` when it is certain that there is none."""
        ...

    async def wait(self, realm: str, task_id: str, timeout_s: float) -> TaskDetails | None:
        """As `find`, when the task has ended or the time is over, whichever comes first."""
        ...

    async def history(self, realm: str, task_id: str) -> Sequence[TaskDetails]:
        """All versions of a task, the oldest first; empty when there is none."""
        ...

    async def list(self, realm: str, query: TaskQuery) -> TaskPage:
        """Tasks, the newest first."""
        ...

    async def retry(self, realm: str, task_id: str) -> TaskDetails:
        """Try a task that failed, or waits for its next attempt, again now. `Conflict` for any other."""
        ...

    async def cancel(self, realm: str, task_id: str) -> TaskDetails:
        """Give a task up that has not ended; `Conflict` for one that has.

        One that has changed something already keeps that.
        """
        ...
