"""A worker: leases tasks and works on some of them at once, until it is closed.

    worker = Worker(service, catalog=…, instance="host-1", rng=rng)
    await worker.start(is_predecessor_dead=True)
    …
    await worker.close(drain_s=30)

Must not break: whatever goes wrong with one task, or with the store, the worker goes on; and a worker that is
closed leaves no task behind that looks as if somebody worked on it.
"""

import asyncio
from contextvars import Context
from datetime import timedelta
from random import Random
from typing import Final

from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import ERROR, WARNING, Log
from cynosure.delegation import metrics
from cynosure.delegation.catalog_access import CatalogAccess
from cynosure.delegation.jobs.port import SparkRunner
from cynosure.delegation.service.changes import wait_or_sleep
from cynosure.delegation.service.service import TaskService
from cynosure.delegation.service.settling import repeat
from cynosure.delegation.store.port import Leased
from cynosure.delegation.worker.attempt import Attempt

RETENTION: Final = timedelta(days=30)
"""Tasks that ended earlier are forgotten. Whoever ordered them has looked long before."""
_FORGET_EVERY_S: Final = 3_600.0
_SHORTEST_PAUSE_S: Final = 0.2
"""A task that is due and cannot be leased, because another worker is at it, must not make us spin."""
_LONGEST_PAUSE_S: Final = 60.0
"""Between looks at a store that does not answer."""
_GIVE_BACK_S: Final = 10.0
"""How long tasks may take to be given back when the store does not answer."""
_US: Final = timedelta(microseconds=1)
_log = Log(__name__)


