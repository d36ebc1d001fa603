"""Directories of this machine, opened so that no symbolic link leads out of the allowed ones.

A maintainer must not break: the directory that holds a file is opened first, its real path is compared with
that of the allowed location, and the file is then reached through that open directory. So neither a symbolic
link that leads outside nor one that is slipped in between check and use is followed. Directories may be links
to others inside, but for those below places that are said to be without; a file itself may not be a link.

Everything here is synchronous and raises the operating system's errors beside our own.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from cynosure.common.errors import BadInput
from cynosure.storage.errors import StorageRefused
from cynosure.storage.fileio import FileInfo, missing
from cynosure.storage.location import Location

ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
"""What the system says when there is no file, or a file where a directory should be."""

_DELETED: Final = " (deleted)"
"""How Linux marks the path of an open directory that is gone."""
_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
# Not blocking: opening a named pipe would otherwise wait for its writer.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class _Root:
    """An allowed location and where it really is."""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.path = _path_of(location.segments)
        self._real = ""

    def holds(self, directory: int) -> bool:
        """Whether an open directory is this root or lies below it."""
        real = _real_path(directory)
        if self._real and _is_below(real, self._real):
            return True
        # Asked again: an operator may have pointed a link on the way to the root elsewhere.
        self._real = os.path.realpath(self.path)
        return _is_below(real, self._real)


class LocalTree:
    """The allowed directories. Callers have checked that every location is in one of them."""

    def __init__(self, allowed: Sequence[Location], *, unlinked: Sequence[Location] = ()) -> None:
        """Below a place that is `unlinked` no directory may be a link."""
        self._roots = tuple(map(_Root, allowed))
        self._unlinked = tuple(unlinked)

    @contextmanager
    def parent_of(self, location: Location, *, is_made: bool = False) -> Iterator[int]:
        """The open directory of a file. `is_made`: with the directories above it created where missing."""
        root = self._root_of(location)
        segments = location.segments[:-1]
        try:
            directory = os.open(_path_of(segments), _DIRECTORY)
        except FileNotFoundError:
            if not is_made:
                raise
            directory = _make(root, segments[len(root.location.segments) :], location)
        try:
            if not root.holds(directory) or self._is_linked(location, directory):
                raise _leads_outside(location)
            yield directory
        finally:
            os.close(directory)

    def read_file(self, location: Location, most_bytes: int) -> bytes:
        """The file, or its first bytes when it is longer than `most_bytes`."""
        with open(self.open_file(location), "rb") as source:
            return source.read(most_bytes)

    def open_file(self, location: Location) -> int:
        """The file, open for reading: whoever asked closes it."""
        with self.parent_of(location) as directory:
            file = os.open(location.segments[-1], _READ, dir_fd=directory)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise missing(location)
        return file

    def walk(self, prefix: Location) -> Iterator[FileInfo]:
        """Every regular file below a directory that a `Location` can name."""
        root = self._root_of(prefix)
        try:
            top = os.open(_path_of(prefix.segments), _DIRECTORY)
        except OSError as error:
            if error.errno in ABSENT:
                return
            raise
        try:
            if not root.holds(top):
                raise _leads_outside(prefix)
            for folder, below, names, directory in os.fwalk(
                ".", onerror=_raise_unless_gone, follow_symlinks=False, dir_fd=top
            ):
                try:
                    base = prefix.child(*folder.split("/")[1:])
                except BadInput:
                    below.clear()
                    continue
                yield from _list_files(base, directory, names)
        finally:
            os.close(top)

    def prune(self, prefix: Location, *, with_directories: bool) -> tuple[int, int]:
        """Remove links and files below a directory that no `Location` can name: how many, and their bytes.

        `with_directories`: and directories that are empty, the first one included unless it is a root.
        """
        root = self._root_of(prefix)
        try:
            top = os.open(_path_of(prefix.segments), _DIRECTORY)
        except OSError as error:
            if error.errno in ABSENT:
                return 0, 0
            raise
        files = size = 0
        try:
            if not root.holds(top):
                raise _leads_outside(prefix)
            for folder, below, names, directory in os.fwalk(
                ".", topdown=False, onerror=_raise_unless_gone, follow_symlinks=False, dir_fd=top
            ):
                for name in (*names, *below):
                    about = os.stat(name, dir_fd=directory, follow_symlinks=False)
                    if stat.S_ISDIR(about.st_mode):
                        if with_directories:
                            _remove_empty(name, directory)
                    elif not (stat.S_ISREG(about.st_mode) and _has_name(prefix, folder, name)):
                        os.unlink(name, dir_fd=directory)
                        files, size = files + 1, size + about.st_size
        finally:
            os.close(top)
        # A root stays: what is above it is not ours to change.
        if with_directories and prefix != root.location:
            with self.parent_of(prefix) as directory:
                _remove_empty(prefix.segments[-1], directory)
        return files, size

    def _is_linked(self, location: Location, directory: int) -> bool:
        """Whether a link below an unlinked place led to the open directory of a file."""
        place = next((each for each in self._unlinked if location.is_within(each)), None)
        # The place itself: what it lies in is not its writers' to change.
        if place is None or location == place:
            return False
        top = os.path.realpath(_path_of(place.segments))
        below = location.segments[len(place.segments) : -1]
        return _real_path(directory).removesuffix(_DELETED) != os.path.join(top, *below)

    def _root_of(self, location: Location) -> _Root:
        return next(root for root in self._roots if location.is_within(root.location))


def write_new(directory: int, name: str, data: bytes) -> None:
    """Create a file that is not there, or leave none."""
    file = os.open(name, _CREATE, 0o666, dir_fd=directory)
    try:
        try:
            written = os.write(file, data)
            while written < len(data):
                written += os.write(file, data[written:])
        finally:
            os.close(file)
    except OSError:
        os.unlink(name, dir_fd=directory)
        raise


def kind_of(directory: int, name: str) -> int:
    """The file's type bits; of a link itself, not of what it leads to."""
    return stat.S_IFMT(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)


