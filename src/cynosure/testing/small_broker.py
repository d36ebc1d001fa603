"""A broker with statements of small made-up fragments, and scans on threads that do what a test says.

    async with SmallBroker() as small:
        query = small.open("q", ["f0", "f1"])
        rows = await small.read(query, "f0")          a whole attempt, on a thread, over real TLS

Must not break: everything between the broker and the scan is production code.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import pyarrow as pa

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import CynosureError
from cynosure.query.broker.broker import Broker
from cynosure.query.broker.brokered import BrokeredQuery
from cynosure.query.engine import FragmentReport, Relation
from cynosure.query.scan.port import ScanProgress, ScanWatch
from cynosure.query.scan_task import Credentials, DataFile, ScanTask
from cynosure.query.settings import BrokerSettings
from cynosure.query.worker.identity import Attempt
from cynosure.query.worker.mapped import FragmentOrder, Scan, read_fragments
from cynosure.query.worker.stream_client import BrokerPlace
from cynosure.query.worker.watch import StreamWatch

SCHEMA: Final = pa.schema([("n", pa.int64())])
PATIENCE_S: Final = 60.0
"""A test that waits for something that never comes says so after this."""


def make_task(
    fragment_id: str, *, query_id: str = "q", files: int = 3, credentials: Credentials | None = None
) -> ScanTask:
    """A fragment of files that nobody reads."""
    return ScanTask(
        query_id=query_id,
        fragment_id=fragment_id,
        files=tuple(DataFile(f"s3://hidden-bucket/{n}.parquet", 10, 10, "parquet") for n in range(files)),
        deletes=(),
        schema=b"{}",
        columns=(1,),
        places=("s3://hidden-bucket/",),
        row_filter=b'{"hidden":"filter-literal"}',
        credentials=credentials or Credentials(0, {"s3.secret-access-key": "the-credential"}),
    )


def make_relation(
    tasks: Sequence[ScanTask],
    *,
    view: str = "cyn_0",
    renew: Callable[[], Awaitable[Credentials]] | None = None,
) -> Relation:
    """A mention of a table with these fragments."""
    return Relation(view=view, shown="c.n.t", columns=(), fragments=tuple(tasks), renew=renew)


def scan_files(task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
    """One batch per file, of the number of the credentials that it was read with."""
    for index, _ in enumerate(task.files):
        number = watch.credentials().number
        watch.advance(ScanProgress(files=index, rows=index, bytes=10 * index))
        yield pa.RecordBatch.from_pydict({"n": [number]}, schema=SCHEMA)
    watch.advance(ScanProgress(files=len(task.files), rows=len(task.files), bytes=10 * len(task.files)))


class HeldScan:
    """A scan that stops before each file until it is let go."""

    def __init__(self) -> None:
        self._steps = threading.Semaphore(0)
        self._reached = threading.Semaphore(0)
        self.watch: ScanWatch | None = None
        """Of the scan, once it runs."""

    def __call__(self, task: ScanTask, watch: ScanWatch) -> Iterator[pa.RecordBatch]:
        """See `scan_files`."""
        self.watch = watch
        for batch in scan_files(task, watch):
            self._reached.release()
            # A test that failed does not hang.
            self._steps.acquire(timeout=PATIENCE_S)
            yield batch

    async def wait_reached(self) -> None:
        """Until the scan stands before its next file."""
        if not await asyncio.to_thread(self._reached.acquire, timeout=PATIENCE_S):
            raise AssertionError("the scan never got there")

    def is_unwanted(self) -> bool:
        """Whether it has heard that nobody wants it: a scan that ends before that has given all its rows."""
        try:
            assert isinstance(self.watch, StreamWatch)
            self.watch.check()
        except CynosureError:
            return True
        return False

    def let_go(self, files: int = 1) -> None:
        """Let it read so many more."""
        self._steps.release(files)


class SmallBroker:
    """A started broker, and what it told."""

    def __init__(self, clock: Clock | None = None, **settings: Any) -> None:
        self.settings = msgspec.structs.replace(
            # Beats often, and is patient: no test may fail because the machine was slow.
            BrokerSettings(heartbeat=timedelta(milliseconds=100), missed_heartbeats=600),
            **settings,
        )
        self.broker = Broker(self.settings, clock or SystemClock())
        self.reports: list[FragmentReport] = []
        self.killed: list[int] = []

    async def __aenter__(self) -> Self:
        await self.broker.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.broker.close()

    def open(
        self,
        query_id: str,
        fragments: Sequence[str | ScanTask],
        *,
        retries: int = 2,
        renew: Callable[[], Awaitable[Credentials]] | None = None,
    ) -> BrokeredQuery:
        """A statement over one relation."""
        tasks = [
            each if isinstance(each, ScanTask) else make_task(each, query_id=query_id) for each in fragments
        ]
        return self.broker.open_query(
            query_id, [make_relation(tasks, renew=renew)], self.reports.append, self.killed.append, retries
        )

    async def read(
        self,
        query: BrokeredQuery,
        fragment_id: str,
        *,
        attempt_id: int = 0,
        place: str = "0/0",
        scan: Scan = scan_files,
        worker: str = "host/1",
    ) -> list[int]:
        """One attempt at a fragment, to its end: its rows, or its error."""
        order = make_order(query, [fragment_id])
        attempt = Attempt(attempt_id, attempt_id, place, worker, "host:1")

        def run() -> list[int]:
            return [
                value
                for batch in read_fragments(order, number_batches(1), attempt=attempt, scan=scan)
                for value in batch.column(0).to_pylist()
            ]

        return await asyncio.to_thread(run)

    async def wait_for(self, is_so: Callable[[], object]) -> None:
        """Until something is so."""
        until_s = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > until_s:
                raise AssertionError("what the test waited for never came")
            await asyncio.sleep(0.01)


def make_order(query: BrokeredQuery, fragments: Sequence[str], schema: pa.Schema = SCHEMA) -> FragmentOrder:
    """What Spark would carry."""
    return FragmentOrder(
        BrokerPlace(query.address, query.ca_pem),
        query.query_id,
        tuple(fragments),
        {name: query.tokens[name] for name in fragments},
        schema.serialize().to_pybytes(),
    )


def number_batches(count: int) -> Iterator[pa.RecordBatch]:
    """What `spark.range(0, count, 1, count)` gives to one task, if it gave all of them to one."""
    yield pa.RecordBatch.from_pydict({"id": list(range(count))})
