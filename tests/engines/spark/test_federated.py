"""Spark and PyIceberg change the same tables of a metastore and of a REST server, through a catalog of ours.

Neither has a key to MinIO but what our catalog gives it, and that leads to one table's files only.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import obstore
import pyarrow as pa
import pytest
from obstore.store import S3Store
from pyiceberg.catalog import Catalog
from pyspark.sql import SparkSession

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES
from cynosure.testing.s3_servers import S3Server
from tests.engines.conftest import unique_name
from tests.engines.poison import POISON
from tests.engines.pyiceberg_client import connect
from tests.engines.spark.conftest import Sql, configure
from tests.federation.remotes.pointers.corners import HiveCorner

pytestmark = [pytest.mark.s3, pytest.mark.hive]

DELEGATION = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
DENIED = r"(?i)access.?denied|forbidden|403"


@dataclass(frozen=True)
class Far:
    """A remote, and the catalog of ours before it."""

    theirs: Catalog
    """The remote as PyIceberg has it, with keys of its own."""
    near: ServedCatalog
    spark: str
    """The near catalog's name in Spark."""
    place: str
    namespace: str

    def open(self) -> Catalog:
        """The near catalog, as PyIceberg has it."""
        return connect(self.near.to_rest(), **DELEGATION)


@pytest.fixture(scope="module")
def near_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    """A server beside the one of all other tests, which is a remote here."""
    directory = tmp_path_factory.mktemp("near")
    with Processes(directory) as processes:
        env = {"CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true"}
        yield asyncio.run(start_catalog_server(processes, directory, env=env))


@pytest.fixture(autouse=True)
def _without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in POISON.items():
        monkeypatch.setenv(name, value)


def connect_hive(
    request: pytest.FixtureRequest, store: S3Server, place: str
) -> tuple[dict[str, Any], Catalog]:
    corner = HiveCorner(request.getfixturevalue("hive_url"))
    proof = {"authenticationType": "IMPLICIT"}
    connection = {"connectionType": "HIVE", "uri": corner.connection.uri, "authenticationParameters": proof}
    return connection, corner.connect(store, place)


def connect_rest(
    request: pytest.FixtureRequest, store: S3Server, place: str
) -> tuple[dict[str, Any], Catalog]:
    server: CatalogServer = request.getfixturevalue("catalog_server")
    owned = asyncio.run(server.create_catalog_on(store, unique_name(), location=place))
    who = owned.login.credential
    proof = {
        "authenticationType": "OAUTH",
        "clientId": who.client_id,
        "clientSecret": who.secret,
        "scopes": [ALL_ROLES],
    }
    connection = {
        "connectionType": "ICEBERG_REST",
        "uri": owned.root,
        "remoteCatalogName": owned.name,
        "authenticationParameters": proof,
    }
    return connection, connect(owned.to_rest(), **DELEGATION)


REMOTES: dict[str, Callable[..., tuple[dict[str, Any], Catalog]]] = {
    "hive": connect_hive,
    "rest": connect_rest,
}


async def federate(
    server: CatalogServer, store: S3Server, place: str, connection: dict[str, Any]
) -> ServedCatalog:
    """A federated catalog that may use this place."""
    name = unique_name()
    definition = {
        "type": "EXTERNAL",
        "name": name,
        "properties": {"default-base-location": place},
        "storageConfigInfo": {**store.storage(), "allowedLocations": [place]},
        "connectionConfigInfo": connection,
    }
    async with server.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": definition})
        await admin.grant_content(name)
    return server.get(name)


@pytest.fixture(scope="module", params=REMOTES)
def far(
    request: pytest.FixtureRequest, spark: SparkSession, near_server: CatalogServer, minio: S3Server
) -> Iterator[Far]:
    place = minio.fresh_location("federated")
    connection, theirs = REMOTES[request.param](request, minio, place)
    near = asyncio.run(federate(near_server, minio, place, connection))
    name = f"far_{uuid.uuid4().hex[:8]}"
    client = {**DELEGATION, "io-impl": "org.apache.iceberg.aws.s3.S3FileIO"}
    for key, value in configure(near.to_rest(), name, **client).items():
        spark.conf.set(key, value)
    namespace = f"ns_{uuid.uuid4().hex[:10]}"
    theirs.create_namespace(namespace, {"location": f"{place}/{namespace}"})
    yield Far(theirs, near, name, place, namespace)
    minio.delete_below(place)


