"""One broker and one Spark driver for all tests here, as the gateway has them.

Others who need Spark for statements use these fixtures: `sparks` (engine and event loop), `spark_broker`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.query.broker.broker import Broker
from cynosure.query.settings import BrokerSettings, QuerySettings, QuerySparkSettings
from cynosure.query.spark.engine import SparkEngine
from cynosure.query.spark.jobs import JOBS
from tests.delegation.spark.world import Loop
from tests.engines.java import SHORT_LIVED
from tests.query.spark import driver_side
from tests.query.spark.world import CLOCK, Sparks

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark starts slowly."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


def query_settings(**changes: object) -> QuerySettings:
    """Small, and for a short life."""
    config = {
        "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
    }
    given = {"master": "local[2]", "driver_memory": 768 * 2**20, "config": config, **changes}
    return QuerySettings(spark=QuerySparkSettings(**given))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def spark_loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def spark_broker(spark_loop: Loop) -> Iterator[Broker]:
    async def start() -> Broker:
        broker = Broker(BrokerSettings(), CLOCK)
        await broker.start()
        return broker

    broker = spark_loop.run(start())
    yield broker
    spark_loop.run(broker.close())


@pytest.fixture(scope="session")
def sparks(spark_loop: Loop, spark_broker: Broker) -> Iterator[Sparks]:
    async def make() -> SparkEngine:
        engine = SparkEngine(query_settings(), spark_broker, CLOCK, jobs={**JOBS, **driver_side.JOBS})
        await engine.start()
        return engine

    engine = spark_loop.run(make())
    yield Sparks(spark_loop, engine)
    spark_loop.run(engine.close())
