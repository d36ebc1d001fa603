"""Counts what is done to files: operations and their outcomes, bytes, seconds.

A maintainer must not break: an operation that was given up by its caller is not counted, neither as done nor
as failed.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from copy import copy
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.errors import AlreadyExists, CynosureError, TooLarge
from cynosure.storage.decorators.listing import open_listing
from cynosure.storage.errors import FileMissing, StorageRefused, StorageUnavailable
from cynosure.storage.fileio import READ_LIMIT_BYTES, FileInfo, FileIO
from cynosure.storage.location import Location
from cynosure.storage.metrics import TALLIES

_OUTCOMES: Final[tuple[tuple[type[CynosureError], str], ...]] = (
    (FileMissing, "missing"),
    (AlreadyExists, "taken"),
    (StorageRefused, "refused"),
    (StorageUnavailable, "unavailable"),
    (TooLarge, "too large"),
)


class MeteredFileIO:
    """Files whose use is counted."""

    def __init__(self, files: FileIO, kind: str, clock: Clock) -> None:
        self._files = self.inner = files
        self._kind = kind
        self._clock = clock

    def around(self, files: FileIO) -> "MeteredFileIO":
        """The same around other files."""
        own = copy(self)
        own._files = own.inner = files
        return own

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        with self._measuring("read"):
            data = await self._files.read(location, limit_bytes=limit_bytes)
        TALLIES.read(self._kind, len(data))
        return data

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        with self._measuring("write"):
            await self._files.write(location, data, overwrite=overwrite)
        TALLIES.written(self._kind, len(data))

    async def delete(self, location: Location) -> None:
        with self._measuring("delete"):
            await self._files.delete(location)

    async def delete_many(self, locations: Iterable[Location]) -> None:
        with self._measuring("delete_many"):
            await self._files.delete_many(locations)

    async def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        async with aclosing(open_listing(self._files, prefix)) as found:
            # Counted once, when its first file is there: what comes later is the pace of whoever reads it.
            with self._measuring("list"):
                info = await anext(found, None)
            while info is not None:
                yield info
                info = await anext(found, None)

    async def exists(self, location: Location) -> bool:
        with self._measuring("exists"):
            return await self._files.exists(location)

    def _measuring(self, operation: str) -> "_Measuring":
        return _Measuring(self._kind, operation, self._clock.monotonic_s)


class _Measuring:
    """One operation. A class, because every commit has one and a generator costs it 3 µs more."""

    __slots__ = ("_kind", "_monotonic_s", "_operation", "_started_s")

    def __init__(self, kind: str, operation: str, monotonic_s: Callable[[], float]) -> None:
        self._kind = kind
        self._operation = operation
        self._monotonic_s = monotonic_s

    def __enter__(self) -> None:
        self._started_s = self._monotonic_s()

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        if error is None:
            TALLIES.done(self._kind, self._operation, self._monotonic_s() - self._started_s)
        elif isinstance(error, CynosureError):
            outcome = next((word for kind, word in _OUTCOMES if isinstance(error, kind)), "failed")
            TALLIES.failed(self._kind, self._operation, outcome)
