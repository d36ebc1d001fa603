"""Spark as an engine: one driver for all statements, and what is known of its executors.

A local master's driver starts with the first statement and ends when nobody needs it; one of a cluster starts
at once, because its executors are what statements are distributed over.

A maintainer must not break: a driver that died costs the statements that ran there, with an error; the next
one gets a new driver.
"""

import asyncio
import contextlib
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.query.broker.broker import Broker
from cynosure.query.broker.brokered import BrokeredQuery
from cynosure.query.engine import EngineQuery, OnFragment, Relation, RunningFragment, WorkerInfo
from cynosure.query.scan_task import ScanTask
from cynosure.query.settings import QuerySettings
from cynosure.query.spark import kind
from cynosure.query.spark.abandoned import until_abandoned
from cynosure.query.spark.config import is_local, to_spark_settings
from cynosure.query.spark.jobs import JOBS, QueryOrder
from cynosure.query.spark.leaf import LeafContext, LeafRelation
from cynosure.query.spark.native_plan import require_tested_spark
from cynosure.query.spark.native_table import NativeAnswers, make_table, report_scans, without_scans
from cynosure.query.spark.renewing import RenewingEngine
from cynosure.query.spark.run import SparkRun, answer_nothing
from cynosure.query.spark.stuck import StuckWatch
from cynosure.query.spark.types import estimate_row_bytes, to_arrow_columns, to_spark_schema
from cynosure.query.sql.dialect import WRITTEN
from cynosure.spark.driver_process import DriverProcess, Questions
from cynosure.spark.keeper import DriverKeeper

if TYPE_CHECKING:
    from cynosure.query.engine import Results

LEAVES: Final = MappingProxyType(
    {
        "isolated": "cynosure.query.spark.isolated:IsolatedLeaf",
        "native": "cynosure.query.spark.native:NativeLeaf",
    }
)
_KINDS: Final = MappingProxyType({"isolated": kind.ISOLATED, "native": kind.NATIVE})
_OBSERVE_S: Final = 5.0
_AGAIN_S: Final = 30.0
_log = Log(__name__)
_CORES: Final = re.compile(r"local\[(\d+)")


def is_spark_here() -> bool:
    """Whether PySpark and Java are on this machine."""
    home = os.environ.get("JAVA_HOME")
    has_java = shutil.which("java") is not None or bool(home and Path(home, "bin", "java").exists())
    return has_java and find_spec("pyspark") is not None


