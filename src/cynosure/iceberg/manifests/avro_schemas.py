"""The schemas of the files we write, for each format version.

A maintainer must not break: ids, names and which fields are required are those of Iceberg's table
specification. Other readers find fields by these ids.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from cynosure.iceberg import types
from cynosure.iceberg.types import DecimalType, FixedType, Type

_Field = dict[str, Any]


def _required(id_: int, name: str, type_: Any) -> _Field:
    return {"name": name, "type": type_, "field-id": id_}


def _optional(id_: int, name: str, type_: Any) -> _Field:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": id_}


def _map(key_id: int, value_id: int, value: str) -> dict[str, Any]:
    fields = [_required(key_id, "key", "int"), _required(value_id, "value", value)]
    item = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields}
    return {"type": "array", "items": item, "logicalType": "map"}


def _list(element_id: int, item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, "element-id": element_id}


def _record(name: str, fields: list[_Field]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


_SUMMARY: Final = _record(
    "r508",
    [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
)


@lru_cache
def manifest_list_schema(format_version: int) -> bytes:
    """The schema of a manifest list."""
    counted = _optional if format_version == 1 else _required
    fields = [
        _required(500, "manifest_path", "string"),
        _required(501, "manifest_length", "long"),
        _required(502, "partition_spec_id", "int"),
    ]
    if format_version > 1:
        fields += [
            _required(517, "content", "int"),
            _required(515, "sequence_number", "long"),
            _required(516, "min_sequence_number", "long"),
        ]
    fields += [
        _required(503, "added_snapshot_id", "long"),
        counted(504, "added_files_count", "int"),
        counted(505, "existing_files_count", "int"),
        counted(506, "deleted_files_count", "int"),
        counted(512, "added_rows_count", "long"),
        counted(513, "existing_rows_count", "long"),
        counted(514, "deleted_rows_count", "long"),
        _optional(507, "partitions", _list(508, _SUMMARY)),
        _optional(519, "key_metadata", "bytes"),
    ]
    if format_version > 2:
        fields.append(_optional(520, "first_row_id", "long"))
    return msgspec.json.encode(_record("manifest_file", fields))


def manifest_schema(format_version: int, partition: Sequence[tuple[int, str, Type | None]]) -> bytes:
    """The schema of a manifest whose files have these partition fields: id, name and type of each."""
    partition_type = _record("r102", [_partition_field(id_, name, type_) for id_, name, type_ in partition])
    file = [_required(134, "content", "int")] if format_version > 1 else []
    file += [
        _required(100, "file_path", "string"),
        _required(101, "file_format", "string"),
        _required(102, "partition", partition_type),
        _required(103, "record_count", "long"),
        _required(104, "file_size_in_bytes", "long"),
    ]
    if format_version == 1:
        file.append(_required(105, "block_size_in_bytes", "long"))
    file += [
        _optional(108, "column_sizes", _map(117, 118, "long")),
        _optional(109, "value_counts", _map(119, 120, "long")),
        _optional(110, "null_value_counts", _map(121, 122, "long")),
        _optional(137, "nan_value_counts", _map(138, 139, "long")),
        _optional(125, "lower_bounds", _map(126, 127, "bytes")),
        _optional(128, "upper_bounds", _map(129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", _list(133, "long")),
    ]
    if format_version > 1:
        file.append(_optional(135, "equality_ids", _list(136, "int")))
    file.append(_optional(140, "sort_order_id", "int"))
    if format_version > 2:
        file.append(_optional(142, "first_row_id", "long"))
    if format_version > 1:
        file.append(_optional(143, "referenced_data_file", "string"))
    if format_version > 2:
        file += [
            _optional(144, "content_offset", "long"),
            _optional(145, "content_size_in_bytes", "long"),
        ]
    snapshot = _required if format_version == 1 else _optional
    entry = [_required(0, "status", "int"), snapshot(1, "snapshot_id", "long")]
    if format_version > 1:
        entry += [_optional(3, "sequence_number", "long"), _optional(4, "file_sequence_number", "long")]
    entry.append(_required(2, "data_file", _record("r2", file)))
    return msgspec.json.encode(_record("manifest_entry", entry))


def avro_name(name: str) -> str:
    """A name in the letters that Avro allows, spelled as other writers of Iceberg spell it."""
    return "".join(
        one
        if (one.isascii() and (one.isalpha() or one == "_" or (at and one.isdigit())))
        else f"_{one}"
        if one.isascii() and one.isdigit()
        else f"_x{ord(one):X}"
        for at, one in enumerate(name)
    )


def _partition_field(id_: int, name: str, type_: Type | None) -> _Field:
    spelled = avro_name(name)
    # Named types need a name of their own for each field: not every reader knows references to them.
    field = _optional(id_, spelled, _partition_type(type_, id_))
    if type_ is None or type_ == types.UNKNOWN:
        field["type"] = "null"
    if spelled != name:
        field["iceberg-field-name"] = name
    return field


def _partition_type(type_: Type | None, id_: int) -> Any:
    if isinstance(type_, DecimalType):
        return {
            "type": "fixed",
            "name": f"decimal_{type_.precision}_{type_.scale}_{id_}",
            "size": decimal_bytes(type_.precision),
            "logicalType": "decimal",
            "precision": type_.precision,
            "scale": type_.scale,
        }
    if isinstance(type_, FixedType):
        return {"type": "fixed", "name": f"fixed_{type_.length}_{id_}", "size": type_.length}
    if type_ == types.UUID:
        return {"type": "fixed", "name": f"uuid_fixed_{id_}", "size": 16, "logicalType": "uuid"}
    return _PLAIN.get(str(type_), "null")


def decimal_bytes(precision: int) -> int:
    """How many bytes every decimal of so many digits fits into."""
    largest: int = 10**precision - 1
    return largest.bit_length() // 8 + 1


def _instant(unit: str, *, is_zoned: bool) -> dict[str, Any]:
    return {"type": "long", "logicalType": f"timestamp-{unit}", "adjust-to-utc": is_zoned}


_PLAIN: Final[dict[str, Any]] = {
    **{name: name for name in ("boolean", "int", "long", "float", "double", "string")},
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "timestamp": _instant("micros", is_zoned=False),
    "timestamptz": _instant("micros", is_zoned=True),
    "timestamp_ns": _instant("nanos", is_zoned=False),
    "timestamptz_ns": _instant("nanos", is_zoned=True),
}
