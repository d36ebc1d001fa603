"""One driver that reads natively, for all tests here; it writes an event log, so that tests can search it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cynosure.query.broker.broker import Broker
from cynosure.query.spark.engine import SparkEngine
from cynosure.query.spark.jobs import JOBS
from tests.delegation.spark.world import Loop
from tests.query.spark.conftest import query_settings
from tests.query.spark.native import driver_side
from tests.query.spark.world import CLOCK, Sparks


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def natives(spark_loop: Loop, spark_broker: Broker, event_log: Path) -> Iterator[Sparks]:
    settings = query_settings(scan="native")
    settings.spark.config.update(
        {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": event_log.as_uri(),
        }
    )

    async def make() -> SparkEngine:
        engine = SparkEngine(settings, spark_broker, CLOCK, jobs={**JOBS, **driver_side.JOBS})
        await engine.start()
        return engine

    engine = spark_loop.run(make())
    yield Sparks(spark_loop, engine)
    spark_loop.run(engine.close())
