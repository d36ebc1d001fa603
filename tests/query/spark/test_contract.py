"""What we use of Spark that is not its public API: a new version of Spark is held to it here."""

from typing import Any

import pyspark

from cynosure.iceberg.types import LONG, STRING
from cynosure.query.spark.opaque import make_opaque, to_rows
from cynosure.query.spark.sending import _propagate_settings
from cynosure.spark.kinds import JobLink
from tests.query.spark.test_protection import run_job
from tests.query.spark.world import Sparks, relation

SMALL, LARGE = 1_000, 10**12


def look_at_leaves(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Runs in the driver."""
    session = link.spark
    found: dict[str, Any] = {}
    for name, size in (("small", SMALL), ("large", LARGE)):
        below = session.range(3).selectExpr("id", "id + 1 AS next").where("id <> 1")
        rows = below._jdf.queryExecution().toRdd()
        leaf = make_opaque(session, rows, below._jdf.schema(), size, name)
        leaf.createTempView(name)
        plan = leaf._jdf.queryExecution().optimizedPlan()
        found[name] = {
            "class": plan.getClass().getName(),
            "size": int(str(plan.stats().sizeInBytes())),
            "constraints": int(plan.constraints().size()),
            "text": plan.toString(),
            "rows": [list(row) for row in leaf.collect()],
        }
    parser = session._jsparkSession.sessionState().sqlParser()
    joined = to_rows(session, parser.parsePlan("SELECT * FROM large JOIN small USING (id)"))
    found["plan"] = joined.queryExecution().executedPlan().toString()
    scheduler: Any = session.sparkContext._jsc.sc().taskScheduler()
    found["running"] = scheduler.runningTasksByExecutors().contains("driver")
    context: Any = session.sparkContext._jsc.sc()
    found["executors"] = int(context.getExecutorMemoryStatus().size())
    # What a stage is begun with is read from these when it is begun (`elsewhere.py`).
    context.conf().set("test.changed", "later")
    found["changed"] = context.conf().get("test.changed", "")
    return found


def tell_tasks(link: JobLink, parameters: dict[str, Any]) -> dict[str, Any]:
    """Runs in the driver."""
    session = link.spark
    session.conf.set("test.text", "a -> b\nc, d")
    session.conf.set("spark.sql.test.text", "a -> b\nc, d")
    found: dict[str, Any] = {"zones": []}
    for zone in ("Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"):
        session.conf.set("spark.sql.session.timeZone", zone)
        _propagate_settings(session.range(1))
        found["zones"].append(session.sparkContext.getLocalProperty("spark.sql.session.timeZone"))
    for name in ("spark.sql.test.text", "test.text", "spark.redaction.regex", "spark.jobGroup.id"):
        found[name] = session.sparkContext.getLocalProperty(name)
    return found


def test_spark_is_the_version_that_this_was_tested_with():
    assert pyspark.__version__.startswith("4.1."), "run all of tests/query/spark with the new version"


def test_a_leaf_is_opaque_and_has_its_size(sparks: Sparks):
    found = sparks.loop.run(run_job(sparks, "test-leaves", {}))
    for name, size in (("small", SMALL), ("large", LARGE)):
        leaf = found[name]
        assert leaf["class"] == "org.apache.spark.sql.execution.LogicalRDD"
        assert abs(leaf["size"] - size) < 8
        assert leaf["constraints"] == 0
        assert "<>" not in leaf["text"]
        assert leaf["rows"] == [[0, 1], [2, 3]]
    assert "BroadcastHashJoin" in found["plan"]
    assert (found["executors"], found["changed"]) == (1, "later")


def test_tasks_are_told_the_settings_of_sql(sparks: Sparks):
    found = sparks.loop.run(run_job(sparks, "test-settings", {}))
    assert found.pop("zones") == ["Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"]
    assert found.pop("spark.jobGroup.id")
    assert found == {
        "spark.sql.test.text": "a -> b\nc, d",
        "test.text": None,
        "spark.redaction.regex": None,
    }


def test_batches_come_in_the_order_of_the_statement(sparks: Sparks):
    given = relation(
        "cyn_0",
        {"id": LONG, "text": STRING},
        *[[{"id": at, "text": "x" * 100} for at in range(first, 20_000, 4)] for first in range(4)],
    )
    rows = sparks.rows("SELECT id FROM cyn_0 ORDER BY id DESC", given)
    assert rows == [(at,) for at in reversed(range(20_000))]
