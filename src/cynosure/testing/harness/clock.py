"""A clock that moves only when told to.

Wall and monotonic time are separate on purpose: an operator may set the wall clock back, and code under
test must survive it, but nothing can make monotonic time go back.
"""

import asyncio
import heapq
import itertools
from datetime import UTC, datetime

_START_US = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000


class ManualClock:
    """A `cynosure.common.clock.Clock` in the hands of a test."""

    def __init__(self, *, now_us: int = _START_US, monotonic_s: float = 1_000.0) -> None:
        self._now_us = now_us
        self._monotonic_us = round(monotonic_s * 1_000_000)
        # Whole microseconds, so that sums of steps meet a sleeper's due time exactly.
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = itertools.count()
        self._went_to_sleep = asyncio.Event()

    def now_us(self) -> int:
        return self._now_us

    def monotonic_s(self) -> float:
        return self._monotonic_us / 1_000_000

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        awake = asyncio.get_running_loop().create_future()
        due_us = self._monotonic_us + max(1, round(seconds * 1_000_000))
        entry = (due_us, next(self._arrivals), awake)
        heapq.heappush(self._sleepers, entry)
        self._went_to_sleep.set()
        try:
            await awake
        finally:
            if entry in self._sleepers:  # cancelled while asleep
                self._sleepers.remove(entry)
                heapq.heapify(self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Let time pass. Sleepers wake in the order of their due times, each seeing its own due time.

        Tasks get a turn before, between and after, so a loop that sleeps again is woken again.
        """
        if seconds < 0:
            raise ValueError("monotonic time cannot go backwards; step_wall sets the wall clock")
        until_us = self._monotonic_us + round(seconds * 1_000_000)
        await _let_tasks_run()
        while self._sleepers and self._sleepers[0][0] <= until_us:
            due_us, _, awake = heapq.heappop(self._sleepers)
            self._pass_until(due_us)
            if not awake.done():
                awake.set_result(None)
            await _let_tasks_run()
        self._pass_until(until_us)

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back with a negative number. No time passes and nobody wakes."""
        self._now_us += round(seconds * 1_000_000)

    @property
    def sleeping(self) -> int:
        """How many tasks are asleep on this clock."""
        return len(self._sleepers)

    async def wait_for_sleepers(self, count: int) -> None:
        """Wait until `count` tasks are asleep: code that does real I/O in between has come to rest."""
        while len(self._sleepers) < count:
            self._went_to_sleep.clear()
            await self._went_to_sleep.wait()

    def _pass_until(self, monotonic_us: int) -> None:
        self._now_us += monotonic_us - self._monotonic_us
        self._monotonic_us = monotonic_us


async def _let_tasks_run() -> None:
    # A woken task may have to pass a few futures before it sleeps again. Ten turns cover every chain
    # of locks and queues here; code that does real I/O needs `wait_for_sleepers` in any case.
    for _ in range(10):
        await asyncio.sleep(0)
