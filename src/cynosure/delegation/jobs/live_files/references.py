"""What the metadata document of a table names directly.

A maintainer must not break: roles are numbers in the order in which files are deleted. What leads to others
goes after them, so that whatever is left can still be found from the metadata.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from msgspec import Struct


class Role(IntEnum):
    """What a file is to its table. The numbers are stored in plans."""

    CONTENT = 0
    """Data, deletes, deletion vectors, statistics."""
    MANIFEST = 1
    MANIFEST_LIST = 2
    LEFTOVER = 3
    """In the table's places, and named by nothing."""
    METADATA = 4
    """Earlier metadata files."""
    CURRENT = 5
    """The metadata file."""


class References(Struct, frozen=True):
    """What a metadata document names."""

    files: tuple[tuple[Role, str], ...]
    """Statistics and metadata files: nothing is in them that leads to others."""
    lists: tuple[str, ...]
    """Manifest lists of all snapshots, each once."""
    manifests: tuple[str, ...]
    """Manifests that snapshots of version 1 name themselves."""


def read_references(metadata: Mapping[str, Any], metadata_location: str | None) -> References:
    """All that a document names, in any version of the format.

    Parts that are not what they should be name nothing: the table is to be cleaned up, not to be judged.
    """
    files: list[tuple[Role, str]] = []
    lists: dict[str, None] = {}
    manifests: dict[str, None] = {}
    for snapshot in _entries(metadata, "snapshots"):
        if isinstance(path := snapshot.get("manifest-list"), str):
            lists[path] = None
        given = snapshot.get("manifests")
        if isinstance(given, Sequence) and not isinstance(given, str):
            manifests.update((each, None) for each in given if isinstance(each, str))
    for part in ("statistics", "partition-statistics"):
        files += ((Role.CONTENT, path) for path in _texts(metadata, part, "statistics-path"))
    files += ((Role.METADATA, path) for path in _texts(metadata, "metadata-log", "metadata-file"))
    if metadata_location:
        files.append((Role.CURRENT, metadata_location))
    return References(tuple(files), tuple(lists), tuple(manifests))


def _texts(metadata: Mapping[str, Any], part: str, name: str) -> Iterator[str]:
    for entry in _entries(metadata, part):
        if isinstance(text := entry.get(name), str):
            yield text


def _entries(metadata: Mapping[str, Any], part: str) -> Iterator[Mapping[str, Any]]:
    found = metadata.get(part)
    if isinstance(found, Sequence):
        yield from (each for each in found if isinstance(each, Mapping))
