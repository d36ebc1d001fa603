"""A line in the log for every file that was written or deleted.

A maintainer must not break: what failed leaves a line too, because it may have been done all the same.
Contents never do.
"""

from collections.abc import AsyncIterator, Iterable
from copy import copy

from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.storage.fileio import READ_LIMIT_BYTES, FileInfo, FileIO
from cynosure.storage.location import Location

_log = Log(__name__)


class AuditedFileIO:
    """Files whose changes are logged."""

    def __init__(self, files: FileIO) -> None:
        self._files = self.inner = files

    def around(self, files: FileIO) -> "AuditedFileIO":
        """The same around other files."""
        own = copy(self)
        own._files = own.inner = files
        return own

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        return await self._files.read(location, limit_bytes=limit_bytes)

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        try:
            await self._files.write(location, data, overwrite=overwrite)
        except CynosureError as error:
            _log.event("file.write_failed", level=WARNING, error=error, location=location.text)
            raise
        _log.event("file.written", location=location.text, size_bytes=len(data), is_overwrite=overwrite)

    async def delete(self, location: Location) -> None:
        await self._delete((location,), one=location)

    async def delete_many(self, locations: Iterable[Location]) -> None:
        await self._delete(tuple(locations))

    async def _delete(self, locations: tuple[Location, ...], *, one: Location | None = None) -> None:
        try:
            if one is None:
                await self._files.delete_many(locations)
            else:
                await self._files.delete(one)
        except CynosureError as error:
            for location in locations:
                _log.event("file.delete_failed", level=WARNING, error=error, location=location.text)
            raise
        for location in locations:
            _log.event("file.deleted", location=location.text)

    def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        return self._files.list(prefix)

    async def exists(self, location: Location) -> bool:
        return await self._files.exists(location)
