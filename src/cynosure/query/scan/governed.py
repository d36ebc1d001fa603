"""A task's batches. See the room's docstring for the order of what is done to rows.

A maintainer must not break: batches leave here only with the task's exact schema, at most `batch_rows` long;
and where one file fails, the scan fails.
"""

from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa

from cynosure.iceberg.expressions.nodes import FALSE
from cynosure.query.errors import NotReadable
from cynosure.query.scan.complete import read_complete
from cynosure.query.scan.deletes.loading import TaskDeletes
from cynosure.query.scan.fast import read_fast
from cynosure.query.scan.memory import Budget
from cynosure.query.scan.metadata import metadata_batches
from cynosure.query.scan.opening import TaskFiles
from cynosure.query.scan.parquet import ParquetSource, check_format
from cynosure.query.scan.port import ScanProgress, ScanWatch
from cynosure.query.scan.prepared import Prepared, empty_batch, make_output, prepare, read_columns
from cynosure.query.scan_task import DataFile, ScanTask


def output_schema(task: ScanTask) -> pa.Schema:
    """Of every batch: the task's columns with the names of its schema and types of `query.arrow_types`."""
    return make_output(read_columns(task)[1])


def governed_batches(task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
    """Batches of `output_schema`, at most `task.batch_rows` rows each, in no promised order.

    Files are read one after the other, with the newest credentials each. Errors: `NotReadable`,
    `OutOfMemory`, `StorageRefused`, `StorageUnavailable`; closing the iterator ends all reading.
    """
    if task.metadata is not None:
        yield from metadata_batches(task, watch)
        return
    prepared = prepare(task)
    if FALSE in (prepared.row_filter.expression, prepared.predicates.expression):
        return
    progress = _Progress(watch)
    with closing(Budget(task.memory_limit_bytes, progress.move)) as budget:
        files = TaskFiles(task)
        deletes = TaskDeletes(prepared, files, budget, progress.move)
        for file in task.files:
            files.renew(watch.credentials())
            yield from _Gathered(prepared, budget, progress).of(
                _read(prepared, file, files, deletes, budget, progress)
            )
            progress.finish(file)


class _Progress:
    """How far a scan is, said to whoever watches."""

    def __init__(self, watch: ScanWatch) -> None:
        self._watch = watch
        self._files = self._rows = self._bytes = 0
        self.in_file = 0
        """Bytes of the current file, as far as that is known."""

    def move(self, rows: int = 0) -> None:
        """Something was read."""
        self._rows += rows
        self._watch.advance(ScanProgress(self._files, self._rows, self._bytes + self.in_file))

    def finish(self, file: DataFile) -> None:
        """A file is done."""
        self._files += 1
        self._bytes += (file.end - file.begin) or file.size_bytes
        self.in_file = 0
        self.move()


def _read(
    prepared: Prepared,
    file: DataFile,
    files: TaskFiles,
    deletes: TaskDeletes,
    budget: Budget,
    progress: _Progress,
) -> Iterator[pa.RecordBatch | None]:
    check_format(file.format)
    # Also where nothing of it is read: a scan does not count rows of a file that is not the table's.
    files.locate(file.path)
    if _is_counted(prepared, file):
        yield from _count(file.record_count, prepared.task.batch_rows)
        return
    gone = deletes.load(file)
    source = files.open(file.path, file.size_bytes)
    try:
        parquet = ParquetSource(source, record_count=file.record_count)
        batches = read_fast(prepared, file, parquet, files, gone, budget)
        if batches is None:
            batches = read_complete(prepared, file, parquet, gone, budget)
        for batch in batches:
            progress.in_file = source.read_bytes
            yield batch
    finally:
        source.close()


def _is_counted(prepared: Prepared, file: DataFile) -> bool:
    """Whether the table's metadata says all there is to know."""
    return not (prepared.columns or prepared.is_filtered or file.deletes or file.end)


def _count(rows: int, most: int) -> Iterator[pa.RecordBatch]:
    for begin in range(0, rows, most):
        yield empty_batch(min(most, rows - begin))


class _Gathered:
    """Small batches together: what is behind a scan pays for each batch."""

    def __init__(self, prepared: Prepared, budget: Budget, progress: _Progress) -> None:
        self._output = prepared.output
        self._most = prepared.task.batch_rows
        self._budget = budget
        self._progress = progress
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._size = 0

    def of(self, batches: Iterator[pa.RecordBatch | None]) -> Iterator[pa.RecordBatch]:
        """The same rows, in batches of a good size."""
        for batch in batches:
            if batch is None or not batch.num_rows:
                self._progress.move()
                continue
            if batch.schema != self._output:
                raise NotReadable("A scan made other columns than it was asked for")
            for begin in range(0, batch.num_rows, self._most):
                yield from self._add(batch.slice(begin, self._most))
        yield from self._flush()

    def _add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._rows + batch.num_rows > self._most or self._size + batch.nbytes > self._budget.batch_bytes:
            yield from self._flush()
        if not self._waiting and batch.num_rows * 2 >= self._most:
            self._progress.move(batch.num_rows)
            yield batch
            return
        self._budget.take(batch.nbytes)
        self._waiting.append(batch)
        self._rows += batch.num_rows
        self._size += batch.nbytes
        self._progress.move()

    def _flush(self) -> Iterator[pa.RecordBatch]:
        if not self._waiting:
            return
        rows, waiting = self._rows, self._waiting
        self._budget.give_back(self._size)
        self._waiting, self._rows, self._size = [], 0, 0
        self._progress.move(rows)
        yield pa.concat_batches(waiting) if self._output.names else empty_batch(rows)
