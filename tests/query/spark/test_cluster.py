"""The same engine on a standalone cluster with two executors, one of which is killed."""

import asyncio
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.iceberg.types import LONG
from cynosure.query.broker.broker import Broker
from cynosure.query.errors import EngineUnavailable
from cynosure.query.spark.engine import SparkEngine
from cynosure.testing.harness.processes import Processes
from cynosure.testing.spark_cluster import SparkCluster, start_cluster
from tests.delegation.spark.world import Loop
from tests.query.spark.conftest import query_settings
from tests.query.spark.world import CLOCK, Sparks, first, relation, statement

pytestmark = pytest.mark.skipif("CYNOSURE_SOAK" not in os.environ, reason="five more Javas; ./dev soak")

NUMBERS = relation(
    "cyn_0", {"id": LONG}, *[[{"id": at} for at in range(first, 4_000, 8)] for first in range(8)]
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    with Processes(tmp_path) as processes:
        yield asyncio.run(start_cluster(processes, tmp_path))


@pytest.fixture
def on_cluster(spark_loop: Loop, spark_broker: Broker, cluster: SparkCluster) -> Iterator[Sparks]:
    settings = query_settings(
        master=cluster.master,
        config={
            **query_settings().spark.config,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
        },
    )

    async def make() -> SparkEngine:
        engine = SparkEngine(settings, spark_broker, CLOCK)
        await engine.start()
        return engine

    engine = spark_loop.run(make())
    yield Sparks(spark_loop, engine)
    spark_loop.run(engine.close())


def test_an_executor_that_is_killed_costs_no_row(on_cluster: Sparks, cluster: SparkCluster):
    async def wait() -> None:
        while len([each for each in await on_cluster.engine.workers() if each.is_healthy]) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.2)

    on_cluster.loop.run(wait())
    sql = "SELECT count(*), sum(id) FROM cyn_0"
    assert on_cluster.rows(sql, NUMBERS, columns=("a", "b")) == [(4_000, 7_998_000)]

    slow = "SELECT count(*), sum(a.id) FROM cyn_0 a, range(0, 300000) r WHERE a.id + r.id >= 0"
    query = statement(slow, NUMBERS, columns=("a", "b"))

    async def kill() -> list[tuple[int, int]]:
        results = await on_cluster.engine.execute(query, lambda _: None)

        async def read() -> list[tuple[int, int]]:
            rows = []
            async for batch in results.batches():
                rows += list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
            return rows

        task = asyncio.create_task(read())
        await asyncio.sleep(1.0)
        cluster.executors()[0].kill()
        return await task

    assert on_cluster.loop.run(kill()) == [(4_000 * 300_000, 7_998_000 * 300_000)]


def test_a_cluster_without_executors_is_told_soon(spark_loop: Loop, spark_broker: Broker, tmp_path: Path):
    async def run(engine: SparkEngine) -> None:
        query = statement("SELECT sum(id) FROM cyn_0", NUMBERS)
        await first(await engine.execute(query, lambda _: None))

    async def ask(processes: Processes) -> None:
        cluster = await start_cluster(processes, tmp_path, workers=0)
        settings = query_settings(master=cluster.master, worker_wait=timedelta(seconds=3))
        engine = SparkEngine(settings, spark_broker, CLOCK)
        # Not started: the statement itself has to begin a driver.
        try:
            with pytest.raises(EngineUnavailable, match="no healthy worker"):
                await run(engine)
        finally:
            await engine.close()

    with Processes(tmp_path) as processes:
        spark_loop.run(ask(processes))
