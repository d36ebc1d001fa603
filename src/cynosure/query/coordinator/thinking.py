"""Threads that parse and bind statements: work that nothing interrupts, and that waits for nobody.

A maintainer must not break: one user has a part of the threads only, however long each takes; and a turn is
given back when its thread is done, not when whoever asked for it has left.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import Final, TypeVar

from cynosure.query.errors import QueueFull

_THREADS: Final = 8
_OF_ONE: Final = 2
_T = TypeVar("_T")


class _User:
    __slots__ = ("count", "turns")

    def __init__(self) -> None:
        self.count = 0
        """At work and waiting."""
        self.turns = asyncio.Semaphore(_OF_ONE)


class Thinking:
    """Turns of users."""

    def __init__(self, most_of_one: int) -> None:
        """So many pieces of work may wait for each user."""
        self._most = most_of_one
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="cynosure-sql")
        self._users: dict[str, _User] = {}

    async def run(self, owner: str, work: Callable[[], _T]) -> _T:
        """What `work` gives; `QueueFull` when too much of this user waits."""
        user = self._users.setdefault(owner, _User())
        if user.count >= self._most + _OF_ONE:
            raise QueueFull(
                "Too many statements are waiting",
                fix="Send it again a little later, or raise query.queued.",
                queued=user.count,
            )
        user.count += 1
        try:
            await user.turns.acquire()
        except asyncio.CancelledError:
            self._leave(owner, user)
            raise
        loop = asyncio.get_running_loop()

        def give_back() -> None:
            user.turns.release()
            self._leave(owner, user)

        def end(_: object) -> None:
            # A loop that has ended has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(give_back)

        done = self._pool.submit(copy_context().run, work)
        done.add_done_callback(end)
        return await asyncio.wrap_future(done)

    def close(self) -> None:
        """Nothing more is begun. What is at work is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _leave(self, owner: str, user: _User) -> None:
        user.count -= 1
        if not user.count:
            del self._users[owner]
