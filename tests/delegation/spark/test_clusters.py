"""The same jobs on a standalone cluster, and on a Spark Connect server, all on loopback."""

import asyncio
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from cynosure.delegation.jobs.compaction.job import CompactionJob
from cynosure.delegation.spark.session import EXTENSIONS
from cynosure.spark.environment import make_environment
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.harness.probes import tcp_ready
from cynosure.testing.harness.processes import Processes
from tests.delegation.spark.conftest import spark_settings
from tests.delegation.spark.world import Lake, Loop, make_runner
from tests.engines.java import SHORT_LIVED
from tests.engines.spark.jars import find_jars

pytestmark = pytest.mark.skipif("CYNOSURE_SOAK" not in os.environ, reason="three more Javas; ./dev soak")

SPARK = Path(pyspark.__file__).parent
SMALL = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": " ".join(SHORT_LIVED)}


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    with Processes(tmp_path) as processes:
        yield processes


def environment(tmp_path: Path) -> dict[str, str]:
    settings = spark_settings().service.spark
    return {
        **make_environment(os.environ, settings),
        **SMALL,
        "SPARK_HOME": str(SPARK),
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_LOG_DIR": str(tmp_path / "logs"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }


def compact(lake: Lake) -> None:
    """One job from its beginning to its end."""
    path = ("ns", f"t_{uuid.uuid4().hex[:8]}")
    name = f"c.{'.'.join(path)}"
    lake.sql(
        f"CREATE TABLE {name} (id BIGINT) USING iceberg",
        f"INSERT INTO {name} VALUES (1)",
        f"INSERT INTO {name} VALUES (2)",
    )
    done = lake.work(CompactionJob(), path, rewrite_all="true")
    assert (done.details["files_before"], done.details["files_after"]) == (2, 1)
    assert lake.sql(f"SELECT id FROM {name} ORDER BY id") == [(1,), (2,)]


def test_jobs_run_on_a_standalone_cluster(
    loop: Loop, server: CatalogServer, processes: Processes, tmp_path: Path, local_lake: Lake
):
    port, worker_port = processes.reserve_port(), processes.reserve_port()
    env = environment(tmp_path)
    master = f"spark://127.0.0.1:{port}"
    run = [str(SPARK / "bin" / "spark-class")]

    async def start() -> None:
        await processes.start(
            "master",
            [*run, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port),
             "--webui-port", "0"],
            ready=tcp_ready(port),
            env=env,
        )  # fmt: skip
        await processes.start(
            "worker",
            [*run, "org.apache.spark.deploy.worker.Worker", master, "--host", "127.0.0.1",
             "--port", str(worker_port), "--webui-port", "0", "--cores", "2", "--memory", "768m"],
            ready=tcp_ready(worker_port),
            env=env,
        )  # fmt: skip

    asyncio.run(start())
    config = {**spark_settings().service.spark.config, "spark.executor.memory": "512m"}
    settings = spark_settings(master=master, config=config)

    async def make() -> Lake:
        return Lake(loop, local_lake.served, make_runner(settings, server.url, server.credential), None)

    lake = loop.run(make())
    try:
        compact(lake)
    finally:
        loop.run(lake.runner.close())


def test_jobs_run_on_spark_connect(
    loop: Loop, server: CatalogServer, processes: Processes, tmp_path: Path, local_lake: Lake
):
    port = processes.reserve_port()
    config = {
        **spark_settings().service.spark.config,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.extensions": EXTENSIONS,
        "spark.jars": ",".join(map(str, find_jars())),
        "spark.ui.enabled": "false",
        "spark.local.dir": str(tmp_path),
    }
    words = [word for pair in config.items() for word in ("--conf", "=".join(pair))]

    async def start() -> None:
        await processes.start(
            "connect",
            [str(SPARK / "bin" / "spark-submit"), "--master", "local[2]", *words, "--class",
             "org.apache.spark.sql.connect.service.SparkConnectServer"],
            ready=tcp_ready(port),
            env={**environment(tmp_path), "SPARK_DAEMON_MEMORY": "768m"},
        )  # fmt: skip

    asyncio.run(start())
    settings = spark_settings(remote=f"sc://127.0.0.1:{port}", config={})

    async def make() -> Lake:
        return Lake(loop, local_lake.served, make_runner(settings, server.url, server.credential), None)

    lake = loop.run(make())
    try:
        compact(lake)
    finally:
        loop.run(lake.runner.close())
