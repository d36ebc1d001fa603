"""The same work, asked for several times at once, done once."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar, cast

T = TypeVar("T")


class SingleFlight:
    """Work under way in one process, by key."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        """Join the work under this key, or begin it. One caller's cancellation does not end the others'."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.ensure_future(_call(work))
            task.add_done_callback(lambda done: self._end(key, done))
        return cast(T, await asyncio.shield(task))

    def _end(self, key: Hashable, done: asyncio.Task[Any]) -> None:
        self._under_way.pop(key, None)
        if not done.cancelled():
            done.exception()  # Looked at: all who asked may have given up.


async def _call(work: Callable[[], Awaitable[T]]) -> T:
    return await work()
