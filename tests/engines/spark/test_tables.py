"""Spark creates, alters, names and drops tables of ours."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.engines.spark.conftest import Sql

ROWS = [(1, "a"), (2, "b"), (3, "c")]


def properties(sql: Sql, table: str) -> dict[str, str]:
    return {str(key): str(value) for key, value in sql(f"SHOW TBLPROPERTIES {table}")}


def test_a_created_table_has_what_was_asked_for(sql: Sql, name: str):
    sql(f"""
        CREATE TABLE {name} (id BIGINT NOT NULL COMMENT 'the key', data STRING, at TIMESTAMP,
                             place STRUCT<street: STRING, number: INT>,
                             tags ARRAY<STRING>, m MAP<STRING, DOUBLE>)
        USING iceberg PARTITIONED BY (days(at), bucket(4, id), truncate(2, data))
        COMMENT 'all kinds' TBLPROPERTIES ('owner.team' = 'x', 'write.format.default' = 'parquet')
    """)

    described = {row[0]: row[1] for row in sql(f"DESCRIBE EXTENDED {name}")}
    assert described["id"] == "bigint"
    assert described["place"] == "struct<street:string,number:int>"
    assert described["Comment"] == "all kinds"
    assert described["Part 0"] == "days(at)"
    assert described["Part 1"] == "bucket(4, id)"
    assert properties(sql, name)["owner.team"] == "x"
    sql(
        f"INSERT INTO {name} VALUES (1, 'abc', TIMESTAMP '2026-01-02 03:04:05', named_struct('street', 's', "
        "'number', 7), array('x', 'y'), map('k', 1.5D))"
    )
    assert sql(f"SELECT id, place.number, tags[1], m['k'], date_format(at, 'yyyy-MM-dd HH') FROM {name}") == [
        (1, 7, "y", 1.5, "2026-01-02 03")
    ]


def test_inserts_add_and_insert_overwrite_replaces(sql: Sql, table: str):
    sql(f"INSERT INTO {table} SELECT id + 10, upper(data) FROM {table} WHERE id < 3")
    assert sql(f"SELECT * FROM {table} ORDER BY id") == [*ROWS, (11, "A"), (12, "B")]

    sql(f"INSERT OVERWRITE {table} VALUES (7, 'z')")
    assert sql(f"SELECT * FROM {table}") == [(7, "z")]


def test_create_table_as_select_appears_with_its_rows(sql: Sql, table: str, name: str):
    copy = f"{name}_copy"
    sql(f"CREATE TABLE {copy} USING iceberg PARTITIONED BY (data) AS SELECT * FROM {table} WHERE id > 1")

    assert sql(f"SELECT * FROM {copy} ORDER BY id") == ROWS[1:]
    assert sql(f"SELECT count(*) FROM {copy}.snapshots") == [(1,)]


def test_a_failed_create_table_as_select_leaves_no_table(sql: Sql, table: str, namespace: str, name: str):
    with pytest.raises(Exception, match="on purpose"):
        sql(
            f"CREATE TABLE {name}_x USING iceberg AS "
            f"SELECT CAST(raise_error('on purpose') AS INT) AS id FROM {table}"
        )

    assert f"{name}_x".rsplit(".", maxsplit=1)[1] not in {
        row[1] for row in sql(f"SHOW TABLES IN c.{namespace}")
    }


def test_replace_table_as_select_keeps_the_history(sql: Sql, table: str):
    before = sql(f"SELECT snapshot_id FROM {table}.snapshots")
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('kept' = 'k')")

    sql(f"REPLACE TABLE {table} USING iceberg PARTITIONED BY (other) AS SELECT id AS other FROM {table}")

    assert sql(f"SELECT * FROM {table} ORDER BY other") == [(1,), (2,), (3,)]
    assert sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at LIMIT 1") == before
    assert sql(f"SELECT * FROM {table} VERSION AS OF {before[0][0]} ORDER BY id") == ROWS
    assert properties(sql, table)["kept"] == "k"


def test_create_or_replace_makes_a_table_and_replaces_it(sql: Sql, name: str):
    sql(f"CREATE OR REPLACE TABLE {name} (id INT) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1)")
    sql(f"CREATE OR REPLACE TABLE {name} (data STRING) USING iceberg TBLPROPERTIES ('a' = 'b')")
    assert sql(f"SELECT * FROM {name}") == []
    assert [row[:2] for row in sql(f"DESCRIBE {name}")] == [("data", "string")]

    sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT 5 AS five")
    assert sql(f"SELECT * FROM {name}") == [(5,)]


def test_columns_are_added_renamed_moved_widened_and_dropped(sql: Sql, name: str):
    sql(f"CREATE TABLE {name} (id INT, data STRING, gone FLOAT, place STRUCT<a: INT>) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1, 'a', 1.5, named_struct('a', 1))")

    for change in (
        "ADD COLUMNS (size INT COMMENT 'in metres' AFTER id, place.b STRING)",
        "RENAME COLUMN data TO title",
        "ALTER COLUMN id TYPE BIGINT",
        "ALTER COLUMN gone TYPE DOUBLE",
        "ALTER COLUMN title FIRST",
        "DROP COLUMN gone",
    ):
        sql(f"ALTER TABLE {name} {change}")

    assert [row[:2] for row in sql(f"DESCRIBE {name}")] == [
        ("title", "string"),
        ("id", "bigint"),
        ("size", "int"),
        ("place", "struct<a:int,b:string>"),
    ]
    assert sql(f"SELECT title, id, size, place.a, place.b FROM {name}") == [("a", 1, None, 1, None)]


def test_partitions_evolve_and_old_rows_stay_readable(sql: Sql, name: str):
    sql(f"CREATE TABLE {name} (id BIGINT, data STRING, at TIMESTAMP) USING iceberg")
    sql(f"INSERT INTO {name} VALUES (1, 'a', TIMESTAMP '2026-01-01 10:00:00')")
    sql(f"ALTER TABLE {name} ADD PARTITION FIELD days(at) AS day")
    sql(f"INSERT INTO {name} VALUES (2, 'b', TIMESTAMP '2026-01-02 10:00:00')")
    sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD day WITH hours(at) AS hour")
    sql(f"INSERT INTO {name} VALUES (3, 'c', TIMESTAMP '2026-01-03 10:00:00')")
    sql(f"ALTER TABLE {name} DROP PARTITION FIELD hour")
    sql(f"ALTER TABLE {name} WRITE ORDERED BY data DESC, id")
    sql(f"INSERT INTO {name} VALUES (4, 'd', NULL)")

    assert sql(f"SELECT id, data FROM {name} WHERE at > '2026-01-01 12:00:00' ORDER BY id") == [
        (2, "b"),
        (3, "c"),
    ]
    assert sql(f"SELECT count(*), count(at) FROM {name}") == [(4, 3)]
    assert sql(f"SELECT count(DISTINCT spec_id) FROM {name}.files")[0][0] >= 3
    assert properties(sql, name)["sort-order"] == "data DESC NULLS LAST, id ASC NULLS FIRST"


def test_properties_are_set_and_unset(sql: Sql, table: str):
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'ä', 'b' = '2')")
    sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('b')")

    found = properties(sql, table)
    assert (found.get("a"), found.get("b")) == ("ä", None)


def test_a_renamed_table_keeps_its_rows(sql: Sql, namespace: str, table: str):
    sql(f"ALTER TABLE {table} RENAME TO {namespace}.renamed")

    assert sql(f"SELECT * FROM c.{namespace}.renamed ORDER BY id") == ROWS
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"SELECT * FROM {table}")
    sql(f"DROP TABLE c.{namespace}.renamed")


@pytest.mark.parametrize("purge", ["", "PURGE"])
def test_a_dropped_table_is_gone(sql: Sql, namespace: str, table: str, purge: str):
    sql(f"DROP TABLE {table} {purge}")

    assert table.rsplit(".", maxsplit=1)[1] not in {row[1] for row in sql(f"SHOW TABLES IN c.{namespace}")}
    sql(f"DROP TABLE IF EXISTS {table}")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql(f"DROP TABLE {table}")
    # The name is free again.
    sql(f"CREATE TABLE {table} (id INT) USING iceberg")
    assert sql(f"SELECT * FROM {table}") == []


def test_namespaces_nest_have_properties_and_refuse_to_go_while_in_use(sql: Sql, namespace: str):
    top = f"c.{namespace}.top"
    sql(f"CREATE NAMESPACE {top} COMMENT 'first' WITH PROPERTIES ('owner.team' = 'x')")
    for child in ("a", "b", "d"):
        sql(f"CREATE NAMESPACE {top}.{child}")
    sql(f"CREATE TABLE {top}.b.t USING iceberg AS SELECT 1 AS one")

    assert sorted(sql(f"SHOW NAMESPACES IN {top}")) == [
        (f"{namespace}.top.{child}",) for child in ("a", "b", "d")
    ]
    assert sql(f"SELECT * FROM {top}.b.t") == [(1,)]
    sql(f"ALTER NAMESPACE {top} SET PROPERTIES ('added' = 'y')")
    described = dict(sql(f"DESCRIBE NAMESPACE EXTENDED {top}"))
    assert described["Comment"] == "first"
    assert "(added,y)" in described["Properties"]
    with pytest.raises(Exception, match=r"(?i)not empty"):
        sql(f"DROP NAMESPACE {top}.b")
    sql(f"DROP TABLE {top}.b.t")
    for child in ("a", "b", "d"):
        sql(f"DROP NAMESPACE {top}.{child}")
    sql(f"DROP NAMESPACE {top}")
    assert (f"{namespace}.top",) not in sql(f"SHOW NAMESPACES IN c.{namespace}")


@pytest.mark.parametrize(
    "odd", ["with.dot", "with space", "naïve-Ω-表", "100%", "a+b&c=d?", "with/slash", "Ünï'q"]
)
def test_odd_names_work_for_namespaces_tables_and_columns(sql: Sql, namespace: str, odd: str):
    space = f"c.{namespace}.`{odd}`"
    sql(f"CREATE NAMESPACE {space}")
    sql(f"CREATE TABLE {space}.`{odd}` (`{odd}` INT) USING iceberg")
    sql(f"INSERT INTO {space}.`{odd}` VALUES (1)")

    assert sql(f"SELECT `{odd}` FROM {space}.`{odd}`") == [(1,)]
    assert [row[1] for row in sql(f"SHOW TABLES IN {space}")] == [odd]
    sql(f"DROP TABLE {space}.`{odd}`")
    sql(f"DROP NAMESPACE {space}")


def test_a_long_list_of_tables_comes_whole(spark: SparkSession, sql: Sql, namespace: str):
    sql(f"CREATE NAMESPACE c.{namespace}.many")
    for number in range(5):
        sql(f"CREATE TABLE c.{namespace}.many.t{number} (id INT) USING iceberg")

    assert [row[1] for row in sql(f"SHOW TABLES IN c.{namespace}.many")] == [
        f"t{number}" for number in range(5)
    ]
