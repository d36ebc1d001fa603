"""Spark changes rows of ours: copy-on-write, merge-on-read, deletion vectors, row lineage, races."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.sql import SparkSession

from tests.engines.spark.conftest import Sql

MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}


def create(sql: Sql, name: str, version: int, **properties: str) -> None:
    listed = {"format-version": str(version), **properties}
    text = ", ".join(f"'{key}' = '{value}'" for key, value in listed.items())
    sql(f"CREATE TABLE {name} (id BIGINT, data STRING) USING iceberg TBLPROPERTIES ({text})")
    # One file, so that every delete hits a part of it.
    sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ id, concat('d', id) FROM range(1, 7)")


@pytest.mark.parametrize(
    ("version", "properties"),
    [(1, {}), (2, {}), (2, MERGE_ON_READ), (3, MERGE_ON_READ)],
    ids=["v1 copy-on-write", "v2 copy-on-write", "v2 merge-on-read", "v3 deletion vectors"],
)
def test_delete_update_and_merge_change_the_rows_they_name(
    sql: Sql, name: str, version: int, properties: dict[str, str]
):
    create(sql, name, version, **properties)

    sql(f"DELETE FROM {name} WHERE id IN (2, 5)")
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(1,), (3,), (4,), (6,)]

    sql(f"UPDATE {name} SET data = upper(data) WHERE id > 3")
    assert sql(f"SELECT * FROM {name} ORDER BY id") == [(1, "d1"), (3, "d3"), (4, "D4"), (6, "D6")]

    sql(f"""
        MERGE INTO {name} t
        USING (SELECT * FROM VALUES (1, 'gone'), (3, 'new'), (9, 'nine') AS v (id, data)) s ON t.id = s.id
        WHEN MATCHED AND s.data = 'gone' THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.data = s.data
        WHEN NOT MATCHED THEN INSERT *
    """)
    assert sql(f"SELECT * FROM {name} ORDER BY id") == [(3, "new"), (4, "D4"), (6, "D6"), (9, "nine")]
    expected = {1: set(), 2: {"PARQUET"} if properties else set(), 3: {"PUFFIN"}}[version]
    assert {row[0] for row in sql(f"SELECT file_format FROM {name}.delete_files")} == expected


def test_row_lineage_survives_updates(sql: Sql, name: str):
    create(sql, name, 3, **MERGE_ON_READ)
    before = dict(sql(f"SELECT id, _row_id FROM {name}"))
    assert sorted(before.values()) == list(range(6))

    sql(f"UPDATE {name} SET data = 'changed' WHERE id = 4")
    sql(f"INSERT INTO {name} VALUES (7, 'd7')")

    after = {row[0]: row[1:] for row in sql(f"SELECT id, _row_id, _last_updated_sequence_number FROM {name}")}
    assert {key: value[0] for key, value in after.items() if key < 7} == before
    assert after[7][0] not in before.values()
    assert (after[1][1], after[4][1], after[7][1]) == (1, 2, 3)


def test_a_table_goes_up_to_v3_and_its_rows_get_ids(sql: Sql, name: str):
    create(sql, name, 2, **MERGE_ON_READ)
    sql(f"DELETE FROM {name} WHERE id = 1")

    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
    sql(f"DELETE FROM {name} WHERE id = 2")

    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(3,), (4,), (5,), (6,)]
    assert sql(f"SELECT count(DISTINCT _row_id) FROM {name}") == [(4,)]


def test_v3_variants_are_written_and_read(sql: Sql, name: str):
    sql(f"CREATE TABLE {name} (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    sql(f"""INSERT INTO {name} SELECT 1, parse_json('{{"a": [1, 2]}}')""")

    assert sql(f"SELECT variant_get(v, '$.a[1]', 'int') FROM {name}") == [(2,)]


def test_appends_racing_from_two_sessions_all_arrive(spark: SparkSession, sql: Sql, name: str):
    sql(f"""
        CREATE TABLE {name} (id BIGINT, data STRING) USING iceberg TBLPROPERTIES (
            'commit.retry.num-retries' = '40', 'commit.retry.min-wait-ms' = '10',
            'commit.retry.max-wait-ms' = '50')
    """)

    def append(first: int) -> None:
        session = spark.newSession()
        for number in range(first, first + 4):
            sql(f"INSERT INTO {name} VALUES ({number}, 'x')", session)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(append, first) for first in (1, 101)]:
            done.result()

    assert [row[0] for row in sql(f"SELECT id FROM {name} ORDER BY id")] == [*range(1, 5), *range(101, 105)]
    assert sql(f"SELECT count(*), count(parent_id) FROM {name}.snapshots") == [(8, 7)]


def test_of_two_racing_updates_of_one_row_none_is_lost_silently(spark: SparkSession, sql: Sql, name: str):
    create(sql, name, 2)

    def update(word: str) -> str | None:
        try:
            sql(f"UPDATE {name} SET data = concat(data, '{word}') WHERE id = 1", spark.newSession())
        except Exception as failed:
            if "ValidationException" not in str(failed) and "CommitFailedException" not in str(failed):
                raise
            return None
        return word

    with ThreadPoolExecutor(2) as pool:
        won = [word for word in pool.map(update, ["x", "y"]) if word]

    assert won
    [(data,)] = sql(f"SELECT data FROM {name} WHERE id = 1")
    assert sorted(data.removeprefix("d1")) == sorted(won)
