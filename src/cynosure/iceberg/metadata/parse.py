"""Table metadata from JSON, of format versions 1 to 3, with what older writers left out.

A maintainer must not break: every refusal names the field of the document, and every field that is not known
here is in `TableMetadata.unknown` afterwards.
"""

import uuid
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from cynosure.iceberg.document import Document, Int32, Int64, compact_json, decode_json
from cynosure.iceberg.encryption import EncryptedKey, decode_key
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.fragments import Fragments
from cynosure.iceberg.limits import DEFAULT_LIMITS, SizeLimits
from cynosure.iceberg.location import strip_trailing_slash
from cynosure.iceberg.metadata.check import check_clocks, check_default_ids
from cynosure.iceberg.metadata.table import MAX_FORMAT_VERSION, MIN_VERSION_OF_ROW_LINEAGE, TableMetadata
from cynosure.iceberg.partitioning import PartitionSpec, read_spec, with_field_ids
from cynosure.iceberg.properties import check_size
from cynosure.iceberg.schema import Schema, check_width, read_schema
from cynosure.iceberg.snapshots import (
    MAIN,
    SnapshotRef,
    decode_metadata_log_entry,
    decode_ref,
    decode_snapshot,
    decode_snapshot_log_entry,
)
from cynosure.iceberg.sorting import UNSORTED_ID, UNSORTED_JSON, SortOrder, read_order
from cynosure.iceberg.statistics import decode_partition_statistics, decode_statistics

T = TypeVar("T")

_INT32: Final = msgspec.json.Decoder(Int32)
_INT64: Final = msgspec.json.Decoder(Int64)
_STRING: Final = msgspec.json.Decoder(str)
_WRITTEN_AT_MOST: Final = 8
"""Bytes of JSON for one that counts: a pair of one letter has quotes, a colon and a comma; or an escape."""
_STRINGS: Final = msgspec.json.Decoder(dict[str, str])
_ARRAY: Final = msgspec.json.Decoder(list[Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, Raw])


def parse_metadata(json: bytes, *, limits: SizeLimits = DEFAULT_LIMITS) -> TableMetadata:
    """Read a metadata file.

    A version 1 file may lack a table UUID. It then gets one made from its location, so that every reading
    of the file agrees.
    """
    fields = _Fields(decode_json(compact_json(json, field="metadata"), _OBJECT, field="metadata"))
    version = fields.take("format-version", _INT32)
    if not 1 <= version <= MAX_FORMAT_VERSION:
        raise InvalidMetadata(
            "The format version is not supported",
            field="format-version",
            fix=f"Use a table of version 1 to {MAX_FORMAT_VERSION}.",
            format_version=version,
        )
    location = strip_trailing_slash(fields.take("location", _STRING))
    schemas, current_schema_id = _take_schemas(fields, version, limits)
    specs, default_spec_id = _take_specs(fields, version)
    orders, default_order_id = _take_orders(fields, version)
    properties = _take_properties(fields, limits)
    current_snapshot_id = fields.find("current-snapshot-id", _INT64)
    if current_snapshot_id == -1:
        current_snapshot_id = None
    last_sequence_number = 0 if version == 1 else fields.take("last-sequence-number", _INT64)
    snapshots = _take_snapshots(fields, last_sequence_number, limits)
    metadata = TableMetadata(
        format_version=version,
        table_uuid=_take_uuid(fields, version, location),
        location=location,
        last_sequence_number=last_sequence_number,
        last_updated_ms=fields.take("last-updated-ms", _INT64),
        last_column_id=fields.take("last-column-id", _INT32),
        schemas=schemas,
        current_schema_id=current_schema_id,
        partition_specs=specs,
        default_spec_id=default_spec_id,
        last_partition_id=_take_last_partition_id(fields, version, specs),
        sort_orders=orders,
        default_sort_order_id=default_order_id,
        properties=properties,
        current_snapshot_id=current_snapshot_id,
        snapshots=snapshots,
        snapshot_log=fields.take_log("snapshot-log", _snapshot_log_key),
        metadata_log=fields.take_log("metadata-log", _metadata_log_key),
        refs=_take_refs(fields, current_snapshot_id, snapshots),
        statistics=fields.take_log("statistics", _statistics_key),
        partition_statistics=fields.take_log("partition-statistics", _partition_statistics_key),
        encryption_keys=_take_keys(fields),
        next_row_id=_take_next_row_id(fields, version),
        unknown={name: bytes(raw) for name, raw in fields.left.items()},
    )
    check_default_ids(metadata)
    check_clocks(metadata)
    return metadata


