"""The same question, asked once for all who wait.

Must not break: nobody is answered with what was asked before they came. Whoever comes while a question is
under way waits for the next one, together with all others who came meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable


class Together:
    """Questions under way in one process, and those behind them, by key."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[None]] = {}
        self._next: dict[Hashable, asyncio.Task[None]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        """Have the work done, from beginning to end after this was called.

        One caller's cancellation does not end the others'.
        """
        current = self._under_way.get(key)
        if current is None:
            task = self._under_way[key] = asyncio.ensure_future(self._do(key, work))
        else:
            waiting = self._next.get(key)
            task = waiting or asyncio.ensure_future(self._wait(key, current, work))
            self._next[key] = task
        task.add_done_callback(_look_at)
        await asyncio.shield(task)

    async def _wait(
        self, key: Hashable, current: asyncio.Task[None], work: Callable[[], Awaitable[None]]
    ) -> None:
        await asyncio.wait([current])
        # From here on it is under way: who comes now must not join it.
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it is this very one
        self._next.pop(key, None)
        self._under_way[key] = task
        await self._do(key, work)

    async def _do(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            if self._under_way.get(key) is asyncio.current_task():
                del self._under_way[key]


def _look_at(done: asyncio.Task[None]) -> None:
    if not done.cancelled():
        done.exception()  # All who asked may have given up.
