"""What we use of the inside of Spark and Iceberg: new versions of them are held to it here."""

import uuid
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from cynosure.common.errors import Misconfigured
from cynosure.query.engine import Relation
from cynosure.query.scan_task import Credentials
from cynosure.query.settings import QuerySettings, QuerySparkSettings
from cynosure.query.spark import engine as engine_module
from cynosure.query.spark.engine import LEAVES, SparkEngine, to_leaf
from cynosure.query.spark.jobs import QueryOrder
from cynosure.query.spark.leaf import LeafContext
from cynosure.query.spark.native_table import NativeAnswers
from cynosure.testing.scan_kit import reference, task_from_arrow
from tests.query.spark.native.world import to_relation
from tests.query.spark.world import CLOCK, Sparks


def look_inside(natives: Sparks, relation: Relation) -> dict[str, Any]:
    order = QueryOrder(
        "", (to_leaf(relation, {}, is_native=True),), LeafContext("test", "", ""), LEAVES["native"]
    )

    async def run() -> dict[str, Any]:
        async with natives.engine._drivers.use() as driver:
            return await driver.run(
                "test-inner",
                msgspec.to_builtins(order),
                task_id=uuid.uuid4().hex,
                description="test",
                questions=NativeAnswers((relation,), CLOCK).answer,
            )

    return natives.loop.run(run())


def test_the_inner_plan_and_the_barrier(natives: Sparks, tmp_path: Path):
    """If this fails, Spark or Iceberg changed inside: use query.spark.scan=isolated until it is adapted."""
    table = pa.table({"id": pa.array(range(100), pa.int64()), "name": [f"n{at}" for at in range(100)]})
    task = task_from_arrow(
        tmp_path,
        table,
        columns=["name"],
        row_filter=reference("eq", 2, "zebra-constant"),
        predicates=reference("lt", 1, 50),
    )
    found = look_inside(natives, to_relation(task, tmp_path))
    # Iceberg's reader is used, with the filter to choose files; Spark looks at every row all the same.
    assert "BatchScan" in found["text"]
    assert "zebra-constant" in found["text"]
    assert "Filter" in found["text"]
    assert "Adaptive" not in found["text"]
    # A control for what tests of secrets search: here is the constant, and not in the leaf.
    assert "zebra-constant" in found["optimized"]
    assert found["leaf"] == "org.apache.spark.sql.execution.LogicalRDD"
    assert found["constraints"] == 0
    assert found["inner"]["spark.sql.caseSensitive"] == "true"
    assert found["inner"]["spark.sql.session.timeZone"] == "UTC"
    assert not [name for name in found["inner"] if name.startswith("spark.sql.catalog.")]


def test_what_executors_get_of_the_plan_holds_no_settings(natives: Sparks, tmp_path: Path):
    """Settings of a session are in an RDD that is made otherwise (`toRdd`)."""
    relation = to_relation(task_from_arrow(tmp_path, pa.table({"id": [1]})), tmp_path)
    content = bytes.fromhex(look_inside(natives, relation)["serialized"])
    assert b"MapPartitionsRDD" in content
    assert b"spark.sql.caseSensitive" not in content


CASTS = {
    "s > 5": True,
    "s IN (5, 6)": True,
    "s BETWEEN 1 AND 9": True,
    "i > 5L": True,
    "i = 1.5": True,
    "st.x = 5L": True,
    "CAST(i AS STRING) = 'a' OR s = 'a'": True,
    "s = 'a' AND i IN (CAST(5L AS INT)) AND st.x = CAST(5L AS INT)": False,
    "s = CAST(5 AS STRING) OR isnan(CAST('1' AS DOUBLE))": False,
    "upper(s) = 'A'": True,
}


def test_casts_of_columns_and_functions_are_found(natives: Sparks):
    async def run() -> dict[str, Any]:
        async with natives.engine._drivers.use() as driver:
            return await driver.run(
                "test-casts",
                {"conditions": list(CASTS)},
                task_id=uuid.uuid4().hex,
                description="test",
                questions=NativeAnswers((), CLOCK).answer,
            )

    refused = natives.loop.run(run())["refused"]
    assert refused == [[text, "NotReadable"] for text, is_cast in CASTS.items() if is_cast]


def test_another_version_of_spark_is_refused(natives: Sparks, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine_module, "version", lambda _: "4.2.0")
    settings = QuerySettings(spark=QuerySparkSettings(scan="native"))
    engine = SparkEngine(settings, natives.engine._broker, CLOCK)
    with pytest.raises(Misconfigured) as refused:
        natives.loop.run(engine.start())
    assert refused.value.details["field"] == "query.spark.scan"
    assert "isolated" in refused.value.fix


def test_a_driver_is_told_credentials_of_views_only(natives: Sparks, tmp_path: Path):
    """Those that end soon are renewed first: a running scan cannot get others."""
    task = task_from_arrow(tmp_path, pa.table({"id": [1]}))
    soon = Credentials(1, {"a": "old"}, CLOCK.now_us() // 1000 + 60_000)
    late = Credentials(1, {"a": "old"}, CLOCK.now_us() // 1000 + 3_600_000)

    async def renew() -> Credentials:
        return Credentials(2, {"a": "new"})

    def ask(what: str, view: str, credentials: Credentials) -> Any:
        given = msgspec.structs.replace(task, credentials=credentials)
        relation = msgspec.structs.replace(to_relation(given, tmp_path), renew=renew)
        return natives.loop.run(NativeAnswers((relation,), CLOCK).answer(what, view))

    assert ask("credentials", "cyn_0", late)["properties"] == {"a": "old"}
    assert ask("credentials", "cyn_0", soon)["properties"] == {"a": "new"}
    for what, view in (("credentials", "cyn_1"), ("token", "cyn_0")):
        with pytest.raises(Misconfigured):
            ask(what, view, late)
