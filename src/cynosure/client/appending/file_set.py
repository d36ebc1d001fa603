"""All files of an append: rows go to the file of their partition, a bounded number of which is open.

A maintainer must not break: memory and temporary space stay within `Limits`, however many partitions the rows
are spread over and however long they keep coming. And the same rows in the same batches make the same files.
"""

from collections.abc import Iterator

import pyarrow as pa
from msgspec import Struct

from cynosure.client.appending.parquet_file import FileShape, ParquetFile, Written
from cynosure.client.appending.partitions import Partition, Partitioner, identify


class Limits(Struct, frozen=True):
    """What an append may use at a time."""

    open_files: int = 64
    buffered_bytes: int = 256 * 2**20
    """Rows in memory. One row group that is being compressed comes on top."""
    spooled_bytes: int = 4 * 2**30
    """In temporary files that are not complete."""
    batch_rows: int = 131_072


class FileSet:
    """Takes batches, gives complete files."""

    def __init__(self, partitioner: Partitioner, shape: FileShape, limits: Limits) -> None:
        self._partitioner = partitioner
        self._shape = shape
        self._limits = limits
        self._open: dict[Partition, ParquetFile] = {}
        self._count = 0
        self._clock = 0
        self.most_open = 0
        """The largest number of files that were open at once."""

    def add(self, batch: pa.RecordBatch) -> list[Written]:
        """Take rows; the files that are complete with them."""
        done: list[Written] = []
        for partition, rows in self._partitioner.divide(batch):
            file = self._find(partition, done)
            file.add(rows)
            self._clock += 1
            file.used = self._clock
            if file.is_full:
                done.append(self._finish(file))
            done += self._make_room()
        return done

    def finish(self) -> Iterator[Written]:
        """The files that are left, in the order in which they were begun."""
        for file in list(self._open.values()):
            yield self._finish(file)

    def drop(self) -> None:
        """Give up what is open."""
        for file in self._open.values():
            file.drop()
        self._open.clear()

    def _find(self, partition: Partition, done: list[Written]) -> ParquetFile:
        key = _key(partition)
        if (file := self._open.get(key)) is not None:
            return file
        if len(self._open) >= self._limits.open_files:
            done.append(self._finish(min(self._open.values(), key=lambda each: each.used)))
        file = self._open[key] = ParquetFile(partition, self._shape)
        self.most_open = max(self.most_open, len(self._open))
        return file

    def _make_room(self) -> list[Written]:
        if sum(file.buffered_bytes for file in self._open.values()) > self._limits.buffered_bytes:
            max(self._open.values(), key=lambda each: each.buffered_bytes).flush()
        if sum(file.written_bytes for file in self._open.values()) > self._limits.spooled_bytes:
            return [self._finish(max(self._open.values(), key=lambda each: each.written_bytes))]
        return []

    def _finish(self, file: ParquetFile) -> Written:
        del self._open[_key(file.partition)]
        self._count += 1
        return file.finish(self._count - 1)


def _key(partition: Partition) -> Partition:
    return tuple(map(identify, partition))
