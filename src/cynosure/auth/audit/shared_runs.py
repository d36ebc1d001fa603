"""The same work, asked for by several at once, done once for all who asked before it began.

Must not break: whoever asks gets the outcome of a run that began after they asked; joining one that is under
way could miss what was acknowledged in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedRuns(Generic[T]):
    """Runs of one piece of work in one process: at most one under way, and one that gathers those who ask."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._under_way: asyncio.Task[T] | None = None
        self._gathering: asyncio.Task[T] | None = None

    async def run(self) -> T:
        """What a run gives that begins after this call. Cancelling one caller ends nobody else's wait."""
        if self._gathering is None:
            self._gathering = asyncio.create_task(self._run_after(self._under_way))
            # Everyone who waits may be gone by then; that is not worth a warning.
            self._gathering.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self._gathering)

    async def close(self) -> None:
        """Wait for what is under way."""
        tasks = [task for task in (self._under_way, self._gathering) if task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _run_after(self, before: "asyncio.Task[T] | None") -> T:
        if before is not None:
            await asyncio.wait([before])
        # Order: from here on whoever asks is too late for this run.
        self._under_way, self._gathering = self._gathering, None
        return await self._work()
