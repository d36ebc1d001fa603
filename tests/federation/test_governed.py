"""Governed SQL on tables of another server: real processes, a remote that knows nothing of our policies."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

from cynosure.testing.admin import MANAGEMENT, Admin
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES, Credential
from cynosure.testing.query_server import QueryScene, start_query_scene

ROWS = pa.table({"id": [1, 2, 3], "region": ["EU", "US", "EU"], "card": ["1111", "2222", "3333"]})


@dataclass(frozen=True)
class Governed:
    """The owner's catalog, and the scene whose lake is a federated catalog before it."""

    owner: Catalog
    scene: QueryScene
    ann: Credential
    """May read everything, in the words of our catalog."""

    def make(self, name: str, rows: pa.Table = ROWS) -> None:
        """At the owner's, who knows nothing of us."""
        self.owner.create_namespace_if_not_exists("ns")
        self.owner.create_table(f"ns.{name}", rows.schema).append(rows)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return asyncio.run(self.scene.rows(self.ann, sql))

    def fail(self, sql: str) -> dict[str, Any]:
        return asyncio.run(self.scene.fails(self.ann, sql))

    def run(self, work: Callable[[QueryScene], Awaitable[Any]]) -> Any:
        async def do() -> Any:
            return await work(self.scene)

        return asyncio.run(do())


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Governed]:
    directory = tmp_path_factory.mktemp("governed")
    with Processes(directory) as processes:
        far = asyncio.run(start_catalog_server(processes, directory, data=directory / "far", name="far"))
        owned = asyncio.run(far.create_catalog("owned"))
        place = (far.warehouse / "owned").as_uri()
        settings = {"QUERY__SPARK__ENABLED": "off", "QUERY__GATEWAY__FILE_LOCATIONS": place}
        theirs = {"STORAGE__FILE_ROOTS__FAR": str(far.warehouse)}
        scene = asyncio.run(
            start_query_scene(processes, directory, settings=settings, catalog_settings=theirs)
        )
        near = asyncio.run(federate(scene.catalog, owned, place))
        scene = replace(scene, lake=near)
        ann = asyncio.run(scene.create_user("ann"))
        rest = owned.to_rest()
        yield Governed(load_catalog("owner", type="rest", uri=rest.uri, **rest.properties), scene, ann)


async def federate(server: CatalogServer, owned: ServedCatalog, place: str) -> ServedCatalog:
    who = owned.login.credential
    definition = {
        "type": "EXTERNAL",
        "name": "near",
        "properties": {"default-base-location": place},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [place]},
        "connectionConfigInfo": {
            "connectionType": "ICEBERG_REST",
            "uri": owned.root,
            "remoteCatalogName": owned.name,
            "authenticationParameters": {
                "authenticationType": "OAUTH",
                "clientId": who.client_id,
                "clientSecret": who.secret,
                "scopes": [ALL_ROLES],
            },
        },
    }
    async with server.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": definition})
        await admin.grant_content("near")
    return server.get("near")


@pytest.fixture
def name() -> str:
    return f"t{uuid.uuid4().hex[:10]}"


def test_rows_are_filtered_and_columns_masked_and_a_change_counts_at_once(
    governed: Governed, name: str
) -> None:
    governed.make(name)
    select = f"SELECT * FROM near.ns.{name} ORDER BY id"
    assert governed.query(select) == [(1, "EU", "1111"), (2, "US", "2222"), (3, "EU", "3333")]

    first = governed.run(lambda scene: scene.restrict(f"ns.{name}", filter="region = 'EU'"))
    governed.run(lambda scene: scene.restrict(f"ns.{name}", columns={"card": "replace-with-null"}))

    assert governed.query(select) == [(1, "EU", None), (3, "EU", None)]
    governed.owner.load_table(f"ns.{name}").append(
        pa.table({"id": [4, 5], "region": ["EU", "US"], "card": ["4444", "5555"]})
    )
    assert governed.query(select) == [(1, "EU", None), (3, "EU", None), (4, "EU", None)]
    governed.run(lambda scene: scene.lift(f"ns.{name}", first))
    assert [row[0] for row in governed.query(select)] == [1, 2, 3, 4, 5]


def test_an_owner_who_makes_the_table_anew_opens_nothing(governed: Governed, name: str) -> None:
    governed.make(name)
    select = f"SELECT id, region, card FROM near.ns.{name} ORDER BY id"
    governed.run(lambda scene: scene.restrict(f"ns.{name}", filter="region = 'EU'"))
    governed.run(lambda scene: scene.restrict(f"ns.{name}", columns={"card": "replace-with-null"}))
    assert governed.query(select) == [(1, "EU", None), (3, "EU", None)]

    governed.owner.drop_table(f"ns.{name}")
    governed.make(name, ROWS.select(["card", "region", "id"]))

    assert governed.query(select) == [(1, "EU", None), (3, "EU", None)]
    governed.owner.rename_table(f"ns.{name}", f"ns.{name}_moved")
    governed.make(name)
    assert governed.query(select) == [(1, "EU", None), (3, "EU", None)]
    assert governed.query(select.replace(name, f"{name}_moved")) == [(1, "EU", None), (3, "EU", None)]


def test_giving_up_what_waits_for_tables_that_are_gone_opens_nothing(governed: Governed, name: str) -> None:
    governed.make(name)
    select, rows = f"SELECT id, region FROM near.ns.{name} ORDER BY id", [(1, "EU"), (3, "EU")]
    governed.run(lambda scene: scene.restrict(f"ns.{name}", filter="region = 'EU'"))
    for _ in range(2):
        assert governed.query(select) == rows
        governed.owner.drop_table(f"ns.{name}")
        governed.make(name)
    assert governed.query(select) == rows
    governed.owner.rename_table(f"ns.{name}", f"ns.{name}_old")
    governed.make(name)
    assert governed.query(select) == rows

    async def forget(scene: QueryScene) -> dict[str, Any]:
        async with scene.catalog.client() as http:
            path = f"{MANAGEMENT}/cynosure/catalogs/near/reconcile"
            answer = await http.post(path, params={"waiting": "forget"})
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

    # The two that were dropped, and maybe those of other tests; not the one that has another name.
    told = governed.run(forget)
    assert (told["forgotten"] >= 2, told["kept"] >= 1) == (True, True)
    assert governed.query(select.replace(name, f"{name}_old")) == rows
    assert governed.query(select) == rows


def test_what_no_longer_fits_its_policy_is_hidden(governed: Governed, name: str) -> None:
    governed.make(name)
    governed.run(lambda scene: scene.restrict(f"ns.{name}", filter="region = 'EU'"))
    governed.owner.drop_table(f"ns.{name}")
    governed.make(name, ROWS.rename_columns(["id", "area", "card"]))

    refused = governed.fail(f"SELECT id FROM near.ns.{name}")

    assert refused["code"] == 403
    assert "A policy hides this table" in refused["message"]
