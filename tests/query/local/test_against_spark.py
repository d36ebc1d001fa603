"""The local engine answers as Spark does, on the same rows: values, types and failures (I109).

What is in the common subset is what these texts cover. Many expressions share one statement, because a
statement of Spark costs more than an expression.
"""

import asyncio
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.query.errors import QueryFailed
from cynosure.query.local.engine import LocalEngine
from tests.query.local.comparing import explain_difference
from tests.query.local.generating import make_expressions, make_queries
from tests.query.local.spark_side import SparkFailed, SparkSide
from tests.query.local.tpch import QUERIES
from tests.query.local.world import Tables, collect, make_query
from tests.query.sql.test_moments import moment

pytestmark = pytest.mark.timeout(600)
HERE = Path(__file__).parent
AT_ONCE = 40
IS_SOAK = "CYNOSURE_SOAK_GOVERNED" in os.environ
COUNT = 280 if IS_SOAK else 140
"""Expressions by chance."""
TPCH = QUERIES if IS_SOAK else [path for at, path in enumerate(QUERIES) if at % 4 in (0, 3)]
"""`tests/query/differential` runs the others on Spark."""


def read_lines(name: str) -> list[str]:
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [each for each in lines if each.strip() and not each.startswith("#")]


def answer(engine: LocalEngine, sql: str, tables: Tables) -> pa.Table:
    return asyncio.run(collect(engine, make_query(sql, tables)))


def compare_all(engine: LocalEngine, spark: SparkSide, tables: Tables, expressions: list[str]) -> list[str]:
    """What differs, one line per expression."""
    wrong = []
    for start in range(0, len(expressions), AT_ONCE):
        some = expressions[start : start + AT_ONCE]
        sql = f"select {', '.join(some)}, id from v order by id"
        local, theirs = answer(engine, sql, tables), spark.run(sql)
        for place, text in enumerate(some):
            difference = explain_difference(local.select([place]), theirs.select([place]))
            if difference:
                wrong.append(f"{text}: {difference}")
    return wrong


def test_expressions(engine: LocalEngine, spark_side: SparkSide, tables: Tables) -> None:
    assert not compare_all(engine, spark_side, tables, read_lines("expressions.txt"))


def test_generated_expressions(engine: LocalEngine, spark_side: SparkSide, tables: Tables) -> None:
    expressions = make_expressions(
        lambda text: engine.find_reason_against(make_query(f"select {text} from v", tables)) is None, COUNT
    )
    assert len(expressions) >= COUNT * 5 // 7
    assert not compare_all(engine, spark_side, tables, expressions)


QUERIES_IN_ALL = read_lines("queries.txt") + make_queries(24 if IS_SOAK else 12)
PARTS = 5


@pytest.mark.parametrize("part", range(PARTS))
def test_queries(part: int, engine: LocalEngine, spark_side: SparkSide, tables: Tables) -> None:
    wrong = []
    for sql in QUERIES_IN_ALL[part::PARTS]:
        difference = explain_difference(
            answer(engine, sql, tables), spark_side.run(sql), is_ordered="order by" in sql
        )
        if difference:
            wrong.append(f"{sql}: {difference}")
    assert not wrong


@pytest.mark.parametrize(
    "sql",
    [
        "select x, count(*) from v group by x",
        "select x * 2 as r, count(*) from v group by x * 2",
        "select x, sum(id) from v group by cube(x)",
        "select distinct x, f from v",
        "select x from v union select x from v",
        "select x from v intersect select x from v",
        "select x from v except select y from v",
        "select x from v union all select x from v",
    ],
)
def test_zeros_of_keys(sql: str, engine: LocalEngine, spark_side: SparkSide, tables: Tables) -> None:
    """Both zeros are one key, and it is the one without a sign."""
    ours, theirs = (
        sorted(map(repr, each.to_pylist())) for each in (answer(engine, sql, tables), spark_side.run(sql))
    )
    assert ours == theirs


def test_failures(engine: LocalEngine, spark_side: SparkSide, tables: Tables) -> None:
    for text in read_lines("failures.txt"):
        sql = text if text.startswith("select") else f"select {text} from v"
        with pytest.raises(SparkFailed) as theirs:
            spark_side.run(sql)
        with pytest.raises(QueryFailed) as ours:
            answer(engine, sql, tables)
        assert ours.value.condition == theirs.value.condition, text


def test_moments_of_time_travel(spark_side: SparkSide) -> None:
    now = "TIMESTAMP '2026-03-01 05:06:07.891234Z'"
    values = (
        ("unix_timestamp()", "1772341567"),
        ("current_timestamp()", now),
        ("current_timestamp", now),
        ("now()", now),
        ("localtimestamp()", "TIMESTAMP_NTZ '2026-03-01 05:06:07.891234'"),
        ("localtimestamp", "TIMESTAMP_NTZ '2026-03-01 05:06:07.891234'"),
        ("current_date()", "DATE '2026-03-01'"),
        ("curdate()", "DATE '2026-03-01'"),
        ("current_date", "DATE '2026-03-01'"),
    )
    lines = read_lines("../sql/moments.txt")
    names = re.compile("|".join(re.escape(name) for name, _ in values))
    casts = [f"CAST({names.sub(lambda found: dict(values)[found[0]], line)} AS TIMESTAMP)" for line in lines]
    answers = [each[0].as_py() for each in spark_side.run(f"SELECT {', '.join(casts)}").columns]
    wrong = [
        f"{line}: {their} and not {moment(line)}"
        for line, their in zip(lines, answers, strict=True)
        if their.isoformat()[:-6] != moment(line)
    ]
    assert not wrong


@pytest.mark.parametrize("path", TPCH, ids=lambda path: path.stem)
def test_tpch(path: Path, engine: LocalEngine, spark_side: SparkSide, tables: Tables) -> None:
    sql = path.read_text(encoding="utf-8")
    local, theirs = answer(engine, sql, tables), spark_side.run(sql)
    assert explain_difference(local, theirs) is None