class _Fields:
    """The top-level fields of a document; what is taken is known."""

    def __init__(self, fields: dict[str, Raw]) -> None:
        self.left = fields

    def find(self, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
        raw = self.left.pop(name, None)
        if raw is None or bytes(raw) == b"null":
            return None
        return decode_json(raw, decoder, field=name)

    def take(self, name: str, decoder: msgspec.json.Decoder[T]) -> T:
        value = self.find(name, decoder)
        if value is None:
            raise _missing(name)
        return value

    def take_log(self, name: str, read_key: Callable[..., int]) -> Fragments:
        entries = self.find(name, _ARRAY) or []
        return Fragments.of(
            (read_key(bytes(raw), field=f"{name}[{at}]"), bytes(raw)) for at, raw in enumerate(entries)
        )


def _missing(name: str) -> InvalidMetadata:
    return InvalidMetadata("A required field is missing", field=name, fix="Add it; the format requires it.")


def _take_properties(fields: _Fields, limits: SizeLimits) -> dict[str, str]:
    """The properties. What cannot fit is not decoded: millions of them would hold all other threads up."""
    written = len(bytes(fields.left.get("properties", b"")))
    if written > _WRITTEN_AT_MOST * limits.max_properties_bytes:
        raise InvalidMetadata(
            "The properties are too large together",
            field="properties",
            fix="Keep large values in files and name those.",
            limit=limits.max_properties_bytes,
        )
    properties = fields.find("properties", _STRINGS) or {}
    check_size(properties, limits=limits)
    return properties


def _take_uuid(fields: _Fields, version: int, location: str) -> str:
    text = fields.find("table-uuid", _STRING)
    if text is not None:
        return text
    if version > 1:
        raise _missing("table-uuid")
    return str(uuid.uuid5(uuid.NAMESPACE_URL, location))


def _take_schemas(
    fields: _Fields, version: int, limits: SizeLimits
) -> tuple[tuple[Document[Schema], ...], int]:
    raws = fields.find("schemas", _ARRAY)
    single = fields.left.pop("schema", None)
    if raws is not None:
        schemas = tuple(
            _with_id(read_schema(raw, field=f"schemas[{at}]"), "schema-id") for at, raw in enumerate(raws)
        )
        current_id = fields.take("current-schema-id", _INT32)
    elif version > 1:
        raise _missing("schemas")
    elif single is None:
        raise _missing("schema")
    else:
        schema = _with_id(read_schema(single), "schema-id")
        schemas, current_id = (schema,), schema.value.schema_id
        fields.left.pop("current-schema-id", None)
    if all(one.value.schema_id != current_id for one in schemas):
        raise InvalidMetadata(
            "The current schema is not among the schemas",
            field="current-schema-id",
            fix="Name one of the schemas.",
            id=current_id,
        )
    for at, one in enumerate(schemas):
        check_width(one.value, limits=limits, field=f"schemas[{at}]")
    return schemas, current_id


def _take_specs(fields: _Fields, version: int) -> tuple[tuple[Document[PartitionSpec], ...], int]:
    raws = fields.find("partition-specs", _ARRAY)
    single = fields.left.pop("partition-spec", None)
    if raws is not None:
        specs = [
            _with_id(read_spec(raw, field=f"partition-specs[{at}]"), "spec-id") for at, raw in enumerate(raws)
        ]
        default_id = fields.take("default-spec-id", _INT32)
    elif version > 1:
        raise _missing("partition-specs")
    elif single is None:
        raise _missing("partition-spec")
    else:
        specs = [read_spec(b'{"spec-id":0,"fields":%b}' % bytes(single), field="partition-spec")]
        default_id = 0
        fields.left.pop("default-spec-id", None)
    return tuple(with_field_ids(spec) for spec in specs), default_id


def _take_last_partition_id(fields: _Fields, version: int, specs: Iterable[Document[PartitionSpec]]) -> int:
    last = fields.find("last-partition-id", _INT32)
    if last is not None:
        return last
    if version > 1:
        raise _missing("last-partition-id")
    return max(spec.value.highest_field_id for spec in specs)


def _take_orders(fields: _Fields, version: int) -> tuple[tuple[Document[SortOrder], ...], int]:
    raws = fields.find("sort-orders", _ARRAY)
    if raws is not None:
        orders = tuple(
            _with_id(read_order(raw, field=f"sort-orders[{at}]"), "order-id") for at, raw in enumerate(raws)
        )
        return orders, fields.take("default-sort-order-id", _INT32)
    if version > 1:
        raise _missing("sort-orders")
    fields.left.pop("default-sort-order-id", None)
    return (read_order(UNSORTED_JSON),), UNSORTED_ID


def _with_id(document: Document[T], name: str) -> Document[T]:
    if name in decode_json(document.json, _OBJECT, field=name):
        return document
    return document.with_fields({name: 0})


def _take_snapshots(fields: _Fields, last_sequence_number: int, limits: SizeLimits) -> Fragments:
    raws = fields.find("snapshots", _ARRAY) or []
    if len(raws) > limits.max_snapshots:
        raise InvalidMetadata(
            "The table has too many snapshots",
            field="snapshots",
            fix="Expire snapshots first.",
            snapshots=len(raws),
            limit=limits.max_snapshots,
        )
    entries: dict[int, bytes] = {}
    for at, raw in enumerate(raws):
        json = bytes(raw)
        snapshot = decode_snapshot(json, field=f"snapshots[{at}]")
        if snapshot.snapshot_id in entries:
            raise InvalidMetadata(
                "Two snapshots have the same id",
                field=f"snapshots[{at}].snapshot-id",
                fix="Keep one of them.",
                id=snapshot.snapshot_id,
            )
        if snapshot.sequence_number > last_sequence_number:
            raise InvalidMetadata(
                "A snapshot's sequence number is above the table's last",
                field=f"snapshots[{at}].sequence-number",
                fix="Correct last-sequence-number.",
                sequence_number=snapshot.sequence_number,
                last_sequence_number=last_sequence_number,
            )
        entries[snapshot.snapshot_id] = json
    return Fragments.of(entries.items())


def _take_refs(
    fields: _Fields, current_snapshot_id: int | None, snapshots: Fragments
) -> dict[str, Document[SnapshotRef]]:
    refs: dict[str, Document[SnapshotRef]] = {}
    for name, raw in (fields.find("refs", _OBJECT) or {}).items():
        ref = Document(bytes(raw), partial(decode_ref, field=f"refs.{name}"))
        if ref.value.snapshot_id not in snapshots:
            raise InvalidMetadata(
                "A branch or tag names a snapshot that does not exist",
                field=f"refs.{name}.snapshot-id",
                fix="Remove it or add the snapshot.",
                snapshot_id=ref.value.snapshot_id,
            )
        refs[name] = ref
    if current_snapshot_id is None:
        if MAIN in refs:
            raise InvalidMetadata(
                "There is a main branch but no current snapshot",
                field="current-snapshot-id",
                fix="Set it to the head of main.",
            )
        return refs
    if current_snapshot_id not in snapshots:
        raise InvalidMetadata(
            "The current snapshot does not exist",
            field="current-snapshot-id",
            fix="Name one of the snapshots.",
            snapshot_id=current_snapshot_id,
        )
    if MAIN not in refs:
        # Writers older than branches name only the current snapshot.
        json = b'{"snapshot-id":%d,"type":"branch"}' % current_snapshot_id
        return {MAIN: Document(json, decode_ref), **refs}
    if refs[MAIN].value.snapshot_id != current_snapshot_id:
        raise InvalidMetadata(
            "The current snapshot is not the head of the main branch",
            field="refs.main.snapshot-id",
            fix="Make both the same.",
            current_snapshot_id=current_snapshot_id,
            main=refs[MAIN].value.snapshot_id,
        )
    return refs


def _take_keys(fields: _Fields) -> dict[str, Document[EncryptedKey]]:
    keys: dict[str, Document[EncryptedKey]] = {}
    raws: list[Raw] = fields.find("encryption-keys", _ARRAY) or []
    for at, raw in enumerate(raws):
        key = Document(bytes(raw), partial(decode_key, field=f"encryption-keys[{at}]"))
        keys[key.value.key_id] = key
    return keys


def _take_next_row_id(fields: _Fields, version: int) -> int | None:
    if version >= MIN_VERSION_OF_ROW_LINEAGE:
        return fields.take("next-row-id", _INT64)
    return None


def _snapshot_log_key(json: bytes, *, field: str) -> int:
    return decode_snapshot_log_entry(json, field=field).snapshot_id


def _metadata_log_key(json: bytes, *, field: str) -> int:
    return decode_metadata_log_entry(json, field=field).timestamp_ms


def _statistics_key(json: bytes, *, field: str) -> int:
    return decode_statistics(json, field=field).snapshot_id


def _partition_statistics_key(json: bytes, *, field: str) -> int:
    return decode_partition_statistics(json, field=field).snapshot_id
