"""One Parquet file that is being written, in a temporary file of this machine.

It lies here until it is complete: a store never sees half of it, its name can say what is in it, and memory
holds one row group at most. The temporary file has no name, so a process that is killed leaves none.

A maintainer must not break: rows are written in the order in which they came.
"""

import hashlib
import tempfile
from contextlib import suppress
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct

from cynosure.client.appending.arrow_types import list_leaves
from cynosure.client.appending.metrics import FileMetrics, read_metrics
from cynosure.client.appending.options import MetricsMode, ParquetOptions
from cynosure.client.appending.partitions import Partition
from cynosure.client.appending.target import Target
from cynosure.iceberg.types import is_floating


class Written(Struct):
    """A complete file that is not where it belongs yet."""

    number: int
    partition: Partition
    content: IO[bytes]
    size_bytes: int
    digest: str
    metrics: FileMetrics


class FileShape:
    """What the files of one append have in common."""

    def __init__(
        self, target: Target, schema: pa.Schema, options: ParquetOptions, modes: dict[int, MetricsMode]
    ) -> None:
        leaves = list_leaves(target.schema)
        self.schema = schema
        self.options = options
        self.modes = modes
        self.leaves = [field for _, field, _ in leaves]
        self.schema_json = target.schema_json
        self.floats = {
            field.id: [each.name for each in (*target.schema.places[field.id].around, field)]
            for _, field, is_single in leaves
            if is_single and is_floating(field.type)
        }


class ParquetFile:
    """Rows of one partition on their way into a file."""

    def __init__(self, partition: Partition, shape: FileShape) -> None:
        self.partition = partition
        self.used = 0
        """When rows came last, by a counter of the owner."""
        self.buffered_bytes = 0
        self._shape = shape
        self._buffered: list[pa.RecordBatch] = []
        self._buffered_rows = 0
        self._nans = dict.fromkeys(shape.floats, 0)
        self._sink = _Sink()
        self._writer = pq.ParquetWriter(
            self._sink,
            shape.schema,
            store_schema=False,
            store_decimal_as_integer=True,
            **shape.options.writer,
        )

    @property
    def written_bytes(self) -> int:
        """What is in the temporary file."""
        return self._sink.size_bytes

    @property
    def is_full(self) -> bool:
        """Whether the next rows should go into another file."""
        return self.written_bytes + self.buffered_bytes >= self._shape.options.target_bytes

    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows."""
        options = self._shape.options
        self._count_nans(batch)
        self._buffered.append(batch)
        self._buffered_rows += batch.num_rows
        self.buffered_bytes += batch.nbytes
        # Compressed they are smaller: so a file that would be full is asked again once they are written.
        if (
            self.buffered_bytes >= options.group_bytes
            or self._buffered_rows >= options.group_rows
            or self.is_full
        ):
            self.flush()

    def flush(self) -> None:
        """Write what is buffered, as row groups."""
        if not self._buffered:
            return
        table = pa.Table.from_batches(self._buffered, schema=self._shape.schema)
        self._buffered, self._buffered_rows, self.buffered_bytes = [], 0, 0
        self._writer.write_table(table, row_group_size=self._shape.options.group_rows)

    def finish(self, number: int) -> Written:
        """The complete file."""
        self.flush()
        self._writer.add_key_value_metadata({"iceberg.schema": self._shape.schema_json.decode()})
        self._writer.close()
        metrics = read_metrics(
            self._writer.writer.metadata, self._shape.leaves, self._shape.modes, self._nans
        )
        content = self._sink.take()
        return Written(
            number, self.partition, content, self._sink.size_bytes, self._sink.digest.hexdigest(), metrics
        )

    def drop(self) -> None:
        """Give it up."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self._sink.take().close()

    def _count_nans(self, batch: pa.RecordBatch) -> None:
        for id_, path in self._shape.floats.items():
            array = batch.column(path[0])
            for name in path[1:]:
                array = pc.struct_field(array, name)
            self._nans[id_] += pc.sum(pc.is_nan(array)).as_py() or 0


class _Sink:
    """A temporary file that pyarrow writes to, which counts and hashes what goes in."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever takes it
        self.size_bytes = 0
        self.digest = hashlib.blake2b(digest_size=12)
        self.closed = False

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._file.write(view)
        self.digest.update(view)
        self.size_bytes += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        return self.size_bytes

    def flush(self) -> None:
        """Readers share the handle."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """The file stays open for whoever takes it."""

    def take(self) -> IO[bytes]:
        self._file.seek(0)
        return self._file
