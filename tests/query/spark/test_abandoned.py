"""A cluster without executors: a statement waits a little, and not until its deadline."""

import asyncio
import errno
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from cynosure.common.errors import CynosureError
from cynosure.query.engine import EngineQuery, SessionValues, WorkerInfo
from cynosure.query.errors import DeadlinePassed, EngineUnavailable
from cynosure.query.settings import QuerySettings, QuerySparkSettings
from cynosure.query.spark.abandoned import until_abandoned
from cynosure.query.spark.engine import SparkEngine
from cynosure.query.spark.jobs import QueryOrder
from cynosure.query.spark.leaf import LeafContext
from cynosure.query.spark.run import SparkRun, answer_nothing
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio

WELL, SICK = WorkerInfo("h/1", is_healthy=True), WorkerInfo("h/1", is_healthy=False)
PATIENCE_S, DEADLINE_S, STARTING_S = 60.0, 1_800.0, 300.0


class HungSpark:
    """A keeper, and a driver that takes its time to start and then waits for executors, as Spark does."""

    def __init__(self, clock: ManualClock, scratch: Path) -> None:
        self.scratch = scratch
        self.asked: list[str] = []
        self.leaving = asyncio.Event()
        """Until it is set, a run that was cancelled has not left."""
        self.leaving.set()
        self._clock = clock

    @asynccontextmanager
    async def use(self) -> AsyncIterator["HungSpark"]:
        await self._clock.sleep(STARTING_S)
        yield self

    async def run(self, job: str, *_: Any, **__: Any) -> None:
        self.asked.append(job)
        try:
            await asyncio.Event().wait()
        finally:
            await self.leaving.wait()


class QuietBroker:
    def __init__(self) -> None:
        self.failed: asyncio.Future[CynosureError] = asyncio.get_running_loop().create_future()

    def close(self) -> None:
        self.failed.cancel()


@pytest.fixture
def scratch() -> Iterator[Path]:
    # Sockets have short names.
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


class Scene:
    """A statement that begins on such a Spark, and who is known there."""

    def __init__(self, scratch: Path) -> None:
        self.clock = ManualClock()
        self.spark = HungSpark(self.clock, scratch)
        self.workers: list[WorkerInfo] = []
        deadline_s = self.clock.monotonic_s() + DEADLINE_S
        query = EngineQuery("q", exp.Select(), (), (), deadline_s, SessionValues("ann", "", "", 0))
        run = SparkRun(
            query,
            QueryOrder("", (), LeafContext("q", "", ""), ""),
            self.spark,  # type: ignore[arg-type]  # a fake
            QuietBroker(),
            self.clock,
            questions=answer_nothing,
            on_end=lambda: None,
            abandoned=lambda: until_abandoned(lambda: self.workers, self.clock, patience_s=PATIENCE_S),
        )
        self.begun = asyncio.create_task(run.begin())

    async def until_driver(self) -> None:
        await self.clock.advance(STARTING_S)
        async with asyncio.timeout(30):
            while not self.spark.asked:  # noqa: ASYNC110 - a socket is opened meanwhile
                await asyncio.sleep(0.01)


async def test_a_statement_that_no_executor_runs_fails_soon_and_says_why(scratch: Path):
    scene = Scene(scratch)
    await scene.until_driver()
    assert scene.spark.asked == ["query"]
    await scene.clock.advance(PATIENCE_S - 1)
    assert not scene.begun.done()
    await scene.clock.advance(2)
    with pytest.raises(EngineUnavailable, match="no healthy worker") as raised:
        await scene.begun
    assert "query.spark.worker_wait" in raised.value.fix


async def test_executors_that_register_some_seconds_after_the_driver_are_waited_for(scratch: Path):
    scene = Scene(scratch)
    await scene.until_driver()
    await scene.clock.advance(PATIENCE_S - 5)
    scene.workers = [WELL]
    await scene.clock.advance(10 * PATIENCE_S)
    assert not scene.begun.done()
    await scene.clock.advance(DEADLINE_S)
    with pytest.raises(DeadlinePassed):
        await scene.begun


async def test_an_end_that_is_broken_off_leaves_no_socket(scratch: Path):
    """Else the driver would wait there for somebody to read its rows."""
    scene = Scene(scratch)
    await scene.until_driver()
    assert [each.name.startswith("rows-") for each in scratch.iterdir()] == [True]
    scene.spark.leaving.clear()
    for _ in range(2):
        scene.begun.cancel()
        await asyncio.sleep(0.05)
    scene.spark.leaving.set()
    with pytest.raises(asyncio.CancelledError):
        await scene.begun
    async with asyncio.timeout(30):
        while any(scratch.iterdir()):  # noqa: ASYNC110 - a task in the background removes it
            await asyncio.sleep(0.01)


class LookedAfter:
    """A broker that is told of workers."""

    def __init__(self) -> None:
        self.registry = self
        self.seen: list[tuple[str, int]] = []

    def observe(self, executors: list[tuple[str, int]]) -> None:
        self.seen = executors


class FailingOnce:
    """A keeper whose driver cannot be started at first: there is no memory, or no file may be opened."""

    def __init__(self) -> None:
        self.running: FailingOnce | None = None
        self.is_idle = True
        self.leaving: frozenset[int] = frozenset()
        self.tries = 0

    @asynccontextmanager
    async def use(self) -> AsyncIterator["FailingOnce"]:
        self.tries += 1
        if self.tries == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        self.running = self
        yield self

    async def run(self, job: str, *_: Any, **__: Any) -> dict[str, Any]:
        return {"workers": [("h/1", 2)], "left": []}

    async def close(self) -> None:
        self.running = None


async def test_executors_are_looked_for_again_where_a_driver_could_not_be_started():
    clock, broker = ManualClock(), LookedAfter()
    settings = QuerySettings(spark=QuerySparkSettings(master="spark://host:7077"))
    engine = SparkEngine(settings, broker, clock)  # type: ignore[arg-type]  # a fake
    drivers = engine._drivers = FailingOnce()  # type: ignore[assignment]  # likewise
    await engine.start()
    await clock.advance(1)
    assert (drivers.tries, broker.seen) == (1, [])
    await clock.advance(60)
    assert broker.seen == [("h/1", 2)]
    await engine.close()


async def until_given_up(clock: ManualClock, workers: list[WorkerInfo]) -> asyncio.Task[None]:
    task = asyncio.create_task(until_abandoned(lambda: workers, clock, patience_s=PATIENCE_S))
    await clock.advance(1)
    return task


async def test_an_executor_that_was_never_well_is_as_good_as_none():
    clock = ManualClock()
    task = await until_given_up(clock, [SICK])
    await clock.advance(PATIENCE_S)
    assert task.done()


async def test_a_running_statement_loses_its_cluster_when_no_executor_is_left_and_not_for_a_late_beat():
    clock, workers = ManualClock(), [WELL]
    task = await until_given_up(clock, workers)
    workers[:] = [SICK]
    await clock.advance(10 * PATIENCE_S)
    assert not task.done()
    workers.clear()
    await clock.advance(PATIENCE_S - 1)
    assert not task.done()
    await clock.advance(2)
    assert task.done()
