"""Other people's REST catalogs, held to what federation needs of a remote.

Iceberg's reference server in the suite; Nessie, which takes longer to start, only in `./dev soak`.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import ForbiddenError, NoSuchTableError

from cynosure.catalog.connection import Connection, ConnectionSecrets, Implicit
from cynosure.common.clock import SystemClock
from cynosure.federation.remotes.rest import RestRemote, open_rest
from cynosure.federation.settings import FederationSettings
from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import RestCatalog, ServedCatalog, start_catalog_server
from cynosure.testing.harness.probes import http_ready, log_ready
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential
from cynosure.testing.remote_kit import RemoteKit, Stage
from cynosure.testing.s3_servers import S3Server

PEERS = Path(__file__).parents[2] / "scripts/peers"


def open_peer(uri: str, warehouse: str | None = None) -> RestRemote:
    connection = Connection(type="ICEBERG_REST", uri=uri, authentication=Implicit(), remote_name=warehouse)
    settings = FederationSettings(allow_implicit=True)
    return open_rest(connection, ConnectionSecrets(), settings, SystemClock(), "near")


@pytest.fixture(scope="module")
def fixture_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fixture")


@pytest.fixture(scope="module")
def fixture_address(fixture_files: Path) -> Iterator[str]:
    with Processes(fixture_files) as processes:
        port = processes.reserve_port()
        argv = [sys.executable, str(PEERS / "fixture"), "--port", str(port), "--quiet"]
        argv += ["--warehouse", str(fixture_files / "warehouse")]
        ready = log_ready(f"ready on port {port}")
        asyncio.run(processes.start("fixture", argv, ready=ready, timeout_s=90))
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def nessie_at(minio: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Its address, and the place in MinIO where it has its tables."""
    place = minio.fresh_location("nessie")
    store = urlsplit(minio.endpoint)._replace(path=place.removeprefix("s3:/"))
    user = f"{minio.access_key_id}:{minio.secret_access_key}@"
    with Processes(tmp_path_factory.mktemp("nessie")) as processes:
        port = processes.reserve_port()
        endpoint = store._replace(netloc=user + store.netloc).geturl()
        argv = [sys.executable, str(PEERS / "nessie"), "--port", str(port), "--s3-endpoint", endpoint]
        ready = http_ready(f"http://127.0.0.1:{port}/iceberg/v1/config?warehouse=wh")
        asyncio.run(processes.start("nessie", argv, ready=ready, timeout_s=300))
        yield f"http://127.0.0.1:{port}/iceberg", place
    minio.delete_below(place)


class TestReferenceServer(RemoteKit):
    # It decodes paths twice.
    odd_names = ("with space", "ünïcödé", "a+b&c=d", "dots.in.it")
    makes_namespaces = True
    keeps_view_files = False

    @pytest.fixture
    async def stage(self, fixture_address: str, fixture_files: Path) -> AsyncIterator[Stage]:
        remote = open_peer(fixture_address)
        yield Stage(remote, (fixture_files / "warehouse").as_uri())
        await remote.close()


@pytest.mark.skipif("CYNOSURE_SOAK" not in os.environ, reason="./dev soak: Nessie takes long to start")
class TestNessie(RemoteKit):
    lists_missing = True
    chooses_places = True

    @pytest.fixture
    async def stage(self, nessie_at: tuple[str, str]) -> AsyncIterator[Stage]:
        uri, place = nessie_at
        remote = open_peer(uri, "wh")
        yield Stage(remote, place)
        await remote.close()


@pytest.mark.skipif("CYNOSURE_SOAK" not in os.environ, reason="./dev soak: Nessie takes long to start")
@pytest.mark.timeout(600)
def test_clients_read_and_write_tables_of_nessie_with_credentials_of_ours(
    nessie_at: tuple[str, str], minio: S3Server, tmp_path: Path
) -> None:
    uri, place = nessie_at
    rows = pa.table({"id": [1, 2, 3]})
    keys = {
        "s3.endpoint": minio.endpoint,
        "s3.access-key-id": minio.access_key_id,
        "s3.secret-access-key": minio.secret_access_key,
        "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
        "header.X-Iceberg-Access-Delegation": "",
    }
    with Processes(tmp_path) as processes:
        served, stranger = asyncio.run(serve_before(processes, tmp_path, uri, minio, place))
        near = connect(served.to_rest())
        far = load_catalog("far", type="rest", uri=uri, warehouse="wh", **keys)

        near.create_namespace("shop")
        orders = near.create_table("shop.orders", schema=rows.schema)
        assert orders.io.properties["s3.access-key-id"] != minio.access_key_id
        orders.append(rows)
        # What was written here is there, and what is written there is seen here.
        far.load_table("shop.orders").append(rows)
        assert near.load_table("shop.orders").scan().to_arrow().num_rows == 6
        near.load_table("shop.orders").delete("id = 2")
        assert sorted(far.load_table("shop.orders").scan().to_arrow()["id"].to_pylist()) == [1, 1, 3, 3]

        near.rename_table("shop.orders", "shop.sold")
        assert far.list_tables("shop") == [("shop", "sold")]
        with pytest.raises((ForbiddenError, NoSuchTableError)):
            connect(served.to_rest(stranger)).load_table("shop.sold")
        near.drop_table("shop.sold")
        with pytest.raises(NoSuchTableError):
            far.load_table("shop.sold")


def connect(rest: RestCatalog) -> Catalog:
    return load_catalog("near", type="rest", uri=rest.uri, **rest.properties)


async def serve_before(
    processes: Processes, directory: Path, remote: str, store: S3Server, place: str
) -> tuple[ServedCatalog, Credential]:
    """A federated catalog of ours before a remote; and somebody who may do nothing in it."""
    env = {"CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true"}
    server = await start_catalog_server(processes, directory, env=env)
    definition = {
        "type": "EXTERNAL",
        "name": "near",
        "properties": {"default-base-location": place},
        "storageConfigInfo": {**store.storage(), "allowedLocations": [place]},
        "connectionConfigInfo": {
            "connectionType": "ICEBERG_REST",
            "uri": remote,
            "remoteCatalogName": "wh",
            "authenticationParameters": {"authenticationType": "IMPLICIT"},
        },
    }
    async with server.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": definition})
        await admin.grant_content("near")
        return server.get("near"), await admin.create_principal("stranger")
