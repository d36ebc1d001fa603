"""So many files, and so many bytes of them, at once; the others wait in the order they came.

A maintainer must not break: a turn covers a file from its first byte until it is decoded and its bytes are
gone. That is what bounds the memory of a plan over a thousand manifests, not their number.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ReadGate:
    """What is under way in one process."""

    def __init__(self, *, most_files: int, most_bytes: int) -> None:
        self._most_files = most_files
        self._most_bytes = most_bytes
        self._files = 0
        self._bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def turn(self, size_bytes: int) -> AsyncIterator[None]:
        """Wait until there is room. What is larger than all the room has it alone."""
        size_bytes = min(size_bytes, self._most_bytes)
        if self._waiting or not self._has_room(size_bytes):
            await self._wait(size_bytes)
        else:
            self._take(size_bytes)
        try:
            yield
        finally:
            self._give_back(size_bytes)

    async def _wait(self, size_bytes: int) -> None:
        place = (size_bytes, asyncio.get_running_loop().create_future())
        self._waiting.append(place)
        try:
            await place[1]
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
                self._let_in()
            else:
                # It got its turn in the moment in which it was given up.
                self._give_back(size_bytes)
            raise

    def _has_room(self, size_bytes: int) -> bool:
        return self._files < self._most_files and self._bytes + size_bytes <= self._most_bytes

    def _take(self, size_bytes: int) -> None:
        self._files += 1
        self._bytes += size_bytes

    def _give_back(self, size_bytes: int) -> None:
        self._files -= 1
        self._bytes -= size_bytes
        self._let_in()

    def _let_in(self) -> None:
        # In order: a large file would otherwise wait for ever behind small ones that come later.
        while self._waiting and self._has_room(self._waiting[0][0]):
            size_bytes, turn = self._waiting.popleft()
            self._take(size_bytes)
            turn.set_result(None)
