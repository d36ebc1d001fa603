"""The local engine: statements of the common subset, in this process.

    find_reason_against   lowers, and lets DuckDB bind the text: what it does not take runs on Spark
    execute               a connection of its own, relations registered; nothing runs yet
    batches               each batch is pulled in a thread; who does not pull holds DuckDB and the scans back
    close                 interrupts, waits for the threads, closes the connection. Threads that wait for a
                          storage are waited for only a moment: a statement ends when it is to end

A maintainer must not break: text of DuckDB is made by `lower.py` only; a statement's own text is never run.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.query.engine import EngineQuery, FragmentReport, OnFragment, Results, RunningFragment
from cynosure.query.errors import EngineUnavailable, QueryCancelled
from cynosure.query.local.database import Database
from cynosure.query.local.failures import is_fatal, is_interrupt, to_error
from cynosure.query.local.left_scans import LeftScans
from cynosure.query.local.lower import Lowered, lower_query
from cynosure.query.local.relation_stream import RelationStream
from cynosure.query.local.run import Run, passed
from cynosure.query.local.spark_types import to_arrow_type
from cynosure.query.local.typed import OutsideSubset
from cynosure.query.refreshing import CredentialRefresher
from cynosure.query.scan_task import ScanTask
from cynosure.query.settings import QuerySettings

if TYPE_CHECKING:
    import pyarrow as pa

_REMEMBERED: Final = 256
"""Lowered statements that wait for their `execute`."""
_BATCH_ROWS: Final = 16_384
_INTERRUPT_AGAIN_S: Final = 0.02


class LocalEngine:
    """An `Engine`."""

    name = "local"

    def __init__(self, settings: QuerySettings, *, spill_dir: Path, clock: Clock) -> None:
        self._settings = settings
        self._spill_dir = spill_dir
        self._clock = clock
        self._database: Database | None = None
        self._opening = Lock()
        self._pool = ThreadPoolExecutor(settings.concurrent, "local-engine")
        self._refresher: CredentialRefresher | None = None
        self._lowered: OrderedDict[str, tuple[object, Lowered | str]] = OrderedDict()
        # With the tree only: tasks hold credentials, and many of these never run here.
        self._running: set[_LocalResults] = set()
        self._left = LeftScans()
        self._is_closed = False

    def memory_ratio(self) -> float:
        """How much of the memory of all local statements is in use, of 1."""
        if self._database is None:
            return 0.0
        return self._database.used_bytes() / max(self._settings.local.memory_limit, 1)

    def find_reason_against(self, query: EngineQuery) -> str | None:
        """See `Engine`."""
        found = self._lower(query)
        return found if isinstance(found, str) else None

    def _lower(self, query: EngineQuery) -> Lowered | str:
        known = self._lowered.get(query.id)
        if known is not None and known[0] is query.tree:
            return known[1]
        found: Lowered | str
        try:
            found = lower_query(query)
            self._bind(query, found)
        except OutsideSubset as error:
            found = error.what
        self._lowered[query.id] = (query.tree, found)
        while len(self._lowered) > _REMEMBERED:
            self._lowered.popitem(last=False)
        return found

    def _bind(self, query: EngineQuery, lowered: Lowered) -> None:
        """Let DuckDB check names and types, without any row: `lower.py` may have missed something."""
        run = Run(self._clock, query.deadline_s)
        connection = self._connect(self._open_database(), query, lowered, run, lambda _: None)
        try:
            bound = connection.sql(lowered.sql)
            # Without quotes: DuckDB writes them around names of fields only where it must.
            types = tuple(str(each).replace('"', "") for each in bound.types)
        except Exception:
            raise OutsideSubset("a combination that DuckDB does not take") from None
        finally:
            connection.close()
        if types != tuple(each.duck.replace('"', "") for each in lowered.types):
            raise OutsideSubset("a type that DuckDB gives otherwise")

    def _open_database(self) -> Database:
        """The one of all statements. Called from any thread: who asks whether a query can run is in one."""
        if self._is_closed:
            raise EngineUnavailable("The local engine is closed", fix="Send the statement again later.")
        with self._opening:
            if self._database is None:
                self._database = Database(self._settings, self._spill_dir)
            return self._database

    def _connect(
        self, database: Database, query: EngineQuery, lowered: Lowered, run: Run, report: OnFragment
    ) -> Any:
        connection = database.connect(lowered.functions)
        for relation in query.relations:
            connection.register(relation.view, RelationStream(relation, run, report, self._clock, self._left))
        return connection

    def list_running(self, query_id: str) -> list[RunningFragment] | None:
        """See `TellsFragments`."""
        now_s = self._clock.monotonic_s()
        return [
            one for each in self._running if each.query_id == query_id for one in each.list_running(now_s)
        ]

    async def execute(self, query: EngineQuery, on_fragment: OnFragment) -> Results:
        """See `Engine`."""
        lowered = self._lower(query)
        self._lowered.pop(query.id, None)
        if isinstance(lowered, str):
            raise EngineUnavailable(
                f"The local engine does not run this statement, outside of its subset: {lowered}",
                fix="Have Spark beside it (query.spark.enabled), or write the statement otherwise.",
            )
        if any(isinstance(each, ScanTask) for one in query.relations for each in one.fragments[:1]):
            self._left.check()
        loop = asyncio.get_running_loop()

        def report(each: FragmentReport) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it whoever wanted to know
                loop.call_soon_threadsafe(on_fragment, each)

        run = Run(self._clock, query.deadline_s)
        database = self._open_database()
        connection = self._connect(database, query, lowered, run, report)
        keys = self._watch_credentials(query, run)
        results = _LocalResults(self, query.id, lowered, run, database, connection, keys)
        self._running.add(results)
        return results

    def _watch_credentials(self, query: EngineQuery, run: Run) -> list[tuple[str, str]]:
        keys = []
        for relation in query.relations:
            if relation.renew is None or not relation.fragments:
                continue
            first = relation.fragments[0]
            if not isinstance(first, ScanTask):
                continue
            if self._refresher is None:
                self._refresher = CredentialRefresher(self._settings.broker, self._clock)
                self._refresher.start()
            key = (query.id, relation.view)
            self._refresher.register(
                key, first.credentials, relation.renew, partial(run.renew_credentials, relation.view)
            )
            keys.append(key)
        return keys

    def forget(self, results: "_LocalResults", keys: list[tuple[str, str]]) -> None:
        """It has ended."""
        self._running.discard(results)
        for key in keys:
            if self._refresher is not None:
                self._refresher.unregister(key)

    def give_up_database(self, broken: Database) -> None:
        """It failed in a way that it does not survive: the next statement gets a new one."""
        # All statements that ran there find out, some of them when others run in the new one already.
        if self._database is broken:
            self._database = None
            self._pool.submit(broken.close)

    def submit(self, call: Any) -> "Future[Any]":
        """Run something in a thread of the engine."""
        return self._pool.submit(call)

    @property
    def clock(self) -> Clock:
        """Time."""
        return self._clock

    async def close(self) -> None:
        """See `Engine`."""
        self._is_closed = True
        for each in list(self._running):
            await each.close()
        if self._refresher is not None:
            await self._refresher.close()
        database, self._database = self._database, None
        if database is not None:
            await asyncio.get_running_loop().run_in_executor(self._pool, database.close)
        self._pool.shutdown(wait=False)


class _LocalResults:
    """Rows of one statement."""

    def __init__(
        self,
        engine: LocalEngine,
        query_id: str,
        lowered: Lowered,
        run: Run,
        database: Database,
        connection: Any,
        keys: list[tuple[str, str]],
    ) -> None:
        import pyarrow as pa  # noqa: PLC0415 - an extra

        self._engine = engine
        self.query_id = query_id
        self._sql = lowered.sql
        self._run = run
        self._database = database
        self._connection = connection
        self._keys = keys
        self._reader: pa.RecordBatchReader | None = None
        self._pending: Future[Any] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._schema = pa.schema(
            [
                pa.field(name, to_arrow_type(type_))
                for name, type_ in zip(lowered.names, lowered.types, strict=True)
            ]
        )
        self._timer = asyncio.create_task(self._expire(), name="local-deadline")

    @property
    def schema(self) -> "pa.Schema":
        """See `Results`."""
        return self._schema

    def list_running(self, now_s: float) -> list[RunningFragment]:
        """What its threads read."""
        return [each.tell(now_s) for each in list(self._run.reading)]

    async def _expire(self) -> None:
        await self._engine.clock.sleep(max(self._run.left_s, 0.0))
        self._run.fail(passed())
        await self._interrupt_until_done()

    async def _interrupt_until_done(self) -> None:
        """An interrupt that comes before DuckDB has begun is lost, so it is repeated."""
        while self._pending is not None and not self._pending.done():
            with suppress(Exception):  # a connection that is closed already
                self._connection.interrupt()
            await asyncio.sleep(_INTERRUPT_AGAIN_S)

    async def batches(self) -> "AsyncIterator[pa.RecordBatch]":
        """See `Results`."""
        try:
            while True:
                self._run.check()
                self._pending = self._engine.submit(self._next)
                try:
                    batch = await asyncio.wrap_future(self._pending)
                except CynosureError:
                    raise
                except Exception as error:
                    raise self._sort(error) from None
                if batch is None:
                    break
                if batch.num_rows:
                    yield self._shape(batch)
        finally:
            await self.close()

    def _next(self) -> "pa.RecordBatch | None":
        """In a thread: the next rows of DuckDB."""
        self._run.check()
        if self._reader is None:
            self._reader = self._connection.sql(self._sql).to_arrow_reader(_BATCH_ROWS)
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            return None

    def _sort(self, error: Exception) -> CynosureError:
        if is_fatal(error):
            self._engine.give_up_database(self._database)
        if self._run.failure is not None:
            return self._run.failure
        if is_interrupt(error):
            return QueryCancelled("The statement was ended")
        return self._run.fail(to_error(error))

    def _shape(self, batch: "pa.RecordBatch") -> "pa.RecordBatch":
        """With the statement's names, and types as Spark gives them."""
        import pyarrow as pa  # noqa: PLC0415

        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    async def close(self) -> None:
        """See `Results`."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="local-close")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._timer.cancel()
        if not self._run.is_over.is_set() and self._pending is not None and not self._pending.done():
            self._run.fail(QueryCancelled("The statement was ended"))
        self._run.finish()
        await self._interrupt_until_done()
        self._pending = self._engine.submit(self._end)
        with suppress(Exception):  # nobody waits for what it could say
            await asyncio.wrap_future(self._pending)
        self._engine.forget(self, self._keys)

    def _end(self) -> None:
        """In a thread: the reader first, so that the streams below it end."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()
        self._connection.close()
