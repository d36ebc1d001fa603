"""Metadata tables that are made from manifests: `files`, `entries`, `manifests`, `partitions` and their like.

A maintainer must not break: manifests tell about every row of a table, hidden ones too. So nothing is read
here for a task with a filter or a mask; and a manifest that cannot be read fails the scan.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import Any, Final, NamedTuple
from uuid import UUID

import pyarrow as pa

from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.content_file import Content, ContentFile
from cynosure.iceberg.manifests.manifest import METRICS, Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.partitioning import decode_spec, partition_types
from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.types import StructType, Type
from cynosure.query.errors import NotReadable
from cynosure.query.scan.memory import Budget
from cynosure.query.scan.opening import TaskFiles
from cynosure.query.scan.port import ScanProgress, ScanWatch
from cynosure.query.scan.prepared import empty_batch, make_output, read_columns
from cynosure.query.scan_task import MetadataRead, ScanTask

_MOST_BYTES: Final = 256 * 2**20
"""Of one file of metadata."""
_AT_ONCE: Final = 1_000
"""Rows of a batch: each may have metrics of hundreds of columns."""
_DELETES: Final = frozenset({Content.POSITION_DELETES, Content.EQUALITY_DELETES})
_CONTENTS: Final[Mapping[str, frozenset[Content]]] = {
    "data_files": frozenset({Content.DATA}),
    "delete_files": _DELETES,
}
"""What a table of files holds; others hold all."""
Row = dict[str, Any]


class _Found(NamedTuple):
    """A file that a manifest names."""

    file: ContentFile
    partition: dict[str, Any]
    """By names, of all specs of the table."""
    manifest: Manifest
    row: int


def metadata_batches(task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
    """Batches as `governed.governed_batches` gives them."""
    wanted = task.metadata
    if wanted is None or task.masks or task.row_filter != b"true":
        raise NotReadable("Metadata of a table with policies is not read")
    schema, columns = read_columns(task)
    output = make_output(columns)
    with closing(_Manifests(task, wanted, schema, watch)) as manifests:
        rows = manifests.rows()
        while some := list(islice(rows, min(_AT_ONCE, task.batch_rows))):
            manifests.move(rows=len(some))
            if not columns:
                yield empty_batch(len(some))
                continue
            arrays = [pa.array([row.get(each.name) for row in some], each.type) for each in output]
            yield pa.RecordBatch.from_arrays(arrays, schema=output)


class _Manifests:
    """The manifests of a snapshot, as rows of a metadata table."""

    def __init__(self, task: ScanTask, wanted: MetadataRead, schema: Schema, watch: ScanWatch) -> None:
        self._wanted = wanted
        self._watch = watch
        self._files = TaskFiles(task)
        self._budget = Budget(task.memory_limit_bytes, self.move)
        self._done = ScanProgress()
        self._names = _find_partition(schema)
        own = decode_schema(wanted.schema)
        self._specs: dict[int, tuple[tuple[int, Type | None], ...]] = {}
        for each in wanted.specs:
            spec = decode_spec(each)
            ids = (field.field_id or 0 for field in spec.fields)
            self._specs[spec.spec_id] = tuple(zip(ids, partition_types(spec, own), strict=True))

    def close(self) -> None:
        """Hold nothing any more."""
        self._budget.close()

    def rows(self) -> Iterator[Row]:
        """All rows, by names of columns."""
        kind = self._wanted.kind
        if kind == "manifests":
            return map(_show_manifest, self._list())
        if kind == "partitions":
            return self._partitions()
        contents = _CONTENTS.get(kind, frozenset(Content))
        if kind == "entries":
            return map(_show_entry, self._found(is_all=True))
        return (_show_file(each) for each in self._found() if each.file.content in contents)

    def _list(self) -> tuple[ManifestFile, ...]:
        path = self._wanted.manifest_list
        data = self._read(path)
        try:
            return read_manifest_list(data, path=path).manifests
        except InvalidManifest:
            raise _not_readable() from None

    def _found(self, *, is_all: bool = False) -> Iterator[_Found]:
        """Files that are there; all: also those that the manifests say are not any more."""
        for listed in self._list():
            if listed.key_metadata is not None:
                raise NotReadable("A manifest of the table is encrypted, which is not read")
            fields = self._specs.get(listed.spec_id)
            if fields is None:
                raise _not_readable()
            data = self._read(listed.path)
            try:
                manifest = read_manifest(data, listed, partition=fields)
            except InvalidManifest:
                raise _not_readable() from None
            size_bytes = manifest.size_bytes
            self._budget.take(size_bytes)
            names = [self._names.get(id_) for id_, _ in fields]
            for row in range(len(manifest)) if is_all else manifest.live():
                file = manifest.file(row)
                values = zip(names, file.partition, strict=True)
                partition = {name: _show_value(value) for name, value in values if name is not None}
                yield _Found(file, partition, manifest, row)
            self._budget.give_back(size_bytes)

    def move(self, *, files: int = 0, rows: int = 0, size_bytes: int = 0) -> None:
        """Say that so much more was done. `QueryCancelled` when nobody wants it any more."""
        done = self._done
        self._done = ScanProgress(done.files + files, done.rows + rows, done.bytes + size_bytes)
        self._watch.advance(self._done)

    def _read(self, path: str) -> bytes:
        self._files.renew(self._watch.credentials())
        data = self._files.read(path, limit_bytes=_MOST_BYTES)
        self.move(files=1, size_bytes=len(data))
        return data

    def _partitions(self) -> Iterator[Row]:
        sums: dict[tuple[Any, ...], Row] = {}
        for found in self._found():
            key = tuple(found.partition.get(name) for name in self._names.values())
            row = sums.get(key)
            if row is None:
                row = sums[key] = _begin_partition(found)
            self._add(row, found)
        if not self._names and not sums:
            sums[()] = dict.fromkeys(_COUNTS, 0)
        return iter(sums.values())

    def _add(self, row: Row, found: _Found) -> None:
        file = found.file
        row["spec_id"] = max(row["spec_id"], file.spec_id)
        before = {Content.DATA: "", Content.POSITION_DELETES: "position_delete_"}.get(
            file.content, "equality_delete_"
        )
        row[f"{before}record_count"] += file.record_count
        row[f"{before}file_count"] += 1
        if file.content is Content.DATA:
            row["total_data_file_size_in_bytes"] += file.file_size_bytes
        snapshot_id = found.manifest.snapshot_ids[found.row]
        made_ms = None if snapshot_id is None else self._wanted.snapshots.get(snapshot_id)
        if made_ms is not None and made_ms * 1_000 > (row["last_updated_at"] or 0):
            row["last_updated_at"] = made_ms * 1_000
            row["last_updated_snapshot_id"] = snapshot_id


_COUNTS: Final = (
    "record_count",
    "file_count",
    "total_data_file_size_in_bytes",
    "position_delete_record_count",
    "position_delete_file_count",
    "equality_delete_record_count",
    "equality_delete_file_count",
)


def _begin_partition(found: _Found) -> Row:
    return {
        "partition": found.partition,
        "spec_id": found.file.spec_id,
        **dict.fromkeys(_COUNTS, 0),
        "last_updated_at": None,
        "last_updated_snapshot_id": None,
    }


def _find_partition(schema: Schema) -> dict[int, str]:
    """Names of partition fields by their ids, wherever the column of them is."""
    for place in schema.places.values():
        if place.field.name == "partition" and isinstance(place.field.type, StructType):
            return {field.id: field.name for field in place.field.type.fields}
    return {}


def _show_file(found: _Found) -> Row:
    file = found.file
    metrics = {name: _show_map(getattr(file, name)) for name in METRICS}
    return {
        "content": int(file.content),
        "file_path": file.path,
        "file_format": file.format.upper(),
        "spec_id": file.spec_id,
        "partition": found.partition,
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_bytes,
        **metrics,
        "key_metadata": file.key_metadata,
        "split_offsets": _show_list(file.split_offsets),
        "equality_ids": _show_list(file.equality_ids),
        "sort_order_id": file.sort_order_id,
        "first_row_id": file.first_row_id,
        "referenced_data_file": file.referenced_data_file,
        "content_offset": file.content_offset,
        "content_size_in_bytes": file.content_size_bytes,
    }


def _show_entry(found: _Found) -> Row:
    manifest, row = found.manifest, found.row
    return {
        "status": manifest.statuses[row],
        "snapshot_id": manifest.snapshot_ids[row],
        "sequence_number": manifest.sequence_numbers[row],
        "file_sequence_number": manifest.file_sequence_numbers[row],
        "data_file": _show_file(found),
    }


def _show_manifest(listed: ManifestFile) -> Row:
    is_data = listed.content is ManifestContent.DATA
    counts = {
        "added": listed.added_files,
        "existing": listed.existing_files,
        "deleted": listed.deleted_files,
    }
    return {
        "content": int(listed.content),
        "path": listed.path,
        "length": listed.length,
        "partition_spec_id": listed.spec_id,
        "added_snapshot_id": listed.added_snapshot_id,
        **{f"{name}_data_files_count": count if is_data else 0 for name, count in counts.items()},
        **{f"{name}_delete_files_count": 0 if is_data else count for name, count in counts.items()},
    }


def _show_map(values: Mapping[int, Any] | None) -> list[tuple[int, Any]] | None:
    return None if values is None else list(values.items())


def _show_list(values: Iterable[int] | None) -> list[int] | None:
    return None if values is None else list(values)


def _show_value(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _not_readable() -> NotReadable:
    return NotReadable(
        "A manifest of the table cannot be read",
        fix="Restore the file from a backup, or roll the table back to a snapshot without it.",
    )
