"""Tables in Azure and in Google Cloud Storage, from creation to credentials."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest
from msgspec.structs import replace

from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.storage.config import GcsStorage, StorageConfig, StorageKeys
from cynosure.storage.settings import StorageSettings
from cynosure.testing.small_api import open_client
from cynosure.testing.small_catalog import ROOT, open_directory_in
from tests.storage.access.gcs.google import answer, make_keys
from tests.storage.azure_corner import AzureCorner, grant
from tests.storage.recorded_service import Heard, RecordedService, Reply

pytestmark = pytest.mark.anyio

VENDED = {"x-iceberg-access-delegation": "vended-credentials"}


@pytest.fixture
async def azure(azure_url: str, anyio_backend: str) -> AsyncIterator[AzureCorner]:
    async with RecordedService(grant) as login:
        corner = AzureCorner(azure_url, login)
        await corner.set_up()
        yield corner
        await corner.clean()


@asynccontextmanager
async def serving(
    folder: Path, storage: StorageConfig, keys: StorageKeys, settings: StorageSettings
) -> AsyncIterator[httpx.AsyncClient]:
    """A server with one catalog on this storage, and a namespace in it."""
    async with open_directory_in(folder, storage=settings) as directory:
        base = storage.allowed_locations[0]
        wanted = NewCatalog(name="lake", base_location=base, storage=storage, storage_keys=keys)
        await create_catalog(directory, ROOT, wanted)
        async with open_client(directory) as client:
            assert (await client.post("namespaces", json={"namespace": ["ns"]})).status_code == 200
            yield client


async def test_a_table_in_azure_is_created_changed_and_given_by_directory(
    tmp_path: Path, azure: AzureCorner, schema: dict[str, object]
):
    config = replace(azure.config, hierarchical=True)
    async with serving(tmp_path, config, azure.keys, azure.settings) as client:
        made = await client.post("namespaces/ns/tables", json={"name": "t", "schema": schema}, headers=VENDED)
        changed = await client.post(
            "namespaces/ns/tables/t",
            json={"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]},
        )
        loaded = await client.get("namespaces/ns/tables/t", headers=VENDED)
        refreshed = await client.get("namespaces/ns/tables/t/credentials")

    assert [each.status_code for each in (made, changed, loaded, refreshed)] == [200] * 4, changed.text
    table = loaded.json()
    assert table["metadata"]["location"].startswith(f"{azure.base.text}/ns/")
    [credential] = table["storage-credentials"]
    signed = parse_qs(credential["config"]["adls.sas-token"])
    assert (signed["sr"], signed["sdd"], signed["sp"]) == (["d"], ["3"], ["racwdl"])
    assert credential["prefix"] == table["metadata"]["location"]
    assert (
        table["config"]["adls.refresh-credentials-endpoint"] == "v1/lake/namespaces/ns/tables/t/credentials"
    )
    assert table["config"].items() >= credential["config"].items()
    assert refreshed.json()["storage-credentials"] == [credential]
    assert len([each async for each in azure.open().list(azure.base)]) == 2


async def test_a_table_that_has_a_container_for_itself_is_read_with_what_its_client_was_given(
    tmp_path: Path, azure: AzureCorner, schema: dict[str, object]
):
    whole = azure.locate(azure.other)
    config = replace(azure.config, allowed_locations=(azure.base.text, whole.text))
    async with serving(tmp_path, config, azure.keys, azure.settings) as client:
        made = await client.post(
            "namespaces/ns/tables", json={"name": "t", "schema": schema, "location": whole.text}
        )
        loaded = await client.get("namespaces/ns/tables/t", headers=VENDED)

    assert made.status_code == loaded.status_code == 200, made.text
    query = loaded.json()["config"]["adls.sas-token"]
    path = loaded.json()["metadata-location"].removeprefix(whole.text)
    assert await azure.ask("GET", f"/{azure.other}{path}?{query}") == 200
    assert await azure.ask("GET", f"/{azure.other}{path}") == 403
    assert await azure.ask("GET", f"/{azure.container}?restype=container&comp=list&{query}") == 403


async def test_without_directories_a_table_is_served_and_no_credentials_are(
    tmp_path: Path, azure: AzureCorner, schema: dict[str, object]
):
    async with serving(tmp_path, azure.config, azure.keys, azure.settings) as client:
        made = await client.post("namespaces/ns/tables", json={"name": "t", "schema": schema}, headers=VENDED)
        plain = await client.get("namespaces/ns/tables/t")
        refused = await client.get("namespaces/ns/tables/t", headers=VENDED)

    assert (made.status_code, plain.status_code, refused.status_code) == (200, 200, 403)
    assert "hierarchical" in refused.json()["error"]["message"]
    assert not any("sas" in name for name in plain.json()["config"])


async def test_a_table_in_google_cloud_storage_is_given_by_a_downscoped_token(
    tmp_path: Path, schema: dict[str, object]
):
    def answer_all(heard: Heard) -> Reply:
        return Reply(b"", headers={"etag": '"e"'}) if heard.path.startswith("/bkt") else answer(heard)

    async with RecordedService(answer_all) as google:
        config = GcsStorage(
            allowed_locations=("gs://bkt/lake",), endpoint=google.url, token_endpoint=google.url
        )
        async with serving(tmp_path, config, make_keys(), StorageSettings()) as client:
            made = await client.post("namespaces/ns/tables", json={"name": "t", "schema": schema})
            loaded = await client.get("namespaces/ns/tables/t", headers=VENDED)

    assert made.status_code == loaded.status_code == 200, loaded.text
    table = loaded.json()
    location = table["metadata"]["location"]
    assert table["storage-credentials"][0]["config"]["gcs.oauth2.token"] == "downscoped"
    assert table["config"]["gcs.oauth2.refresh-credentials-endpoint"].endswith("/tables/t/credentials")
    [exchanged] = [heard for heard in google.heard if heard.path == "/v1/token"]
    assert f"objects/{location.removeprefix('gs://bkt/')}/')" in exchanged.form()["options"]
