"""Two real servers: tables that the second owns on MinIO, read through a federated catalog of the first."""

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import obstore
import pyarrow as pa
import pytest
from obstore.store import S3Store
from pyiceberg.catalog import Catalog, load_catalog

from cynosure.testing.admin import MANAGEMENT, Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES, Credential
from cynosure.testing.s3_servers import S3Server

pytestmark = pytest.mark.s3

ROWS = pa.table({"id": [1, 2, 3]})


class Both(NamedTuple):
    """The owner's catalog, and the federated one before it."""

    owner: ServedCatalog
    near: ServedCatalog
    server: CatalogServer
    """The first one."""
    location: str

    def open(self, served: ServedCatalog, credential: Credential | None = None) -> Catalog:
        """A client of one of them that has no keys of its own."""
        rest = served.to_rest(credential)
        properties = {**rest.properties, "header.X-Iceberg-Access-Delegation": "vended-credentials"}
        return load_catalog("c", type="rest", uri=rest.uri, **properties)

    def ask(
        self, method: str, path: str, credential: Credential | None = None, **more: Any
    ) -> httpx.Response:
        """The answer of the first server."""
        login = None if credential is None else self.server.login_as(credential)

        async def send() -> httpx.Response:
            async with self.server.client(login) as http:
                return await http.request(method, f"/api/catalog/v1/{self.near.name}/{path}", **more)

        return asyncio.run(send())

    def add_user(self, *grants: Grant) -> Credential:
        """Somebody of the first server."""

        async def add() -> Credential:
            async with self.server.client() as http:
                return await Admin(http).create_user(f"u{uuid.uuid4().hex[:8]}", self.near.name, *grants)

        return asyncio.run(add())


def connection_to(served: ServedCatalog) -> dict[str, Any]:
    who = served.login.credential
    return {
        "connectionType": "ICEBERG_REST",
        "uri": served.root,
        "remoteCatalogName": served.name,
        "authenticationParameters": {
            "authenticationType": "OAUTH",
            "clientId": who.client_id,
            "clientSecret": who.secret,
            "scopes": [ALL_ROLES],
        },
    }


