"""The complete path: any Parquet file, every kind of delete, positions of rows known.

Row groups are ruled out by their statistics first. Where other columns than the tested ones are wanted, the
tested ones are read alone until a row passes; a row group of which none does costs no more.

A maintainer must not break: the order of things in `_pass`. Deletes and the row filter see original values.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cynosure.query.scan.deletes.applied import FileDeletes
from cynosure.query.scan.memory import Budget
from cynosure.query.scan.parquet import ParquetSource, RowGroup, reading
from cynosure.query.scan.prepared import Prepared
from cynosure.query.scan.row_groups import GroupTest
from cynosure.query.scan.shape import FileColumn, find_columns, has_text
from cynosure.query.scan_task import DataFile


def read_complete(
    prepared: Prepared, file: DataFile, parquet: ParquetSource, deletes: FileDeletes, budget: Budget
) -> Iterator[pa.RecordBatch | None]:
    """A file's rows as they are shown; `None` where some were read of which none is."""
    yield from _CompleteScan(prepared, file, parquet, deletes, budget).batches()


class _CompleteScan:
    def __init__(
        self,
        prepared: Prepared,
        file: DataFile,
        parquet: ParquetSource,
        deletes: FileDeletes,
        budget: Budget,
    ) -> None:
        self._prepared = prepared
        self._file = file
        self._parquet = parquet
        self._deletes = deletes
        self._budget = budget
        self._shown = frozenset(field.id for field in prepared.columns)
        self._tested = prepared.tested | deletes.columns
        wanted = [field for field in prepared.schema.fields if field.id in self._shown | self._tested]
        self._columns = find_columns(wanted, parquet.schema, prepared.task.name_mapping, file.constants)
        self._test = GroupTest(prepared, file, self._columns, parquet)

    def batches(self) -> Iterator[pa.RecordBatch | None]:
        for group in self._parquet.find_groups(self._file):
            # Whoever watches sees that it goes on, and may stop it, where no row passes for long, too.
            yield None
            if not group.rows or not self._test.can_pass(group):
                continue
            if self._is_worth_looking() and not (yield from self._has_row(group)):
                continue
            for columns, rows in self._read(group, self._columns):
                with reading():
                    shown = self._prepared.finish(columns, rows) if rows else None
                yield shown

    def _is_worth_looking(self) -> bool:
        """Whether tested columns are read alone first: there are some, and others besides."""
        tested = [each for each in self._columns if each.field.id in self._tested and _is_in_file(each)]
        others = [each for each in self._columns if each.field.id not in self._tested and _is_in_file(each)]
        return self._prepared.is_filtered and bool(tested) and bool(others)

    def _has_row(self, group: RowGroup) -> Generator[None, None, bool]:
        """Whether a row passes; says so in the end, and that it goes on before."""
        tested = [each for each in self._columns if each.field.id in self._tested]
        for _, rows in self._read(group, tested):
            if rows:
                return True
            yield None
        return False

    def _read(
        self, group: RowGroup, columns: Sequence[FileColumn]
    ) -> Iterator[tuple[Mapping[int, pa.Array], int]]:
        """Rows of a row group that are there and pass, by field id."""
        positions = [each.position for each in columns if each.position is not None]
        if not positions:
            yield from self._count(group, columns)
            return
        most = self._prepared.task.batch_rows
        with self._budget.holding(self._parquet.piece_bytes(group, positions)):
            at_once = self._parquet.rows_at_once(group, positions, most, self._budget)
            first_row = group.first_row
            for found in self._parquet.batches(group, positions, at_once):
                rows = len(next(iter(found.values())))
                with self._budget.holding(sum(each.nbytes for each in found.values())):
                    with reading():
                        read = {each.field.id: _read_column(each, found, rows) for each in columns}
                        passed = self._pass(read, first_row, rows)
                    yield passed
                first_row += rows

    def _count(
        self, group: RowGroup, columns: Sequence[FileColumn]
    ) -> Iterator[tuple[Mapping[int, pa.Array], int]]:
        """As `_read`, where nothing of the file itself is wanted but how many rows there are."""
        most = self._prepared.task.batch_rows
        for begin in range(0, group.rows, most):
            rows = min(most, group.rows - begin)
            filled = {each.field.id: each.fill(rows) for each in columns}
            yield self._pass(filled, group.first_row + begin, rows)

    def _pass(
        self, columns: Mapping[int, pa.Array], first_row: int, rows: int
    ) -> tuple[Mapping[int, pa.Array], int]:
        left = self._deletes.keep(columns, first_row, rows)
        passes = self._prepared.keep(columns, rows)
        if left is None and passes is None:
            return columns, rows
        kept = pc.and_kleene(True if left is None else left, True if passes is None else passes)
        # NULL does not pass.
        count = kept.true_count
        if not 0 < count < rows:
            return columns, count
        return {id_: columns[id_].filter(kept) for id_ in self._shown & columns.keys()}, count


def _read_column(column: FileColumn, found: Mapping[int, pa.Array], rows: int) -> pa.Array:
    if column.position is None:
        return column.fill(rows)
    values = column.read(found[column.position])
    if has_text(values.type):
        # What is no UTF-8 would fail, or not, in each engine in its own way.
        values.validate(full=True)
    return values


def _is_in_file(column: FileColumn) -> bool:
    return column.position is not None
