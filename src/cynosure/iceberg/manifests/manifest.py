"""A manifest in memory: its files as columns.

Built for two questions: which files can match (whole columns), and what is this one file (one row).

A maintainer must not break: nothing here changes after it was made, so one object serves every request at the
same time; and no column costs an object per file.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from sys import getsizeof
from typing import Any, Final

from msgspec import Struct

from cynosure.iceberg.manifests.columns import Column
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.metrics import RawCounts

METRICS: Final = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)


class PartitionField(Struct, frozen=True):
    """A field of the partition values that a manifest holds."""

    id: int
    name: str
    """As the writer spelled it for Avro; names of specs may hold other letters."""


class Partitions(Struct, frozen=True):
    """The different partitions of a manifest, each once."""

    fields: tuple[PartitionField, ...]
    values: tuple[Column[Any], ...]
    """For each field, its value in each partition."""
    count: int

    def get(self, number: int) -> tuple[Any, ...]:
        """The values of one partition."""
        return tuple(column[number] for column in self.values)


class Manifest(Struct, frozen=True, kw_only=True):
    """All files of a manifest, numbered in the order of the file. Everything is inherited already."""

    path: str
    format_version: int
    spec_id: int
    count: int
    is_deletes: bool
    statuses: Column[int]
    snapshot_ids: Column[int]
    sequence_numbers: Column[int]
    file_sequence_numbers: Column[int]
    contents: Column[int]
    paths: Column[str]
    formats: Column[str]
    partitions: Partitions
    partition_numbers: Column[int]
    """For each file, the number of its partition in `partitions`."""
    record_counts: Column[int]
    file_sizes: Column[int]
    key_metadata: Column[bytes]
    split_offsets: Column[tuple[int, ...]]
    equality_ids: Column[tuple[int, ...]]
    sort_order_ids: Column[int]
    first_row_ids: Column[int]
    referenced_data_files: Column[str]
    content_offsets: Column[int]
    content_sizes: Column[int]
    column_sizes: RawCounts
    value_counts: Mapping[int, Column[int]]
    null_value_counts: Mapping[int, Column[int]]
    nan_value_counts: Mapping[int, Column[int]]
    lower_bounds: Mapping[int, Column[bytes]]
    upper_bounds: Mapping[int, Column[bytes]]

    def __len__(self) -> int:
        return self.count

    def live(self) -> "array[int]":
        """The numbers of the files that a reader of this manifest sees: all but deleted ones."""
        return array("I", [row for row, status in enumerate(self.statuses) if status != Status.DELETED])

    def file(self, row: int, *, with_metrics: bool = True) -> ContentFile:
        """One file as a value."""
        return ContentFile(
            path=_there(self.paths[row]),
            format=_there(self.formats[row]),
            spec_id=self.spec_id,
            partition=self.partitions.get(_there(self.partition_numbers[row])),
            record_count=_there(self.record_counts[row]),
            file_size_bytes=_there(self.file_sizes[row]),
            content=Content(_there(self.contents[row])),
            key_metadata=self.key_metadata[row],
            split_offsets=self.split_offsets[row],
            equality_ids=self.equality_ids[row],
            sort_order_id=self.sort_order_ids[row],
            first_row_id=self.first_row_ids[row],
            referenced_data_file=self.referenced_data_files[row],
            content_offset=self.content_offsets[row],
            content_size_bytes=self.content_sizes[row],
            **(self._metrics(row) if with_metrics else {}),
        )

    def entry(self, row: int) -> Entry:
        """One file with its history."""
        return Entry(
            Status(_there(self.statuses[row])),
            self.snapshot_ids[row],
            self.sequence_numbers[row],
            self.file_sequence_numbers[row],
            self.file(row),
        )

    def entries(self) -> Iterator[Entry]:
        """Every file with its history, deleted ones included."""
        return (self.entry(row) for row in range(self.count))

    @property
    def size_bytes(self) -> int:
        """Memory that the object holds, about: what a cache charges for it."""
        seen: dict[int, int] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, RawCounts):
                value = value.maps
            for column in value.values() if isinstance(value, Mapping) else (value,):
                if isinstance(column, Column):
                    # The same column may stand for several: a value count that is the record count.
                    seen[id(column)] = column.size_bytes
            seen[id(value)] = seen.get(id(value), 0) + getsizeof(value)
        return sum(seen.values()) + sum(column.size_bytes for column in self.partitions.values)

    def metrics(self, row: int, name: str, ids: Iterable[int]) -> dict[int, Any]:
        """What one file has of one kind of metrics for some columns."""
        columns = getattr(self, name)
        if isinstance(columns, RawCounts):
            counts = columns.row(row) or {}
            return {id_: counts[id_] for id_ in ids if id_ in counts}
        return {
            id_: value
            for id_ in ids
            if (column := columns.get(id_)) is not None and (value := column[row]) is not None
        }

    def _metrics(self, row: int) -> dict[str, dict[int, Any] | None]:
        return {name: _pick(getattr(self, name), row) for name in METRICS}


def _pick(columns: Mapping[int, Column[Any]], row: int) -> dict[int, Any] | None:
    if isinstance(columns, RawCounts):
        return columns.row(row) or None
    found = {id_: value for id_, column in columns.items() if (value := column[row]) is not None}
    return found or None


def _there(value: Any) -> Any:
    # Only for columns that reading checked: None here would be a mistake of ours, not of a file.
    assert value is not None  # noqa: S101
    return value
