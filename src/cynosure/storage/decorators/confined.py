"""Files of some places only, whatever the storage inside would reach.

A maintainer must not break: every method asks `check_allowed` before it touches anything; and of local files,
whose writers can make links, no link below a place is followed to files of others.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Protocol, runtime_checkable

from cynosure.storage.fileio import READ_LIMIT_BYTES, FileInfo, FileIO, check_allowed, check_file
from cynosure.storage.location import Location
from cynosure.storage.unnamed import Removed, find_unnamed


@runtime_checkable
class _Linked(Protocol):
    """Files that may be reached through links."""

    def without_links(self, places: Sequence[Location]) -> FileIO: ...


@runtime_checkable
class _Decorator(Protocol):
    """What other files can be put into."""

    inner: FileIO

    def around(self, files: FileIO) -> FileIO: ...


def confine(files: FileIO, places: Sequence[Location]) -> "ConfinedFileIO":
    """Files of these places, with all that is around them, and no link followed."""
    return ConfinedFileIO(_without_links(files, places), places)


def _without_links(files: FileIO, places: Sequence[Location]) -> FileIO:
    if isinstance(files, _Linked):
        return files.without_links(places)
    return files.around(_without_links(files.inner, places)) if isinstance(files, _Decorator) else files


class ConfinedFileIO:
    """A `FileIO` that refuses what is outside of its places."""

    def __init__(self, files: FileIO, places: Sequence[Location]) -> None:
        self._files = files
        self._places = tuple(places)

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        check_file(location, self._places)
        return await self._files.read(location, limit_bytes=limit_bytes)

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        check_file(location, self._places)
        await self._files.write(location, data, overwrite=overwrite)

    async def delete(self, location: Location) -> None:
        check_file(location, self._places)
        await self._files.delete(location)

    async def delete_many(self, locations: Iterable[Location]) -> None:
        wanted = tuple(locations)
        for location in wanted:
            check_file(location, self._places)
        await self._files.delete_many(wanted)

    def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        check_allowed(prefix, self._places)
        return self._files.list(prefix)

    async def delete_unnamed(self, place: Location, *, with_markers: bool) -> Removed:
        """See `storage.unnamed`."""
        check_allowed(place, self._places)
        inner = find_unnamed(self._files)
        return Removed() if inner is None else await inner.delete_unnamed(place, with_markers=with_markers)

    async def exists(self, location: Location) -> bool:
        check_file(location, self._places)
        return await self._files.exists(location)