class SparkEngine:
    """See `engine.Engine` and `engine.Cluster`."""

    def __init__(
        self,
        settings: QuerySettings,
        broker: Broker,
        clock: Clock,
        *,
        java_options: Callable[[Path], tuple[str, ...]] = lambda _: (),
        jobs: Mapping[str, str] = JOBS,
    ) -> None:
        spark = settings.spark
        self._scan = spark.scan
        self._master = spark.master
        self._retries = spark.fragment_retries
        self._worker_wait_s = spark.worker_wait.total_seconds()
        self._broker = broker
        self._clock = clock
        self._drivers = DriverKeeper(
            to_spark_settings(spark), clock, kind=_KINDS[spark.scan], jobs=jobs, java_options=java_options
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._observing: asyncio.Task[None] | None = None
        self._watched: DriverProcess | None = None
        self._stuck = StuckWatch()

    @property
    def name(self) -> str:
        """Of the engine and its leaf."""
        return f"spark-{self._scan}"

    @property
    def driver(self) -> DriverProcess | None:
        """That runs now."""
        return self._drivers.running

    async def start(self) -> None:
        """Begin to watch executors; with a cluster, begin to have some."""
        if self._is_native:
            require_tested_spark(version("pyspark"))
        if self._observing is None:
            self._observing = asyncio.create_task(self._observe())

    async def workers(self) -> Sequence[WorkerInfo]:
        """See `engine.Cluster`. A local master that has not been needed yet is as good as one that runs."""
        if is_local(self._master) and self._drivers.running is None:
            return [WorkerInfo("localhost/driver", is_healthy=True, cores=self._count_local_slots())]
        return self._broker.workers()

    def list_running(self, query_id: str) -> list[RunningFragment] | None:
        """See `engine.TellsFragments`. Of Iceberg's own reader nobody is told what it reads."""
        found = [
            RunningFragment(
                each.fragment_id, each.worker, each.attempt, each.elapsed_ms, each.rows, each.bytes
            )
            for each in self._broker.runtime.running(query_id)
        ]
        return found or (None if self._is_native else [])

    def find_reason_against(self, query: EngineQuery) -> str | None:
        """Spark runs all that is allowed: its SQL is the one that statements are written in."""
        return None

    @property
    def renewing(self) -> RenewingEngine | None:
        """See `engine.Renews`."""
        return RenewingEngine(partial(self._execute, is_native=False)) if self._is_native else None

    async def execute(self, query: EngineQuery, on_fragment: OnFragment) -> "Results":
        """See `engine.Engine`."""
        return await self._execute(query, on_fragment, is_native=self._is_native)

    async def _execute(self, query: EngineQuery, on_fragment: OnFragment, *, is_native: bool) -> "Results":
        text = to_text(query)
        relations = without_scans(query.relations) if is_native else query.relations
        brokered = self._broker.open_query(
            query.id, relations, on_fragment, self._kill, self._retries, self._count_slots
        )
        try:
            order = self._order(query, text, brokered, is_native=is_native)
        except BaseException:
            brokered.close()
            raise
        begun_s = self._clock.monotonic_s()

        def end() -> None:
            if is_native:
                elapsed_ms = int((self._clock.monotonic_s() - begun_s) * 1000)
                report_scans(query.relations, elapsed_ms, on_fragment)

        run = SparkRun(
            query,
            order,
            self._drivers,
            brokered,
            self._clock,
            questions=self._find_answers(query, is_native=is_native),
            on_end=end,
            # A local driver is its own executor.
            abandoned=None if is_local(self._master) else self._until_abandoned,
        )
        await run.begin()
        return run

    async def explain(self, query: EngineQuery) -> str:
        """Spark's plan. Nothing is read, and sizes are not shown: they count hidden rows."""
        order = self._order(query, to_text(query), None, is_native=self._is_native)
        async with self._drivers.use() as driver:
            answer = await driver.run(
                "explain",
                msgspec.to_builtins(order),
                task_id=f"explain-{query.id}",
                description="explain",
                questions=self._find_answers(query, is_native=self._is_native),
            )
        return str(answer["plan"])

    async def close(self) -> None:
        """End everything."""
        tasks = [each for each in (self._observing, *self._tasks) if each is not None]
        self._observing = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._drivers.close()

    def _order(
        self, query: EngineQuery, text: str, brokered: BrokeredQuery | None, *, is_native: bool
    ) -> QueryOrder:
        address, ca_pem, tokens = ("", "", {})
        if brokered is not None:
            address, ca_pem, tokens = brokered.address, brokered.ca_pem, brokered.tokens
        return QueryOrder(
            text,
            tuple(to_leaf(each, tokens, is_native=is_native) for each in query.relations),
            LeafContext(query.id, address, ca_pem),
            LEAVES[self._scan],
            query.session.time_zone,
        )

    @property
    def _is_native(self) -> bool:
        return self._scan == "native"

    def _find_answers(self, query: EngineQuery, *, is_native: bool) -> Questions:
        return NativeAnswers(query.relations, self._clock).answer if is_native else answer_nothing

    def _count_slots(self) -> int:
        # A local driver's are known before it has told of them.
        told = sum(each.cores for each in self._broker.workers())
        return max(told, self._count_local_slots()) if is_local(self._master) else told

    def _count_local_slots(self) -> int:
        found = _CORES.match(self._master)
        return int(found[1]) if found else (os.cpu_count() or 1)

    async def _until_abandoned(self) -> None:
        await until_abandoned(self._broker.workers, self._clock, patience_s=self._worker_wait_s)

    def _kill(self, attempt_id: int) -> None:
        """End an attempt that the broker gave up."""
        driver = self._drivers.running
        if driver is not None:
            self._spawn(self._ask(driver, "kill", attempt_id=attempt_id))

    async def _ask(self, driver: DriverProcess, job: str, **parameters: Any) -> None:
        with contextlib.suppress(CynosureError):
            await driver.run(job, parameters, task_id=job, description=job, questions=answer_nothing)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _observe(self) -> None:
        """Tell the registry of executors, every five seconds."""
        while True:
            pause_s = _OBSERVE_S
            try:
                driver = self._drivers.running
                if driver is None and not is_local(self._master):
                    async with self._drivers.use() as driver:
                        pass
                if driver is not None:
                    answer = await driver.run(
                        "workers", {}, task_id="workers", description="workers", questions=answer_nothing
                    )
                    self._broker.registry.observe([(name, cores) for name, cores in answer["workers"]])
                    await self._replace_if_stuck(driver, answer)
            except (CynosureError, OSError):
                # A cluster that is not there now may be there later; nobody waits for it here. Nor does this
                # machine always have room for one more process.
                pause_s = _AGAIN_S
            await self._clock.sleep(pause_s)

    async def _replace_if_stuck(self, driver: DriverProcess, answer: dict[str, Any]) -> None:
        """End a driver that is taken by what does not notice that it was cancelled."""
        if driver is not self._watched:
            self._watched, self._stuck = driver, StuckWatch()
        tasks, runs = frozenset(answer["left"]), driver.leaving
        cores = sum(cores for _, cores in answer["workers"])
        if self._stuck.note(tasks=tasks, runs=runs, cores=cores, is_idle=self._drivers.is_idle):
            _log.event("spark.driver_stuck", level=WARNING, tasks=len(tasks), runs=len(runs))
            await driver.close()


def to_text(query: EngineQuery) -> str:
    """The checked tree as Spark reads it."""
    return query.tree.sql(dialect=WRITTEN)


def to_leaf(relation: Relation, tokens: dict[str, str], *, is_native: bool = False) -> LeafRelation:
    """A relation as the driver is told."""
    table = make_table(relation) if is_native else None
    names = tuple(each.fragment_id for each in relation.fragments)
    columns = to_arrow_columns(relation.columns)
    return LeafRelation(
        view=relation.view,
        schema=to_spark_schema(relation.columns),
        has_columns=bool(relation.columns),
        size_bytes=estimate_rows(relation) * estimate_row_bytes(relation.columns),
        arrow_schema=columns.serialize().to_pybytes() if relation.columns else b"",
        fragments=names,
        tokens={name: tokens.get(name, "") for name in names},
        table=msgspec.to_builtins(table) if table is not None else {},
    )


def estimate_rows(relation: Relation) -> int:
    """How many rows its files have at most, deleted and hidden ones included."""
    if relation.most_rows:
        return relation.most_rows
    total = 0
    for fragment in relation.fragments:
        if isinstance(fragment, ScanTask):
            for file in fragment.files:
                part = (file.end - file.begin) / max(file.size_bytes, 1) if file.end else 1.0
                total += int(file.record_count * min(part, 1.0))
        else:
            total += len(fragment.batches)
    return max(total, 1)
