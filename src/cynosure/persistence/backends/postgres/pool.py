"""A pool of connections, as small as our use of them allows.

asyncpg's own pool makes two tasks per use, which measured 40 us of CPU where the statement itself takes 60.
A maintainer must not break: a connection whose statement was cut off (cancelled, timed out) is closed and
never used again, because the server may still be told to cancel, and would cancel the next user's statement.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from cynosure.persistence.backends.postgres.faults import DRIVER_ERRORS

Connection = Any
"""A connection of asyncpg, which has no types."""

_IDLE_S: Final = 300.0
"""Longest rest of a connection: routers forget silent ones without telling either end."""
_CLOSE_TIMEOUT_S: Final = 5.0


class Pool:
    """At most `size` connections, made when needed, the last used first. Those who wait come in order."""

    def __init__(
        self, connect: Callable[[], Coroutine[Any, Any, Connection]], size: int, timeout_s: float
    ) -> None:
        self._connect = connect
        self._size = size
        self._timeout_s = timeout_s
        self._free = asyncio.Semaphore(size)
        self._idle: list[tuple[Connection, float]] = []
        self._background: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    async def acquire(self) -> Connection:
        """A connection that was open a moment ago. `TimeoutError` when none becomes free in time."""
        if self._free.locked():
            async with asyncio.timeout(self._timeout_s):
                await self._free.acquire()
        else:
            await self._free.acquire()
        try:
            oldest = asyncio.get_running_loop().time() - _IDLE_S
            while self._idle:
                connection, since = self._idle.pop()
                if connection.is_closed():
                    continue
                if since >= oldest:
                    return connection
                self._close_in_background(connection)
            return await self._open()
        except BaseException:
            self._free.release()
            raise

    def release(self, connection: Connection, *, is_sound: bool) -> None:
        """Give a connection back. It is closed unless `is_sound`: its last statement ran to its end."""
        if not is_sound or self._is_closed:
            self._close_in_background(connection)
        elif not connection.is_closed():
            self._idle.append((connection, asyncio.get_running_loop().time()))
        self._free.release()

    def forget_idle(self) -> None:
        """Close the connections that nobody uses."""
        for connection, _ in self._idle:
            self._close_in_background(connection)
        self._idle.clear()

    async def close(self) -> None:
        """Wait for those who use a connection, within reason, and close all."""
        self._is_closed = True
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                for _ in range(self._size):
                    await self._free.acquire()
        except TimeoutError:
            # Whoever still uses one closes it by releasing it.
            pass
        self.forget_idle()
        while self._background:
            await asyncio.wait(self._background)

    async def _open(self) -> Connection:
        # Not cancelled with its caller: the driver does not clean up a handshake that is cut off. The next
        # caller uses what comes of it.
        opening = self._run_in_background(self._connect())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(self._keep)
            raise

    def _keep(self, opened: "asyncio.Task[Connection]") -> None:
        if opened.cancelled() or opened.exception() is not None:
            return
        if self._is_closed:
            self._close_in_background(opened.result())
        else:
            self._idle.append((opened.result(), asyncio.get_running_loop().time()))

    def _close_in_background(self, connection: Connection) -> None:
        if not connection.is_closed():
            self._run_in_background(close_quietly(connection))

    def _run_in_background(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work)
        # The loop itself keeps only a weak reference.
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


async def close_quietly(connection: Connection) -> None:
    """Close gracefully, which also waits until a pending cancel request has reached the server."""
    try:
        await connection.close(timeout=_CLOSE_TIMEOUT_S)
    except DRIVER_ERRORS:
        connection.terminate()
