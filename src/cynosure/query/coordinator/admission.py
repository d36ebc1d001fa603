"""Who may begin: so many at once, so many waiting, and nobody new while memory is nearly used up.

    green < 60 %    yellow < 75 %    orange < 90 %    red: new statements wait

The levels below red are counted, and no more: nobody is made to spill at orange. DuckDB does so by itself
when its limit is reached, statement by statement; and its settings are locked before the first one, so that
no statement can change them (`query/local/database.py`), nor can we.

A maintainer must not break: a statement that waits holds nothing; one that left gives its place to the next
in the order in which they came.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.telemetry.metrics import publish_before_render
from cynosure.query.coordinator.metrics import MEMORY, QUEUED, RUNNING, WATERMARKS
from cynosure.query.errors import QueueFull
from cynosure.query.settings import QuerySettings

_RED_POLL_S: Final = 0.05


class Watermark(StrEnum):
    """How full the memory of the local engine is."""

    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"


def find_watermark(ratio: float) -> Watermark:
    """The level of a utilization."""
    if ratio < 0.60:
        return Watermark.GREEN
    if ratio < 0.75:
        return Watermark.YELLOW
    return Watermark.ORANGE if ratio < 0.90 else Watermark.RED


class Admission:
    """The gate in front of planning and engines."""

    def __init__(self, settings: QuerySettings, clock: Clock, memory_ratio: Callable[[], float]) -> None:
        self._concurrent = settings.concurrent
        self._queued = settings.queued
        self._clock = clock
        self._memory_ratio = memory_ratio
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        publish_before_render(self)

    def publish(self) -> None:
        """Say how full memory is now."""
        MEMORY.set(self._memory_ratio())

    def check(self, *, coming: int = 0) -> None:
        """`QueueFull` when nobody more can wait: so many were taken before, and are not here yet."""
        if self._running + len(self._waiting) + coming >= self._concurrent + self._queued:
            raise QueueFull(
                "Too many statements are waiting",
                fix="Send it again a little later, or raise query.queued.",
                queued=len(self._waiting) + coming,
            )

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[None]:
        """Wait for a turn, and have it."""
        await self._enter()
        try:
            await self._wait_for_memory()
            yield
        finally:
            self._leave()

    async def _enter(self) -> None:
        if self._running < self._concurrent and not self._waiting:
            self._running += 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            QUEUED.set(len(self._waiting))
            try:
                # Whoever leaves hands the place over: the number of those running does not change.
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave()
                elif turn in self._waiting:
                    # Whoever left meanwhile may have passed it over already.
                    self._waiting.remove(turn)
                raise
            finally:
                QUEUED.set(len(self._waiting))
        RUNNING.set(self._running)

    def _leave(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1
        RUNNING.set(self._running)

    async def _wait_for_memory(self) -> None:
        while True:
            level = find_watermark(self._memory_ratio())
            # Alone it may begin whatever is reserved: nobody else would ever give memory back.
            if level is not Watermark.RED or self._running == 1:
                WATERMARKS.inc(level=level.value)
                return
            await self._clock.sleep(_RED_POLL_S)
