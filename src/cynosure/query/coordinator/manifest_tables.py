"""Metadata tables that a scan makes from manifests: their columns, and what the scan is told.

Columns are those of Iceberg's own tables, without `readable_metrics` and `partition_summaries`.

A maintainer must not break: the gateway reads no manifest here, a scan does; and only of a table on which
nothing is hidden from the user (`metadata_tables.py` looks).
"""

from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct

from cynosure.iceberg.partitioning import PartitionSpec, decode_spec, partition_types
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.transforms import VOID
from cynosure.iceberg.types import encode_type
from cynosure.query.catalog_access.port import OpenedTable
from cynosure.query.errors import NotAllowed
from cynosure.query.scan_task import MetadataRead

_FIRST_FREE_ID: Final = 10_000
"""Ids of partition fields are from 1,000 on."""


class ManifestTable(Struct, frozen=True):
    """A metadata table that a scan makes."""

    shown: str
    table: OpenedTable
    schema: Schema
    read: MetadataRead | None
    """None: the table has no snapshot, and so no rows here."""
    json: bytes
    """Of `schema`."""


def _map(type_: str) -> dict[str, Any]:
    return {"type": "map", "key": "int", "value": type_, "value-required": False}


def _list(type_: str) -> dict[str, Any]:
    return {"type": "list", "element": type_, "element-required": False}


_FILES: Final[dict[str, Any]] = {
    "content": "int",
    "file_path": "string",
    "file_format": "string",
    "spec_id": "int",
    "partition": None,
    "record_count": "long",
    "file_size_in_bytes": "long",
    "column_sizes": _map("long"),
    "value_counts": _map("long"),
    "null_value_counts": _map("long"),
    "nan_value_counts": _map("long"),
    "lower_bounds": _map("binary"),
    "upper_bounds": _map("binary"),
    "key_metadata": "binary",
    "split_offsets": _list("long"),
    "equality_ids": _list("int"),
    "sort_order_id": "int",
    "first_row_id": "long",
    "referenced_data_file": "string",
    "content_offset": "long",
    "content_size_in_bytes": "long",
}
_COLUMNS: Final = MappingProxyType(
    {
        "files": _FILES,
        "data_files": _FILES,
        "delete_files": _FILES,
        "entries": {
            "status": "int",
            "snapshot_id": "long",
            "sequence_number": "long",
            "file_sequence_number": "long",
            "data_file": _FILES,
        },
        "manifests": {
            "content": "int",
            "path": "string",
            "length": "long",
            "partition_spec_id": "int",
            "added_snapshot_id": "long",
            "added_data_files_count": "int",
            "existing_data_files_count": "int",
            "deleted_data_files_count": "int",
            "added_delete_files_count": "int",
            "existing_delete_files_count": "int",
            "deleted_delete_files_count": "int",
        },
        "partitions": {
            "partition": None,
            "spec_id": "int",
            "record_count": "long",
            "file_count": "int",
            "total_data_file_size_in_bytes": "long",
            "position_delete_record_count": "long",
            "position_delete_file_count": "int",
            "equality_delete_record_count": "long",
            "equality_delete_file_count": "int",
            "last_updated_at": "timestamptz",
            "last_updated_snapshot_id": "long",
        },
    }
)
"""None: the struct of all partition fields that the table ever had; not there where it had none."""
OFFERED: Final = frozenset(_COLUMNS)


def open_manifest_table(table: OpenedTable, kind: str, shown: str) -> ManifestTable:
    """A table of `OFFERED`, of the snapshot that was opened."""
    metadata = table.metadata
    specs = tuple(msgspec.json.encode(each) for each in metadata.get("partition-specs") or ())
    own = _find_schema(table)
    partition = _make_partition([decode_spec(each) for each in specs], own)
    json = _Numbering(partition).make_schema(_COLUMNS[kind], is_partitions=kind == "partitions")
    snapshots = {each["snapshot-id"]: each for each in metadata.get("snapshots") or ()}
    read = None
    if table.snapshot_id:
        manifest_list = snapshots.get(table.snapshot_id, {}).get("manifest-list")
        if manifest_list is None:
            raise NotAllowed(
                "The table's snapshot does not name a list of its manifests",
                fix="Write to it with a current engine; until then there is none of this metadata table.",
                table=shown,
            )
        times = {id_: each["timestamp-ms"] for id_, each in snapshots.items()}
        read = MetadataRead(kind, manifest_list, specs, msgspec.json.encode(own_json(table)), times)
    return ManifestTable(shown, table, decode_schema(json), read, json)


def own_json(table: OpenedTable) -> dict[str, Any]:
    """The table's current schema: what its partition specs are about."""
    current = table.metadata.get("current-schema-id", 0)
    for each in table.metadata.get("schemas") or ():
        if each.get("schema-id", 0) == current:
            return dict(each)
    return dict(msgspec.json.decode(table.schema))


def _find_schema(table: OpenedTable) -> Schema:
    return decode_schema(msgspec.json.encode(own_json(table)))


def _make_partition(specs: list[PartitionSpec], schema: Schema) -> list[dict[str, Any]]:
    """All fields that any spec has values of, as fields of a struct; names are the newest."""
    fields: dict[int, dict[str, Any]] = {}
    newest: dict[str, int] = {}
    for spec in specs:
        for field, type_ in zip(spec.fields, partition_types(spec, schema), strict=True):
            if type_ is None or field.transform == VOID or field.field_id is None:
                continue
            newest[field.name] = field.field_id
            fields[field.field_id] = {
                "id": field.field_id,
                "name": field.name,
                "type": encode_type(type_),
                "required": False,
            }
    for id_, each in fields.items():
        if newest[each["name"]] != id_:
            each["name"] = f"{each['name']}_{id_}"
    return list(fields.values())


class _Numbering:
    """Gives every field an id of its own."""

    def __init__(self, partition: list[dict[str, Any]]) -> None:
        self._partition = partition
        self._next = _FIRST_FREE_ID

    def make_schema(self, columns: dict[str, Any], *, is_partitions: bool) -> bytes:
        if is_partitions and not self._partition:
            columns = {name: each for name, each in columns.items() if name != "spec_id"}
        return msgspec.json.encode({**self._struct(columns), "schema-id": 0})

    def _struct(self, columns: dict[str, Any]) -> dict[str, Any]:
        fields = []
        for name, given in columns.items():
            if given is not None or self._partition:
                fields.append(
                    {"id": self._take(), "name": name, "type": self._type(given), "required": False}
                )
        return {"type": "struct", "fields": fields}

    def _type(self, given: Any) -> Any:
        if given is None:
            return {"type": "struct", "fields": self._partition}
        if isinstance(given, str):
            return given
        if given.get("type") == "map":
            return {**given, "key-id": self._take(), "value-id": self._take()}
        if given.get("type") == "list":
            return {**given, "element-id": self._take()}
        return self._struct(given)

    def _take(self) -> int:
        self._next += 1
        return self._next
