"""The list of a snapshot's manifests.

A maintainer must not break: what version 1 does not store has the value that Iceberg defines for it (data,
and sequence number 0), so that nothing above asks for the version of a list.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from struct import error as StructError
from typing import Any, Final

from msgspec import Struct

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.avro.container import Block, ReadLimits, read_container
from cynosure.iceberg.manifests.avro.decode import make_reader
from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.avro.schema import Array, Fixed, Node, Plain, Record, RecordField, unwrap


class ManifestContent(IntEnum):
    """What files a manifest lists. The numbers are stored."""

    DATA = 0
    DELETES = 1


class FieldSummary(Struct, frozen=True):
    """What values one partition field has in a manifest."""

    contains_null: bool
    contains_nan: bool | None = None
    lower_bound: bytes | None = None
    upper_bound: bytes | None = None


class ManifestFile(Struct, frozen=True, kw_only=True):
    """One manifest, as a list names it. A count that a version 1 writer left out is None."""

    path: str
    length: int
    spec_id: int
    added_snapshot_id: int | None
    content: ManifestContent = ManifestContent.DATA
    sequence_number: int = 0
    min_sequence_number: int = 0
    added_files: int | None = None
    existing_files: int | None = None
    deleted_files: int | None = None
    added_rows: int | None = None
    existing_rows: int | None = None
    deleted_rows: int | None = None
    partitions: tuple[FieldSummary, ...] | None = None
    key_metadata: bytes | None = None
    first_row_id: int | None = None

    @property
    def has_live_files(self) -> bool:
        """Whether a scan can find anything here; true when the list does not say."""
        return self.added_files != 0 or self.existing_files != 0


class ManifestList(Struct, frozen=True):
    """All manifests of a snapshot, in the order of the file."""

    path: str
    manifests: tuple[ManifestFile, ...]


# Field ids of Iceberg's table specification: our name, names that writers used, and the kind of value.
_FIELDS: Final[Mapping[int, tuple[str, tuple[str, ...], str]]] = {
    500: ("path", ("manifest_path",), "text"),
    501: ("length", ("manifest_length",), "whole"),
    502: ("spec_id", ("partition_spec_id",), "whole"),
    517: ("content", ("content",), "whole"),
    515: ("sequence_number", ("sequence_number",), "whole"),
    516: ("min_sequence_number", ("min_sequence_number",), "whole"),
    503: ("added_snapshot_id", ("added_snapshot_id",), "whole"),
    504: ("added_files", ("added_files_count", "added_data_files_count"), "whole"),
    505: ("existing_files", ("existing_files_count", "existing_data_files_count"), "whole"),
    506: ("deleted_files", ("deleted_files_count", "deleted_data_files_count"), "whole"),
    512: ("added_rows", ("added_rows_count",), "whole"),
    513: ("existing_rows", ("existing_rows_count",), "whole"),
    514: ("deleted_rows", ("deleted_rows_count",), "whole"),
    507: ("partitions", ("partitions",), "summaries"),
    519: ("key_metadata", ("key_metadata",), "bytes"),
    520: ("first_row_id", ("first_row_id",), "whole"),
}
_SUMMARY: Final[Mapping[int, tuple[str, tuple[str, ...], str]]] = {
    509: ("contains_null", ("contains_null",), "truth"),
    518: ("contains_nan", ("contains_nan",), "truth"),
    510: ("lower_bound", ("lower_bound",), "bytes"),
    511: ("upper_bound", ("upper_bound",), "bytes"),
}
_REQUIRED: Final = ("path", "length", "spec_id")
_DEFAULTS: Final = {"content": 0, "sequence_number": 0, "min_sequence_number": 0}


def read_manifest_list(data: bytes, *, path: str, limits: ReadLimits | None = None) -> ManifestList:
    """The manifests of a snapshot. Raises `InvalidManifest` for anything but a whole and valid list."""
    try:
        container = read_container(data)
        read = _reader_of(container.schema)
        manifests: list[ManifestFile] = []
        for block in container.blocks(limits or ReadLimits()):
            manifests += _read_block(block, read)
        return ManifestList(path, tuple(manifests))
    except Malformed as error:
        raise InvalidManifest(error.message, path=path, position=error.position) from error


def _read_block(block: Block, read: Callable[[bytes, int], tuple[ManifestFile, int]]) -> list[ManifestFile]:
    manifests, at = [], 0
    try:
        for _ in range(block.entries):
            manifest, at = read(block.data, at)
            manifests.append(manifest)
    except (IndexError, StructError):
        raise Malformed("An entry is cut off", position=block.position) from None
    except Malformed as error:
        raise Malformed(error.message, position=block.position) from error
    if at != len(block.data):
        raise Malformed("A block has bytes after its last entry", position=block.position)
    return manifests


def _reader_of(schema: Node) -> Callable[[bytes, int], tuple[ManifestFile, int]]:
    # By identity: schemas are remembered (`parse_schema`), and comparing them would take longer.
    known = _READERS.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_READERS) >= _MOST_READERS:
            _READERS.clear()
        known = _READERS[id(schema)] = (schema, _make_reader(schema))
    return known[1]


_MOST_READERS: Final = 64
_READERS: Final[dict[int, tuple[Node, Callable[[bytes, int], tuple[ManifestFile, int]]]]] = {}


def find_list_fields(schema: Node) -> Mapping[str, int]:
    """At which place of a list's records each field of `ManifestFile` is."""
    return _find_places(schema, _FIELDS)


