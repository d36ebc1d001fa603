"""Shorthand of the tests about shapes: tables, and changes of them as clients send them."""

from typing import Any

import msgspec

from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.shaping.columns import NewColumn, add_columns, read_columns
from cynosure.iceberg.shaping.partitioning import NewPartitionField, read_partition_fields, set_partitioning
from cynosure.iceberg.shaping.sort_order import NewSortField, read_sort_fields, set_sort_order
from cynosure.iceberg.updates import TableUpdate, apply_updates
from tests.iceberg.samples import NOW_MS, encoded, new_table

POINT = {
    "type": "struct",
    "fields": [
        {"id": 5, "name": "x", "required": True, "type": "double"},
        {"id": 6, "name": "y", "required": False, "type": "double"},
    ],
}
FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "ts", "required": False, "type": "timestamptz"},
    {"id": 3, "name": "name", "required": False, "type": "string"},
    {"id": 4, "name": "point", "required": False, "type": POINT},
    {
        "id": 7,
        "name": "points",
        "required": False,
        "type": {
            "type": "list",
            "element-id": 8,
            "element-required": False,
            "element": {
                "type": "struct",
                "fields": [{"id": 9, "name": "z", "required": False, "type": "int"}],
            },
        },
    },
]


def table(format_version: int = 2, **more: Any) -> TableMetadata:
    """Columns id, ts, name, point (x, y) and points (z), with last-column-id 9."""
    schema = {"type": "struct", "fields": FIELDS}
    return new_table(schema=schema, format_version=format_version, **more)


def _apply(base: TableMetadata, updates: list[TableUpdate]) -> TableMetadata:
    return apply_updates(base, updates, now_ms=NOW_MS + 1000)


def with_columns(base: TableMetadata, *columns: dict[str, Any]) -> TableMetadata:
    """The table with these columns more."""
    wanted = read_columns(msgspec.convert(columns, list[NewColumn]))
    return _apply(base, add_columns(base, wanted))


def partitioned(base: TableMetadata, *fields: dict[str, Any]) -> TableMetadata:
    """The table partitioned so."""
    wanted = read_partition_fields(msgspec.convert(fields, list[NewPartitionField]))
    return _apply(base, set_partitioning(base, wanted))


def sorted_by(base: TableMetadata, *fields: dict[str, Any]) -> TableMetadata:
    """The table sorted so."""
    wanted = read_sort_fields(msgspec.convert(fields, list[NewSortField]))
    return _apply(base, set_sort_order(base, wanted))


def current_fields(base: TableMetadata) -> list[dict[str, Any]]:
    """The columns of the current schema."""
    document = encoded(base)
    found = {each["schema-id"]: each["fields"] for each in document["schemas"]}
    fields: list[dict[str, Any]] = found[document["current-schema-id"]]
    return fields


def spec_fields(base: TableMetadata) -> list[tuple[int | None, str, str]]:
    """Id, transform and name of the fields of the default spec."""
    return [(each.field_id, each.transform, each.name) for each in base.default_spec().fields]
