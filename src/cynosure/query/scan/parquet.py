"""One Parquet file, open: its footer checked against what the table says, its row groups chosen.

A maintainer must not break: a file that is not what the table says (rows, size, format, encryption) is an
error. Nothing of it is skipped, except row groups whose own statistics say that no row passes.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from cynosure.query.errors import NotReadable, OutOfMemory
from cynosure.query.scan.memory import Budget
from cynosure.query.scan.opening import Source, TaskFiles
from cynosure.query.scan.primitives import mark_int96
from cynosure.query.scan_task import DataFile

_PROBED: Final = 64
_PAGE_BYTES: Final = 2**20
"""What writers make of a page at most, and of a dictionary. Footers do not say it."""
_DECODED_BYTES: Final = 3 * _PAGE_BYTES
"""Of a column, beside what is read of it: measured (74 MiB for 16 columns in pieces, 190 for 148 at once)."""


class RowGroup(Struct, frozen=True):
    """A part of a file."""

    number: int
    first_row: int
    """Its place in the whole file: what position deletes count."""
    rows: int


class ParquetSource:
    """An open Parquet file."""

    def __init__(self, source: Source, *, record_count: int | None) -> None:
        self._source = source
        with reading():
            self._file = pq.ParquetFile(
                pa.PythonFile(source.file, mode="r"),
                buffer_size=source.buffer_bytes,
                pre_buffer=False,
                coerce_int96_timestamp_unit="us",
                # Extensions are read as what they are stored as: their meaning is the table's.
                arrow_extensions_enabled=False,
                # Where a writer made checksums (Java's does), changed values are an error too.
                page_checksum_verification=True,
            )
            self.metadata = self._file.metadata
            self.schema = _mark_int96(self._file.schema_arrow, self._file.schema)
        if record_count is not None and self.metadata.num_rows != record_count:
            raise NotReadable("A file of the table has another number of rows than the table says")
        self._probed: tuple[int, int] | None = None
        """Rows and bytes of the columns that may be larger than the footer says."""
        self._leaves = _find_leaves(self.schema)
        if self._leaves[-1] != self.metadata.num_columns:
            raise NotReadable("A file's columns are not what its footer says")

    def fileno(self) -> int:
        """The number of the open file, of a local one."""
        return self._source.file.fileno()

    def find_groups(self, file: DataFile) -> list[RowGroup]:
        """Row groups of the file, or of the part of it that is asked for."""
        found = []
        first_row = 0
        for number in range(self.metadata.num_row_groups):
            rows = self.metadata.row_group(number).num_rows
            if not file.end or file.begin <= self.find_begin(number) < file.end:
                found.append(RowGroup(number, first_row, rows))
            first_row += rows
        if first_row != self.metadata.num_rows:
            raise NotReadable("A file's row groups are not what its footer says")
        return found

    def find_begin(self, number: int) -> int:
        """The first byte of a row group's data; 0 where it has none."""
        first = self.metadata.row_group(number).column(0)
        begins = (first.data_page_offset, first.dictionary_page_offset)
        # Some writers say 0 for "no dictionary".
        return int(min((each for each in begins if each), default=0))

    def leaf_of(self, position: int) -> int | None:
        """The number of a column's values in the file's statistics; `None` for one that has parts."""
        first, end = self._leaves[position], self._leaves[position + 1]
        return (
            first if end - first == 1 and not pa.types.is_nested(self.schema.field(position).type) else None
        )

    def counts_nulls(self, groups: Iterable[RowGroup], position: int) -> bool:
        """Whether the footer says of each row group how many values of a column are NULL."""
        leaf = self.leaf_of(position)
        if leaf is None:
            return False
        about = [self.metadata.row_group(group.number).column(leaf) for group in groups if group.rows]
        return all(each.is_stats_set and each.statistics.has_null_count for each in about)

    def size_of(self, group: RowGroup, positions: Sequence[int]) -> int:
        """Bytes of columns, without compression."""
        return sum(each.total_uncompressed_size for each in self._chunks(group, positions))

    def whole_bytes(self, group: RowGroup, positions: Sequence[int]) -> int:
        """What decoding columns takes where they are read at once: all of them, dictionaries, some pages."""
        return sum(
            each.total_compressed_size + min(each.total_uncompressed_size, _DECODED_BYTES)
            for each in self._chunks(group, positions)
        )

    def piece_bytes(self, group: RowGroup, positions: Sequence[int]) -> int:
        """The same where `batches` reads them, in pieces."""
        return sum(
            min(each.total_compressed_size, self._source.buffer_bytes + _PAGE_BYTES)
            + min(each.total_uncompressed_size, _DECODED_BYTES)
            for each in self._chunks(group, positions)
        )

    def batches(
        self, group: RowGroup, positions: Sequence[int], rows_at_once: int
    ) -> Iterator[dict[int, pa.Array]]:
        """Columns by their place in the file's schema, in parts of at most so many rows."""
        wanted = sorted(set(positions))
        rows = 0
        with reading():
            # Not by name: names may repeat, and may hold dots.
            found = self._file.reader.iter_batches(
                rows_at_once,
                row_groups=[group.number],
                column_indices=self._expand(wanted),
                use_threads=False,
            )
        while True:
            with reading():
                batch = next(found, None)
            if batch is None:
                break
            rows += batch.num_rows
            yield dict(zip(wanted, batch.columns, strict=True))
        if rows != group.rows:
            raise NotReadable("A file has another number of rows than its footer says")

    def rows_at_once(self, group: RowGroup, positions: Sequence[int], most: int, budget: Budget) -> int:
        """How many rows are read at once, by the size of rows."""
        found = budget.rows_at_once(most, group.rows, self.size_of(group, positions))
        repeated = [at for at in positions if self._may_repeat(group, at)]
        if found <= _PROBED or not repeated:
            return found
        if self._probed is None:
            # A dictionary has a value once, which every row may hold: some rows are looked at.
            rows, size = 0, 0
            for columns in self.batches(group, repeated, _PROBED):
                rows = len(columns[repeated[0]])
                size = sum(each.nbytes for each in columns.values())
                break
            self._probed = rows, size
        return budget.rows_at_once(found, *self._probed)

    def _may_repeat(self, group: RowGroup, position: int) -> bool:
        chunks = self._chunks(group, [position])
        return any(each.physical_type == "BYTE_ARRAY" and each.has_dictionary_page for each in chunks)

    def _chunks(self, group: RowGroup, positions: Sequence[int]) -> Iterator[Any]:
        """What the footer says of the columns."""
        return map(self.metadata.row_group(group.number).column, self._expand(positions))

    def _expand(self, positions: Sequence[int]) -> list[int]:
        return [
            leaf for at in sorted(set(positions)) for leaf in range(self._leaves[at], self._leaves[at + 1])
        ]