def make_there(far: Far, name: str, *ids: int) -> tuple[str, str]:
    """A table that its owner made, beside us."""
    rows = pa.table({"id": pa.array(ids, pa.int64()), "data": pa.array([f"d{each}" for each in ids])})
    path = (far.namespace, name)
    far.theirs.create_table(path, rows.schema, location=f"{far.place}/{far.namespace}/{name}").append(rows)
    return path


def test_all_three_read_what_the_others_wrote(far: Far, sql: Sql) -> None:
    path = make_there(far, "shared", 1, 2, 3)
    name = f"{far.spark}.{far.namespace}.shared"

    assert sql(f"SELECT * FROM {name} ORDER BY id") == [(1, "d1"), (2, "d2"), (3, "d3")]
    sql(f"INSERT INTO {name} VALUES (4, 'spark')")
    sql(f"DELETE FROM {name} WHERE id = 2")
    far.open().load_table(path).append(pa.table({"id": [5], "data": ["pyiceberg"]}))
    sql(f"MERGE INTO {name} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")

    wanted = [(3, "d3"), (4, "spark"), (5, "pyiceberg")]
    assert sql(f"SELECT * FROM {name} ORDER BY id") == wanted
    for each in (far.open(), far.theirs):
        found = each.load_table(path).scan().to_arrow().sort_by("id")
        assert list(zip(found["id"].to_pylist(), found["data"].to_pylist(), strict=True)) == wanted


def test_a_table_that_spark_makes_and_changes_is_the_remotes(far: Far, sql: Sql) -> None:
    name = f"{far.spark}.{far.namespace}.made"
    sql(f"CREATE TABLE {name} USING iceberg AS SELECT id, concat('d', id) AS data FROM range(1, 4)")
    sql(f"ALTER TABLE {name} ADD COLUMN more STRING")

    there = far.theirs.load_table((far.namespace, "made"))
    assert there.schema().column_names == ["id", "data", "more"]
    assert there.scan().to_arrow().num_rows == 3
    sql(f"DROP TABLE {name}")
    assert not far.theirs.table_exists((far.namespace, "made"))


def test_the_credentials_lead_to_one_tables_files_only(far: Far, minio: S3Server) -> None:
    mine = far.open().load_table(make_there(far, "mine", 1))
    other = far.theirs.load_table(make_there(far, "other", 1)).metadata_location
    keys = load_credentials(far, "mine")
    store = S3Store(
        minio.bucket,
        endpoint=minio.endpoint,
        region=minio.region,
        access_key_id=keys["s3.access-key-id"],
        secret_access_key=keys["s3.secret-access-key"],
        session_token=keys["s3.session-token"],
        client_options={"allow_http": True},
    )

    bucket = f"s3://{minio.bucket}/"
    own = mine.metadata_location.removeprefix(bucket)
    assert obstore.get(store, own).bytes()
    obstore.put(store, f"{own}.written", b"1")
    outside = [other, f"{far.place}/elsewhere", f"{bucket}elsewhere"]
    for path in outside:
        with pytest.raises(Exception, match=DENIED):
            obstore.get(store, path.removeprefix(bucket))
        with pytest.raises(Exception, match=DENIED):
            obstore.put(store, path.removeprefix(bucket), b"1")


def load_credentials(far: Far, table: str) -> dict[str, str]:
    """What a client that may write a table gets."""

    async def load() -> httpx.Response:
        async with far.near.client() as http:
            path = f"{far.near.url}/namespaces/{far.namespace}/tables/{table}"
            return await http.get(path, headers={"X-Iceberg-Access-Delegation": "vended-credentials"})

    [given] = asyncio.run(load()).raise_for_status().json()["storage-credentials"]
    config: dict[str, str] = given["config"]
    return config
