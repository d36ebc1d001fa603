"""A relation for DuckDB: governed batches of its fragments, two fragments at a time.

DuckDB gets an Arrow stream, so nothing of the statement runs inside of Arrow or the scan: projections and
filters are DuckDB's own. It may open a stream more than once (for its schema, or to scan again); nothing is
read before the first batch is asked for.

A maintainer must not break: whoever stops pulling stops the scan, and the threads end with the stream. Those
that wait for a storage then are left behind (`left_scans.py`): of them nothing is given or told any more.
"""

from collections.abc import Callable, Iterator
from queue import Empty, Queue
from threading import Event, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.query.arrow_types import to_arrow
from cynosure.query.engine import FragmentReport, Relation
from cynosure.query.errors import NotReadable, QueryCancelled
from cynosure.query.local.left_scans import LeftScans
from cynosure.query.local.ready_batches import ReadyBatches
from cynosure.query.local.run import WORKER, Reading, Run
from cynosure.query.scan.governed import governed_batches
from cynosure.query.scan.port import ScanProgress
from cynosure.query.scan_task import DEFAULT_MEMORY_BYTES, Credentials, InlineTask, ScanTask

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE: Final = 2
"""Fragments of one relation that are read at a time."""


class _Watch:
    """Of the scan of one fragment."""

    def __init__(self, run: Run, view: str, task: ScanTask, is_closed: Event, reading: Reading) -> None:
        self._run = run
        self._reading = reading
        self._view = view
        self._credentials = task.credentials
        self._is_closed = is_closed
        self.progress = ScanProgress()

    def credentials(self) -> Credentials:
        """See `ScanWatch`."""
        newest = self._run.credentials(self._view)
        if newest is not None and newest.number > self._credentials.number:
            self._credentials = newest
        return self._credentials

    def advance(self, progress: ScanProgress) -> None:
        """See `ScanWatch`."""
        self.progress = progress
        self._reading.bytes = progress.bytes
        self._run.check()
        if self._is_closed.is_set() or self._run.is_over.is_set():
            raise QueryCancelled("Nobody wants these rows any more")


class RelationStream:
    """What is registered with DuckDB. Columns are called by their place: `o0`, `o1` …"""

    def __init__(
        self,
        relation: Relation,
        run: Run,
        report: Callable[[FragmentReport], None],
        clock: Clock,
        left: LeftScans,
    ) -> None:
        import pyarrow as pa  # noqa: PLC0415 - an extra

        self._relation = relation
        self._run = run
        self._report = report
        self._clock = clock
        self._left = left
        self._given = pa.schema([(each.name, to_arrow(each.type)) for each in relation.columns])
        fields = [pa.field(f"o{i}", _without_zone(each.type)) for i, each in enumerate(self._given)]
        self._schema = pa.schema(fields or [pa.field("rows", pa.int8())])

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        import pyarrow as pa  # noqa: PLC0415

        reader = pa.RecordBatchReader.from_batches(self._schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> "Iterator[pa.RecordBatch]":
        fragments: Queue[ScanTask | InlineTask] = Queue()
        for each in self._relation.fragments:
            fragments.put(each)
        ready = ReadyBatches(self._limit_bytes())
        is_closed = Event()
        threads = [
            Thread(target=self._read, args=(fragments, ready, is_closed), name="local-scan", daemon=True)
            for _ in range(min(AT_ONCE, len(self._relation.fragments)))
        ]
        for each_thread in threads:
            each_thread.start()
        running = len(threads)
        try:
            while running:
                try:
                    batch = ready.get()
                except Empty:
                    self._run.check()
                    continue
                if batch is None:
                    running -= 1
                    self._run.check()
                else:
                    yield batch
        finally:
            is_closed.set()
            ready.close()
            until_s = self._clock.monotonic_s() + self._run.grace_s
            for each_thread in threads:
                each_thread.join(max(0.0, until_s - self._clock.monotonic_s()))
            self._left.add(threads)

    def _limit_bytes(self) -> int:
        limits = [each.memory_limit_bytes for each in self._relation.fragments if isinstance(each, ScanTask)]
        return min(limits, default=DEFAULT_MEMORY_BYTES)

    def _read(self, fragments: "Queue[ScanTask | InlineTask]", ready: ReadyBatches, is_closed: Event) -> None:
        """One thread: fragments until there is none left. Its last word is None."""
        try:
            while not is_closed.is_set() and not self._run.is_over.is_set():
                try:
                    task = fragments.get_nowait()
                except Empty:
                    break
                self._read_fragment(task, ready, is_closed)
        except CynosureError as error:
            if not is_closed.is_set():
                self._run.fail(error)
        except Exception:
            if not is_closed.is_set():
                self._run.fail(_unexpected())
        finally:
            self._hand_over(None, ready, is_closed)

    def _read_fragment(self, task: ScanTask | InlineTask, ready: ReadyBatches, is_closed: Event) -> None:
        reading = Reading(task.fragment_id, self._clock.monotonic_s())
        is_success = False
        watch = (
            _Watch(self._run, self._relation.view, task, is_closed, reading)
            if isinstance(task, ScanTask)
            else None
        )
        batches = governed_batches(task, watch) if watch else _inline(task)  # type: ignore[arg-type]
        self._run.reading.add(reading)
        try:
            for batch in batches:
                if not self._hand_over(self._adapt(batch), ready, is_closed):
                    break
                reading.rows += batch.num_rows
            is_success = self._run.failure is None
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()
            self._run.reading.discard(reading)
            if current_thread() not in self._left:
                self._report(
                    FragmentReport(
                        task.fragment_id,
                        is_success or is_closed.is_set(),
                        int((self._clock.monotonic_s() - reading.begun_s) * 1_000),
                        reading.rows,
                        WORKER,
                        watch.progress.bytes if watch else 0,
                    )
                )

    def _hand_over(self, batch: "pa.RecordBatch | None", ready: ReadyBatches, is_closed: Event) -> bool:
        """Whether somebody takes it."""
        while not is_closed.is_set():
            if ready.put(batch):
                return True
            if batch is not None and self._run.is_over.is_set():
                return False
        return False

    def _adapt(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """Columns by place, times without their zone (it is UTC); no columns: one without values."""
        import pyarrow as pa  # noqa: PLC0415

        if not len(self._given):
            return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, pa.int8())], schema=self._schema)
        if [each.type for each in batch.schema] != [each.type for each in self._given]:
            raise NotReadable(
                "A scan gave other columns than it was asked for", fix="Tell the operator of the gateway."
            )
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _unexpected() -> NotReadable:
    return NotReadable("A table could not be read", fix="See the gateway's log, and tell its operator.")


def _inline(task: InlineTask) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa  # noqa: PLC0415

    with pa.ipc.open_stream(task.batches) as reader:
        yield from reader


def _without_zone(type_: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415

    return pa.timestamp("us") if pa.types.is_timestamp(type_) else type_
