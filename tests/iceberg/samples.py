"""Documents and requests that several tests of this room use."""

import json
from typing import Any

from cynosure.iceberg.create import new_table_metadata
from cynosure.iceberg.limits import DEFAULT_LIMITS, SizeLimits
from cynosure.iceberg.metadata import TableMetadata, encode_metadata
from cynosure.iceberg.updates import apply_updates, decode_updates

UUID = "1f6a3ae4-5f2b-4d0c-9e5f-0d7a0d9b7c11"
NOW_MS = 1_760_000_000_000

COLUMNS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "at", "required": False, "type": "timestamptz"},
    {"id": 3, "name": "name", "required": False, "type": "string"},
]
SCHEMA = {"type": "struct", "fields": COLUMNS}


def to_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def new_table(**changes: Any) -> TableMetadata:
    """A table made by this room; arguments as those of `new_table_metadata`, JSON as values."""
    arguments: dict[str, Any] = {
        "schema": SCHEMA,
        "location": "s3://bucket/table",
        "properties": {},
        "table_uuid": UUID,
        "now_ms": NOW_MS,
        **changes,
    }
    for name in ("schema", "partition_spec", "sort_order"):
        if arguments.get(name) is not None:
            arguments[name] = to_json(arguments[name])
    return new_table_metadata(**arguments)


def update(
    base: TableMetadata | None,
    *updates: dict[str, Any],
    now_ms: int = NOW_MS + 1000,
    limits: SizeLimits = DEFAULT_LIMITS,
) -> TableMetadata:
    return apply_updates(base, decode_updates(to_json(updates)), now_ms=now_ms, limits=limits)


def snapshot(table: TableMetadata, id_: int, **changes: Any) -> dict[str, Any]:
    """A snapshot that the table accepts next, on top of main."""
    document: dict[str, Any] = {
        "snapshot-id": id_,
        "timestamp-ms": table.last_updated_ms + 10,
        "manifest-list": f"s3://bucket/table/metadata/snap-{id_}.avro",
        "summary": {"operation": "append", "added-records": "7"},
        "schema-id": table.current_schema_id,
    }
    if table.current_snapshot_id is not None:
        document["parent-snapshot-id"] = table.current_snapshot_id
    if table.format_version > 1:
        document["sequence-number"] = table.last_sequence_number + 1
    if table.format_version > 2:
        document |= {"first-row-id": table.next_row_id, "added-rows": 7}
    return document | changes


def add(document: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-snapshot", "snapshot": document}


def set_ref(name: str, id_: int, type_: str = "branch", **settings: int) -> dict[str, Any]:
    return {
        "action": "set-snapshot-ref",
        "ref-name": name,
        "type": type_,
        "snapshot-id": id_,
        **{key.replace("_", "-"): value for key, value in settings.items()},
    }


def append(table: TableMetadata, id_: int, *, ref: str = "main", **changes: Any) -> TableMetadata:
    """The table after an ordinary write."""
    return update(table, add(snapshot(table, id_, **changes)), set_ref(ref, id_))


def with_history(count: int, **changes: Any) -> TableMetadata:
    """A table with snapshots 1 to `count` on main."""
    table = new_table(**changes)
    for id_ in range(1, count + 1):
        table = append(table, id_)
    return table


def encoded(table: TableMetadata) -> dict[str, Any]:
    return dict(json.loads(encode_metadata(table)))