class Worker:
    """One worker of a process. Several of them, here and elsewhere, share one store."""

    def __init__(
        self,
        service: TaskService,
        *,
        catalog: CatalogAccess,
        instance: str,
        rng: Random,
        spark: SparkRunner | None = None,
        slots: int | None = None,
        lease: timedelta | None = None,
    ) -> None:
        """`instance` names the process in the store; no two that live may have the same.

        `slots` and `lease` are those of the settings unless given.
        """
        self._tasks = service.context
        self._catalog = catalog
        self._instance = instance
        self._rng = rng
        self._spark = spark
        settings = self._tasks.settings
        self._slots = settings.service.workers if slots is None else slots
        self._lease = settings.task.lease.lost_timeout if lease is None else lease
        self._polling_s = settings.service.polling.total_seconds()
        self._attempts: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()
        self._failures = 0
        """How often in a row the store gave no task for an error."""

    @property
    def running(self) -> int:
        """How many tasks it works on."""
        return len(self._attempts)

    async def start(self, *, is_predecessor_dead: bool = False) -> None:
        """Begin. `is_predecessor_dead`: no other process of this name lives; what it had is free at once."""
        tasks = self._tasks
        if is_predecessor_dead:
            count = await repeat(tasks.clock, lambda: tasks.store.release(self._instance))
            if count:
                _log.event("worker.released_predecessor", level=WARNING, instance=self._instance, tasks=count)
        for loop in (self._dispatch(), self._forget()):
            # Not in the context of whoever starts it: that may be a request, with heads and spans of its own.
            self._loops.append(asyncio.create_task(loop, context=Context()))

    async def close(self, drain_s: float = 0.0) -> None:
        """Take no new task, let those under way go on for so long, then give them back."""
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await self._wait_for_attempts(drain_s)
        self._stopping.set()
        await self._wait_for_attempts(_GIVE_BACK_S)
        for attempt in self._attempts:
            attempt.cancel()
        await asyncio.gather(*self._attempts, return_exceptions=True)

    async def _wait_for_attempts(self, seconds: float) -> None:
        if not self._attempts:
            return
        sleeping = asyncio.ensure_future(self._tasks.clock.sleep(seconds))
        ending = asyncio.ensure_future(asyncio.wait(self._attempts))
        try:
            await asyncio.wait({sleeping, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (sleeping, ending):
                each.cancel()
            await asyncio.gather(sleeping, ending, return_exceptions=True)

    async def _dispatch(self) -> None:
        while True:
            # Order: what is submitted after the look wakes us.
            with self._tasks.changes.watch_work() as work:
                if len(self._attempts) < self._slots and await self._lease_one():
                    continue
                await wait_or_sleep(work, self._tasks.clock, await self._choose_pause_s())

    async def _lease_one(self) -> bool:
        """Take a task and begin to work on it; whether there was one."""
        clock, lease_s = self._tasks.clock, self._lease.total_seconds()
        # Order: both clocks are read before the request is sent.
        asked_s, now_us = clock.monotonic_s(), clock.now_us()
        try:
            leased = await self._tasks.store.lease(self._instance, now_us=now_us, lease_us=self._lease // _US)
            self._failures = 0
            if leased is None:
                return False
            # Not simply a whole lease: it may be an older one of ours whose answer was lost.
            self._begin(leased, lease_s, asked_s + (leased.lease_until_us - now_us) / 1_000_000)
        except CynosureError as error:
            # Also when there is no such realm any more: whoever closes this worker knows.
            self._failures += 1
            _log.event("worker.lease_failed", level=WARNING, error=error)
            return False
        except Exception as error:
            # The outermost place: a worker that gave up would look alive and do nothing.
            self._failures += 1
            _log.event("worker.lease_failed", level=ERROR, error=error, with_traceback=True)
            return False
        return True

    def _begin(self, leased: Leased, lease_s: float, deadline_s: float) -> None:
        record = leased.record
        if leased.found == "lost":
            metrics.LOST.inc()
            _log.event(
                "task.lost",
                level=WARNING,
                task=record.task_id,
                type=record.task_type,
                attempt=record.attempt_count,
                instance=self._instance,
            )
        attempt = Attempt(
            self._tasks,
            leased,
            lease_s=lease_s,
            deadline_s=deadline_s,
            catalog=self._catalog,
            spark=self._spark,
        )
        running = asyncio.create_task(self._run(attempt, record.task_id), name=f"task {record.task_id}")
        self._attempts.add(running)
        running.add_done_callback(self._end)

    async def _run(self, attempt: Attempt, task_id: str) -> None:
        try:
            await attempt.run(self._stopping)
        except Exception as error:
            # The outermost place. The lease ends by itself, and the task is taken for lost.
            _log.event("task.attempt_broke", level=ERROR, task=task_id, error=error, with_traceback=True)

    def _end(self, attempt: asyncio.Task[None]) -> None:
        self._attempts.discard(attempt)
        self._tasks.changes.tell_work()

    async def _choose_pause_s(self) -> float:
        """How long to wait before looking again: all workers look, so at random; no longer than needed."""
        pause_s = self._polling_s * self._rng.uniform(0.75, 1.25)
        if self._failures:
            return float(min(pause_s * 2 ** min(self._failures - 1, 30), max(pause_s, _LONGEST_PAUSE_S)))
        try:
            due_us = await self._tasks.store.next_due_us()
        except CynosureError:
            # The next look finds out whether the store is back.
            return pause_s
        waited_s = 0.0 if due_us is None else (self._tasks.clock.now_us() - due_us) / 1_000_000
        metrics.QUEUE_AGE.set(max(waited_s, 0.0))
        if due_us is None or len(self._attempts) >= self._slots:
            return pause_s
        return min(pause_s, max(-waited_s, _SHORTEST_PAUSE_S))

    async def _forget(self) -> None:
        while True:
            await self._tasks.clock.sleep(_FORGET_EVERY_S * self._rng.uniform(0.5, 1.0))
            try:
                await self._tasks.store.forget(self._tasks.clock.now_us() - RETENTION // _US)
            except CynosureError as error:
                _log.event("worker.forget_failed", level=WARNING, error=error)
