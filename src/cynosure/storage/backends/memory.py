"""Files in memory: the executable specification of `FileIO`, and the storage of tests.

A maintainer must not break: it does what the contract says and nothing cleverer.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import NamedTuple

from cynosure.common.clock import Clock
from cynosure.storage.fileio import (
    READ_LIMIT_BYTES,
    FileInfo,
    check_allowed,
    check_file,
    missing,
    taken,
    too_large,
)
from cynosure.storage.location import Location


class _File(NamedTuple):
    data: bytes
    modified_us: int


class MemoryFileIO:
    """A dictionary of files."""

    def __init__(self, allowed: Sequence[Location], clock: Clock) -> None:
        self._allowed = tuple(allowed)
        self._clock = clock
        self._files: dict[Location, _File] = {}

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        check_file(location, self._allowed)
        if (file := self._files.get(location)) is None:
            raise missing(location)
        if len(file.data) > limit_bytes:
            raise too_large(location, limit_bytes)
        return file.data

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        check_file(location, self._allowed)
        present = self._files.get(location)
        if present is not None and not overwrite:
            if present.data != data:
                raise taken(location)
            return
        self._files[location] = _File(bytes(data), self._clock.now_us())

    async def delete(self, location: Location) -> None:
        check_file(location, self._allowed)
        self._files.pop(location, None)

    async def delete_many(self, locations: Iterable[Location]) -> None:
        for location in locations:
            await self.delete(location)

    async def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        check_allowed(prefix, self._allowed)
        for location, file in list(self._files.items()):
            if location.is_within(prefix) and location != prefix:
                below = prefix.child(*location.segments[len(prefix.segments) :])
                yield FileInfo(below, len(file.data), file.modified_us)

    async def exists(self, location: Location) -> bool:
        check_file(location, self._allowed)
        return location in self._files
