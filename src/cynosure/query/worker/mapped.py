"""The function that Spark maps over fragment numbers: numbers in, governed batches out.

    spark.range(0, n, 1, n).mapInArrow(make_reader(…), schema)

What is pickled into Spark's plan is a `FragmentOrder`: where the broker is, and tokens. Files, filters, masks
and credentials come over the stream, and are gone when the fragment is.

A maintainer must not break: nothing secret is in the order but tokens, which are good for one statement's
fragments and end with it; what is raised has constant text and no cause; and batches have exactly the columns
that Spark was promised, or they are an error.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import CynosureError
from cynosure.query.errors import NotReadable, QueryCancelled
from cynosure.query.scan.port import ScanProgress, ScanWatch
from cynosure.query.scan_task import InlineTask, ScanTask
from cynosure.query.stream.frames import ROW_COLUMN, Done, Failed, Hello, Left
from cynosure.query.worker.failures import describe, for_spark
from cynosure.query.worker.identity import Attempt, current_attempt
from cynosure.query.worker.stream_client import BrokerPlace, FragmentStream, open_stream
from cynosure.query.worker.tracing import scan_span

if TYPE_CHECKING:
    import pyarrow as pa

Scan = Callable[[ScanTask, ScanWatch], "Iterator[pa.RecordBatch]"]
"""A generator: closing it ends all reading."""
Reader = Callable[["Iterator[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


class FragmentOrder(Struct, frozen=True):
    """All that Spark carries of a relation."""

    broker: BrokerPlace
    query_id: str
    fragments: tuple[str, ...]
    """By number."""
    tokens: dict[str, str]
    schema: bytes
    """Of every batch: an Arrow schema in IPC form. Empty: only the number of rows counts."""

    def __repr__(self) -> str:
        return f"FragmentOrder({self.query_id}, {len(self.fragments)} fragments)"


def make_reader(
    address: str,
    ca_pem: str,
    query_id: str,
    fragments: Iterable[str],
    tokens: dict[str, str],
    schema: bytes,
) -> Reader:
    """The function for `mapInArrow`: takes batches with the number of a fragment in their first column."""
    names = tuple(fragments)
    order = FragmentOrder(
        BrokerPlace(address, ca_pem), query_id, names, {name: tokens[name] for name in names}, schema
    )

    def read(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        yield from read_fragments(order, batches)

    return read


def read_fragments(
    order: FragmentOrder,
    batches: "Iterator[pa.RecordBatch]",
    *,
    attempt: Attempt | None = None,
    scan: Scan | None = None,
) -> "Iterator[pa.RecordBatch]":
    """Governed batches of the fragments whose numbers come. Runs in a Python worker of Spark."""
    if scan is None:
        from cynosure.query.scan.governed import governed_batches  # noqa: PLC0415 - brings the readers

        scan = governed_batches
    attempt = attempt or current_attempt()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from _Fragment(order, order.fragments[number], scan, SystemClock()).read(attempt)


class _Fragment:
    """One fragment in one attempt."""

    def __init__(self, order: FragmentOrder, fragment_id: str, scan: Scan, clock: Clock) -> None:
        self._order = order
        self._id = fragment_id
        self._scan = scan
        self._clock = clock
        self._started_s = clock.monotonic_s()
        self._rows = 0

    def read(self, attempt: Attempt) -> "Iterator[pa.RecordBatch]":
        """Its batches; whatever happens, the broker is told, and nothing stays."""
        stream: FragmentStream | None = None
        failed: Failed | None = None
        kind = ""
        try:
            hello = self._hello(attempt)
            stream = open_stream(self._order.broker, hello, self._clock)
            with scan_span(hello, stream.traceparent) as traced:
                yield from self._batches(stream)
                traced.set("rows", self._rows)
            stream.tell_last(Done(*self._totals(stream)))
        except GeneratorExit:
            # Spark has enough rows. That is no failure, and nobody may be told of one.
            if stream is not None:
                _tell(stream, Left(*self._totals(stream)))
            raise
        except Exception as error:
            # The outermost of a scan: its text may not reach Spark, whatever it is.
            kind, failed = type(error).__name__, describe(error)
        finally:
            if stream is not None:
                if failed is not None and kind != QueryCancelled.__name__:
                    _tell(stream, failed)
                stream.close()
        if failed is not None:
            # Outside of the `except`: Spark writes the whole chain of errors down.
            raise for_spark(kind, self._id)

    def _hello(self, attempt: Attempt) -> Hello:
        return Hello(
            query_id=self._order.query_id,
            fragment_id=self._id,
            token=self._order.tokens[self._id],
            attempt_id=attempt.attempt_id,
            attempt=attempt.number,
            worker=attempt.worker,
            process=attempt.process,
            place=attempt.place,
        )

    def _totals(self, stream: FragmentStream) -> tuple[int, int, int, int]:
        progress = stream.watch.progress
        elapsed_ms = round((self._clock.monotonic_s() - self._started_s) * 1_000)
        return self._rows, progress.bytes, progress.files, elapsed_ms

    def _batches(self, stream: FragmentStream) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa  # noqa: PLC0415 - an extra

        expected = pa.ipc.read_schema(pa.py_buffer(self._order.schema)) if self._order.schema else None
        watch = stream.watch
        batches = self._open(stream.task, watch)
        try:
            for batch in batches:
                watch.check()
                shaped = _shape(batch, expected)
                self._rows += batch.num_rows
                with watch.given():
                    yield shaped
        finally:
            if isinstance(batches, Generator):
                batches.close()
        watch.check()

    def _open(self, task: ScanTask | InlineTask, watch: ScanWatch) -> "Iterator[pa.RecordBatch]":
        if isinstance(task, InlineTask):
            return _inline(task, watch)
        return self._scan(task, watch)


def _inline(task: InlineTask, watch: ScanWatch) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa  # noqa: PLC0415 - an extra

    rows = 0
    with pa.ipc.open_stream(task.batches) as reader:
        for batch in reader:
            rows += batch.num_rows
            watch.advance(ScanProgress(rows=rows))
            yield batch


def _shape(batch: "pa.RecordBatch", expected: "pa.Schema | None") -> "pa.RecordBatch":
    """A batch as Spark was promised it. Nothing is cast: what differs is an error."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if expected is None:
        if batch.num_columns:
            raise _unexpected()
        zeros = pa.repeat(pa.scalar(0, pa.int8()), batch.num_rows)
        return pa.RecordBatch.from_arrays([zeros], names=[ROW_COLUMN])
    if batch.schema.names != expected.names or batch.schema.types != expected.types:
        raise _unexpected()
    return batch


def _unexpected() -> NotReadable:
    return NotReadable("A scan gave other columns than it was asked for")


def _tell(stream: FragmentStream, message: Left | Failed) -> None:
    """If the broker still listens: the reason to tell it may be that it does not."""
    with suppress(CynosureError):
        stream.tell_last(message)
