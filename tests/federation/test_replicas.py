"""Two servers on one PostgreSQL serve the same federated catalog, also when one of them is killed."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import (
    CatalogServer,
    ServedCatalog,
    make_client,
    start_catalog_server,
)
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES
from cynosure.testing.remote_samples import SCHEMA

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

CATALOG = "/api/catalog/v1/near"


class Replicas(NamedTuple):
    owner: ServedCatalog
    first: CatalogServer
    second: CatalogServer


@pytest.fixture
async def replicas(tmp_path: Path, postgres_schema_url: str) -> AsyncIterator[Replicas]:
    with Processes(tmp_path) as processes:
        far = await start_catalog_server(processes, tmp_path, data=tmp_path / "far", name="far")
        owner = await far.create_catalog(f"c{uuid.uuid4().hex[:12]}")
        env = {
            "CYNOSURE_PERSISTENCE__URL": postgres_schema_url,
            "CYNOSURE_KEYRING__FILE": str(tmp_path / "keyring.json"),
            "CYNOSURE_STORAGE__FILE_ROOTS__FAR": str(far.warehouse),
        }
        first = await start_catalog_server(
            processes, tmp_path, data=tmp_path / "first", name="first", env=env
        )
        second = await start_catalog_server(
            processes,
            tmp_path,
            data=tmp_path / "second",
            name="second",
            env=env,
            credential=first.credential,
        )
        await federate(first, owner, (far.warehouse / owner.name).as_uri())
        yield Replicas(owner, first, second)


async def federate(server: CatalogServer, owner: ServedCatalog, place: str) -> None:
    who = owner.login.credential
    definition = {
        "type": "EXTERNAL",
        "name": "near",
        "properties": {"default-base-location": place},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [place]},
        "connectionConfigInfo": {
            "connectionType": "ICEBERG_REST",
            "uri": owner.root,
            "remoteCatalogName": owner.name,
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


async def ask(server: CatalogServer, method: str, path: str, **more: Any) -> dict[str, Any]:
    async with server.client() as http:
        answer = await http.request(method, f"{CATALOG}{path}", **more)
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_both_serve_it_when_one_is_killed_and_when_its_secret_is_renewed(replicas: Replicas) -> None:
    _, first, second = replicas
    await ask(first, "POST", "/namespaces", json={"namespace": ["ns"]})
    made = await ask(first, "POST", "/namespaces/ns/tables", json={"name": "t", "schema": SCHEMA})

    seen = await ask(second, "GET", "/namespaces/ns/tables/t")
    first.process.kill9()
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"by": "second"}}]}
    await ask(second, "POST", "/namespaces/ns/tables/t", json=change)
    await first.process.restart()
    after = await ask(first, "GET", "/namespaces/ns/tables/t")

    assert seen["metadata"]["table-uuid"] == made["metadata"]["table-uuid"]
    assert after["metadata"]["properties"]["by"] == "second"
    await renew_secret(replicas)


async def renew_secret(replicas: Replicas) -> None:
    """Given to the first, it is used by the second, which was asked with the old one before."""
    owner, first, second = replicas
    async with make_client(owner.login, base_url=owner.root.removesuffix("/api/catalog")) as http:
        renewed = await Admin(http).reset("root")
    async with second.client() as http:
        assert (await http.get(f"{CATALOG}/namespaces/ns")).status_code == 502
    async with first.client() as http:
        found = (await http.get("/api/management/v1/catalogs/near")).json()
        proof = {"authenticationType": "OAUTH", "clientId": renewed.client_id, "clientSecret": renewed.secret}
        parameters = {**proof, "scopes": [ALL_ROLES]}
        connection = {**found["connectionConfigInfo"], "authenticationParameters": parameters}
        change = {"currentEntityVersion": found["entityVersion"], "connectionConfigInfo": connection}
        answer = await http.put("/api/management/v1/catalogs/near", json=change)
        assert answer.is_success, answer.text

    assert await ask(second, "GET", "/namespaces/ns")
    assert renewed.secret not in first.process.log() + second.process.log()
