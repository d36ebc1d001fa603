"""One attempt at one task: the job runs, its lease is kept, what became of it is recorded.

Must not break: nothing is recorded without the lease. A job whose lease is lost is stopped, and whoever has
the task now says what becomes of it.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Final

from msgspec.structs import replace

from cynosure.common.delegated.payload import TaskOrder, decode_order
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import CynosureError, LeaseLost
from cynosure.common.schedules import parse_schedule
from cynosure.common.telemetry.logs import ERROR, INFO, WARNING, Log
from cynosure.common.telemetry.request_scope import request_scope
from cynosure.common.telemetry.tracing import Span, span
from cynosure.delegation import metrics
from cynosure.delegation.catalog_access import CatalogAccess
from cynosure.delegation.jobs.port import JobFailed, JobPostponed, SparkRunner
from cynosure.delegation.service.context import TaskContext
from cynosure.delegation.service.settling import repeat
from cynosure.delegation.store.port import Leased
from cynosure.delegation.task_record import TaskRecord
from cynosure.delegation.transitions import failed, given_back, retry_scheduled, running, succeeded
from cynosure.delegation.worker.context import AttemptContext
from cynosure.delegation.worker.lease import HeldLease
from cynosure.delegation.worker.outcome import counted_by, judge, summarize

MOST_LEASES: Final = 100
"""A task that has been leased so often and still has not ended kills its workers."""
_STOPPED: Final = "The worker stopped; another one goes on."
_US: Final = timedelta(microseconds=1)
_EVENTS: Final = {
    "success": "task.succeeded",
    "retry": "task.retry_scheduled",
    "failure": "task.failed",
    "given_back": "task.given_back",
    "lost": "task.taken_away",
}
_log = Log(__name__)


class Attempt:
    """One attempt. Make one for each lease, and `run` it."""

    def __init__(
        self,
        tasks: TaskContext,
        leased: Leased,
        *,
        lease_s: float,
        deadline_s: float,
        catalog: CatalogAccess,
        spark: SparkRunner | None,
    ) -> None:
        self._tasks = tasks
        self._held = HeldLease(tasks.store, tasks.clock, leased, lease_s=lease_s, deadline_s=deadline_s)
        self._order: TaskOrder = decode_order(leased.record.task_payload)
        self._context = AttemptContext(tasks, self._held, self._order, catalog=catalog, spark=spark)
        self._type = leased.record.task_type
        self._started_s = tasks.clock.monotonic_s()

    async def run(self, stopping: asyncio.Event) -> None:
        """Until the task has ended, waits for another attempt, or is not ours any more.

        When `stopping` is set the job is stopped, and the task given back.
        """
        task_id = self._held.record.task_id
        metrics.ATTEMPTS.inc(type=self._type)
        metrics.RUNNING.inc(1, type=self._type)
        outcome = "lost"
        try:
            with (
                request_scope(request_id=self._order.correlation_id, realm=self._tasks.realm),
                span(
                    "delegation.attempt",
                    traceparent=self._order.traceparent or "",
                    task=task_id,
                    type=self._type,
                    attempt=self._held.record.attempt_count,
                ) as live,
            ):
                outcome = await self._run_leased(stopping, live)
        finally:
            metrics.RUNNING.inc(-1, type=self._type)
            metrics.ENDED.inc(type=self._type, outcome=outcome)
            self._tasks.changes.tell(task_id)

    async def _run_leased(self, stopping: asyncio.Event, live: Span) -> str:
        with self._tasks.changes.watch(self._held.record.task_id) as changed:
            keeping = asyncio.ensure_future(self._held.keep(changed))
            working = asyncio.ensure_future(self._work(stopping))
            try:
                await asyncio.wait({keeping, working}, return_when=asyncio.FIRST_COMPLETED)
                outcome = working.result() if working.done() else "lost"
            except LeaseLost:
                outcome = "lost"
            finally:
                for each in (working, keeping):
                    each.cancel()
                await asyncio.gather(working, keeping, return_exceptions=True)
        live.set("outcome", outcome)
        record = self._held.record
        level = INFO if outcome in ("success", "given_back") else WARNING
        _log.event(
            _EVENTS[outcome],
            level=level,
            task=record.task_id,
            type=self._type,
            attempt=record.attempt_count,
            code=record.error_code,
            summary=record.result_summary,
        )
        if record.status.is_terminal:
            await self._tell()
        return outcome

    async def _work(self, stopping: asyncio.Event) -> str:
        """Run the job and record what became of it; `LeaseLost` when that is not ours to say."""
        working = asyncio.ensure_future(self._do())
        stopped = asyncio.ensure_future(stopping.wait())
        try:
            await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (working, stopped):
                each.cancel()
            await asyncio.gather(working, stopped, return_exceptions=True)
        if working.cancelled():
            if not stopping.is_set():
                return await self._stumble(RuntimeError("the job cancelled itself"))
            now_us = self._tasks.clock.now_us()
            await self._held.change(lambda record: given_back(record, now_us=now_us, summary=_STOPPED))
            return "given_back"
        error = working.exception()
        if error is None:
            return await self._succeed(working.result())
        if not isinstance(error, Exception) or self._held.is_lost:
            raise error
        return await self._stumble(error)

    async def _do(self) -> ExecutionResult:
        if self._held.record.attempt_count > MOST_LEASES:
            raise JobFailed(
                "The task was begun too often without an end",
                code="LOST_TOO_OFTEN",
                fix="Look for what kills the workers, then have it tried again.",
            )
        job = self._tasks.jobs.get(self._type)
        if job is None:
            raise JobPostponed("Tasks of this kind are not done by this worker", code="NO_SUCH_JOB")
        return await job.run(self._context)

    async def _succeed(self, result: ExecutionResult) -> str:
        clock = self._tasks.clock
        if self._context.is_acquiring:
            # It had nothing to wait for; but no task succeeds that never ran.
            await self._held.change(lambda record: running(record, now_us=clock.now_us()))
        summary = summarize(result, clock.monotonic_s() - self._started_s)
        now_us, next_run_us = clock.now_us(), 0
        if self._order.schedule is not None:
            schedule = parse_schedule(self._order.schedule, field="common_payload.schedule")
            next_run_us = schedule.next_after_us(now_us)
        await self._held.change(
            lambda record: succeeded(
                record, now_us=now_us, result=result, summary=summary, next_run_us=next_run_us
            )
        )
        if not self._context.has_counted:
            metrics.FILES_DELETED.inc(result.files_deleted, type=self._type)
            metrics.BYTES_DELETED.inc(result.bytes_deleted, type=self._type)
        return "success"

    async def _stumble(self, error: Exception) -> str:
        trouble = judge(error, is_acquiring=self._context.is_acquiring)
        if not isinstance(error, CynosureError):
            _log.event(
                "task.unexpected_error",
                level=ERROR,
                task=self._held.record.task_id,
                error=error,
                with_traceback=True,
            )
        backoff = await self._find_backoff() if trouble.is_passing else None
        result = await self._find_done(error)
        now_us = self._tasks.clock.now_us()
        code, summary, extended = trouble.code, trouble.summary, trouble.extended
        if backoff is None:
            await self._held.change(
                lambda record: failed(
                    record, now_us=now_us, code=code, summary=summary, extended=extended, result=result
                )
            )
            return "failure"
        due_us = now_us + backoff // _US
        await self._held.change(
            lambda record: replace(
                retry_scheduled(
                    record, now_us=now_us, due_us=due_us, code=code, summary=summary, extended=extended
                ),
                execution_result=result,
            )
        )
        self._tasks.changes.tell_work()
        return "retry"

    async def _find_backoff(self) -> timedelta | None:
        """How long to wait before the next attempt; `None` when there is to be none."""
        store, task_id = self._tasks.store, self._held.record.task_id
        history = await repeat(self._tasks.clock, lambda: store.history(task_id), tries=None)
        return self._tasks.settings.retry.of(self._type).backoff_after(count_failures(history) + 1)

    async def _find_done(self, error: Exception) -> ExecutionResult:
        """What was done so far, by the receipts; and what else the job says about it."""
        receipts = await repeat(self._tasks.clock, self._context.receipts, tries=None)
        return ExecutionResult(receipts.files, receipts.bytes, counted_by(error))

    async def _tell(self) -> None:
        if not self._tasks.settings.service.callback:
            return
        try:
            await self._context.catalog.tell(self._order, self._held.record.task_id)
        except CynosureError as error:
            # It asks by itself in any case.
            _log.event("task.callback_failed", level=WARNING, task=self._held.record.task_id, error=error)


def count_failures(history: Sequence[TaskRecord]) -> int:
    """How many attempts have failed since the task was submitted, or by hand submitted again.

    Attempts that were lost or given back are none: neither says anything about the task.
    """
    failures = 0
    for before, after in reversed(list(pairwise(history))):
        if after.status is TaskStatus.SUBMITTED:
            break
        # One that is given back is not counted by `attempt_count` either.
        if after.status is TaskStatus.RETRY_SCHEDULED and after.attempt_count == before.attempt_count:
            failures += 1
    return failures
