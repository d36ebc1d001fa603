"""One Spark for all tests here, with our catalog as `c`.

A maintainer must not break: Spark listens on loopback only, its catalog has no cache, so that every statement
meets the server, and the only keys it finds on this machine lead nowhere.
"""

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cynosure.testing.catalog_server import RestCatalog
from tests.engines.java import SHORT_LIVED
from tests.engines.poison import POISON
from tests.engines.spark.jars import find_jars

HERE = Path(__file__).parent

Sql = Callable[..., list[tuple[Any, ...]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say what is normal for Spark: a slow start, and sockets of results left to the garbage collector."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(600))
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def configure(rest: RestCatalog, name: str, **properties: str) -> dict[str, str]:
    """Spark's settings for a REST catalog."""
    prefix = f"spark.sql.catalog.{name}"
    client = {"type": "rest", "uri": rest.uri, "cache-enabled": "false", "rest-page-size": "2"}
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        **{f"{prefix}.{key}": value for key, value in {**client, **rest.properties, **properties}.items()},
    }


@pytest.fixture(scope="session")
def rest_catalog(make_catalog: Callable[[], RestCatalog]) -> RestCatalog:
    return make_catalog()


@pytest.fixture(scope="session")
def spark(rest_catalog: RestCatalog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Spark takes these from the environment of the process that starts it.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Java keeps the environment it is started in.
    keys = {name: os.environ.get(name) for name in POISON}
    os.environ.update(POISON)
    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        **configure(rest_catalog, "c"),
        **configure(rest_catalog, "lean", **{"snapshot-loading-mode": "refs"}),
        "spark.jars": ",".join(map(str, find_jars())),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.defaultCatalog": "c",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": " ".join([*SHORT_LIVED, f"-Djava.io.tmpdir={scratch}"]),
        "spark.local.dir": str(scratch),
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]").appName("cynosure-tests")
    session = builder.config(map=settings).getOrCreate()
    for name, value in keys.items():
        os.environ.pop(name)
        os.environ.update({} if value is None else {name: value})
    yield session
    gateway = session.sparkContext._gateway
    assert gateway
    session.stop()
    gateway.shutdown()
    # Asked politely, Java waits ten seconds for threads of Iceberg that have nothing to do any more.
    gateway.proc.kill()
    gateway.proc.wait()
    gateway.proc.stdin.close()


@pytest.fixture
def sql(spark: SparkSession) -> Sql:
    """Runs a statement; its rows as tuples."""

    def run(statement: str, session: SparkSession = spark) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in session.sql(statement).collect()]

    return run


@pytest.fixture(scope="module")
def namespace(spark: SparkSession) -> str:
    name = f"ns_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE NAMESPACE c.{name}")
    return name


@pytest.fixture
def name(namespace: str) -> str:
    """A full table name that nobody has."""
    return f"c.{namespace}.t_{uuid.uuid4().hex[:10]}"


@pytest.fixture
def table(name: str, sql: Sql) -> str:
    """Three rows: (1, 'a'), (2, 'b'), (3, 'c')."""
    sql(f"CREATE TABLE {name} (id BIGINT, data STRING) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return name
