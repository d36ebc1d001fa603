"""Write a caller's rows as files of a table: read and compressed in a thread, uploaded meanwhile.

A maintainer must not break: when anything fails, or the work is cancelled, the files that were uploaded here
are deleted before the error leaves. Nothing refers to them yet.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any, Final

import pyarrow as pa
from msgspec import Struct, structs

from cynosure.client.appending.arrow_types import to_arrow_schema
from cynosure.client.appending.conform import Conformer
from cynosure.client.appending.file_set import FileSet, Limits
from cynosure.client.appending.layout import Layout
from cynosure.client.appending.options import TARGET_BYTES, read_modes, read_options
from cynosure.client.appending.parquet_file import FileShape, Written
from cynosure.client.appending.partitions import Partitioner
from cynosure.client.appending.stores import Files
from cynosure.client.appending.target import Target
from cynosure.common.errors import BadInput, Unavailable
from cynosure.iceberg.manifests.content_file import ContentFile

_UPLOADS: Final = 4

OnProgress = Callable[[int, int], None]
"""Told the rows that were read and the files that were uploaded so far."""


class Uploaded(Struct):
    """The files of an append."""

    files: list[ContentFile] = []
    own: list[str] = []
    """Locations of those that were not there before."""


class Writing:
    """One append's files on their way."""

    def __init__(
        self,
        target: Target,
        data: Any,
        layout: Layout,
        store: Files,
        *,
        target_file_bytes: int | None,
        is_repeat: bool,
        limits: Limits,
        on_progress: OnProgress | None,
    ) -> None:
        """`BadInput` when the data do not fit the table. `is_repeat`: the files may be there already."""
        given = data(to_arrow_schema(target.schema)) if callable(data) else data
        reader = to_reader(given, limits.batch_rows)
        options = read_options(target.properties)
        if target_file_bytes is not None:
            if target_file_bytes < 1:
                raise BadInput(
                    "Not a size", field="target_file_bytes", fix=f"Leave it out: {TARGET_BYTES} counts."
                )
            options = structs.replace(options, target_bytes=target_file_bytes)
        conformer = Conformer(target.schema, reader.schema)
        shape = FileShape(target, conformer.schema, options, read_modes(target.properties, target.schema))
        self._set = FileSet(Partitioner(target.spec, target.schema), shape, limits)
        self._batches = _convert(reader, conformer, limits.batch_rows)
        self._spec_id = target.spec.spec_id
        self._layout = layout
        self._store = store
        self._is_repeat = is_repeat
        self._on_progress = on_progress or (lambda rows, files: None)
        self._rows = 0
        self._done = Uploaded([], [])
        self._uploads: set[asyncio.Task[None]] = set()
        self._contents: list[IO[bytes]] = []

    async def run(self) -> Uploaded:
        """Write all."""
        loop = asyncio.get_running_loop()
        try:
            # Leaving the pool waits for the thread: nothing is dropped while it is written.
            with ThreadPoolExecutor(1, "cynosure-append") as pool:
                while (complete := await loop.run_in_executor(pool, self._step)) is not None:
                    await self._upload(complete)
                left = self._set.finish()
                while (last := await loop.run_in_executor(pool, next, left, None)) is not None:
                    await self._upload([last])
            await self._wait(0)
        except BaseException as error:
            await self._give_up(is_urgent=not isinstance(error, Exception))
            raise
        self._done.files.sort(key=lambda file: file.path.rpartition("/")[2])
        return self._done

    async def _give_up(self, *, is_urgent: bool) -> None:
        # Order: no upload goes on when its file is deleted. One that is cut off leaves parts in some stores.
        for task in self._uploads:
            if is_urgent:
                task.cancel()
        await asyncio.gather(*self._uploads, return_exceptions=True)
        for content in self._contents:
            content.close()
        self._set.drop()
        await self._store.delete(self._done.own)

    def _step(self) -> list[Written] | None:
        batch = next(self._batches, None)
        if batch is None:
            return None
        self._rows += batch.num_rows
        try:
            return self._set.add(batch)
        except OSError as error:
            raise Unavailable(
                "There is no room for a temporary file",
                fix="Make room, or set TMPDIR to a directory that has some.",
                reason=error.strerror or type(error).__name__,
            ) from error

    async def _upload(self, complete: list[Written]) -> None:
        self._contents += [written.content for written in complete]
        for written in complete:
            await self._wait(_UPLOADS - 1)
            self._uploads.add(asyncio.create_task(self._upload_one(written)))
        self._on_progress(self._rows, len(self._done.files))

    async def _upload_one(self, written: Written) -> None:
        location = self._layout.name(written.number, written.partition, written.digest)
        with written.content as content:
            if not self._is_repeat or not await self._store.has(location, written.size_bytes):
                # Order: named before it is written, so that what was begun is deleted too.
                self._done.own.append(location)
                await self._store.write(location, content)
        found = written.metrics
        self._done.files.append(
            ContentFile(
                path=location,
                format="parquet",
                spec_id=self._spec_id,
                partition=written.partition,
                record_count=found.record_count,
                file_size_bytes=written.size_bytes,
                column_sizes=found.column_sizes,
                value_counts=found.value_counts,
                null_value_counts=found.null_value_counts,
                nan_value_counts=found.nan_value_counts,
                lower_bounds=found.lower_bounds,
                upper_bounds=found.upper_bounds,
                split_offsets=found.split_offsets,
            )
        )

    async def _wait(self, most: int) -> None:
        """Until at most so many uploads go on; the error of one that failed."""
        while len(self._uploads) > most:
            ended, self._uploads = await asyncio.wait(self._uploads, return_when=asyncio.FIRST_COMPLETED)
            for error in [task.exception() for task in ended]:
                if error is not None:
                    raise error


def to_reader(data: Any, batch_rows: int) -> pa.RecordBatchReader:
    """Arrow data of any kind as a stream of batches."""
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.Table):
        return data.to_reader(max_chunksize=batch_rows)
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if hasattr(data, "to_reader"):
        # A scanner of a dataset.
        return data.to_reader()
    if hasattr(data, "scanner"):
        return data.scanner().to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    raise BadInput(
        "These are no Arrow data",
        field="data",
        fix="Give a Table, RecordBatch, RecordBatchReader or Dataset of pyarrow, or a data frame that "
        "exports an Arrow stream.",
        type=type(data).__name__,
    )


def _convert(reader: pa.RecordBatchReader, conformer: Conformer, batch_rows: int) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except pa.ArrowException as error:
            raise BadInput(
                "The data cannot be read", field="data", fix="Correct them.", reason=str(error)[:500]
            ) from error
        for start in range(0, batch.num_rows, batch_rows):
            yield conformer.conform(batch.slice(start, batch_rows))
