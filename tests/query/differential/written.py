"""Tables as long-lived ones are: several files, changed schemas, partitions, deletes of all three kinds."""

import itertools
import struct
import uuid
import zlib
from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace
from pyroaring import BitMap64

from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, read_manifest_list
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from cynosure.iceberg.partitioning import PartitionSpec

_NUMBERS = itertools.count(1)
_UNPARTITIONED = PartitionSpec((), 0)


def append_pieces(table: Any, pieces: Sequence[pa.Table]) -> list[str]:
    """Append each as a file of its own; the files' paths."""
    paths: list[str] = []
    for piece in pieces:
        before = _paths(table)
        table.append(piece)
        [path] = _paths(table) - before
        paths.append(path)
    return paths


def _paths(table: Any) -> set[str]:
    return {task.file.file_path for task in table.scan().plan_files()}


def write_positions(table: Any, deleted: Sequence[tuple[str, int]]) -> ContentFile:
    """A file with positions, of any number of data files."""
    rows = sorted(deleted)
    schema = pa.schema(
        [_numbered("file_path", pa.string(), 2_147_483_546), _numbered("pos", pa.int64(), 2_147_483_545)]
    )
    columns = [
        pa.array([row[0] for row in rows], pa.string()),
        pa.array([row[1] for row in rows], pa.int64()),
    ]
    return _write_parquet(
        table, pa.Table.from_arrays(columns, schema=schema), content=Content.POSITION_DELETES
    )


def write_vector(table: Any, path: str, positions: Sequence[int]) -> ContentFile:
    """A deletion vector of one data file."""
    content = b"\xd1\xd3\x39\x64" + BitMap64(positions).serialize()
    blob = struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    where = f"{table.location()}/data/{uuid.uuid4()}.puffin"
    size = _write(table, where, b"PFA1" + blob + b"footer")
    return ContentFile(
        path=where,
        format="puffin",
        spec_id=0,
        partition=(),
        record_count=len(set(positions)),
        file_size_bytes=size,
        content=Content.POSITION_DELETES,
        referenced_data_file=path,
        content_offset=4,
        content_size_bytes=len(blob),
    )


def write_equality(table: Any, column: str, values: Sequence[int]) -> ContentFile:
    """All rows whose column is one of these."""
    found = table.schema().find_field(column)
    data = pa.Table.from_arrays(
        [pa.array(values, pa.int64())], schema=pa.schema([_numbered(column, pa.int64(), found.field_id)])
    )
    return _write_parquet(table, data, content=Content.EQUALITY_DELETES, equality_ids=(found.field_id,))


def _numbered(name: str, type_: pa.DataType, id_: int) -> pa.Field:
    return pa.field(name, type_, nullable=False, metadata={"PARQUET:field_id": str(id_)})


def _write_parquet(table: Any, data: pa.Table, **more: Any) -> ContentFile:
    sink = pa.BufferOutputStream()
    pq.write_table(data, sink, store_schema=False)
    path = f"{table.location()}/data/{uuid.uuid4()}.parquet"
    size = _write(table, path, sink.getvalue().to_pybytes())
    return ContentFile(
        path=path,
        format="parquet",
        spec_id=0,
        partition=(),
        record_count=data.num_rows,
        file_size_bytes=size,
        **more,
    )


def _write(table: Any, path: str, data: bytes) -> int:
    with table.io.new_output(path).create() as out:
        out.write(data)
    return len(data)


def commit_deletes(http: httpx.Client, url: str, table: Any, *files: ContentFile) -> None:
    """A snapshot that deletes rows of an unpartitioned table. Vectors make it one of version 3."""
    metadata = http.get(url).raise_for_status().json()["metadata"]
    version = 3 if any(each.is_deletion_vector for each in files) else metadata["format-version"]
    number, sequence = 7_000_000 + next(_NUMBERS), metadata["last-sequence-number"] + 1
    [before] = [
        each for each in metadata["snapshots"] if each["snapshot-id"] == metadata["current-snapshot-id"]
    ]
    with table.io.new_input(before["manifest-list"]).open() as source:
        listed = read_manifest_list(source.read(), path=before["manifest-list"]).manifests
    kind = ManifestKind(
        format_version=version,
        spec=_UNPARTITIONED,
        partition_types=(),
        spec_json=b"[]",
        schema_json=msgspec.json.encode(metadata["schemas"][-1]),
        schema_id=metadata["current-schema-id"],
        content=ManifestContent.DELETES,
    )
    path = f"{table.location()}/metadata/{uuid.uuid4()}.avro"
    data, added = write_manifest(
        kind, [Entry(Status.ADDED, None, None, None, each) for each in files], path=path, snapshot_id=number
    )
    _write(table, path, data)
    next_row = metadata.get("next-row-id", 0) if version > 2 else None
    data, _, end = write_manifest_list(
        [*listed, replace(added, added_snapshot_id=number)],
        format_version=version,
        snapshot_id=number,
        parent_snapshot_id=before["snapshot-id"],
        sequence_number=sequence,
        next_row_id=next_row,
    )
    listing = f"{table.location()}/metadata/{uuid.uuid4()}.avro"
    _write(table, listing, data)
    snapshot = {
        "snapshot-id": number,
        "parent-snapshot-id": before["snapshot-id"],
        "sequence-number": sequence,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": listing,
        "summary": {"operation": "delete"},
        "schema-id": metadata["current-schema-id"],
    }
    updates: list[dict[str, Any]] = []
    if version > metadata["format-version"]:
        updates.append({"action": "upgrade-format-version", "format-version": version})
    if next_row is not None:
        snapshot |= {"first-row-id": next_row, "added-rows": (end or next_row) - next_row}
    updates += [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number},
    ]
    answer = http.post(url, json={"requirements": [], "updates": updates})
    assert answer.is_success, answer.text
    table.refresh()