@contextmanager
def open_parquet(
    files: TaskFiles, path: str, size_bytes: int, record_count: int | None
) -> Iterator[ParquetSource]:
    """A file, closed in the end."""
    source = files.open(path, size_bytes)
    try:
        yield ParquetSource(source, record_count=record_count)
    finally:
        source.close()


def check_format(format_: str) -> None:
    """Refuse what is not Parquet."""
    if format_.lower() != "parquet":
        raise NotReadable(
            "The table has files of a format that governed SQL does not read",
            format=format_[:20],
            fix="Rewrite the table's files as Parquet.",
        )


@contextmanager
def reading() -> Iterator[None]:
    """What a reader says of a file, without its words: they may hold values or paths."""
    try:
        yield
    except MemoryError:
        raise OutOfMemory(
            "A scan needs more memory than the machine has", fix="Lower query.memory_limit, or select less."
        ) from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NotReadable(
            "A file of the table cannot be read: it is damaged, encrypted or of an unknown kind",
            kind=type(error).__name__,
            fix="Check the file with its writer; restore or rewrite it.",
        ) from None


def _find_leaves(schema: pa.Schema) -> list[int]:
    """Where each column's values begin among all leaves of the file, and the end."""
    found = [0]
    for field in schema:
        found.append(found[-1] + _count_leaves(field.type))
    return found


def _count_leaves(type_: pa.DataType) -> int:
    if pa.types.is_map(type_):
        return _count_leaves(type_.key_type) + _count_leaves(type_.item_type)
    if pa.types.is_nested(type_):
        return sum(_count_leaves(type_.field(at).type) for at in range(type_.num_fields))
    return 1


def _mark_int96(schema: pa.Schema, physical: Any) -> pa.Schema:
    """The schema with a mark at old timestamps."""
    leaves = _find_leaves(schema)
    for at, field in enumerate(schema):
        is_time = pa.types.is_timestamp(field.type) and leaves[at] < len(physical)
        if is_time and physical.column(leaves[at]).physical_type == "INT96":
            schema = schema.set(at, mark_int96(field))
    return schema
