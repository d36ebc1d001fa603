"""The tasks of one realm, every version of them: the port.

Kit: `cynosure.testing.task_store_kit`.

Implementations: `objects.py` (any store of ours), `postgres.py` (tables); `open.py` chooses.

A maintainer must not break: a task is changed only by whoever names its newest version (compare-and-swap),
and a leased one only by whoever knows the lease, until the lease is over.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.delegation.task_record import TaskRecord


class Leased(Struct, frozen=True):
    """A task that a worker has now."""

    record: TaskRecord
    """Its newest version: ACQUIRING_RESOURCES, one attempt more."""
    lease_until_us: int
    found: str
    """`new`, `retry`, or `lost`: what it was before."""


class Receipt(Struct, frozen=True):
    """That a batch of work has been done; kept once for each batch, whatever is repeated."""

    batch: str
    files: int
    bytes: int
    finished_us: int


class Receipts(Struct, frozen=True):
    """All receipts of a task."""

    by_batch: Mapping[str, Receipt]

    @property
    def files(self) -> int:
        """All of them together."""
        return sum(each.files for each in self.by_batch.values())

    @property
    def bytes(self) -> int:
        """All of them together."""
        return sum(each.bytes for each in self.by_batch.values())


class TaskFilter(Struct, frozen=True):
    """Which tasks to list."""

    status: TaskStatus | None = None
    task_type: TaskType | None = None
    catalog: str | None = None


class TaskStore(Protocol):
    """Tasks, leases and receipts of one realm. Lost races are values; errors are those of our tree."""

    async def insert(self, record: TaskRecord) -> TaskRecord:
        """Keep a new task (version 1); the newest version of the one that is there already, if any."""
        ...

    async def find(self, task_id: str) -> TaskRecord | None:
        """The newest version."""
        ...

    async def history(self, task_id: str) -> Sequence[TaskRecord]:
        """All versions, the oldest first; empty when there is no such task."""
        ...

    async def list(
        self, wanted: TaskFilter, *, limit: int, after: str | None = None
    ) -> tuple[Sequence[TaskRecord], str | None]:
        """Newest versions of tasks, those that were created last first; and where to go on (`after`)."""
        ...

    async def children(self, task_id: str) -> Sequence[TaskRecord]:
        """Newest versions of the sub-tasks of a task, the oldest first."""
        ...

    async def swap(self, expected: TaskRecord, record: TaskRecord) -> TaskRecord | None:
        """Make `record` the next version if `expected` is the newest; `None` when it is not.

        The version is set here. Where `expected` is leased, it must still be under `expected.lease_token`;
        the lease ends unless the new version is leased too. `Conflict` when the state cannot follow.
        A SUCCESS with a time of its next run is followed by a SUBMITTED in the same change, which is what is
        returned then (`transitions.follow_up`).
        """
        ...

    async def lease(self, worker: str, *, now_us: int, lease_us: int) -> Leased | None:
        """Take the task that has waited longest: new, due again, or lost (leased, and its lease over).

        `None` when there is none. Several ask at once and each gets another one.
        """
        ...

    async def keep(self, leased: Leased, *, now_us: int, lease_us: int) -> Leased | None:
        """Extend a lease that is still ours (heartbeat); `None` when it is not, or is over by `now_us`."""
        ...

    async def report(self, leased: Leased, progress: TaskProgress) -> None:
        """Say how far it is. Nothing depends on it: a report that comes too late is forgotten."""
        ...

    async def progress(self, task_id: str) -> TaskProgress | None:
        """How far it said to be last."""
        ...

    async def release(self, worker: str) -> int:
        """End all leases of this worker, whose process is known to be dead: its tasks are lost at once."""
        ...

    async def put_receipts(self, leased: Leased, receipts: Sequence[Receipt]) -> bool:
        """Keep receipts, if the lease is still ours; a batch that has one keeps it."""
        ...

    async def receipts(self, task_id: str) -> Receipts:
        """All that are kept for a task, over all attempts."""
        ...

    async def next_due_us(self) -> int | None:
        """When the next task that waits is due; `None` when none waits."""
        ...

    async def forget(self, before_us: int) -> int:
        """Remove tasks that ended before, with their versions and receipts; how many."""
        ...

    async def close(self) -> None:
        """Give back what it holds."""
        ...
