"""One catalog server and one Spark driver for all tests here.

A maintainer must not break: what jobs run on is what the service uses, and the only keys in the environment
in which it is started lead nowhere.
"""

import asyncio
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cynosure.common.delegated.settings import DelegationSettings, ServiceSettings, SparkSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import NotFound
from cynosure.delegation.spark.runner import ChildSparkRunner
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import find_s3_servers
from tests.delegation.spark.world import Lake, Loop, make_runner
from tests.engines.java import SHORT_LIVED, ToolFailed
from tests.engines.poison import POISON
from tests.engines.spark.jars import find_jars

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark starts slowly."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch jars before the first test, where a slow network would look like a hang."""
    chosen = any(HERE in item.path.parents for item in session.items)
    if chosen and not session.config.option.collectonly:
        try:
            find_jars()
        except ToolFailed as failed:
            pytest.exit(f"tests/delegation/spark cannot run: {failed}", returncode=1)


def spark_settings(**changes: object) -> DelegationSettings:
    """Small, and for a short life."""
    given = os.environ.get("CYNOSURE_SPARK_JARS")
    spark = SparkSettings(
        master="local[2]",
        driver_memory=768 * 2**20,
        idle_timeout=timedelta(minutes=10),
        jars=Path(given) if given else None,
        config={
            "spark.driver.extraJavaOptions": " ".join(SHORT_LIVED),
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
        },
    )
    return DelegationSettings(service=ServiceSettings(spark=msgspec.structs.replace(spark, **changes)))


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    directory = tmp_path_factory.mktemp("delegation")
    with Processes(directory) as processes:
        yield asyncio.run(start_catalog_server(processes, directory))


@pytest.fixture(scope="session")
def runner(loop: Loop, server: CatalogServer) -> Iterator[ChildSparkRunner]:
    """The one driver. Its parent has keys that lead nowhere; it must not have them."""
    kept = {name: os.environ.get(name) for name in POISON}
    os.environ.update(POISON)

    async def make() -> ChildSparkRunner:
        return make_runner(spark_settings(), server.url, server.credential)

    runner = loop.run(make())
    lake = Lake(loop, server.get("none"), runner, None)
    with pytest.raises(NotFound):
        loop.run(runner.run("nothing", {}, lake.context(lake.order(TaskType.DATA_COMPACTION, ("a", "b")))))
    for name, value in kept.items():
        os.environ.pop(name)
        os.environ.update({} if value is None else {name: value})
    yield runner
    loop.run(runner.close())


@pytest.fixture(scope="session")
def local_lake(loop: Loop, server: CatalogServer, runner: ChildSparkRunner) -> Lake:
    """A catalog on local files, with a namespace `ns`."""
    served = asyncio.run(server.create_catalog("local"))
    lake = Lake(loop, served, runner, None)
    lake.sql("CREATE NAMESPACE c.ns")
    return lake


@pytest.fixture(scope="session")
def s3_lake(loop: Loop, server: CatalogServer, runner: ChildSparkRunner) -> Iterator[Lake]:
    """A catalog on MinIO that vends credentials, with a namespace `ns`."""
    store = find_s3_servers()["minio"]
    location = store.fresh_location("delegation")
    served = asyncio.run(server.create_catalog_on(store, "remote", location=location))
    lake = Lake(loop, served, runner, store)
    lake.sql("CREATE NAMESPACE c.ns")
    yield lake
    store.delete_below(location)