def _make_reader(schema: Node) -> Callable[[bytes, int], tuple[ManifestFile, int]]:
    places = find_list_fields(schema)
    summary = _find_summary(schema, places)
    read_values = make_reader(schema)

    def read(data: bytes, at: int) -> tuple[ManifestFile, int]:
        values, at = read_values(data, at)
        return _make_manifest(values, places, summary), at

    return read


def _make_manifest(
    values: tuple[Any, ...], places: Mapping[str, int], summary: Mapping[str, int]
) -> ManifestFile:
    given: dict[str, Any] = {name: values[at] for name, at in places.items()}
    for name in _REQUIRED:
        if given[name] is None:
            raise Malformed(f"A manifest has no {name}")
    for name, default in _DEFAULTS.items():
        if given.get(name) is None:
            given[name] = default
    if given["content"] not in (0, 1):
        raise Malformed("A manifest has unknown content")
    if given["length"] < 0 or any((given.get(name) or 0) < 0 for name in given if name.endswith("files")):
        raise Malformed("A manifest has a negative length or count")
    given["content"] = ManifestContent(given["content"])
    given.setdefault("added_snapshot_id", None)
    if given.get("partitions") is not None:
        given["partitions"] = tuple(_make_summary(one, summary) for one in given["partitions"])
    return ManifestFile(**given)


def _make_summary(values: tuple[Any, ...], places: Mapping[str, int]) -> FieldSummary:
    given = {name: values[at] for name, at in places.items()}
    # A writer that does not say so does not promise that there are none.
    given["contains_null"] = given.get("contains_null") is not False
    return FieldSummary(**given)


def _find_places(schema: Node, known: Mapping[int, tuple[str, tuple[str, ...], str]]) -> Mapping[str, int]:
    if not isinstance(schema, Record):
        raise Malformed("The entries of the file are not records")
    places: dict[str, int] = {}
    for at, field in enumerate(schema.fields):
        found = _identify(field, known)
        if found is None:
            continue
        name, _, kind = found
        if name in places:
            raise Malformed(f"The schema of the file has two fields for {name}")
        if not _fits(unwrap(field.type), kind):
            raise Malformed(f"The field {name} has another type than it should")
        places[name] = at
    missing = [name for name in _REQUIRED if name not in places]
    if known is _FIELDS and missing:
        raise Malformed(f"The schema of the file has no {missing[0]}")
    return places


def _find_summary(schema: Node, places: Mapping[str, int]) -> Mapping[str, int]:
    if "partitions" not in places or not isinstance(schema, Record):
        return {}
    items = unwrap(schema.fields[places["partitions"]].type)
    return _find_places(items.item, _SUMMARY) if isinstance(items, Array) else {}


def _identify(
    field: RecordField, known: Mapping[int, tuple[str, tuple[str, ...], str]]
) -> tuple[str, tuple[str, ...], str] | None:
    if field.id is not None:
        return known.get(field.id)
    for one in known.values():
        if not {field.name, *field.aliases}.isdisjoint(one[1]):
            return one
    return None


def _fits(node: Node, kind: str) -> bool:
    if kind == "summaries":
        return isinstance(node, Array) and isinstance(node.item, Record)
    if isinstance(node, Fixed):
        return kind == "bytes" and node.logical is None
    if not isinstance(node, Plain) or node.logical in ("decimal", "uuid"):
        return False
    kinds = {"whole": ("int", "long"), "text": ("string",), "bytes": ("bytes",), "truth": ("boolean",)}
    return node.kind in kinds[kind]
