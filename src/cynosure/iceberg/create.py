"""The first metadata of a new table.

A maintainer must not break: the client's column ids are only its way to say which column a partition or sort
field means. The table numbers columns itself, as the reference implementation does.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from cynosure.iceberg.document import Document
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.fragments import EMPTY
from cynosure.iceberg.limits import DEFAULT_LIMITS, SizeLimits
from cynosure.iceberg.location import strip_trailing_slash
from cynosure.iceberg.metadata.table import (
    DEFAULT_FORMAT_VERSION,
    MAX_FORMAT_VERSION,
    MIN_VERSION_OF_ROW_LINEAGE,
    TableMetadata,
)
from cynosure.iceberg.partitioning import (
    FIRST_FIELD_ID,
    PartitionSpec,
    check_spec,
    decode_spec,
    read_spec,
)
from cynosure.iceberg.properties import FORMAT_VERSION, RESERVED, check_size
from cynosure.iceberg.schema import Schema, assign_fresh_ids, check_schema, read_schema
from cynosure.iceberg.sorting import (
    FIRST_SORTED_ID,
    UNSORTED_ID,
    UNSORTED_JSON,
    SortOrder,
    check_order,
    decode_order,
    read_order,
)

NEW_TABLE_PROPERTIES: Final = {"write.parquet.compression-codec": "zstd"}
"""What engines take for granted on tables made by the reference implementation. The client's value wins."""

COMMIT_PROPERTIES: Final = (
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
)
COLUMN_METRICS: Final = "write.metadata.metrics.column."


def new_table_metadata(
    *,
    schema: bytes | Raw,
    partition_spec: bytes | Raw | None = None,
    sort_order: bytes | Raw | None = None,
    location: str,
    properties: Mapping[str, str],
    table_uuid: str,
    now_ms: int,
    format_version: int | None = None,
    limits: SizeLimits = DEFAULT_LIMITS,
) -> TableMetadata:
    """Metadata of a table without data.

    The format version is `format_version`, else what the property of that name says, else the default.
    """
    version = _choose_version(format_version, properties)
    given = read_schema(schema)
    check_schema(given.value, format_version=version, limits=limits)
    _check_properties(properties, given.value, limits)
    fresh, renumbered = assign_fresh_ids(given)
    spec = _fresh_spec(partition_spec, renumbered)
    check_spec(spec.value, fresh.value, format_version=version, field="partition-spec")
    order = _fresh_order(sort_order, renumbered)
    check_order(order.value, fresh.value, field="write-order")
    kept = {name: value for name, value in properties.items() if name not in RESERVED}
    return TableMetadata(
        format_version=version,
        table_uuid=table_uuid,
        location=strip_trailing_slash(location),
        last_sequence_number=0,
        last_updated_ms=now_ms,
        last_column_id=fresh.value.highest_field_id,
        schemas=(fresh,),
        current_schema_id=0,
        partition_specs=(spec,),
        default_spec_id=0,
        last_partition_id=spec.value.highest_field_id,
        sort_orders=(order,),
        default_sort_order_id=order.value.order_id,
        properties={**NEW_TABLE_PROPERTIES, **kept},
        current_snapshot_id=None,
        snapshots=EMPTY,
        snapshot_log=EMPTY,
        metadata_log=EMPTY,
        refs={},
        encryption_keys={},
        next_row_id=0 if version >= MIN_VERSION_OF_ROW_LINEAGE else None,
        unknown={},
    )


def _choose_version(format_version: int | None, properties: Mapping[str, str]) -> int:
    text = properties.get(FORMAT_VERSION)
    if format_version is None and text is not None:
        format_version = int(text) if text.isdecimal() and len(text) < 5 else 0
    version = DEFAULT_FORMAT_VERSION if format_version is None else format_version
    if not 1 <= version <= MAX_FORMAT_VERSION:
        raise InvalidMetadata(
            "The format version is not supported",
            field="properties.format-version",
            fix=f"Use version 1 to {MAX_FORMAT_VERSION}.",
            format_version=text or version,
        )
    return version


def _fresh_spec(raw: bytes | Raw | None, renumbered: dict[int, int]) -> Document[PartitionSpec]:
    if raw is None:
        return read_spec(b'{"spec-id":0,"fields":[]}')
    spec = read_spec(raw, field="partition-spec")
    document: dict[str, Any] = msgspec.json.decode(spec.json)
    document["spec-id"] = 0
    for at, field in enumerate(document["fields"]):
        field["field-id"] = FIRST_FIELD_ID + at
        _renumber_sources(field, renumbered, path=f"partition-spec.fields[{at}]")
    return Document(msgspec.json.encode(document), decode_spec)


def _fresh_order(raw: bytes | Raw | None, renumbered: dict[int, int]) -> Document[SortOrder]:
    if raw is None:
        return read_order(UNSORTED_JSON)
    order = read_order(raw, field="write-order")
    document: dict[str, Any] = msgspec.json.decode(order.json)
    document["order-id"] = FIRST_SORTED_ID if order.value.fields else UNSORTED_ID
    for at, field in enumerate(document["fields"]):
        _renumber_sources(field, renumbered, path=f"write-order.fields[{at}]")
    return Document(msgspec.json.encode(document), decode_order)


def _renumber_sources(field: dict[str, Any], renumbered: dict[int, int], *, path: str) -> None:
    try:
        if field.get("source-id") is not None:
            field["source-id"] = renumbered[field["source-id"]]
        if field.get("source-ids"):
            field["source-ids"] = [renumbered[id_] for id_ in field["source-ids"]]
    except KeyError as error:
        raise InvalidMetadata(
            "The source column does not exist",
            field=f"{path}.source-id",
            fix="Name a column of the schema in this request.",
            source_id=error.args[0],
        ) from error


def _check_properties(properties: Mapping[str, str], schema: Schema, limits: SizeLimits) -> None:
    check_size(properties, limits=limits)
    for name in COMMIT_PROPERTIES:
        text = properties.get(name)
        if text is not None and not (text.isascii() and text.isdecimal() and int(text) < 2**31):
            raise InvalidMetadata(
                "The property is a whole number, not negative",
                field=f"properties.{name}",
                fix="Correct it or leave it out.",
                value=text[:100],
            )
    for name in properties:
        if name.startswith(COLUMN_METRICS) and name.removeprefix(COLUMN_METRICS) not in schema.ids_by_path:
            raise InvalidMetadata(
                "The property names a column that does not exist",
                field=f"properties.{name[:200]}",
                fix="Name a column of the schema, nested ones with dots.",
            )