def _make(root: _Root, segments: Sequence[str], location: Location) -> int:
    """Create directories one by one, each inside the one just opened and checked."""
    os.makedirs(root.path, exist_ok=True)
    directory = os.open(root.path, _DIRECTORY)
    for segment in segments:
        try:
            with suppress(FileExistsError):
                os.mkdir(segment, dir_fd=directory)
            child = os.open(segment, _DIRECTORY, dir_fd=directory)
        finally:
            os.close(directory)
        directory = child
        if not root.holds(directory):
            os.close(directory)
            raise _leads_outside(location)
    return directory


def _list_files(base: Location, directory: int, names: Sequence[str]) -> Iterator[FileInfo]:
    for name in names:
        with suppress(BadInput, FileNotFoundError):  # no location can name it; deleted meanwhile
            about = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISREG(about.st_mode):
                yield FileInfo(base.child(name), about.st_size, about.st_mtime_ns // 1_000)


def _has_name(prefix: Location, folder: str, name: str) -> bool:
    try:
        prefix.child(*folder.split("/")[1:], name)
    except BadInput:
        return False
    return True


def _remove_empty(name: str, directory: int) -> None:
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, *ABSENT):
            raise


def _raise_unless_gone(error: OSError) -> None:
    # `os.fwalk` passes over directories that it cannot read; a listing that looks complete and is not
    # would be taken for the truth.
    if error.errno not in ABSENT:
        raise error


def _leads_outside(location: Location) -> StorageRefused:
    return StorageRefused(
        "A symbolic link leads out of the allowed locations of the catalog",
        location=location.text,
        fix="Remove the link, or allow the place it leads to.",
    )


def _path_of(segments: Sequence[str]) -> str:
    return "/" + "/".join(segments)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root == "/" else root + "/")


if sys.platform == "darwin":
    import fcntl

    def _real_path(directory: int) -> str:
        return os.fsdecode(fcntl.fcntl(directory, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
else:

    def _real_path(directory: int) -> str:
        return os.readlink(f"/proc/self/fd/{directory}")