@pytest.fixture(scope="module")
def both(minio: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder, location = tmp_path_factory.mktemp("two"), minio.fresh_location("federated")

    async def start(processes: Processes) -> Both:
        first, second = await asyncio.gather(
            *(
                start_catalog_server(processes, folder, data=folder / name, name=name)
                for name in ("first", "second")
            )
        )
        owner = await second.create_catalog_on(minio, "owned", location=location)
        definition = {
            "type": "EXTERNAL",
            "name": "near",
            "properties": {"default-base-location": location},
            "storageConfigInfo": {**minio.storage(), "allowedLocations": [location]},
            "connectionConfigInfo": connection_to(owner),
        }
        async with first.client() as http:
            made = await http.post(f"{MANAGEMENT}/catalogs", json={"catalog": definition})
            assert made.status_code == 201, made.text
            await Admin(http).grant_content("near")
        return Both(owner, first.get("near"), first, location)

    with Processes(folder) as processes:
        yield asyncio.run(start(processes))
    minio.delete_below(location)


@pytest.fixture
def namespace(both: Both) -> str:
    """A namespace that the owner made."""
    name = f"n{uuid.uuid4().hex[:8]}"
    both.open(both.owner).create_namespace(name)
    return name


def make_table(both: Both, namespace: str, name: str = "t") -> str:
    """A table that the owner wrote; its uuid."""
    table = both.open(both.owner).create_table((namespace, name), ROWS.schema)
    table.append(ROWS)
    return str(table.metadata.table_uuid)


def test_rows_are_read_with_credentials_of_the_first_server_that_reach_nothing_else(
    both: Both, namespace: str, minio: S3Server
) -> None:
    make_table(both, namespace)
    make_table(both, namespace, "other")
    reader = both.add_user(Grant("TABLE_READ_DATA"))

    table = both.open(both.near, reader).load_table((namespace, "t"))

    assert table.scan().to_arrow().num_rows == 3
    keys = both.ask(
        "GET",
        f"namespaces/{namespace}/tables/t",
        reader,
        headers={"X-Iceberg-Access-Delegation": "vended-credentials"},
    ).json()["storage-credentials"][0]["config"]
    store = open_with(minio, keys)
    other = both.open(both.owner).load_table((namespace, "other")).metadata_location
    mine = table.metadata_location.removeprefix(f"s3://{minio.bucket}/")
    assert obstore.get(store, mine).bytes()
    with pytest.raises(Exception, match=r"(?i)denied|forbidden|403"):
        obstore.get(store, other.removeprefix(f"s3://{minio.bucket}/"))
    with pytest.raises(Exception, match=r"(?i)denied|forbidden|403"):
        obstore.put(store, mine + ".written", b"")


def test_what_the_owner_commits_is_seen_at_once_and_not_sent_twice(both: Both, namespace: str) -> None:
    make_table(both, namespace)
    path = f"namespaces/{namespace}/tables/t"
    first = both.ask("GET", path)
    assert first.status_code == 200, first.text
    tag = {"If-None-Match": first.headers["etag"]}
    assert both.ask("GET", path, headers=tag).status_code == 304
    both.open(both.owner).load_table((namespace, "t")).append(ROWS)

    changed = both.ask("GET", path, headers=tag)

    assert changed.status_code == 200
    assert both.open(both.near).load_table((namespace, "t")).scan().to_arrow().num_rows == 6


def test_a_table_that_the_owner_made_anew_has_nobodys_grants(both: Both, namespace: str) -> None:
    before = make_table(both, namespace)
    path = f"namespaces/{namespace}/tables/t"
    reader = both.add_user(Grant("TABLE_READ_DATA", (namespace,), "t"))
    assert both.ask("GET", path, reader).json()["metadata"]["table-uuid"] == before
    owner = both.open(both.owner)
    owner.drop_table((namespace, "t"))
    after = make_table(both, namespace)

    assert both.ask("GET", path, reader).status_code == 404
    assert both.ask("GET", path).json()["metadata"]["table-uuid"] == after
    owner.rename_table((namespace, "t"), (namespace, "renamed"))
    assert both.ask("GET", path).status_code == 404
    renamed = both.ask("GET", f"namespaces/{namespace}/tables/renamed")
    assert renamed.json()["metadata"]["table-uuid"] == after


def set_property(both: Both, name: str, value: str) -> None:
    """Set a property of the federated catalog."""

    async def send() -> None:
        async with both.server.client() as http:
            path = f"{MANAGEMENT}/catalogs/{both.near.name}"
            found = (await http.get(path)).json()
            properties = {**found["properties"], name: value}
            body = {"currentEntityVersion": found["entityVersion"], "properties": properties}
            changed = await http.put(path, json=body)
            assert changed.status_code == 200, changed.text

    asyncio.run(send())


def test_credentials_of_the_second_server_are_passed_on_to_who_may_write(
    both: Both, namespace: str, minio: S3Server
) -> None:
    make_table(both, namespace)
    path = f"namespaces/{namespace}/tables/t"
    reader, writer = both.add_user(Grant("TABLE_READ_DATA")), both.add_user(Grant("TABLE_WRITE_DATA"))
    asked = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    set_property(both, "cynosure.federation.credentials", "remote")
    try:
        read = both.ask("GET", path, reader, headers=asked).json()
        (given,) = both.ask("GET", path, writer, headers=asked).json()["storage-credentials"]
        (newer,) = both.ask("GET", f"{path}/credentials", writer).json()["storage-credentials"]
    finally:
        set_property(both, "cynosure.federation.credentials", "own")

    assert "storage-credentials" not in read
    assert given["prefix"].rstrip("/") == newer["prefix"].rstrip("/") == read["metadata"]["location"]
    assert set(given["config"]) == {
        "s3.access-key-id",
        "s3.secret-access-key",
        "s3.session-token",
        "s3.session-token-expires-at-ms",
    }
    mine = read["metadata-location"].removeprefix(f"s3://{minio.bucket}/")
    assert obstore.get(open_with(minio, given["config"]), mine).bytes()


def open_with(minio: S3Server, keys: dict[str, str]) -> S3Store:
    """The bucket, for somebody with these credentials."""
    return S3Store(
        minio.bucket,
        endpoint=minio.endpoint,
        region=minio.region,
        access_key_id=keys["s3.access-key-id"],
        secret_access_key=keys["s3.secret-access-key"],
        session_token=keys["s3.session-token"],
        client_options={"allow_http": True},
    )
