"""The contract between a worker and a job.

A maintainer must not break: a job checks its lease right before every step that deletes or commits, and
raises what it cannot do. It never records its own outcome: the worker does.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import ExecutionResult, TaskProgress
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.catalog_access import CatalogAccess
from cynosure.delegation.failures import JobFailed as JobFailed  # noqa: PLC0414 - jobs find it here
from cynosure.delegation.failures import JobPostponed as JobPostponed  # noqa: PLC0414 - the same
from cynosure.delegation.store.port import Receipt, Receipts


class JobLease(Protocol):
    """The lease of the attempt."""

    @property
    def until_us(self) -> int:
        """When it ends unless it is kept; it is, in the background, while the job runs."""
        ...

    @property
    def token(self) -> str:
        """Names this lease."""
        ...

    def check(self, *, needs_s: float = 5.0) -> None:
        """`LeaseLost` unless the task is ours for so long yet."""
        ...


class SparkRunner(Protocol):
    """Runs a function of ours in the Spark driver's process. Starts it when needed; one for all jobs."""

    async def run(self, job: str, parameters: dict[str, Any], context: "JobContext") -> dict[str, Any]:
        """Run the registered driver job of this name; what it returns.

        While it runs, its questions (`lease`, `credentials`), progress and receipts are answered from
        `context`. A driver that dies is `Unavailable`; what the job raises arrives as it was.
        """
        ...


class JobContext(Protocol):
    """What a job has."""

    @property
    def task_id(self) -> str: ...  # noqa: D102
    @property
    def order(self) -> TaskOrder: ...  # noqa: D102
    @property
    def attempt(self) -> int: ...  # noqa: D102
    @property
    def lease(self) -> JobLease: ...  # noqa: D102
    @property
    def catalog(self) -> CatalogAccess: ...  # noqa: D102
    @property
    def spark(self) -> SparkRunner | None: ...  # noqa: D102
    @property
    def settings(self) -> DelegationSettings: ...  # noqa: D102
    @property
    def clock(self) -> Clock: ...  # noqa: D102

    async def begin(self) -> None:
        """The resources are there: the task is RUNNING from now on. Once per attempt."""
        ...

    async def mark_begun(self) -> None:
        """Kept before the first step that changes anything (`TaskDetails.is_begun`)."""
        ...

    async def report(self, progress: TaskProgress) -> None:
        """Say how far it is; cheap enough for every batch."""
        ...

    async def put_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Keep receipts; `LeaseLost` when the task is not ours any more."""
        ...

    async def receipts(self) -> Receipts:
        """What earlier attempts, and this one, have done."""
        ...


class Job(Protocol):
    """One kind of work."""

    @property
    def task_type(self) -> TaskType: ...  # noqa: D102

    def check(self, order: TaskOrder) -> None:
        """Refuse an order with instructions that it does not know (`BadInput` names the property)."""
        ...

    async def run(self, context: JobContext) -> ExecutionResult:
        """Do it, all of it: what was done by earlier attempts is found and not done again.

        `JobFailed` when it cannot be done; `LeaseLost` when it is not ours any more; `JobPostponed`,
        `Unavailable` and `OutcomeUnknown` are passing troubles.
        """
        ...
