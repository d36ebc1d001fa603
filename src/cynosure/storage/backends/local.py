"""Files of this machine, for development and single-machine installations.

A small new file is written on the event loop: open, write and close reach the page cache only and cost less
than handing the work to a thread does (10 kB on tmpfs: 30 us here, 75-110 us in a thread, 85-130 us with
obstore's LocalStore; on ext4: 60, 100 and 120 us). Everything else runs in a thread.

New files are written under their final name and not synced. A temporary name would not help: nobody knows the
name before `write` has returned, a killed process leaves a file that nothing refers to under either name, and
only syncing (milliseconds) makes a file survive a power cut. The catalog's state is in its store, which does
sync, and a metadata file that a power cut has torn can be exported again.

A maintainer must not break: files are reached through `LocalTree` only.
"""

import asyncio
import errno
import itertools
import os
import stat
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from cynosure.common.errors import CynosureError
from cynosure.storage.backends.local_tree import ABSENT, LocalTree, kind_of, write_new
from cynosure.storage.errors import StorageRefused, StorageUnavailable
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
from cynosure.storage.unnamed import Removed

_ON_LOOP_BYTES: Final = 64 * 2**10
_LISTED_AT_ONCE: Final = 1_000
_REFUSALS: Final = frozenset(
    # A link where a file should be, and a file where a directory should be, are refusals too.
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ELOOP, errno.ENOTDIR, errno.EISDIR}
)


class LocalFileIO:
    """Files below the allowed locations of this machine."""

    def __init__(self, allowed: Sequence[Location], *, unlinked: Sequence[Location] = ()) -> None:
        """`unlinked`: places whose writers are not trusted to make links to others (`LocalTree`)."""
        self._allowed = tuple(allowed)
        self._tree = LocalTree(self._allowed, unlinked=unlinked)
        self._counter = itertools.count()

    def without_links(self, places: Sequence[Location]) -> "LocalFileIO":
        """The same files, with no link below these places followed."""
        return LocalFileIO(self._allowed, unlinked=places)

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        check_file(location, self._allowed)
        return await asyncio.to_thread(self._read, location, limit_bytes)

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        check_file(location, self._allowed)
        if overwrite:
            await asyncio.to_thread(self._replace, location, data)
        elif len(data) > _ON_LOOP_BYTES:
            await asyncio.to_thread(self._create, location, data)
        else:
            self._create(location, data)

    async def delete(self, location: Location) -> None:
        await self.delete_many((location,))

    async def delete_many(self, locations: Iterable[Location]) -> None:
        chosen = tuple(locations)
        for location in chosen:
            check_file(location, self._allowed)
        await asyncio.to_thread(self._delete_all, chosen)

    async def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        check_allowed(prefix, self._allowed)
        files = self._tree.walk(prefix)

        def take() -> tuple[FileInfo, ...]:
            with _translating(prefix):
                return tuple(itertools.islice(files, _LISTED_AT_ONCE))

        while batch := await asyncio.to_thread(take):
            for info in batch:
                yield info

    async def delete_unnamed(self, place: Location, *, with_markers: bool) -> Removed:
        """See `storage.unnamed`."""
        check_allowed(place, self._allowed)

        def prune() -> Removed:
            with _translating(place):
                return Removed(*self._tree.prune(place, with_directories=with_markers))

        return await asyncio.to_thread(prune)

    async def exists(self, location: Location) -> bool:
        check_file(location, self._allowed)
        return await asyncio.to_thread(self._exists, location)

    def _read(self, location: Location, limit_bytes: int) -> bytes:
        with _translating(location):
            try:
                data = self._tree.read_file(location, limit_bytes + 1)
            except OSError as error:
                if error.errno in ABSENT:
                    raise missing(location) from error
                raise
        if len(data) > limit_bytes:
            raise too_large(location, limit_bytes)
        return data

    def _create(self, location: Location, data: bytes) -> None:
        with _translating(location):
            try:
                self._write_new(location, data)
            except FileNotFoundError:
                # The directory was removed between being opened and being written to.
                self._write_new(location, data)

    def _write_new(self, location: Location, data: bytes) -> None:
        with self._tree.parent_of(location, is_made=True) as directory:
            try:
                write_new(directory, location.segments[-1], data)
            except FileExistsError:
                if not self._holds(location, data):
                    raise taken(location) from None

    def _holds(self, location: Location, data: bytes) -> bool:
        try:
            return self._read(location, len(data)) == data
        except CynosureError:
            return False

    def _replace(self, location: Location, data: bytes) -> None:
        temporary = f".cynosure-{os.getpid()}-{next(self._counter)}"
        with _translating(location), self._tree.parent_of(location, is_made=True) as directory:
            with suppress(FileNotFoundError):  # left by a killed process that had our number
                os.unlink(temporary, dir_fd=directory)
            # Others may be reading the old file, so it is exchanged whole.
            write_new(directory, temporary, data)
            try:
                os.replace(temporary, location.segments[-1], src_dir_fd=directory, dst_dir_fd=directory)
            except OSError:
                os.unlink(temporary, dir_fd=directory)
                raise

    def _delete_all(self, locations: Sequence[Location]) -> None:
        for location in locations:
            with _translating(location):
                if self._find_kind(location) not in (None, stat.S_IFDIR):
                    self._unlink(location)

    def _unlink(self, location: Location) -> None:
        with suppress(FileNotFoundError), self._tree.parent_of(location) as directory:
            os.unlink(location.segments[-1], dir_fd=directory)

    def _exists(self, location: Location) -> bool:
        with _translating(location):
            return self._find_kind(location) == stat.S_IFREG

    def _find_kind(self, location: Location) -> int | None:
        try:
            with self._tree.parent_of(location) as directory:
                return kind_of(directory, location.segments[-1])
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise


@contextmanager
def _translating(location: Location) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "unknown")
        if error.errno in _REFUSALS:
            raise StorageRefused(
                "The file system refuses access",
                location=location.text,
                reason=reason,
                fix="Check owner, mode and links of the file and of the directories above it.",
            ) from error
        raise StorageUnavailable(
            "The file system failed",
            location=location.text,
            reason=reason,
            fix="Check that the disk is mounted, healthy and not full.",
        ) from error
