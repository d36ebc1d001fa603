"""What a job has: `JobContext`, for one attempt."""

from collections.abc import Sequence
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskProgress
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import OutcomeUnknown, Unavailable
from cynosure.common.telemetry.logs import DEBUG, Log
from cynosure.delegation import metrics
from cynosure.delegation.catalog_access import CatalogAccess
from cynosure.delegation.jobs.port import SparkRunner
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.store.port import Receipt, Receipts
from cynosure.delegation.transitions import begun, running
from cynosure.delegation.worker.lease import HeldLease

_REPORT_EVERY_S: Final = 0.5
_log = Log(__name__)


class AttemptContext:
    """One attempt at one task, as its job sees it."""

    def __init__(
        self,
        tasks: TaskContext,
        held: HeldLease,
        order: TaskOrder,
        *,
        catalog: CatalogAccess,
        spark: SparkRunner | None,
    ) -> None:
        self._tasks = tasks
        self._held = held
        self._order = order
        self._catalog = catalog
        self._spark = spark
        self._reported = ("", float("-inf"))
        self._counted_files = 0

    @property
    def task_id(self) -> str:  # noqa: D102
        return self._held.record.task_id

    @property
    def order(self) -> TaskOrder:  # noqa: D102
        return self._order

    @property
    def attempt(self) -> int:  # noqa: D102
        return self._held.record.attempt_count

    @property
    def lease(self) -> HeldLease:  # noqa: D102
        return self._held

    @property
    def catalog(self) -> CatalogAccess:  # noqa: D102
        return self._catalog

    @property
    def spark(self) -> SparkRunner | None:  # noqa: D102
        return self._spark

    @property
    def settings(self) -> DelegationSettings:  # noqa: D102
        return self._tasks.settings

    @property
    def clock(self) -> Clock:  # noqa: D102
        return self._tasks.clock

    @property
    def is_acquiring(self) -> bool:
        """Whether it still waits for what it needs."""
        return self._held.record.status is TaskStatus.ACQUIRING_RESOURCES

    @property
    def has_counted(self) -> bool:
        """Whether receipts of this attempt have been counted."""
        return self._counted_files > 0

    async def begin(self) -> None:  # noqa: D102
        if self.is_acquiring:
            await self._held.change(lambda record: running(record, now_us=self.clock.now_us()))

    async def mark_begun(self) -> None:  # noqa: D102
        if not self._held.record.is_begun:
            await self._held.change(begun)

    async def report(self, progress: TaskProgress) -> None:  # noqa: D102
        phase, reported_s = self._reported
        now_s = self.clock.monotonic_s()
        if progress.phase == phase and now_s - reported_s < _REPORT_EVERY_S:
            return
        self._reported = (progress.phase, now_s)
        try:
            await self._tasks.store.report(self._held.leased, progress)
        except (Unavailable, OutcomeUnknown) as error:
            # Nothing depends on it, and the next one says more.
            _log.event("task.report_failed", level=DEBUG, task=self.task_id, error=error)

    async def put_receipts(self, receipts: Sequence[Receipt]) -> None:  # noqa: D102
        await self._held.put_receipts(receipts)
        files = sum(each.files for each in receipts)
        self._counted_files += files
        metrics.FILES_DELETED.inc(files, type=self._order.task_type)
        metrics.BYTES_DELETED.inc(sum(each.bytes for each in receipts), type=self._order.task_type)

    async def receipts(self) -> Receipts:  # noqa: D102
        return await self._tasks.store.receipts(self.task_id)
