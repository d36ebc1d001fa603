"""A real Hive, which takes names in any case: a filter and a mask hold in every spelling, on every way."""

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pyarrow as pa
import pytest

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import ServedCatalog
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential
from cynosure.testing.query_server import QueryScene, start_query_scene
from cynosure.testing.s3_servers import S3Server
from tests.federation.remotes.pointers.corners import HiveCorner

pytestmark = [pytest.mark.hive, pytest.mark.s3]

ROWS = pa.table({"id": [1, 2, 3], "region": ["EU", "US", "EU"], "card": ["1111", "2222", "3333"]})
SHOWN = [(1, "EU", None), (3, "EU", None)]
VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@dataclass(frozen=True)
class Governed:
    """A table of the metastore's, under a filter and a mask of ours."""

    scene: QueryScene
    ann: Credential
    """May read everything, and grant and create nothing."""
    namespace: str
    metadata_location: str

    def spellings(self) -> list[tuple[str, str]]:
        """Of the namespace and the table, but for the right one."""
        namespaces = (self.namespace, self.namespace.upper(), self.namespace.title(), f"{self.namespace} ")
        tables = ("orders", "ORDERS", "Orders", "orders ", "order\u017f", "ordérs")
        return [(one, other) for one in namespaces for other in tables][1:]

    def ask(self, who: Credential | None, method: str, path: str, **more: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            server = self.scene.catalog
            async with server.client(None if who is None else server.login_as(who)) as http:
                return await http.request(method, f"{self.scene.lake.url}/{path}", **more)

        return asyncio.run(send())


@pytest.fixture(scope="module")
def governed(hive_url: str, minio: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Governed]:
    directory, place = tmp_path_factory.mktemp("spelling"), minio.fresh_location("spelling")
    namespace, corner = f"eu_{uuid.uuid4().hex[:8]}", HiveCorner(hive_url)
    theirs = corner.connect(minio, place)
    theirs.create_namespace(namespace, {"location": f"{place}/{namespace}"})
    table = theirs.create_table(f"{namespace}.orders", ROWS.schema, location=f"{place}/orders")
    table.append(ROWS)
    with Processes(directory) as processes:
        settings = {"QUERY__SPARK__ENABLED": "off"}
        implicit = {"FEDERATION__ALLOW_IMPLICIT": "true"}
        scene = asyncio.run(
            start_query_scene(processes, directory, settings=settings, catalog_settings=implicit)
        )
        scene = replace(scene, lake=asyncio.run(federate(scene, hive_url, minio, place)))
        asyncio.run(scene.restrict(f"{namespace}.orders", filter="region = 'EU'"))
        asyncio.run(scene.restrict(f"{namespace}.orders", columns={"card": "replace-with-null"}))
        ann = asyncio.run(scene.create_user("ann"))
        yield Governed(scene, ann, namespace, table.metadata_location)
    minio.delete_below(place)


async def federate(scene: QueryScene, hive_url: str, minio: S3Server, place: str) -> ServedCatalog:
    definition = {
        "type": "EXTERNAL",
        "name": "near",
        "properties": {"default-base-location": place},
        "storageConfigInfo": {**minio.storage(), "allowedLocations": [place]},
        "connectionConfigInfo": {
            "connectionType": "HIVE",
            "uri": hive_url,
            "authenticationParameters": {"authenticationType": "IMPLICIT"},
        },
    }
    async with scene.catalog.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": definition})
        await admin.grant_content("near")
    return scene.catalog.get("near")


def test_the_metastore_itself_takes_other_spellings(
    governed: Governed, hive_url: str, minio: S3Server
) -> None:
    """Else nothing of this would be tested."""
    theirs = HiveCorner(hive_url).connect(minio, "s3://nowhere")

    found = theirs.load_table(f"{governed.namespace.upper()}.ORDERS")

    assert found.metadata_location == governed.metadata_location


def test_statements_see_what_is_shown_or_nothing(governed: Governed) -> None:
    query, select = governed.scene.rows, "SELECT * FROM near.`{}`.`{}` ORDER BY id"
    right = select.format(governed.namespace, "orders")
    assert asyncio.run(query(governed.ann, right)) == SHOWN

    for namespace, table in governed.spellings():
        failed = asyncio.run(governed.scene.fails(governed.ann, select.format(namespace, table)))
        assert failed["code"] in (400, 404), (namespace, table, failed)
    plain = f"SELECT * FROM near.{governed.namespace.upper()}.Orders ORDER BY id"
    assert asyncio.run(governed.scene.fails(governed.ann, plain))["code"] in (400, 404)


@pytest.mark.parametrize("is_root", [False, True])
def test_no_other_spelling_is_loaded_planned_or_given_credentials(
    governed: Governed, *, is_root: bool
) -> None:
    who = None if is_root else governed.ann
    for namespace, table in governed.spellings():
        path = f"namespaces/{namespace}/tables/{table}"
        answers = [
            governed.ask(who, "GET", path, headers=VENDED),
            governed.ask(who, "GET", f"{path}/credentials"),
            governed.ask(who, "POST", f"{path}/plan", json={}),
            governed.ask(who, "HEAD", path),
        ]
        assert {each.status_code for each in answers} == {404}, (namespace, table, [e.text for e in answers])


def test_nothing_is_made_under_another_spelling(governed: Governed) -> None:
    namespace, location = governed.namespace, governed.metadata_location
    right = {"namespace": [namespace], "name": "orders"}
    for name in ("ORDERS", "Orders"):
        registered = {"name": name, "metadata-location": location, "overwrite": True}
        renamed = {"source": right, "destination": {"namespace": [namespace], "name": name}}
        made = governed.ask(None, "POST", f"namespaces/{namespace}/register", json=registered)
        assert made.status_code in (400, 403), made.text
        assert governed.ask(None, "POST", "tables/rename", json=renamed).status_code in (400, 403)
    upper = {"namespace": [namespace.upper()]}
    assert governed.ask(None, "POST", "namespaces", json=upper).status_code == 400
    assert governed.ask(None, "GET", f"namespaces/{namespace}/tables/orders").status_code == 200


def test_a_grant_by_name_on_another_spelling_gives_nothing(governed: Governed) -> None:
    async def grant(to: str, table: str) -> Credential:
        async with governed.scene.catalog.client() as http:
            admin = Admin(http)
            found = (await http.get("/api/management/v1/catalogs/near")).json()
            properties = {**found["properties"], "cynosure.federation.grants": "by-name"}
            body = {"currentEntityVersion": found["entityVersion"], "properties": properties}
            changed = await http.put("/api/management/v1/catalogs/near", json=body)
            assert changed.is_success, changed.text
            return await admin.create_user(to, "near", Grant("TABLE_READ_DATA", (governed.namespace,), table))

    bob = asyncio.run(grant("bob", "ORDERS"))
    for name in ("ORDERS", "orders"):
        path = f"namespaces/{governed.namespace}/tables/{name}"
        assert governed.ask(bob, "GET", path, headers=VENDED).status_code in (403, 404)
