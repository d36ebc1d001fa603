"""Servers behind each other: what a third one, or its metastore, has; and servers in a circle.

Each asks the next with a token of the next one's own token endpoint.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import (
    CatalogServer,
    ServedCatalog,
    make_client,
    start_catalog_server,
)
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import HiveCorner

pytestmark = [pytest.mark.anyio, pytest.mark.hive, pytest.mark.s3]

ROWS = pa.table({"id": [1, 2, 3]})


class Row(NamedTuple):
    """Three servers. Each stands for the one behind it, under the same names of catalogs."""

    near: CatalogServer
    middle: CatalogServer
    far: CatalogServer
    files: Path
    """Of the catalog `owned`."""

    def client(self, server: CatalogServer, name: str) -> httpx.AsyncClient:
        return make_client(server.login, base_url=f"{server.root}/v1/{name}/")


def connect_to(server: CatalogServer, name: str) -> dict[str, Any]:
    return {
        "connectionType": "ICEBERG_REST",
        "uri": server.root,
        "remoteCatalogName": name,
        "authenticationParameters": {
            "authenticationType": "OAUTH",
            "clientId": server.credential.client_id,
            "clientSecret": server.credential.secret,
            "tokenUri": f"{server.root}/v1/oauth/tokens",
            "scopes": [ALL_ROLES],
        },
    }


async def federate(
    server: CatalogServer, name: str, place: str, storage: dict[str, Any], connection: dict[str, Any]
) -> ServedCatalog:
    definition = {
        "type": "EXTERNAL",
        "name": name,
        "properties": {"default-base-location": place},
        "storageConfigInfo": {**storage, "allowedLocations": [place]},
        "connectionConfigInfo": connection,
    }
    async with server.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": definition})
        await admin.grant_content(name)
    return server.get(name)


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Row]:
    directory = tmp_path_factory.mktemp("row")

    async def start(processes: Processes) -> Row:
        env = {
            "CYNOSURE_STORAGE__FILE_ROOTS__FAR": str(directory / "far"),
            "CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true",
            "CYNOSURE_DELEGATION__TASK_TYPE": "local",
        }
        near, middle, far = await asyncio.gather(
            *(
                start_catalog_server(processes, directory, data=directory / name, name=name, env=env)
                for name in ("near", "middle", "far")
            )
        )
        await far.create_catalog("owned")
        files = far.warehouse / "owned"
        for server, behind in ((middle, far), (near, middle)):
            storage = {"storageType": "FILE"}
            await federate(server, "owned", files.as_uri(), storage, connect_to(behind, "owned"))
        return Row(near, middle, far, files)

    with Processes(directory) as processes:
        yield asyncio.run(start(processes))


@pytest.fixture
async def ends(row: Row) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """The first catalog, and the one that owns the tables."""
    async with row.client(row.near, "owned") as near, row.client(row.far, "owned") as far:
        yield near, far


def open_catalog(server: CatalogServer, name: str) -> Catalog:
    rest = server.get(name).to_rest()
    vended = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    return load_catalog(name, type="rest", uri=rest.uri, **rest.properties, **vended)


def make_table(row: Row) -> tuple[str, str, list[str]]:
    """A table that was made and changed through all of them; its namespace, name and metadata files."""
    catalog, namespace, name = open_catalog(row.near, "owned"), f"n{uuid.uuid4().hex[:8]}", "t"
    catalog.create_namespace(namespace)
    table = catalog.create_table((namespace, name), ROWS.schema)
    files = [table.metadata_location]
    table.append(ROWS)
    return namespace, name, [*files, catalog.load_table((namespace, name)).metadata_location]


async def test_rows_of_a_metastore_behind_two_servers(row: Row, hive_url: str, minio: S3Server) -> None:
    place, namespace = minio.fresh_location("chain"), f"chain_{uuid.uuid4().hex[:8]}"
    hive = {
        "connectionType": "HIVE",
        "uri": hive_url,
        "authenticationParameters": {"authenticationType": "IMPLICIT"},
    }
    await federate(row.far, "metastore", place, minio.storage(), hive)
    for server, behind in ((row.middle, row.far), (row.near, row.middle)):
        await federate(server, "metastore", place, minio.storage(), connect_to(behind, "metastore"))

    def work() -> None:
        theirs = HiveCorner(hive_url).connect(minio, place)
        theirs.create_namespace(namespace, {"location": f"{place}/{namespace}"})
        theirs.create_table(f"{namespace}.there", ROWS.schema, location=f"{place}/there").append(ROWS)
        ours = open_catalog(row.near, "metastore")

        assert ours.load_table(f"{namespace}.there").scan().to_arrow().num_rows == 3
        ours.create_table(f"{namespace}.here", ROWS.schema).append(ROWS)
        ours.load_table(f"{namespace}.there").append(ROWS)
        ours.rename_table(f"{namespace}.here", f"{namespace}.moved")

        assert theirs.load_table(f"{namespace}.moved").scan().to_arrow().num_rows == 3
        assert theirs.load_table(f"{namespace}.there").scan().to_arrow().num_rows == 6
        assert sorted(ours.list_tables(namespace)) == [(namespace, "moved"), (namespace, "there")]
        assert not ours.table_exists(f"{namespace.upper()}.there")

    try:
        await asyncio.to_thread(work)
    finally:
        minio.delete_below(place)


async def test_a_registration_that_replaces_is_made_once_and_everywhere(
    row: Row, ends: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    namespace, name, (first, second) = await asyncio.to_thread(make_table, row)
    near, _ = ends
    path, key = f"namespaces/{namespace}/register", {"Idempotency-Key": str(uuid.uuid4())}
    body = {"name": name, "metadata-location": first, "overwrite": True}
    at = f"namespaces/{namespace}/tables/{name}"

    without = await near.post(path, json={**body, "overwrite": False})
    made = await near.post(path, json=body, headers=key)
    assert (without.status_code, made.status_code) == (409, 200), made.text
    assert [(await each.get(at)).json()["metadata"].get("snapshots", []) for each in ends] == [[], []]

    forward = await near.post(path, json={**body, "metadata-location": second})
    assert forward.status_code == 200, forward.text
    again = await near.post(path, json=body, headers=key)
    other = await near.post(path, json={**body, "metadata-location": second}, headers=key)

    assert (again.status_code, other.status_code) == (200, 422)
    # Told again, and not done again.
    assert [len((await each.get(at)).json()["metadata"]["snapshots"]) for each in ends] == [1, 1]
    outside = {**body, "metadata-location": (row.near.warehouse / "x.metadata.json").as_uri()}
    assert (await near.post(path, json=outside)).status_code in (400, 403)


async def test_a_purge_is_made_where_the_files_are(
    row: Row, ends: tuple[httpx.AsyncClient, httpx.AsyncClient]
) -> None:
    namespace, name, _ = await asyncio.to_thread(make_table, row)
    near, _ = ends
    at = f"namespaces/{namespace}/tables/{name}"
    place = Path((await near.get(at)).json()["metadata"]["location"].removeprefix("file://"))
    files = sorted(each for each in place.rglob("*") if each.is_file())
    assert {each.suffix for each in files} >= {".parquet", ".avro", ".json"}
    key, url = {"Idempotency-Key": str(uuid.uuid4())}, f"{at}?purgeRequested=true"

    answers = [
        await near.delete(url, headers=key),
        await near.delete(url, headers=key),
        await near.delete(url),
    ]

    assert [each.status_code for each in answers] == [204, 204, 404]
    for server in (row.near, row.middle, row.far):
        async with row.client(server, "owned") as client:
            assert (await client.get(at)).status_code == 404
    async with asyncio.timeout(60):
        while any(each.exists() for each in files):  # noqa: ASYNC110 - no event says that files are gone
            await asyncio.sleep(0.05)


async def test_a_drop_keeps_the_files(row: Row, ends: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> None:
    namespace, name, (_, last) = await asyncio.to_thread(make_table, row)
    near, far = ends
    at = f"namespaces/{namespace}/tables/{name}"

    assert (await near.delete(at)).status_code == 204

    assert (await far.get(at)).status_code == 404
    assert Path(last.removeprefix("file://")).exists()
    back = await near.post(
        f"namespaces/{namespace}/register", json={"name": "back", "metadata-location": last}
    )
    assert back.status_code == 200, back.text
    assert len(back.json()["metadata"]["snapshots"]) == 1


async def test_servers_in_a_circle_say_so_at_once(row: Row) -> None:
    storage = {"storageType": "FILE"}
    for server, behind in ((row.near, row.middle), (row.middle, row.far), (row.far, row.near)):
        place = (server.warehouse / "circle").as_uri()
        await federate(server, "circle", place, storage, connect_to(behind, "circle"))

    async with row.client(row.near, "circle") as near:
        answers = [
            await near.get("namespaces/ns/tables/t"),
            await near.get("namespaces"),
            await near.post("namespaces", json={"namespace": ["ns"]}),
            await near.get("namespaces/ns/tables/t"),
        ]

    assert {each.status_code for each in answers} == {508}, [each.text for each in answers]
    assert {each.json()["error"]["type"] for each in answers} == {"LoopDetectedException"}
    async with row.client(row.near, "owned") as near:
        assert (await near.get("namespaces")).status_code == 200


async def test_who_pretends_to_have_come_through_a_catalog_is_refused_alone(row: Row) -> None:
    namespace, name, _ = await asyncio.to_thread(make_table, row)
    at, nonsense = f"namespaces/{namespace}/tables/{name}", "x" * 500
    many = ",".join(f"{number:024x}" for number in range(16))

    async with row.client(row.near, "owned") as near:
        found = await asyncio.gather(
            near.get(at, headers={"x-cynosure-via": many}),
            near.get(at),
            near.get(at, headers={"x-cynosure-via": nonsense}),
        )

    assert [each.status_code for each in found] == [508, 200, 200]
