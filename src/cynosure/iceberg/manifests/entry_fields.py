"""The fields of a manifest's entries: where a file has each of them, and whether it is what it should be.

A maintainer must not break: a field is known by its id. Names are for files without ids only.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.avro.schema import Array, Fixed, Node, Plain, Record, RecordField, unwrap

# Field ids of Iceberg's table specification, and what kind of value each has.
_ENTRY: Final = {
    0: ("status", "whole"),
    1: ("snapshot_id", "whole"),
    3: ("sequence_number", "whole"),
    4: ("file_sequence_number", "whole"),
    2: ("data_file", "record"),
}
_FILE: Final = {
    134: ("content", "whole"),
    100: ("file_path", "text"),
    101: ("file_format", "text"),
    102: ("partition", "partition"),
    103: ("record_count", "whole"),
    104: ("file_size_in_bytes", "whole"),
    108: ("column_sizes", "raw counts"),
    109: ("value_counts", "counts"),
    110: ("null_value_counts", "counts"),
    137: ("nan_value_counts", "counts"),
    125: ("lower_bounds", "bounds"),
    128: ("upper_bounds", "bounds"),
    131: ("key_metadata", "bytes"),
    132: ("split_offsets", "wholes"),
    135: ("equality_ids", "wholes"),
    140: ("sort_order_id", "whole"),
    142: ("first_row_id", "whole"),
    143: ("referenced_data_file", "text"),
    144: ("content_offset", "whole"),
    145: ("content_size_in_bytes", "whole"),
}
REQUIRED: Final = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes")
NOT_NEGATIVE: Final = ("record_count", "file_size_in_bytes", "content_offset", "content_size_in_bytes")
WHOLES: Final = tuple(name for name, kind in (_ENTRY | _FILE).values() if kind == "whole")
TEXTS: Final = tuple(name for name, kind in _FILE.values() if kind in ("text", "bytes", "raw counts"))
LISTS: Final = ("split_offsets", "equality_ids")


class EntryField(Struct, frozen=True):
    """One field of an entry, in the order of the file; those of the data file are among them."""

    name: str
    """Empty for fields that nobody here knows."""
    kind: str
    type: Node


def entry_fields(schema: Node) -> tuple[EntryField, ...]:
    """All fields of a file's entries. Raises `Malformed` when some are missing or have other types."""
    fields = tuple(_walk(schema, _ENTRY))
    names = [field.name for field in fields if field.name]
    if len(names) != len(set(names)):
        raise Malformed("The schema of the file has two fields for one thing")
    for name in REQUIRED:
        if name not in names:
            raise Malformed(f"The schema of the file has no {name}")
    return fields


def _walk(schema: Node, known: Mapping[int, tuple[str, str]]) -> list[EntryField]:
    if not isinstance(schema, Record):
        raise Malformed("The entries of the file are not records")
    fields: list[EntryField] = []
    for field in schema.fields:
        name, kind = _identify(field, known)
        if name == "data_file":
            fields += _walk(field.type, _FILE)
        elif not name or _fits(unwrap(field.type), kind):
            fields.append(EntryField(name, kind, field.type))
        else:
            raise Malformed(f"The field {name} has another type than it should")
    return fields


def _identify(field: RecordField, known: Mapping[int, tuple[str, str]]) -> tuple[str, str]:
    if field.id is not None:
        return known.get(field.id, ("", ""))
    for name in (field.name, *field.aliases):
        for known_name, kind in known.values():
            if name == known_name:
                return known_name, kind
    return "", ""


def _fits(node: Node, kind: str) -> bool:
    match kind:
        case "counts" | "bounds" | "raw counts":
            # `MetricMaps` looks closer.
            return isinstance(node, Array)
        case "partition":
            return isinstance(node, Record) and all(
                isinstance(unwrap(field.type), Plain | Fixed) for field in node.fields
            )
        case "wholes":
            return isinstance(node, Array) and _fits(node.item, "whole")
    if isinstance(node, Fixed):
        return kind == "bytes" and node.logical is None
    if not isinstance(node, Plain):
        return False
    if kind == "whole":
        return node.kind in ("int", "long")
    return node.kind == ("string" if kind == "text" else "bytes") and node.logical is None
