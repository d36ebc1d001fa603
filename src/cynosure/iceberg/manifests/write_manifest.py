"""Manifests and manifest lists as bytes.

A maintainer must not break: an entry that this commit adds is written without sequence numbers, and its
snapshot's list supplies them. That is what lets a commit be tried again on a newer state without writing its
manifests again.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.manifests.avro.encode import encode_value, write_container, write_encoded
from cynosure.iceberg.manifests.avro_schemas import manifest_list_schema, manifest_schema
from cynosure.iceberg.manifests.bounds import write_bound
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import FieldSummary, ManifestContent, ManifestFile
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.iceberg.types import Type, is_floating, is_orderable

UNASSIGNED: Final = -1
"""A sequence number that the list which names the manifest will set."""
_V1_BLOCK_BYTES: Final = 64 * 1024 * 1024
"""A field that version 1 requires and nobody reads."""


class ManifestKind(Struct, frozen=True):
    """What all files of a manifest have in common."""

    format_version: int
    spec: PartitionSpec
    partition_types: tuple[Type | None, ...]
    """Of the spec's fields; None where the column is gone (`partitioning.partition_types`)."""
    spec_json: bytes
    """The spec's list of fields, as the table has it."""
    schema_json: bytes
    """The table's schema: readers without the table's metadata use it."""
    schema_id: int
    content: ManifestContent = ManifestContent.DATA


def write_manifest(
    kind: ManifestKind,
    entries: Iterable[Entry],
    *,
    path: str,
    snapshot_id: int,
    codec: str = "deflate",
) -> tuple[bytes, ManifestFile]:
    """The file and its line for the list of the snapshot that adds it.

    Sequence numbers that the entries leave open stay open: `write_manifest_list` sets them.
    """
    summary = _Summary(kind)
    version = kind.format_version
    partition = [
        (field.field_id or 0, field.name, type_)
        for field, type_ in zip(kind.spec.fields, kind.partition_types, strict=True)
    ]
    data = write_container(
        manifest_schema(version, partition),
        (_entry_values(entry, version, summary.add(entry)) for entry in entries),
        properties={
            "schema": kind.schema_json,
            "schema-id": str(kind.schema_id).encode(),
            "partition-spec": kind.spec_json,
            "partition-spec-id": str(kind.spec.spec_id).encode(),
            "format-version": str(version).encode(),
            **({"content": kind.content.name.lower().encode()} if version > 1 else {}),
        },
        codec=codec,
    )
    return data, summary.finish(path, len(data), snapshot_id)


def write_manifest_list(
    manifests: Sequence[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    next_row_id: int | None = None,
    codec: str = "deflate",
) -> tuple[bytes, tuple[ManifestFile, ...], int | None]:
    """The file, the manifests as they are written in it, and the table's next row id after it.

    `next_row_id` is the first number that is free in the table, for version 3 and newer. Every data manifest
    without a first row id gets one here, and numbers for all of its rows.
    """
    listed = []
    for manifest in manifests:
        if format_version == 1 and manifest.content is not ManifestContent.DATA:
            raise InvalidUpdate(
                "A table of format version 1 has no delete files",
                field="manifests",
                fix="Upgrade the table to version 2 first.",
                path=manifest.path,
            )
        one = _with_numbers(manifest, snapshot_id, sequence_number)
        if (
            format_version > 2
            and next_row_id is not None
            and one.content is ManifestContent.DATA
            and one.first_row_id is None
        ):
            one = replace(one, first_row_id=next_row_id)
            next_row_id += (one.added_rows or 0) + (one.existing_rows or 0)
        listed.append(one)
    properties = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
        "format-version": str(format_version),
    }
    if format_version > 1:
        properties["sequence-number"] = str(sequence_number)
    if format_version > 2 and next_row_id is not None:
        first = next((one.first_row_id for one in listed if one.first_row_id is not None), next_row_id)
        properties["first-row-id"] = str(first)
    data = write_encoded(
        manifest_list_schema(format_version),
        (_encode_line(one, format_version) for one in listed),
        properties={key: value.encode() for key, value in properties.items()},
        codec=codec,
    )
    return data, tuple(listed), next_row_id


def _with_numbers(manifest: ManifestFile, snapshot_id: int, sequence_number: int) -> ManifestFile:
    if UNASSIGNED not in (manifest.sequence_number, manifest.min_sequence_number):
        return manifest
    if manifest.added_snapshot_id != snapshot_id:
        raise InvalidUpdate(
            "A manifest of another snapshot has no sequence number",
            field="manifests",
            fix="Take the manifest from the list of the snapshot that added it.",
            path=manifest.path,
        )
    return replace(
        manifest,
        sequence_number=_assigned(manifest.sequence_number, sequence_number),
        min_sequence_number=_assigned(manifest.min_sequence_number, sequence_number),
    )


def _assigned(number: int, default: int) -> int:
    return default if number == UNASSIGNED else number


@lru_cache(maxsize=10_000)
def _encode_line(one: ManifestFile, format_version: int) -> bytes:
    """A line of a list. Each list repeats nearly all lines of the one before, so they are remembered."""
    return encode_value(manifest_list_schema(format_version), _manifest_values(one, format_version))


