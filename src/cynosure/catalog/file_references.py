"""The files that a table's metadata names directly: manifest lists, statistics, earlier metadata files.

Metadata that somebody made up may name the files of another table; whoever reads them on its word, a planner
or this server, would read them for a caller who may not. So each is inside what the table holds, or becomes
part of that (`claims.py`), which is refused where another table holds it.

Must not break: a table may have fifty thousand snapshots in one directory, which is looked at once.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from cynosure.catalog.claims import Places, join_places
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.locations import (
    EXTERNAL_METADATA,
    METADATA_PATH,
    check_allowed,
    check_paths,
    require_allowed,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.iceberg.document import decode_json
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.snapshots import decode_metadata_log_entry
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.updates.snapshots import AddSnapshot, SetPartitionStatistics, SetStatistics
from cynosure.storage.location import Location, is_allowed

_MOST_FILES: Final = 8
"""A directory with more files than this outside the table's places is held as a whole."""
# What almost every file is called: nothing in it that could lead elsewhere.
_PLAIN: Final = re.compile(r"[\w=-][\w.=-]*", re.ASCII)


class FileName(NamedTuple):
    """A file, and what of the metadata names it."""

    field: str
    text: str


class _SnapshotFiles(Struct, frozen=True, rename="kebab"):
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None


class _StatisticsFile(Struct, frozen=True, rename="kebab"):
    statistics_path: str


_SNAPSHOT: Final = msgspec.json.Decoder(_SnapshotFiles)
_STATISTICS: Final = msgspec.json.Decoder(_StatisticsFile)


def list_added_files(updates: Sequence[TableUpdate]) -> Iterator[FileName]:
    """The files that the updates of a commit bring."""
    for update in updates:
        if isinstance(update, AddSnapshot):
            yield from _snapshot_files(update.snapshot)
        elif isinstance(update, SetStatistics):
            yield _statistics_file("statistics", update.statistics)
        elif isinstance(update, SetPartitionStatistics):
            yield _statistics_file("partition-statistics", update.partition_statistics)


def list_files(metadata: TableMetadata) -> Iterator[FileName]:
    """All files that metadata names directly."""
    for _, json in metadata.snapshots:
        yield from _snapshot_files(json)
    for _, json in metadata.statistics:
        yield _statistics_file("statistics", json)
    for _, json in metadata.partition_statistics:
        yield _statistics_file("partition-statistics", json)
    for _, json in metadata.metadata_log:
        yield FileName("metadata-log", decode_metadata_log_entry(json).metadata_file)


def _snapshot_files(json: bytes | Raw) -> Iterator[FileName]:
    files = decode_json(bytes(json), _SNAPSHOT, field="snapshot")
    if files.manifest_list is not None:
        yield FileName("snapshot.manifest-list", files.manifest_list)
    for each in files.manifests or ():
        yield FileName("snapshot.manifests", each)


def _statistics_file(field: str, json: bytes | Raw) -> FileName:
    path = decode_json(bytes(json), _STATISTICS, field=field).statistics_path
    return FileName(f"{field}.statistics-path", path)


def find_strangers(catalog: OpenCatalog, files: Iterable[FileName], places: Places) -> list[Location]:
    """Where files are that lie outside these places: what a table must hold besides.

    `LocationRefused` for one that is outside what the catalog allows.
    """
    held = (places.location, *places.others)
    known: dict[str, bool] = {}
    outside: dict[Location, Location] = {}
    for field, text in files:
        directory, _, name = text.rpartition("/")
        is_inside = known.get(directory)
        if is_inside is None:
            is_inside = known[directory] = is_allowed(Location.parse(directory, field=field), held)
        if is_inside and _PLAIN.fullmatch(name):
            continue
        location = check_allowed(catalog, text, field=field)
        if not is_allowed(location, held):
            outside[location] = Location.parse(directory, field=field)
    crowded = _find_crowded(outside.values())
    for each in crowded:
        # The directory itself: it may be above what is allowed, where a file right below it is not.
        require_allowed(catalog, each, field="metadata")
    return [*crowded, *(file for file, directory in outside.items() if directory not in crowded)]


def _find_crowded(directories: Iterable[Location]) -> list[Location]:
    counts: dict[Location, int] = {}
    for each in directories:
        counts[each] = counts.get(each, 0) + 1
    return [directory for directory, count in counts.items() if count > _MOST_FILES]


def places_in_file(catalog: OpenCatalog, metadata: TableMetadata, metadata_location: str) -> Places:
    """The places of a table that a metadata file brings.

    `LocationRefused` when one is outside what the catalog allows, or the file is not where its table is.
    """
    location = check_allowed(catalog, metadata.location, field="metadata.location")
    places = join_places(location, check_paths(catalog, metadata.properties))
    files = list_files(metadata)
    if not is_inside_table(catalog, location, metadata.properties, metadata_location):
        files = iter([FileName("metadata-location", metadata_location), *files])
    strangers = find_strangers(catalog, files, places)
    return join_places(location, [*places.others, *strangers]) if strangers else places


def is_inside_table(
    catalog: OpenCatalog, location: Location, properties: dict[str, str], metadata_location: str
) -> bool:
    """Whether a metadata file is in its table's location, or where the table puts them.

    `LocationRefused` when it is not and this catalog has no other ones.
    """
    file = check_allowed(catalog, metadata_location, field="metadata-location")
    own = [location]
    if path := properties.get(METADATA_PATH):
        own.append(Location.parse(path, field=f"metadata.properties.{METADATA_PATH}"))
    if is_allowed(file, own):
        return True
    if catalog.entity.properties.get(EXTERNAL_METADATA, "").lower() != "true":
        raise LocationRefused(
            "The metadata file is not inside its table's location",
            fix="Put it there, or set the catalog's property "
            f"{EXTERNAL_METADATA} to true: then it may be anywhere the catalog may use.",
            field="metadata-location",
            location=file.text,
            table_location=location.text,
        )
    return False
