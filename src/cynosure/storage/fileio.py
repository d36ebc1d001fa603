"""Reading and writing whole files in a catalog's storage.

A maintainer must not break: an implementation reaches nothing outside the allowed locations it was made with,
and takes configuration and credentials from its constructor only, never from environment variables, instance
metadata or files of the account it runs under.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from cynosure.common.errors import AlreadyExists, TooLarge
from cynosure.storage.errors import FileMissing, StorageRefused
from cynosure.storage.location import Location, is_allowed

READ_LIMIT_BYTES: Final = 256 * 2**20
"""Most that `read` takes into memory unless told otherwise: a metadata file of 100,000 snapshots fits."""


class FileInfo(NamedTuple):
    """One file in a listing."""

    location: Location
    size_bytes: int
    modified_us: int
    """When it was last written, by the storage's clock."""


class FileIO(Protocol):
    """The files of one storage configuration.

    A location outside the allowed ones is `StorageRefused` before anything is touched. All methods may raise
    `StorageRefused` (credentials or rights) and `StorageUnavailable` (no answer in time, disk full). A file
    appears whole or, after a crash, perhaps not at all or in part; nobody may be told its name before `write`
    has returned. Whether the storage has survived a power cut is the storage's matter: local files are not
    synced. Kit: `cynosure.testing.fileio_kit`.
    """

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        """The whole file. `FileMissing` when there is none, `TooLarge` beyond `limit_bytes`."""
        ...

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        """Write a file, with the directories above it.

        Without `overwrite` it must not exist: of several writers one wins, the others get `AlreadyExists`.
        A file that already holds exactly `data` counts as written, because a repeated request whose first
        answer was lost must not take its own file for a stranger's.
        """
        ...

    async def delete(self, location: Location) -> None:
        """Delete a file. Nothing happens when there is none. Directories stay."""
        ...

    async def delete_many(self, locations: Iterable[Location]) -> None:
        """Delete files, in as few requests as the storage allows. After an error any of them may be gone."""
        ...

    def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        """All files below `prefix`, at any depth, in no particular order; none when there is no such place.

        Files that no `Location` can name, and symbolic links, are left out. Close the iterator (`aclosing`)
        when it is left early.
        """
        ...

    async def exists(self, location: Location) -> bool:
        """Whether there is a file. A directory is none."""
        ...


# --- for implementations -----------------------------------------------------------------------------


def check_file(location: Location, allowed: Sequence[Location]) -> None:
    """Refuse what lies outside and what can be no file; methods that take a file begin with this."""
    check_allowed(location, allowed)
    if not location.segments:
        raise StorageRefused(
            "A location names a whole storage, not a file", location=location.text, fix="Add a file name."
        )


def check_allowed(location: Location, allowed: Sequence[Location]) -> None:
    """Refuse what lies outside; every method of every implementation begins with this."""
    if not is_allowed(location, allowed):
        raise StorageRefused(
            "A location is outside the allowed locations of its catalog",
            location=location.text,
            fix="Choose a location below one of the catalog's allowed locations.",
        )


def missing(location: Location) -> FileMissing:
    """The error of reading what is not there."""
    return FileMissing("There is no file at this location", location=location.text)


def taken(location: Location) -> AlreadyExists:
    """The error of creating what is there."""
    return AlreadyExists("There is already another file at this location", location=location.text)


def too_large(location: Location, limit_bytes: int) -> TooLarge:
    """The error of reading more than one asked for."""
    return TooLarge(
        "A file is too large to be read",
        field="location",
        fix="Check that this is the file you mean.",
        location=location.text,
        limit_bytes=limit_bytes,
    )
