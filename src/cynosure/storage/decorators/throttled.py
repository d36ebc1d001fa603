"""So many operations of one storage at once; the others wait for their turn.

A maintainer must not break: nobody holds a turn while its caller works on what it got. A listing has one only
while it fetches, else whoever deletes what it lists would wait for itself.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from copy import copy

from cynosure.storage.decorators.listing import open_listing
from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.fileio import READ_LIMIT_BYTES, FileInfo, FileIO
from cynosure.storage.location import Location


class ThrottledFileIO:
    """Files behind a gate."""

    def __init__(self, files: FileIO, *, most: int, wait_s: float) -> None:
        self._files = self.inner = files
        self._turns = asyncio.Semaphore(most)
        self._wait_s = wait_s

    def around(self, files: FileIO) -> "ThrottledFileIO":
        """The same around other files."""
        own = copy(self)
        own._files = own.inner = files
        return own

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        async with self._turn(location):
            return await self._files.read(location, limit_bytes=limit_bytes)

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        async with self._turn(location):
            await self._files.write(location, data, overwrite=overwrite)

    async def delete(self, location: Location) -> None:
        async with self._turn(location):
            await self._files.delete(location)

    async def delete_many(self, locations: Iterable[Location]) -> None:
        chosen = tuple(locations)
        if chosen:
            async with self._turn(chosen[0]):
                await self._files.delete_many(chosen)

    async def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        async with aclosing(open_listing(self._files, prefix)) as found:
            while True:
                async with self._turn(prefix):
                    info = await anext(found, None)
                if info is None:
                    return
                yield info

    async def exists(self, location: Location) -> bool:
        async with self._turn(location):
            return await self._files.exists(location)

    def _turn(self, location: Location) -> "_Turn":
        return _Turn(self._turns, self._wait_s, location)


class _Turn:
    """One operation's turn. A class, because every commit takes one and a generator costs it 5 µs more."""

    __slots__ = ("_location", "_turns", "_wait_s")

    def __init__(self, turns: asyncio.Semaphore, wait_s: float, location: Location) -> None:
        self._turns = turns
        self._wait_s = wait_s
        self._location = location

    async def __aenter__(self) -> None:
        if not self._turns.locked():
            await self._turns.acquire()
            return
        try:
            async with asyncio.timeout(self._wait_s):
                await self._turns.acquire()
        except TimeoutError as error:
            raise StorageUnavailable(
                "Too many operations of this storage are under way",
                location=self._location.text,
                fix="Try again later, or raise storage.max_concurrent.",
            ) from error

    async def __aexit__(self, *_: object) -> None:
        self._turns.release()
