"""The last stage on a driver with four cores: all of them work, rows come in order, and nothing is left."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from cynosure.iceberg.types import LONG
from cynosure.query.broker.broker import Broker
from cynosure.query.errors import OutOfMemory, QueryFailed
from cynosure.query.settings import QuerySparkSettings
from cynosure.query.spark.config import to_spark_settings
from cynosure.query.spark.engine import SparkEngine
from cynosure.query.spark.jobs import JOBS
from tests.delegation.spark.world import Loop
from tests.query.spark import driver_side
from tests.query.spark.conftest import query_settings
from tests.query.spark.test_protection import run_job
from tests.query.spark.world import CLOCK, Sparks, relation, statement

CORES = 4
MANY = relation("cyn_0", {"n": LONG}, *[[{"n": number}] for number in range(40)])
SLOW = "SELECT n, aggregate(sequence(1L, 200000L), 0L, (s, x) -> s + x % (n + 1)) FROM cyn_0"
"""No shuffle, and each fragment takes a core for some tenths of a second."""
FEW = relation("cyn_0", {"n": LONG}, [{"n": 1}])
IDLE = {"tasks": 0, "jobs": 0, "threads": 0}


@pytest.fixture(scope="module")
def four(spark_loop: Loop, spark_broker: Broker) -> Iterator[Sparks]:
    settings = query_settings(master=f"local[{CORES}]")
    settings.spark.config["spark.driver.maxResultSize"] = "16m"
    settings.spark.config["spark.sql.execution.arrow.maxRecordsPerBatch"] = "10"

    async def make() -> SparkEngine:
        engine = SparkEngine(settings, spark_broker, CLOCK, jobs={**JOBS, **driver_side.JOBS})
        await engine.start()
        return engine

    engine = spark_loop.run(make())
    sparks = Sparks(spark_loop, engine)
    sparks.rows("SELECT 1")
    yield sparks
    spark_loop.run(engine.close())


async def count_running(four: Sparks) -> dict[str, Any]:
    return await run_job(four, "test-running", {})


async def until_idle(four: Sparks) -> None:
    until_s = time.monotonic() + 20
    while (found := await count_running(four)) != IDLE:
        assert time.monotonic() < until_s, found
        await asyncio.sleep(0.05)


async def read_watched(four: Sparks, sql: str, *columns: str) -> tuple[list[pa.RecordBatch], list[int]]:
    """Its batches, and how many tasks were seen at once."""
    seen: list[int] = []

    async def watch() -> None:
        while True:
            seen.append((await count_running(four))["tasks"])
            await asyncio.sleep(0.02)

    watching = asyncio.create_task(watch())
    results = await four.engine.execute(statement(sql, MANY, columns=columns), lambda _: None)
    batches = [each async for each in results.batches()]
    watching.cancel()
    await asyncio.wait({watching})
    return batches, seen


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return [each for batch in batches for each in batch.column(0).to_pylist()]


def test_fragments_without_a_shuffle_take_all_cores_and_come_in_order(four: Sparks):
    batches, seen = four.loop.run(read_watched(four, SLOW, "n", "a"))
    assert numbers(batches) == list(range(40))
    assert max(seen) == CORES
    four.loop.run(until_idle(four))


def test_large_partitions_keep_all_but_two_waiting(four: Sparks):
    """Of 9 MB each, where the rows of a job may be 16 MiB."""
    sql = "SELECT r.id, repeat('x', 300000) FROM range(0, 360, 1, 12) r"
    batches, seen = four.loop.run(read_watched(four, sql, "n", "a"))
    assert numbers(batches) == list(range(360))
    assert max(seen) <= 2


def test_rows_that_turn_out_larger_than_those_before_come_all_the_same(four: Sparks):
    sql = "SELECT r.id, repeat('x', IF(r.id < 180, 1, 500000)) FROM range(0, 480, 1, 48) r"
    batches, _ = four.loop.run(read_watched(four, sql, "n", "a"))
    assert numbers(batches) == list(range(480))
    four.loop.run(until_idle(four))


def test_one_partition_with_more_rows_than_spark_keeps_says_what_to_do(four: Sparks):
    sql = "SELECT r.id, repeat('x', 500000) FROM range(0, 40, 1, 1) r"
    with pytest.raises(OutOfMemory) as failed:
        four.rows(sql, FEW, columns=("n", "a"))
    assert "query.spark.driver_memory" in failed.value.fix
    assert "spark.driver.maxResultSize" in failed.value.fix


@pytest.mark.parametrize(("said", "most"), [({}, "512m"), ({"spark.driver.maxResultSize": "3g"}, "3g")])
def test_how_much_spark_keeps_follows_the_drivers_memory_unless_it_is_said(said: dict[str, str], most: str):
    settings = to_spark_settings(QuerySparkSettings(driver_memory=4 * 2**30, config=said))
    assert settings.config["spark.driver.maxResultSize"] == most


@pytest.mark.parametrize("rows", [0, 1])
def test_results_that_are_empty_or_nearly_so_come(four: Sparks, rows: int):
    assert len(four.rows(f"SELECT n FROM cyn_0 WHERE n < {rows}", MANY)) == rows
    assert four.rows("SELECT n FROM cyn_0", relation("cyn_0", {"n": LONG})) == []
    assert len(four.rows(f"SELECT n FROM cyn_0 ORDER BY n DESC LIMIT {rows}", MANY)) == rows


def test_an_error_in_the_middle_is_the_statements_and_ends_the_rest(four: Sparks):
    with pytest.raises(QueryFailed) as failed:
        four.rows(f"SELECT 1 / (n - 20), q FROM ({SLOW.replace('SELECT n, ', 'SELECT n, ')} ) t(n, q)", MANY)
    assert failed.value.details["condition"] == "DIVIDE_BY_ZERO"
    four.loop.run(until_idle(four))


def test_who_cancels_in_the_middle_leaves_no_job_no_task_and_no_thread(four: Sparks):
    async def cancel() -> None:
        results = await four.engine.execute(statement(SLOW, MANY, columns=("n", "a")), lambda _: None)
        reading = asyncio.create_task(read_all(results))
        while (await count_running(four))["tasks"] < CORES:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
        reading.cancel()
        await asyncio.wait({reading})
        await until_idle(four)

    four.loop.run(cancel())


def test_who_goes_away_in_the_middle_leaves_nothing(four: Sparks):
    async def leave() -> None:
        results = await four.engine.execute(statement(SLOW, MANY, columns=("n", "a")), lambda _: None)
        async for _ in results.batches():
            break
        await results.close()
        await until_idle(four)

    four.loop.run(leave())


def test_who_does_not_read_holds_back_all_but_the_next_partitions(four: Sparks, spark_broker: Broker):
    """Rows that are too many for what lies between: sockets and Java's memory hold two jobs."""
    sql = "SELECT r.id, repeat('x', 500000) FROM range(0, 400, 1, 40) r"

    async def wait() -> None:
        results = await four.engine.execute(statement(sql, FEW, columns=("n", "a")), lambda _: None)
        batches = results.batches()
        await anext(batches)
        await asyncio.sleep(2.0)
        assert await count_running(four) == {"tasks": 0, "jobs": 0, "threads": 2}
        await batches.aclose()
        await until_idle(four)

    four.loop.run(wait())


async def read_all(results: Any) -> None:
    async for _ in results.batches():
        pass
