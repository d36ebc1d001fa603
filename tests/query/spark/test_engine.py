"""Statements on Spark, end to end: broker, workers, driver, socket."""

import asyncio
import os
import signal
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from cynosure.query.engine import FragmentReport
from cynosure.query.errors import DeadlinePassed, EngineUnavailable, QueryFailed, SqlError
from tests.query.spark.test_protection import run_job
from tests.query.spark.world import Sparks, counted, first, relation, statement

PEOPLE = relation(
    "cyn_0",
    {"id": LONG, "name": STRING},
    [{"id": 1, "name": "anna"}, {"id": 2, "name": "bert"}],
    [{"id": 3, "name": None}],
)
PAID = relation(
    "cyn_1",
    {"who": LONG, "amount": LONG},
    [{"who": 1, "amount": 7}, {"who": 1, "amount": 5}, {"who": 2, "amount": 0}],
)
EMPTY = relation("cyn_2", {"who": LONG, "text": STRING})

STATEMENTS = {
    "order": ("SELECT id, name FROM cyn_0 ORDER BY id", [(1, "anna"), (2, "bert"), (3, None)]),
    "join": (
        "SELECT name, sum(amount) FROM cyn_0 JOIN cyn_1 ON id = who GROUP BY name ORDER BY name",
        [("anna", 12), ("bert", 0)],
    ),
    "outer join": (
        "SELECT id, amount FROM cyn_0 LEFT JOIN cyn_1 ON id = who WHERE id > 1 ORDER BY id",
        [(2, 0), (3, None)],
    ),
    "self join": (
        "SELECT a.id, b.id FROM cyn_0 a JOIN cyn_0 b ON a.id = b.id + 1 ORDER BY 1",
        [(2, 1), (3, 2)],
    ),
    "window": (
        "SELECT amount, row_number() OVER (PARTITION BY who ORDER BY amount) FROM cyn_1 WHERE who = 1 "
        "ORDER BY 1",
        [(5, 1), (7, 2)],
    ),
    "a CTE that is used twice": (
        "WITH x AS (SELECT * FROM cyn_1 WHERE amount > 0) "
        "SELECT count(*), (SELECT max(amount) FROM x) FROM x JOIN x y ON x.amount = y.amount",
        [(2, 7)],
    ),
    "scalar subquery": ("SELECT id, (SELECT sum(amount) FROM cyn_1) FROM cyn_0 WHERE id = 1", [(1, 12)]),
    "correlated": (
        "SELECT id, name FROM cyn_0 WHERE EXISTS (SELECT 1 FROM cyn_1 WHERE who = id AND amount > 6)",
        [(1, "anna")],
    ),
    "not in": ("SELECT id, name FROM cyn_0 WHERE id NOT IN (SELECT who FROM cyn_1)", [(3, None)]),
    "union": (
        "SELECT id, name FROM cyn_0 WHERE id = 1 "
        "UNION ALL SELECT amount, 'paid' FROM cyn_1 WHERE amount > 6 ORDER BY 1",
        [(1, "anna"), (7, "paid")],
    ),
    "empty relation": ("SELECT count(*), max(text) FROM cyn_2", [(0, None)]),
    "join with an empty one": ("SELECT id, text FROM cyn_0 JOIN cyn_2 ON id = who", []),
    "pivot": (
        "SELECT * FROM (SELECT who, amount FROM cyn_1) PIVOT (sum(amount) FOR who IN (1 AS one, 2 AS two))",
        [(12, 0)],
    ),
    "lateral": ("SELECT id, z FROM cyn_0, LATERAL (SELECT id + 10 AS z) WHERE id = 1", [(1, 11)]),
    "no table": ("SELECT 1, 'x'", [(1, "x")]),
    "limit": ("SELECT 1, 2 FROM cyn_0 LIMIT 1", [(1, 2)]),
    "texts": ("SELECT 'it\\'s \\\\ \\n', \"ü\"", [("it's \\ \n", "ü")]),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_give_the_rows_of_spark(sparks: Sparks, name: str):
    sql, expected = STATEMENTS[name]
    assert sparks.rows(sql, PEOPLE, PAID, EMPTY, columns=("a", "b")) == expected


def test_counting_needs_no_columns(sparks: Sparks):
    assert sparks.rows("SELECT count(*) FROM cyn_0", counted("cyn_0", 3, 4)) == [(7,)]
    assert sparks.rows("SELECT count(*) FROM cyn_0", counted("cyn_0")) == [(0,)]


def test_all_types_go_through_unchanged(sparks: Sparks):
    nested = StructType(
        (
            NestedField(20, "a b", INT, False),
            NestedField(21, "items", ListType(22, DecimalType(9, 2), False), False),
            NestedField(23, "m", MapType(24, STRING, 25, TIMESTAMP, False), False),
        )
    )
    columns = {
        "bool": BOOLEAN,
        "int": INT,
        "long": LONG,
        "float": FLOAT,
        "double": DOUBLE,
        "date": DATE,
        "ntz": TIMESTAMP,
        "tz": TIMESTAMPTZ,
        "text": STRING,
        "bytes": BINARY,
        "fixed": FixedType(3),
        "uuid": UUID,
        "dec": DecimalType(38, 10),
        "nested": nested,
    }
    row = {
        "bool": True,
        "int": -(2**31),
        "long": 2**63 - 1,
        "float": 1.5,
        "double": -0.1,
        "date": date(1582, 10, 15),
        "ntz": datetime(1, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001 - it has none
        "tz": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        "text": "z\u00fc\U0001f600",
        "bytes": b"\x00\xff",
        "fixed": b"abc",
        "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        "dec": Decimal("-1234567890123456789012345678.0123456789"),
        "nested": {"a b": 1, "items": [Decimal("1.25"), None], "m": [("k", datetime(2026, 1, 1))]},  # noqa: DTZ001
    }
    given = relation("cyn_0", columns, [row, dict.fromkeys(columns)])

    names = ", ".join(f"`{name}`" for name in columns)
    found = sparks.table(f"SELECT {names} FROM cyn_0", given, columns=tuple(columns))

    assert found.to_pylist() == [row, dict.fromkeys(columns)]
    assert found.schema.field("tz").type == pa.timestamp("us", tz="UTC")
    assert found.schema.field("ntz").type == pa.timestamp("us")
    assert found.schema.field("dec").type == pa.decimal128(38, 10)


def test_columns_without_a_name_have_sparks(sparks: Sparks):
    found = sparks.table("SELECT count(*), id AS x FROM cyn_0 GROUP BY id", PEOPLE, columns=("", "x"))
    assert found.column_names == ["count(1)", "x"]


def test_fragments_are_reported(sparks: Sparks):
    reports: list[FragmentReport] = []
    sparks.table("SELECT sum(id) FROM cyn_0", PEOPLE, reports=reports)
    assert {each.fragment_id for each in reports} == {each.fragment_id for each in PEOPLE.fragments}
    assert all(each.is_success for each in reports)
    assert sum(each.rows for each in reports) == 3


FAILURES = {
    "SELECT 1 / (id - 1) FROM cyn_0": (QueryFailed, "DIVIDE_BY_ZERO"),
    "SELECT CAST(name AS INT) FROM cyn_0": (QueryFailed, "CAST_INVALID_INPUT"),
    "SELECT max(id) * 9223372036854775807 FROM cyn_0": (QueryFailed, "ARITHMETIC_OVERFLOW"),
    "SELECT raise_error(name) FROM cyn_0": (QueryFailed, "USER_RAISED_EXCEPTION"),
    "SELECT array(1)[id] FROM cyn_0": (QueryFailed, "INVALID_ARRAY_INDEX"),
    "SELECT (SELECT id FROM cyn_0) FROM cyn_0": (QueryFailed, "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
    "SELECT to_date(name, 'yyyy') FROM cyn_0": (QueryFailed, "CANNOT_PARSE_TIMESTAMP"),
    "SELECT nothing FROM cyn_0": (SqlError, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    "SELECT date_add(name, name, name) FROM cyn_0": (SqlError, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION"),
}


@pytest.mark.parametrize("sql", FAILURES)
def test_failures_say_their_condition_and_no_value(sparks: Sparks, sql: str):
    kind, condition = FAILURES[sql]
    with pytest.raises(kind) as failed:
        sparks.table(sql, PEOPLE)
    assert failed.value.details["condition"] == condition
    assert failed.value.fix or condition.startswith("USER")
    assert "anna" not in str(failed.value)
    assert "cyn_0" not in str(failed.value)


@pytest.mark.parametrize("call", ["sequence(id, id + 1, 0 * id)", "regexp_extract(name, name || '(', 0)"])
def test_values_that_java_does_not_take_are_no_failure_of_the_engine(sparks: Sparks, call: str):
    with pytest.raises(QueryFailed) as failed:
        sparks.table(f"SELECT {call} FROM cyn_0", PEOPLE)
    assert "anna" not in str(failed.value)


def test_two_statements_at_once_do_not_meet(sparks: Sparks):
    other = relation("cyn_0", {"id": STRING}, [{"id": "other"}])

    async def both() -> list[list[pa.RecordBatch]]:
        queries = [statement("SELECT id FROM cyn_0 ORDER BY id", each) for each in (PEOPLE, other)]

        async def run(at: int) -> list[pa.RecordBatch]:
            results = await sparks.engine.execute(queries[at], lambda _: None)
            return [each async for each in results.batches()]

        return list(await asyncio.gather(run(0), run(1)))

    mine, others = sparks.loop.run(both())
    assert pa.Table.from_batches(mine).column(0).to_pylist() == [1, 2, 3]
    assert pa.Table.from_batches(others).column(0).to_pylist() == ["other"]


LONG_ONE = "SELECT r.id FROM range(0, 10000000000, 1, 2000) r"


def test_a_deadline_ends_a_statement(sparks: Sparks):
    with pytest.raises(DeadlinePassed):
        sparks.table(LONG_ONE, PEOPLE, timeout_s=3.0)
    assert sparks.rows("SELECT count(*) FROM cyn_0", PEOPLE) == [(3,)]


def test_who_goes_away_ends_a_statement(sparks: Sparks):
    """The rows that nobody reads hold Spark back, and nothing of it is left."""
    query = statement(LONG_ONE, PEOPLE)

    async def read_one() -> None:
        results = await sparks.engine.execute(query, lambda _: None)
        assert (await first(results)).num_rows
        await results.close()
        await results.close()

    sparks.loop.run(read_one())
    assert sparks.rows("SELECT count(*) FROM cyn_0", PEOPLE) == [(3,)]


def test_a_slow_reader_holds_spark_back(sparks: Sparks):
    """Batches wait in Spark, not here: what the gateway holds does not grow with the result."""
    sql = "SELECT r.id, repeat('x', 1000) FROM range(0, 400000, 1, 40) r"
    query = statement(sql, PEOPLE, columns=("a", "b"))

    async def read_slowly() -> tuple[int, int]:
        results = await sparks.engine.execute(query, lambda _: None)
        rows = most = 0
        async for batch in results.batches():
            rows += batch.num_rows
            most = max(most, batch.nbytes)
            # What is not read yet waits behind the socket: its buffer and one batch are all there is here.
            assert len(results._receiver.result()._connected.result()[0]._buffer) <= 20 * 2**20
            await asyncio.sleep(0.01)
        return rows, most

    rows, most = sparks.loop.run(read_slowly())
    assert rows == 400_000
    assert most < 40 * 2**20


async def read_all(sparks: Sparks, sql: str) -> None:
    results = await sparks.engine.execute(statement(sql, PEOPLE), lambda _: None)
    async for _ in results.batches():
        pass


async def run_for(seconds: float, sparks: Sparks, sql: str) -> "asyncio.Task[None]":
    task = asyncio.create_task(read_all(sparks, sql))
    await asyncio.wait({task}, timeout=seconds)
    assert not task.done()
    return task


def test_a_statement_that_is_cancelled_frees_the_executors(sparks: Sparks):
    async def cancel() -> None:
        task = await run_for(1.0, sparks, LONG_ONE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    sparks.loop.run(cancel())
    assert sparks.rows("SELECT count(*) FROM cyn_0", PEOPLE) == [(3,)]


def test_a_dead_driver_is_a_clean_error_and_the_next_statement_has_a_new_one(sparks: Sparks):
    async def kill() -> None:
        task = await run_for(1.0, sparks, LONG_ONE)
        while sparks.engine.driver is None:  # noqa: ASYNC110 - a process starts
            await asyncio.sleep(0.05)
        assert sparks.engine.driver.pid
        os.kill(sparks.engine.driver.pid, signal.SIGKILL)
        with pytest.raises(EngineUnavailable, match="driver ended"):
            await task

    sparks.rows("SELECT 1")
    sparks.loop.run(kill())
    assert sparks.rows("SELECT count(*) FROM cyn_0", PEOPLE) == [(3,)]


def test_a_task_that_works_for_long_is_not_one_that_was_left(sparks: Sparks):
    """Else a driver would be ended in the middle of a healthy statement."""

    async def look() -> list[list[int]]:
        task = await run_for(1.0, sparks, "SELECT count(*) FROM range(0, 1000000000000000, 1, 2) r")
        seen = []
        for _ in range(8):
            seen.append((await run_job(sparks, "workers", {}))["left"])
            await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    sparks.rows("SELECT 1")
    assert sparks.loop.run(look()) == [[]] * 8


ENDLESS = {
    "a task": "SELECT max(sha2(cast(r.id AS string), 256)) FROM range(0, 100000000000) r",
    # Evaluated while it is planned: there is no job of Spark that could be cancelled.
    "a plan": "SELECT size(filter(sequence(1, 1000000), "
    "x -> exists(sequence(1, 1000000), y -> x + y = z))) FROM VALUES (0) AS t(z)",
}


@pytest.mark.skipif("CYNOSURE_SOAK" not in os.environ, reason="waits for 20 s; ./dev soak")
@pytest.mark.parametrize("kind", ENDLESS)
def test_a_driver_with_something_that_cannot_be_ended_is_replaced(sparks: Sparks, kind: str):
    """Spark does not interrupt every loop."""

    async def cancel() -> None:
        task = await run_for(3.0, sparks, ENDLESS[kind])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = sparks.engine.driver
        while sparks.engine.driver is before:  # noqa: ASYNC110 - a process ends
            await asyncio.sleep(0.2)

    sparks.rows("SELECT 1")
    sparks.loop.run(cancel())
    assert sparks.rows("SELECT count(*) FROM cyn_0", PEOPLE) == [(3,)]


def test_executors_are_known(sparks: Sparks):
    sparks.rows("SELECT count(*) FROM cyn_0", PEOPLE)

    async def wait() -> None:
        while not [each for each in await sparks.engine.workers() if each.is_healthy and each.cores == 2]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    sparks.loop.run(wait(), timeout_s=60.0)
