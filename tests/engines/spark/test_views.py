"""Spark keeps views in catalogs of ours."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tests.engines.spark.conftest import Sql


@pytest.fixture
def view(name: str) -> str:
    return f"{name}_view"


def test_a_view_is_created_replaced_described_and_dropped(sql: Sql, namespace: str, table: str, view: str):
    sql(f"""
        CREATE VIEW {view} (number COMMENT 'the key', word) COMMENT 'first' TBLPROPERTIES ('owner.team' = 'x')
        AS SELECT id, upper(data) FROM {table} WHERE id > 1
    """)
    assert sql(f"SELECT * FROM {view} ORDER BY number") == [(2, "B"), (3, "C")]
    described = {row[0]: row[1:] for row in sql(f"DESCRIBE EXTENDED {view}")}
    assert described["number"] == ("bigint", "the key")
    assert described["Comment"][0] == "first"
    with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
        sql(f"CREATE VIEW {view} AS SELECT 1 AS one")
    sql(f"CREATE VIEW IF NOT EXISTS {view} AS SELECT 1 AS one")

    sql(f"CREATE OR REPLACE VIEW {view} AS SELECT count(*) AS n FROM {table}")
    assert sql(f"SELECT * FROM {view}") == [(3,)]

    sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('a' = 'b')")
    assert dict(sql(f"SHOW TBLPROPERTIES {view}"))["a"] == "b"
    sql(f"ALTER VIEW {view} UNSET TBLPROPERTIES ('a')")
    assert "a" not in dict(sql(f"SHOW TBLPROPERTIES {view}"))
    last = view.rsplit(".", maxsplit=1)[1]
    assert last in {row[1] for row in sql(f"SHOW VIEWS IN c.{namespace}")}
    assert "count(*) AS n" in sql(f"SHOW CREATE TABLE {view}")[0][0]

    sql(f"DROP VIEW {view}")
    assert last not in {row[1] for row in sql(f"SHOW VIEWS IN c.{namespace}")}
    sql(f"DROP VIEW IF EXISTS {view}")
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        sql(f"SELECT * FROM {view}")


def test_a_view_follows_its_table_and_another_view(sql: Sql, table: str, view: str):
    sql(f"CREATE VIEW {view} AS SELECT id FROM {table}")
    sql(f"CREATE VIEW {view}_2 AS SELECT max(id) AS top FROM {view}")

    sql(f"INSERT INTO {table} VALUES (9, 'z')")

    assert sql(f"SELECT * FROM {view}_2") == [(9,)]


def test_a_renamed_view_keeps_its_text(sql: Sql, namespace: str, view: str):
    sql(f"CREATE VIEW {view} AS SELECT 7 AS seven")

    sql(f"ALTER VIEW {view} RENAME TO c.{namespace}.renamed_view")

    assert sql(f"SELECT * FROM c.{namespace}.renamed_view") == [(7,)]
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        sql(f"SELECT * FROM {view}")


def test_a_table_and_a_view_cannot_share_a_name(sql: Sql, table: str, view: str):
    sql(f"CREATE VIEW {view} AS SELECT 1 AS one")

    with pytest.raises(Exception, match=r"(?i)already exists|ALREADY_EXISTS|is a view"):
        sql(f"CREATE TABLE {view} (id INT) USING iceberg")
    with pytest.raises(Exception, match=r"(?i)already exists|ALREADY_EXISTS|is a table|not a view"):
        sql(f"CREATE VIEW {table} AS SELECT 1 AS one")


def test_names_in_a_view_are_resolved_where_it_was_made(
    spark: SparkSession, sql: Sql, namespace: str, table: str, view: str
):
    session = spark.newSession()
    sql(f"USE c.{namespace}", session)
    sql(f"CREATE VIEW {view} AS SELECT count(*) AS n FROM {table.rsplit('.', maxsplit=1)[1]}", session)

    assert sql(f"SELECT * FROM {view}", spark.newSession()) == [(3,)]
