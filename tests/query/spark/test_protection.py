"""What a statement's session can reach, whatever text gets there: its own views only (I104, I105)."""

import uuid
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.common.errors import CynosureError, Misconfigured
from cynosure.iceberg.types import LONG
from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.settings import QuerySparkSettings
from cynosure.query.spark.config import make_config, to_spark_settings
from cynosure.query.spark.jobs import QueryOrder
from cynosure.query.spark.leaf import LeafContext
from cynosure.query.spark.run import answer_nothing
from tests.query.spark.world import Sparks, relation, statement

SMUGGLED = {
    "SET spark.sql.runSQLOnFiles=true": NotAllowed,
    "SET": NotAllowed,
    "CREATE VIEW x AS SELECT 1": NotAllowed,
    "CREATE TABLE x USING parquet AS SELECT 1 AS a": NotAllowed,
    "ADD JAR '/x.jar'": NotAllowed,
    "SHOW TABLES": NotAllowed,
    "USE spark_catalog": NotAllowed,
    "DESCRIBE cyn_0": NotAllowed,
    "EXPLAIN COST SELECT 1": NotAllowed,
    "CACHE TABLE cyn_0": NotAllowed,
    "INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT 1": NotAllowed,
    "SELECT reflect('java.lang.System', 'getProperty', 'user.name')": NotAllowed,
    "SELECT java_method('java.lang.System', 'getProperty', 'user.name')": NotAllowed,
    "SELECT 1 WHERE reflect('java.lang.System', 'lineSeparator') IS NOT NULL": NotAllowed,
    "SELECT (SELECT reflect('java.lang.System', 'lineSeparator'))": NotAllowed,
    "WITH x AS (SELECT reflect('java.lang.System', 'lineSeparator') a) SELECT * FROM x": NotAllowed,
    "VALUES (reflect('java.lang.System', 'lineSeparator'))": SqlError,
    "SELECT input_file_name()": NotAllowed,
    "SELECT current_user()": NotAllowed,
    "SELECT * FROM parquet.`/etc/passwd`": SqlError,
    "SELECT * FROM text.`/etc/passwd`": SqlError,
    "SELECT * FROM other.ns.t": SqlError,
    "SELECT '${env:HOME}' FROM nowhere": SqlError,
    "SELECT * FROM read_files('/etc')": SqlError,
}


async def run_job(sparks: Sparks, job: str, parameters: Any) -> dict[str, Any]:
    async with sparks.engine._drivers.use() as driver:
        return await driver.run(
            job, parameters, task_id=uuid.uuid4().hex, description="test", questions=answer_nothing
        )


def raw(sparks: Sparks, text: str) -> list[Any]:
    order = QueryOrder(text, (), LeafContext("test", "", ""), "cynosure.query.spark.isolated:IsolatedLeaf")
    rows: list[Any] = sparks.loop.run(run_job(sparks, "test-raw", msgspec.to_builtins(order)))["rows"]
    return rows


def test_text_that_is_a_query_runs(sparks: Sparks):
    """The control: text gets there, and what is allowed works."""
    assert raw(sparks, "SELECT '${env:HOME}', upper('a')") == [["${env:HOME}", "A"]]


@pytest.mark.parametrize("text", SMUGGLED)
def test_smuggled_text_is_refused(sparks: Sparks, text: str):
    with pytest.raises(SMUGGLED[text]) as refused:
        raw(sparks, text)
    assert "/etc" not in str(refused.value)


def test_a_session_knows_no_catalog_and_nobodys_secrets(sparks: Sparks):
    found = sparks.loop.run(run_job(sparks, "test-look", {}))
    assert found["catalogs"] == ["spark_catalog"]
    assert found["tables"] == []
    assert not [name for name in found["session"] if name.startswith("spark.sql.catalog.")]
    assert found["config"]["spark.io.encryption.enabled"] == "true"
    assert found["config"]["spark.ui.enabled"] == "false"
    for variables in (found["python"], found["java"]):
        assert not [
            name for name in variables if name.startswith(("CYNOSURE_TEST", "AWS_ACCESS", "AWS_SECRET"))
        ]


def test_what_an_operator_sets_does_not_open_what_is_closed(tmp_path: Path):
    opened = {
        "spark.sql.runSQLOnFiles": "true",
        "spark.io.encryption.enabled": "false",
        "spark.ui.enabled": "true",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.variable.substitute": "true",
        "spark.sql.catalogImplementation": "hive",
        "spark.redaction.regex": "nothing",
        "spark.python.daemon.module": "other",
        "spark.local.dir": "/var/shared",
        "spark.log.level": "DEBUG",
        "spark.executor.memory": "3g",
    }
    config = make_config(to_spark_settings(QuerySparkSettings(config=opened)), scratch=tmp_path)
    assert [name for name, value in opened.items() if config[name] == value] == ["spark.executor.memory"]


@pytest.mark.parametrize("name", ["spark.sql.catalog.x", "spark.sql.extensions", "spark.plugins"])
def test_catalogs_and_extensions_are_refused(name: str):
    with pytest.raises(Misconfigured) as refused:
        to_spark_settings(QuerySparkSettings(config={name: "x"}))
    assert refused.value.details["field"] == f"query.spark.config.{name}"


MASTERS = {
    "local": "local[1,3]",
    "local[*]": "local[*,3]",
    "local[2]": "local[2,3]",
    "local[4,9]": "local[4,3]",
    "spark://h:7077": "spark://h:7077",
}


@pytest.mark.parametrize("master", MASTERS)
def test_fragments_are_tried_again_with_every_master(master: str):
    settings = to_spark_settings(QuerySparkSettings(master=master, fragment_retries=2))
    assert settings.master == MASTERS[master]
    assert settings.config["spark.task.maxFailures"] == "3"


def test_a_plan_shows_views_and_nothing_of_how_they_are_read(sparks: Sparks):
    given = relation("cyn_0", {"id": LONG}, [{"id": 1}])
    query = statement("SELECT id + 1 FROM cyn_0 WHERE id > 7", given)
    plan = sparks.loop.run(sparks.engine.explain(query))
    assert "Scan cyn_0" in plan
    assert "(id#" in plan
    for hidden in (
        "RDD",
        "MapInArrow",
        "sizeInBytes",
        "Statistics",
        given.fragments[0].fragment_id,
        "127.0.0.1",
    ):
        assert hidden not in plan


def test_the_drivers_command_line_and_files_hold_no_token(sparks: Sparks):
    given = relation("cyn_0", {"id": LONG}, [{"id": 1}])
    sparks.rows("SELECT id FROM cyn_0", given)
    driver = sparks.engine.driver
    assert driver is not None
    assert driver.scratch.stat().st_mode & 0o077 == 0
    assert driver.pid
    line = Path(f"/proc/{driver.pid}/cmdline").read_text()
    assert given.fragments[0].fragment_id not in line
    for found in driver.scratch.rglob("*"):
        if found.is_file():
            assert given.fragments[0].fragment_id.encode() not in found.read_bytes()


def test_errors_of_the_driver_are_ours(sparks: Sparks):
    with pytest.raises(CynosureError):
        sparks.loop.run(run_job(sparks, "no-such-job", {}))
