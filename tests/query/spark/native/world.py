"""Scan tasks as tables of Iceberg: the same files, with manifests and metadata around them.

What `governed_batches` gives of a task is what the native leaf must give of the table.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cynosure.iceberg.manifests.bounds import write_bound
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.write_manifest import (
    ManifestKind,
    spec_fields_json,
    write_manifest,
    write_manifest_list,
)
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec, partition_types
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.types import INT, LONG, STRING, Type
from cynosure.query.engine import Relation, RelationColumn, TableRead
from cynosure.query.scan_task import DeleteFile, ScanTask

SNAPSHOT = 77
_NUMBERS = itertools.count()
_CONTENT = {
    "position": Content.POSITION_DELETES,
    "vector": Content.POSITION_DELETES,
    "equality": Content.EQUALITY_DELETES,
}


Put = Callable[[str, bytes], object]


def put_locally(path: str, data: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)


def to_relation(
    task: ScanTask,
    directory: Path | str,
    view: str = "cyn_0",
    *,
    version: int = 2,
    spec: tuple[PartitionField, ...] = (),
    partitions: tuple[tuple[Any, ...], ...] = (),
    schemas: tuple[dict[str, Any], ...] = (),
    is_current_schema: bool = True,
    put: Put = put_locally,
    **changes: Any,
) -> Relation:
    """A relation whose table has exactly the files of a task. `changes` are of the metadata."""
    metadata = write_table(
        task, directory, version=version, spec=spec, partitions=partitions, schemas=schemas, put=put
    )
    schema = decode_schema(task.schema)
    table = TableRead(
        catalog="c",
        namespace=("ns",),
        name=view,
        snapshot_id=SNAPSHOT,
        is_current_schema=is_current_schema,
        row_filter=task.row_filter,
        masks=task.masks,
        predicates=task.predicates,
        salt=task.salt,
        metadata={**metadata, **changes},
    )
    columns = tuple(
        RelationColumn(schema.places[each].field.name, schema.places[each].field.type)
        for each in task.columns
    )
    return Relation(view, f"c.ns.{view}", columns, (task,), table=table)


def write_table(
    task: ScanTask,
    directory: Path | str,
    *,
    version: int,
    spec: tuple[PartitionField, ...] = (),
    partitions: tuple[tuple[Any, ...], ...] = (),
    schemas: tuple[dict[str, Any], ...] = (),
    put: Put = put_locally,
) -> dict[str, Any]:
    """Write manifests; the metadata of the table."""
    schema = decode_schema(task.schema)
    split = PartitionSpec(spec, 0)
    folder = f"{directory}/metadata-{next(_NUMBERS)}"
    files = [
        ContentFile(
            path=each.path,
            format=each.format.lower(),
            spec_id=0,
            partition=partitions[at] if partitions else (),
            record_count=each.record_count,
            file_size_bytes=each.size_bytes,
            **find_bounds(each.path, schema),
        )
        for at, each in enumerate(task.files)
    ]
    deletes = [
        _delete(each, next((file.path for file in task.files if at in file.deletes), ""))
        for at, each in enumerate(task.deletes)
    ]
    listed = [
        _write(folder, schema, split, each, number, version, put)
        for number, each in ((1, files), (2, deletes))
        if each
    ]
    data, _, next_row = write_manifest_list(
        listed,
        format_version=version,
        snapshot_id=SNAPSHOT,
        parent_snapshot_id=None,
        sequence_number=2,
        next_row_id=0 if version > 2 else None,
    )
    put(f"{folder}/list.avro", data)
    read_with = msgspec.json.decode(task.schema)
    known = [*(each for each in schemas if each["schema-id"] != read_with["schema-id"]), read_with]
    snapshot = {
        "snapshot-id": SNAPSHOT,
        "sequence-number": 2,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": f"{folder}/list.avro",
        "summary": {"operation": "append"},
        "schema-id": read_with["schema-id"],
    }
    if version > 2:
        snapshot |= {"first-row-id": 0, "added-rows": next_row}
    return {
        "format-version": version,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": str(directory),
        "last-sequence-number": 2,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": 1000,
        "schemas": known,
        "current-schema-id": known[-1]["schema-id"],
        "partition-specs": [{"spec-id": 0, "fields": msgspec.json.decode(spec_fields_json(split))}],
        "default-spec-id": 0,
        "last-partition-id": 1000,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        # Were it loaded, this class would fail the read.
        "properties": {"write.location-provider.impl": "no.such.Class"},
        "current-snapshot-id": SNAPSHOT,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": SNAPSHOT, "type": "branch"}},
        "snapshot-log": [{"snapshot-id": SNAPSHOT, "timestamp-ms": 1_700_000_000_000}],
        "metadata-log": [],
        **({"next-row-id": next_row} if version > 2 else {}),
    }


def find_bounds(path: str, schema: Schema) -> dict[str, Any]:
    """Of numbers and texts at the top level, as writers of Iceberg have them: without NaN."""
    if ":" in path:
        return {}
    table = pq.read_table(path, partitioning=None)
    lower, upper, counts, nulls, nans = {}, {}, {}, {}, {}
    by_id = {
        int((field.metadata or {}).get(b"PARQUET:field_id", b"-1")): at
        for at, field in enumerate(table.schema)
    }
    for field in schema.fields:
        at = by_id.get(field.id, -1)
        if at < 0 or not _has_bounds(field.type, table.schema.field(at).type):
            continue
        values = table.column(at)
        counts[field.id], nulls[field.id] = len(values), values.null_count
        if pa.types.is_floating(values.type):
            is_nan = pc.is_nan(values)
            nans[field.id] = pc.sum(is_nan).as_py() or 0
            values = values.filter(pc.invert(is_nan))
        found = pc.min_max(values).as_py()
        if found["min"] is not None:
            lower[field.id] = write_bound(field.type, _plain(found["min"]))
            upper[field.id] = write_bound(field.type, _plain(found["max"]))
    return {
        "value_counts": counts,
        "null_value_counts": nulls,
        "nan_value_counts": nans,
        "lower_bounds": lower,
        "upper_bounds": upper,
    }


def _has_bounds(type_: Type, arrow: pa.DataType) -> bool:
    same = {INT: pa.int32(), LONG: pa.int64(), STRING: pa.string()}
    return same.get(type_) == arrow or pa.types.is_floating(arrow)


def _plain(value: Any) -> Any:
    # Exactly one of the zeros, as a writer that compares bits has it.
    return math.copysign(0.0, value) if value == 0.0 and isinstance(value, float) else value


def _delete(found: DeleteFile, about: str) -> ContentFile:
    is_vector = found.kind == "vector"
    return ContentFile(
        path=found.path,
        format=found.format.lower(),
        spec_id=0,
        partition=(),
        record_count=found.record_count,
        file_size_bytes=found.size_bytes,
        content=_CONTENT[found.kind],
        equality_ids=found.equality_ids or None,
        referenced_data_file=about if is_vector else None,
        content_offset=found.offset if is_vector else None,
        content_size_bytes=found.length if is_vector else None,
    )


def _write(
    folder: str,
    schema: Schema,
    spec: PartitionSpec,
    files: list[ContentFile],
    number: int,
    version: int,
    put: Put,
) -> ManifestFile:
    kind = ManifestKind(
        format_version=version,
        spec=spec,
        partition_types=partition_types(spec, schema),
        spec_json=spec_fields_json(spec),
        schema_json=b'{"type":"struct","fields":[]}',
        schema_id=schema.schema_id,
        content=ManifestContent(files[0].content is not Content.DATA),
    )
    path = f"{folder}/manifest-{number}.avro"
    # Deletes are younger than the data: an equality delete is about what was there before.
    entries = [Entry(Status.EXISTING, SNAPSHOT, number, number, each) for each in files]
    data, listed = write_manifest(kind, entries, path=path, snapshot_id=SNAPSHOT)
    put(path, data)
    return msgspec.structs.replace(listed, sequence_number=2, min_sequence_number=1)
