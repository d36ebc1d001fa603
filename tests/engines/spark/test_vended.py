"""Spark without any key reads and writes: with vended credentials, or with requests that we sign."""

import time
import uuid

import boto3
import httpx
import pytest
from pyspark.sql import SparkSession

from cynosure.testing.catalog_server import CatalogServer, RestCatalog
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.engines.conftest import MakeLake
from tests.engines.short_lived import short_lived
from tests.engines.spark.conftest import Sql, configure
from tests.names import unique

WAYS = {
    "seaweedfs": "vended-credentials",
    "minio": "vended-credentials",
    "no-sts": "remote-signing",
}
SMALLEST_PART_BYTES = 5 * 1024 * 1024
pytestmark = pytest.mark.s3


@pytest.fixture(scope="module", params=WAYS)
def store(request: pytest.FixtureRequest) -> S3Server:
    return find_s3_servers()[request.param]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, make_lake: MakeLake, store: S3Server) -> str:
    """The name of a catalog on this store, as Spark knows it, with a namespace `ns`."""
    return open_lake(spark, make_lake(store).to_rest(), WAYS[store.name])


def open_lake(spark: SparkSession, rest: RestCatalog, way: str, **properties: str) -> str:
    name = f"s3_{uuid.uuid4().hex[:8]}"
    client = {
        "header.X-Iceberg-Access-Delegation": way,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.multipart.part-size-bytes": str(SMALLEST_PART_BYTES),
        "s3.multipart.threshold": "1.0",
    }
    for key, value in configure(rest, name, **client, **properties).items():
        spark.conf.set(key, value)
    spark.sql(f"CREATE NAMESPACE {name}.ns")
    return name


def test_rows_are_created_changed_and_read(sql: Sql, lake: str):
    name = f"{lake}.ns.{unique('changed')}"
    sql(f"CREATE TABLE {name} USING iceberg AS SELECT id, concat('d', id) AS data FROM range(1, 5)")
    sql(f"INSERT INTO {name} VALUES (5, 'd5')")
    sql(f"DELETE FROM {name} WHERE id = 2")
    sql(f"""
        MERGE INTO {name} t
        USING (SELECT * FROM VALUES (1, 'gone'), (3, 'new'), (9, 'nine') AS v (id, data)) s ON t.id = s.id
        WHEN MATCHED AND s.data = 'gone' THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.data = s.data
        WHEN NOT MATCHED THEN INSERT *
    """)

    assert sql(f"SELECT * FROM {name} ORDER BY id") == [(3, "new"), (4, "d4"), (5, "d5"), (9, "nine")]


def test_a_file_of_several_parts_is_written_and_read(sql: Sql, lake: str):
    name = f"{lake}.ns.{unique('large')}"
    sql(f"""
        CREATE TABLE {name} USING iceberg AS
        SELECT /*+ COALESCE(1) */ id, rand(7) AS noise FROM range(0, 1000000, 1, 1)
    """)

    [(size,)] = sql(f"SELECT file_size_in_bytes FROM {name}.files")
    assert size > SMALLEST_PART_BYTES
    assert sql(f"SELECT count(noise), sum(id) FROM {name}") == [(1_000_000, 499_999_500_000)]


def list_files(store: S3Server, location: str) -> set[str]:
    """What really is below a location, as the owner of the store sees it."""
    keys = {"aws_access_key_id": store.access_key_id, "aws_secret_access_key": store.secret_access_key}
    client = boto3.client("s3", endpoint_url=store.endpoint, region_name=store.region, **keys)
    prefix = location.removeprefix(f"s3://{store.bucket}/")
    listed = client.list_objects_v2(Bucket=store.bucket, Prefix=prefix)
    return {f"s3://{store.bucket}/{each['Key']}" for each in listed.get("Contents", [])}


def test_maintenance_rewrites_and_deletes_files(sql: Sql, lake: str, store: S3Server):
    table = f"ns.{unique('kept')}"
    name = f"{lake}.{table}"
    sql(f"CREATE TABLE {name} USING iceberg AS SELECT /*+ REPARTITION(3) */ id FROM range(0, 3, 1, 1)")
    before = {path for (path,) in sql(f"SELECT file_path FROM {name}.files")}

    sql(f"CALL {lake}.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))")
    sql(
        f"CALL {lake}.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2999-01-01', "
        "retain_last => 1)"
    )

    after = {path for (path,) in sql(f"SELECT file_path FROM {name}.files")}
    assert (len(before), len(after), before & after) == (3, 1, set())
    assert sql(f"SELECT id FROM {name} ORDER BY id") == [(0,), (1,), (2,)]
    assert sql(f"SELECT count(*) FROM {name}.snapshots") == [(1,)]
    # Spark deletes many files with one request, which is not signed for a store that does not check its body:
    # there they stay, and nobody reads them any more.
    left = len(list_files(store, after.pop().rpartition("/")[0]))
    assert left == (1 if store.has_sts else 4)


def count_requests(server: CatalogServer, operation: str) -> float:
    """How often an operation was asked for with success."""
    text = httpx.get(f"{server.url}/metrics", trust_env=False).raise_for_status().text
    samples = [line for line in text.splitlines() if line.startswith("cynosure_api_requests_total{")]
    wanted = (f'operation="{operation}"', 'status="200"')
    return sum(float(line.split()[-1]) for line in samples if all(word in line for word in wanted))


def test_credentials_that_expire_are_renewed_while_a_query_goes_on(
    spark: SparkSession, sql: Sql, catalog_server: CatalogServer, make_lake: MakeLake
):
    store = find_s3_servers()["seaweedfs"]
    with short_lived(store) as tokens:
        made = make_lake(store, stsEndpoint=tokens.url)
        lake = open_lake(spark, made.to_rest(), "vended-credentials")
        sql(f"CREATE TABLE {lake}.ns.t (id BIGINT) USING iceberg")
        sql(f"INSERT INTO {lake}.ns.t SELECT id FROM range(100)")
        # Nothing to shuffle: each time it reads the files again, by the plan and the table of the first time.
        query = spark.table(f"{lake}.ns.t")
        assert len(query.collect()) == 100
        given, renewed = [*tokens.given], count_requests(catalog_server, "loadCredentials")
        while any(map(tokens.is_taken, given)):
            time.sleep(0.2)

        assert len(query.collect()) == 100

        assert len(tokens.given) > len(given)
        assert count_requests(catalog_server, "loadCredentials") > renewed
