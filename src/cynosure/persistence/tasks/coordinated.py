"""Run tasks so that at most one instance of each is under way: claim, run, record, take over.

Must not break: work starts only after its claim was acknowledged, and is cancelled as soon as the lease
is lost; nothing but the task's own row decides who runs it.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import NamedTuple, NoReturn

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.errors import (
    Conflict,
    CynosureError,
    LeaseLost,
    Misconfigured,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.common.telemetry.logs import INFO, WARNING, Log
from cynosure.persistence.ids.owner import Owner, new_holder
from cynosure.persistence.ids.snowflake import named_id
from cynosure.persistence.store import Store, Versioned
from cynosure.persistence.tasks import row as rows
from cynosure.persistence.tasks.row import TASK, RunRecord, TaskRow, to_us
from cynosure.persistence.tasks.running import TaskRun
from cynosure.persistence.tasks.task import Task

_CLAIM_RACES = 3
_RECORD_RETRY_S = 1.0
log = Log(__name__)


class TaskStatus(Struct, frozen=True):
    """A task as operators see it."""

    name: str
    state: str
    """`idle`, `running`, or `abandoned`: its process died and nobody has taken it over yet."""
    owner: Owner | None
    attempt: int
    lease_until_us: int
    started_us: int
    finished_us: int
    succeeded_us: int
    next_due_us: int
    result: str
    error: str
    progress_bytes: int
    runs: list[RunRecord]
    """Newest first."""


class _Seen(NamedTuple):
    token: str
    since_s: float


class CoordinatedTasks:
    """The tasks of one realm and catalog, as one process sees them."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rng: Random,
        owner: Owner,
        *,
        lease_s: float = 60.0,
        skew_margin_s: float = 5.0,
    ) -> None:
        self._store = store
        self._clock = clock
        self._rng = rng
        self._owner = owner
        self._lease_s = lease_s
        self._margin_s = skew_margin_s
        self._seen: dict[str, _Seen] = {}

    async def run_if_due(self, task: Task) -> RunRecord | None:
        """Run the task here if it is due and nobody runs it. `None` when not.

        A failure of the work is in the record, not raised. Cancelling this call cancels the work and
        leaves the task to others, with its progress.
        """
        run = await self._claim(task, is_forced=False)
        return None if run is None else await self._run(task, run)

    async def run_now(self, task: Task) -> RunRecord:
        """Run the task here although it is not due. `Conflict` when someone runs it already."""
        for _ in range(_CLAIM_RACES):
            if run := await self._claim(task, is_forced=True):
                return await self._run(task, run)
        current = await self._fetch(task)
        raise Conflict(
            "The task is running already",
            fix="Wait until it has ended; 'cynosure store status' shows it.",
            task=task.name,
            owner="" if current is None else str(current.value.owner),
        )

    async def find(self, name: str) -> TaskStatus | None:
        """One task, or `None` when no server ever tried to run it."""
        row = await self._store.fetch(TASK, named_id(name))
        return None if row is None else self._status(row.value)

    async def list(self) -> list[TaskStatus]:
        """All tasks that any server ever tried to run, by name."""
        return sorted(
            (self._status(row.value) for row in await self._store.scan(TASK)), key=lambda status: status.name
        )

    # --- claim ----------------------------------------------------------------------------------

    async def _claim(self, task: Task, *, is_forced: bool) -> TaskRun | None:
        old = await self._fetch(task)
        # Order: both clocks are read before the request is sent.
        deadline_s, now_us = self._clock.monotonic_s() + self._lease_s, self._clock.now_us()
        if old is None:
            row = TaskRow(name=task.name, next_due_us=now_us + to_us(task.first_after_s))
        else:
            row = old.value
        if old is not None and row.holder:
            may_claim = self._is_abandoned(old, now_us, 0.0 if is_forced else task.takeover_delay_s(row))
        else:
            may_claim = is_forced or task.due_us(row, now_us) <= now_us
        if not may_claim:
            if old is None:
                await self._store.insert(TASK, named_id(task.name), row)
            return None
        claimed = rows.claimed(
            row, holder=new_holder(self._rng), owner=self._owner, now_us=now_us, lease_s=self._lease_s
        )
        if old is None:
            won = await self._store.insert(TASK, named_id(task.name), claimed)
        else:
            won = await self._store.swap(TASK, old, claimed)
        return None if won is None else TaskRun(self._store, self._clock, won, deadline_s)

    def _is_abandoned(self, old: Versioned[TaskRow], now_us: int, delay_s: float) -> bool:
        row, now_s = old.value, self._clock.monotonic_s()
        wait_s = self._margin_s + delay_s
        if now_us >= row.lease_until_us + to_us(wait_s):
            return True
        # A holder whose clock was far ahead would keep its task from others long after its death. But a
        # living holder changes the row within each lease, and that needs no agreement on the time.
        seen = self._seen.get(row.name)
        if seen is None or seen.token != old.token:
            self._seen[row.name] = _Seen(old.token, now_s)
            return False
        return now_s >= seen.since_s + row.lease_s + wait_s

    async def _fetch(self, task: Task) -> Versioned[TaskRow] | None:
        found = await self._store.fetch(TASK, named_id(task.name))
        if found is not None and found.value.name != task.name:
            raise Misconfigured(
                "Two tasks have names with the same hash",
                fix="Rename one of them.",
                task=task.name,
                other=found.value.name,
            )
        return found

    # --- run --------------------------------------------------------------------------------------

    async def _run(self, task: Task, run: TaskRun) -> RunRecord:
        log.event("task.started", task=task.name, attempt=run.attempt)

        async def work() -> str:
            return await task.run(run)

        working = asyncio.create_task(work(), name=f"task {task.name}")
        keeping = [asyncio.create_task(run.keep()), asyncio.create_task(run.expire())]
        try:
            await asyncio.wait([working, *keeping], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await _stop([working, *keeping])
            try:
                await run.finish(lambda row: rows.interrupted(row, "shut down", self._clock.now_us()))
            except CynosureError as error:
                log.event("task.not_released", level=WARNING, task=task.name, error=error)
            raise
        failures = await _stop([working, *keeping])
        return await self._record(task, run, working, failures[0] if failures else None)

    async def _record(
        self, task: Task, run: TaskRun, working: "asyncio.Task[str]", failure: BaseException | None
    ) -> RunRecord:
        """Write what became of the work, for as long as the lease lasts."""
        now_us, spread = self._clock.now_us(), self._rng.uniform(0.75, 1.25)
        is_done = not working.cancelled() and working.exception() is None
        is_lost = run.is_lost

        def after(row: TaskRow) -> TaskRow:
            if is_done:
                due_us = max(now_us, row.started_us + to_us(task.every_s))
                return rows.succeeded(row, working.result(), now_us, next_due_us=due_us)
            if is_lost:
                due_us = now_us + to_us(task.takeover_delay_s(row))
                return rows.lost(row, "lost its lease", now_us, next_due_us=due_us)
            if (again_us := task.after_failure_us(row, now_us, spread)) is not None:
                return rows.failed(row, _describe(failure), now_us, next_due_us=again_us)
            due_us = now_us + to_us(task.every_s)
            return rows.given_up(row, _describe(failure), now_us, next_due_us=due_us)

        unrecorded = rows.lost(run.row, "lost its lease", now_us, next_due_us=now_us).runs()[0]
        record = await self._write_record(task, run, after) or unrecorded
        level = INFO if record.outcome == "succeeded" else WARNING
        log.event("task.ended", level=level, task=task.name, outcome=record.outcome, error=failure)
        return record

    async def _write_record(
        self, task: Task, run: TaskRun, after: Callable[[TaskRow], TaskRow]
    ) -> RunRecord | None:
        while True:
            try:
                return (await run.finish(after)).runs()[0]
            except LeaseLost:
                return None
            except (Unavailable, OutcomeUnknown) as error:
                # What is not recorded is done again, so it is worth trying for as long as it is ours.
                log.event("task.record_failed", level=WARNING, task=task.name, error=error)
                if run.is_lost:
                    return None
            await self._clock.sleep(_RECORD_RETRY_S * self._rng.uniform(0.5, 1.0))

    def _status(self, row: TaskRow) -> TaskStatus:
        is_abandoned = bool(row.holder) and self._clock.now_us() >= row.lease_until_us + to_us(self._margin_s)
        return TaskStatus(
            name=row.name,
            state="abandoned" if is_abandoned else row.state,
            owner=row.owner,
            attempt=row.attempt,
            lease_until_us=row.lease_until_us,
            started_us=row.started_us,
            finished_us=row.finished_us,
            succeeded_us=row.succeeded_us,
            next_due_us=row.next_due_us,
            result=row.result,
            error=row.error,
            progress_bytes=len(row.progress),
            runs=row.runs(),
        )


async def _stop(tasks: "list[asyncio.Task[str] | asyncio.Task[NoReturn]]") -> list[BaseException]:
    """Cancel and await them all; the errors of those that had failed by themselves."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return [error for task in tasks if not task.cancelled() and (error := task.exception()) is not None]


def _describe(error: BaseException | None) -> str:
    if error is None:
        return "cancelled from within"
    return str(error) if isinstance(error, CynosureError) else f"{type(error).__name__}: {error}"