def _manifest_values(one: ManifestFile, format_version: int) -> tuple[Any, ...]:
    numbers = (int(one.content), one.sequence_number, one.min_sequence_number) if format_version > 1 else ()
    counts = (one.added_files, one.existing_files, one.deleted_files)
    rows = (one.added_rows, one.existing_rows, one.deleted_rows)
    if format_version > 1:
        # Version 2 requires what a list of version 1 may have left out.
        counts, rows = tuple(each or 0 for each in counts), tuple(each or 0 for each in rows)  # type: ignore[assignment]
    summaries = None
    if one.partitions is not None:
        summaries = [
            (each.contains_null, each.contains_nan, each.lower_bound, each.upper_bound)
            for each in one.partitions
        ]
    last = (one.first_row_id,) if format_version > 2 else ()
    return (
        *(one.path, one.length, one.spec_id),
        *numbers,
        one.added_snapshot_id or 0,
        *counts,
        *rows,
        *(summaries, one.key_metadata),
        *last,
    )


def _entry_values(entry: Entry, version: int, file: ContentFile) -> tuple[Any, ...]:
    content = (int(file.content),) if version > 1 else ()
    numbers = (entry.sequence_number, entry.file_sequence_number) if version > 1 else ()
    values = (
        *content,
        *(file.path, file.format.upper(), file.partition, file.record_count, file.file_size_bytes),
        *((_V1_BLOCK_BYTES,) if version == 1 else ()),
        *map(
            _pairs,
            (
                *(file.column_sizes, file.value_counts, file.null_value_counts, file.nan_value_counts),
                *(file.lower_bounds, file.upper_bounds),
            ),
        ),
        *(file.key_metadata, file.split_offsets),
        *((file.equality_ids,) if version > 1 else ()),
        file.sort_order_id,
        *((file.first_row_id,) if version > 2 else ()),
        *((file.referenced_data_file,) if version > 1 else ()),
        *((file.content_offset, file.content_size_bytes) if version > 2 else ()),
    )
    return (int(entry.status), entry.snapshot_id, *numbers, values)


def _pairs(metrics: dict[int, Any] | None) -> Iterable[tuple[int, Any]] | None:
    return None if metrics is None else metrics.items()


class _Summary:
    """Counts and bounds of what is written, gathered on the way."""

    def __init__(self, kind: ManifestKind) -> None:
        self._kind = kind
        self._files = dict.fromkeys(Status, 0)
        self._rows = dict.fromkeys(Status, 0)
        self._min_sequence = UNASSIGNED
        self._values: list[set[Any]] = [set() for _ in kind.spec.fields]

    def add(self, entry: Entry) -> ContentFile:
        """Count an entry; refuses one that does not belong into the manifest."""
        file = entry.file
        is_data = file.content is Content.DATA
        if is_data != (self._kind.content is ManifestContent.DATA):
            _refuse("A manifest lists either data files or delete files", file)
        if file.spec_id != self._kind.spec.spec_id or len(file.partition) != len(self._values):
            _refuse("The file belongs to another partition spec", file)
        if (
            entry.sequence_number is None
            and entry.status is not Status.ADDED
            and self._kind.format_version > 1
        ):
            _refuse("Only a file that is added may leave its sequence number open", file)
        self._files[entry.status] += 1
        self._rows[entry.status] += file.record_count
        if entry.status is not Status.DELETED and entry.sequence_number is not None:
            least = self._min_sequence
            number = entry.sequence_number
            self._min_sequence = number if least == UNASSIGNED else min(least, number)
        for values, value in zip(self._values, file.partition, strict=True):
            values.add(value)
        return file

    def finish(self, path: str, length: int, snapshot_id: int) -> ManifestFile:
        """The line of the manifest in a list."""
        is_v1 = self._kind.format_version == 1
        return ManifestFile(
            path=path,
            length=length,
            spec_id=self._kind.spec.spec_id,
            added_snapshot_id=snapshot_id,
            content=self._kind.content,
            sequence_number=0 if is_v1 else UNASSIGNED,
            min_sequence_number=0 if is_v1 else self._min_sequence,
            added_files=self._files[Status.ADDED],
            existing_files=self._files[Status.EXISTING],
            deleted_files=self._files[Status.DELETED],
            added_rows=self._rows[Status.ADDED],
            existing_rows=self._rows[Status.EXISTING],
            deleted_rows=self._rows[Status.DELETED],
            partitions=tuple(
                _summarize(values, type_)
                for values, type_ in zip(self._values, self._kind.partition_types, strict=True)
            ),
        )


def _summarize(values: set[Any], type_: Type | None) -> FieldSummary:
    has_null = None in values
    found = [value for value in values if value is not None]
    has_nan = False
    if type_ is not None and is_floating(type_):
        numbers = [value for value in found if value == value]  # noqa: PLR0124 (NaN is what differs from itself)
        has_nan, found = len(numbers) < len(found), numbers
    if not found or type_ is None or not is_orderable(type_):
        return FieldSummary(has_null, has_nan)
    return FieldSummary(has_null, has_nan, write_bound(type_, min(found)), write_bound(type_, max(found)))


def _refuse(message: str, file: ContentFile) -> None:
    raise InvalidUpdate(
        message, field="data-files", fix="Send the file with others of its kind.", path=file.path
    )


def spec_fields_json(spec: PartitionSpec) -> bytes:
    """The list of a spec's fields, for `ManifestKind.spec_json`."""
    return msgspec.json.encode(
        [
            {
                "name": field.name,
                "transform": field.transform,
                "source-id": field.sources[0],
                "field-id": field.field_id,
            }
            for field in spec.fields
        ]
    )
