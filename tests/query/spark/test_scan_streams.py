"""Streams between scans in Spark's Python workers and the broker: what plans do to them."""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from cynosure.common.errors import CynosureError
from cynosure.iceberg.types import LONG, STRING
from cynosure.query.broker.broker import Broker
from cynosure.query.broker.runtime import Outcome, TaskRow
from cynosure.query.engine import Relation, RelationColumn
from cynosure.testing.scan_kit import reference, task_from_arrow
from tests.query.spark.world import Sparks, relation

HALVES = ([{"n": number} for number in range(0, 1_000, 2)], [{"n": number} for number in range(1, 1_000, 2)])


def fresh_view() -> str:
    """One that the broker has not heard of: it remembers what ended, of a first try too."""
    return f"cyn_{random.randrange(1_000, 10**9)}"


def streams_of(broker: Broker, view: str) -> list[TaskRow]:
    return [row for row in broker.runtime.tasks() if row.relation == f"c.ns.{view}"]


def wait_for(is_so: Callable[[], object]) -> None:
    until_s = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def ended_streams(broker: Broker, view: str) -> list[TaskRow]:
    """Rows may come before the broker has heard that they were the last ones."""
    wait_for(lambda: all(each.outcome is not Outcome.RUNNING for each in streams_of(broker, view)))
    return streams_of(broker, view)


def governed(directory: Path, view: str, *, files: int = 4) -> Relation:
    """Files of people of whom only some are for this user, and whose names are not."""
    people = pa.table({"id": list(range(100)), "name": [f"person-{number}" for number in range(100)]})
    tasks = []
    for half in range(2):
        tasks.append(
            task_from_arrow(
                directory / str(half),
                people.slice(50 * half, 50),
                files=files,
                row_filter=reference("gt-eq", 1, 40),
                masks={"name": "replace-with-null"},
                fragment_id=f"{view}-{half}",
            )
        )
    columns = (RelationColumn("id", LONG), RelationColumn("name", STRING))
    return Relation(view, f"c.ns.{view}", columns, tuple(tasks))


@pytest.mark.parametrize(
    ("sql", "row"),
    [
        ("WITH c AS (SELECT n FROM {}) SELECT count(*) FROM c x JOIN c y ON x.n = y.n + 1", 999),
        ("SELECT sum(n) FROM (SELECT n FROM {0} UNION ALL SELECT n FROM {0})", 999_000),
        ("SELECT count(*) FROM {0} WHERE n > (SELECT avg(n) FROM {0})", 500),
    ],
    ids=["cte", "union", "subquery"],
)
def test_a_relation_that_a_plan_reads_in_two_places_fences_nobody(
    sparks: Sparks, spark_broker: Broker, sql: str, row: int
) -> None:
    view = fresh_view()
    rows = sparks.rows(sql.format(view), relation(view, {"n": LONG}, *HALVES))

    assert rows == [(row,)]
    streams = ended_streams(spark_broker, view)
    assert len(streams) >= 2
    assert {each.outcome for each in streams} == {Outcome.DONE}
    # The driver's own name for itself: both ways to hear of an executor are one worker.
    assert {each.worker.rpartition("/")[2] for each in streams} == {"driver"}


def test_a_limit_is_no_failure_and_leaves_no_stream(sparks: Sparks, spark_broker: Broker) -> None:
    many = pa.Table.from_batches(pa.table({"n": range(1_000_000)}).to_batches(max_chunksize=4_000))

    view = fresh_view()
    table = sparks.table(f"SELECT n FROM {view} LIMIT 3", relation(view, {"n": LONG}, many, many))

    assert table.num_rows == 3
    assert Outcome.FAILED not in {each.outcome for each in ended_streams(spark_broker, view)}


def test_files_are_governed_before_spark_sees_a_row(
    sparks: Sparks, spark_broker: Broker, tmp_path: Path
) -> None:
    view = fresh_view()
    rows = sparks.rows(
        f"SELECT count(*), min(id), count(name) FROM {view}",
        governed(tmp_path, view),
        columns=("a", "b", "c"),
    )

    assert rows == [(60, 40, 0)]
    assert sum(each.files for each in ended_streams(spark_broker, view)) == 8


def test_a_scan_that_fails_says_why_and_not_where(
    sparks: Sparks, spark_broker: Broker, tmp_path: Path
) -> None:
    view = fresh_view()
    broken = governed(tmp_path, view)
    for file in tmp_path.rglob("*-3.parquet"):
        file.write_bytes(b"PAR1 the-hidden-value PAR1")

    with pytest.raises(CynosureError) as raised:
        sparks.rows(f"SELECT count(*) FROM {view}", broken)

    assert type(raised.value).__name__ == "NotReadable"
    assert str(tmp_path) not in str(raised.value)
    assert "hidden" not in str(raised.value)
    assert Outcome.FAILED in {each.outcome for each in ended_streams(spark_broker, view)}
