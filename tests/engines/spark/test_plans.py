"""Spark lets us plan its scans (`scan-planning-mode=server`), and reads what it reads by itself.

On MinIO, with credentials that come with the plan, in pages of two files.
"""

from collections.abc import Iterator

import pytest
from pyiceberg.table import Table
from pyspark.sql import SparkSession

from tests.engines.planning_server import PLANNED, VENDED, PlanningLake, open_planning_lake
from tests.engines.pyiceberg_client import connect
from tests.engines.spark.conftest import Sql, configure
from tests.names import unique

pytestmark = pytest.mark.s3

IO = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}
MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
CONDITIONS = [
    "true",
    "id > 3 AND id <= 11",
    "NOT (id IN (1, 5, 9))",
    "city LIKE 'L%'",
    "city IS NULL",
    "city != 'Oslo'",
    "part.code IS NULL",
    "part.deep.number >= 40",
    "at < TIMESTAMP_NTZ '1970-01-06 00:00:00'",
    "price > 2.25 AND price < 4.75",
    "isnan(weight)",
    "day = DATE '1970-01-05' OR id = 2",
    # What the partition answers is taken out, and the rest is written again.
    "city = 'Oslo' AND raw = X'34'",
    "city = 'Oslo' AND day > DATE '1970-01-05' AND price = 2.00 AND NOT flag",
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlanningLake]:
    with open_planning_lake(tmp_path_factory.mktemp("plans")) as lake:
        yield lake


@pytest.fixture(scope="module")
def catalogs(spark: SparkSession, lake: PlanningLake) -> tuple[str, str]:
    """Two names of one catalog: Spark plans its scans itself, or we do."""
    rest = lake.served.to_rest()
    for name, more in (("alone", {}), ("planned", PLANNED)):
        for key, value in configure(rest, name, **VENDED, **IO, **more).items():
            spark.conf.set(key, value)
    spark.sql("CREATE NAMESPACE alone.ns")
    return "alone", "planned"


@pytest.fixture(scope="module", params=[1, 2, 3])
def table(request: pytest.FixtureRequest, spark: SparkSession, catalogs: tuple[str, str]) -> str:
    """Rows in several files of two partition specs, of a table whose columns have changed; some deleted."""
    version: int = request.param
    name = f"ns.v{version}"
    properties = {"format-version": str(version), **MERGE_ON_READ} if version > 1 else {"format-version": "1"}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"""
        CREATE TABLE alone.{name} (
            id BIGINT, town STRING, at TIMESTAMP_NTZ, price DECIMAL(9, 2), weight DOUBLE, day DATE,
            raw BINARY, flag BOOLEAN,
            part STRUCT<code: STRING, deep: STRUCT<number: INT>>
        ) USING iceberg PARTITIONED BY (town) TBLPROPERTIES ({listed})
    """)
    insert(spark, name, 1, 7)
    spark.sql(f"ALTER TABLE alone.{name} RENAME COLUMN town TO city")
    spark.sql(f"ALTER TABLE alone.{name} ADD PARTITION FIELD bucket(3, id)")
    spark.sql(f"ALTER TABLE alone.{name} DROP PARTITION FIELD town")
    insert(spark, name, 7, 13)
    if version > 1:
        spark.sql(f"DELETE FROM alone.{name} WHERE id IN (2, 5, 8)")
        spark.sql(f"UPDATE alone.{name} SET price = 0.25 WHERE id = 11")
    return name


def insert(spark: SparkSession, name: str, first: int, end: int) -> None:
    spark.sql(f"""
        INSERT INTO alone.{name}
        SELECT id, CASE id % 4 WHEN 0 THEN 'Oslo' WHEN 1 THEN 'Lima' WHEN 2 THEN 'Rome' END,
            CAST(timestamp_seconds(id * 86400) AS TIMESTAMP_NTZ), CAST(id / 2.0 AS DECIMAL(9, 2)),
            CASE WHEN id % 5 = 0 THEN double('NaN') ELSE id * 1.5D END, date_from_unix_date(CAST(id AS INT)),
            CAST(CAST(id AS STRING) AS BINARY), id % 2 = 1,
            named_struct('code', CASE WHEN id % 3 = 0 THEN NULL ELSE concat('c', id) END,
                         'deep', named_struct('number', CAST(id * 10 AS INT)))
        FROM range({first}, {end})
    """)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_filter_finds_what_it_finds_without_us(sql: Sql, lake: PlanningLake, table: str, condition: str):
    expected = sql(f"SELECT id, city, price, part.code FROM alone.{table} WHERE {condition} ORDER BY id")
    before = lake.count("planTableScan")

    found = sql(f"SELECT id, city, price, part.code FROM planned.{table} WHERE {condition} ORDER BY id")

    assert found == expected
    assert lake.count("planTableScan") > before


def test_nan_is_larger_than_all_numbers_as_spark_has_it(sql: Sql, table: str):
    """Iceberg's own planning drops a file of nothing but NaN, which Spark compares as the largest number."""
    found = sql(f"SELECT id FROM planned.{table} WHERE weight > 5.0D ORDER BY id")

    assert [id_ for (id_,) in found] == [number for number in left_in(table) if number > 3]


def left_in(table: str) -> list[int]:
    return [number for number in range(1, 13) if table == "ns.v1" or number not in (2, 5, 8)]


def test_several_pages_are_read(sql: Sql, lake: PlanningLake, table: str):
    before = lake.count("fetchScanTasks")

    found = sql(f"SELECT id FROM planned.{table} ORDER BY id")

    assert [id_ for (id_,) in found] == left_in(table)
    assert lake.count("fetchScanTasks") > before


def test_an_older_snapshot_is_read_in_its_own_schema(sql: Sql, table: str):
    [(first,)] = sql(f"SELECT snapshot_id FROM alone.{table}.snapshots ORDER BY committed_at LIMIT 1")

    found = sql(f"SELECT id, town FROM planned.{table} VERSION AS OF {first} WHERE town = 'Oslo'")

    assert found == [(4, "Oslo")]


@pytest.mark.usefixtures("catalogs")
def test_deletes_of_spark_are_read_by_pyiceberg_through_a_plan(lake: PlanningLake, sql: Sql):
    names = {version: f"ns.{unique(f'deletes{version}')}" for version in (2, 3)}
    for version, name in names.items():
        sql(f"""
            CREATE TABLE alone.{name} USING iceberg
            TBLPROPERTIES ('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')
            AS SELECT /*+ COALESCE(1) */ id FROM range(0, 10)
        """)
        sql(f"DELETE FROM alone.{name} WHERE id % 3 = 0")
    before = lake.count("planTableScan")

    with connect(lake.served.to_rest(), **VENDED, **PLANNED) as client:
        found = [read_ids(client.load_table(name)) for name in names.values()]

    assert found == [[1, 2, 4, 5, 7, 8]] * 2
    assert lake.count("planTableScan") == before + 2


def read_ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())
