"""Connections to another server outlive the process that they were given to."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.catalog.connection import ConnectionSecrets, open_secrets
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.common.secrets import Secret
from cynosure.persistence.lifecycle import open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.admin import MANAGEMENT
from cynosure.testing.small_catalog import ROOT, directory_on

pytestmark = pytest.mark.anyio

CATALOG = "/api/catalog/v1"


def describe(location: str, url: str, proof: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "EXTERNAL",
        "name": "theirs",
        "properties": {"default-base-location": location},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
        "connectionConfigInfo": {
            "connectionType": "ICEBERG_REST",
            "uri": f"{url}/api/catalog",
            "remoteCatalogName": "lake",
            "authenticationParameters": {
                "authenticationType": "OAUTH",
                "scopes": ["PRINCIPAL_ROLE:ALL"],
                **proof,
            },
        },
    }


async def read_secrets(data: Path) -> ConnectionSecrets:
    """As a process that has the store and the keys."""
    keyring = open_keyring(KeyringSettings(), data)
    async with (
        open_persistence(f"sqlite:{data}/store.db", initialise=False) as persistence,
        directory_on(persistence, data) as directory,
    ):
        entity = await load_catalog(directory, ROOT, "theirs")
    assert entity.connection is not None
    return open_secrets(entity.connection.sealed_secrets, keyring, (DEFAULT_REALM, entity.id))


async def list_namespaces(http: httpx.AsyncClient) -> list[list[str]]:
    answer = await http.get(f"{CATALOG}/theirs/namespaces")
    assert answer.status_code == 200, answer.text
    found: list[list[str]] = answer.json()["namespaces"]
    return found


async def test_a_killed_server_needs_no_secret_again(serve, tmp_path: Path) -> None:
    """Files that servers wrote are searched at the end of the run (`tests/written_secrets.py`)."""
    remote = await serve(data=tmp_path / "remote")
    await remote.create_catalog("lake")
    async with remote.as_root() as http:
        body: dict[str, Any] = {"namespace": ["sales"], "properties": {}}
        (await http.post(f"{CATALOG}/lake/namespaces", json=body)).raise_for_status()
    who = remote.login.credential
    served = await serve()
    location = (served.data / "warehouse" / "theirs").as_uri()
    wanted = describe(location, remote.url, {"clientId": who.client_id, "clientSecret": who.secret})
    async with served.as_root() as http:
        made = await http.post(f"{MANAGEMENT}/catalogs", json={"catalog": wanted})
        assert made.status_code == 201, made.text
        before = await list_namespaces(http)

    served.process.kill9()
    await served.process.restart()

    async with served.as_root() as http:
        after = await list_namespaces(http)
        found = (await http.get(f"{MANAGEMENT}/catalogs/theirs")).json()
    assert await served.process.stop() == 0

    assert before == after == [["sales"]]
    shown = describe(location, remote.url, {"clientId": who.client_id})
    assert found["connectionConfigInfo"] == shown["connectionConfigInfo"]
    assert await read_secrets(served.data) == ConnectionSecrets(client_secret=Secret(who.secret))
    assert "ready at" in served.process.log()
    assert who.secret not in served.process.log() + made.text
