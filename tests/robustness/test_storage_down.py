"""The storage is not there: reads go on, and a commit is whole or was never made."""

import asyncio
import os
import resource
import signal
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.catalog_storm.judge import metadata_files
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import Delay, http_request
from cynosure.testing.harness.processes import Processes

pytestmark = pytest.mark.anyio

# What fails here fails at once; what works may be slow.
PATIENT = {
    "CYNOSURE_STORAGE__CONNECT_TIMEOUT": "5s",
    "CYNOSURE_STORAGE__OPERATION_TIMEOUT": "20s",
    "CYNOSURE_STORAGE__STALL_TIMEOUT": "20s",
    "CYNOSURE_STORAGE__RETRIES": "0",
}


class Table:
    """One table, through HTTP."""

    def __init__(self, catalog: ServedCatalog, http: httpx.AsyncClient) -> None:
        self._tables = f"{catalog.url}/namespaces/ns/tables"
        self._namespaces = f"{catalog.url}/namespaces"
        self._http = http
        self._http.auth = catalog.login

    async def create(self, name: str = "t") -> httpx.Response:
        await self._http.post(self._namespaces, json={"namespace": ["ns"]})
        return await self._http.post(self._tables, json={"name": name, "schema": SCHEMA})

    async def load(self, name: str = "t") -> httpx.Response:
        return await self._http.get(f"{self._tables}/{name}")

    async def list(self) -> list[str]:
        return [each["name"] for each in (await self._http.get(self._tables)).json()["identifiers"]]

    async def set(self, **properties: str) -> httpx.Response:
        updates = [{"action": "set-properties", "updates": properties}]
        return await self._http.post(f"{self._tables}/t", json={"requirements": [], "updates": updates})


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=30, trust_env=False) as client:
        yield client


@pytest.fixture
async def proxy(s3_url: str, fault_proxy: Callable[[str], Any]) -> FaultProxy:
    """In front of the S3 server."""
    return await fault_proxy(s3_url)


async def create_on_s3(server: CatalogServer, s3_url: str, proxy: FaultProxy) -> ServedCatalog:
    found = urlsplit(s3_url)
    storage = {
        "storageType": "S3",
        "endpoint": f"http://127.0.0.1:{proxy.port}",
        "region": parse_qs(found.query)["region"][0],
        "pathStyleAccess": True,
        "accessKeyId": found.username,
        "secretAccessKey": found.password,
    }
    location = f"s3:/{found.path}/robustness/{uuid.uuid4().hex}"
    return await server.create_catalog("lake", location=location, storage=storage)


async def check_that_nothing_is_half_done(table: Table, before: httpx.Response) -> None:
    """With the storage down: reads go on, and what needs the storage is refused and changes nothing."""
    committed = await table.set(during="1")
    created = await table.create("other")
    after = await table.load()

    for refused in (committed, created):
        assert refused.status_code == 503, refused.text
        assert refused.json()["error"]["type"] == "ServiceUnavailableException"
        assert "retry-after" in refused.headers
    assert (after.status_code, after.headers["etag"]) == (200, before.headers["etag"])
    assert after.json() == before.json()
    assert await table.list() == ["t"]
    assert (await table.load("other")).status_code == 404


async def test_with_s3_away_reads_go_on_and_commits_are_refused_whole(
    processes: Processes, s3_url: str, proxy: FaultProxy, tmp_path: Path, http: httpx.AsyncClient
) -> None:
    server = await start_catalog_server(processes, tmp_path, env=PATIENT)
    table = Table(await create_on_s3(server, s3_url, proxy), http)
    assert (await table.create()).status_code == 200
    before = await table.load()

    await proxy.stop()
    await check_that_nothing_is_half_done(table, before)
    await proxy.start()

    assert (await table.set(after="1")).status_code == 200
    properties = (await table.load()).json()["metadata"]["properties"]
    assert (properties.get("during"), properties["after"]) == (None, "1")
    assert (await table.create("other")).status_code == 200


@pytest.mark.postgres
async def test_with_the_disk_full_reads_go_on_and_commits_are_refused_whole(
    processes: Processes, postgres_schema_url: str, tmp_path: Path, http: httpx.AsyncClient
) -> None:
    env = {**PATIENT, "CYNOSURE_PERSISTENCE__URL": postgres_schema_url}
    server = await start_catalog_server(processes, tmp_path, env=env)
    table = Table(await server.create_catalog("lake"), http)
    assert (await table.create()).status_code == 200
    before = await table.load()

    # The kernel refuses to let a file of the process grow beyond this, in the middle of writing it.
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
    refused = await table.set(during="x" * 500_000)
    after = await table.load()
    resource.prlimit(
        server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    )

    assert refused.status_code == 503, refused.text[:500]
    assert after.json() == before.json()
    assert (await table.set(during="x" * 500_000, after="1")).status_code == 200
    loaded = (await table.load()).json()
    assert loaded["metadata"]["properties"]["after"] == "1"
    # Nothing of the file that could not be finished is left.
    files = sorted(server.warehouse.rglob("*.metadata.json"))
    assert files == sorted(metadata_files([loaded]))


async def test_a_commit_in_work_is_finished_before_the_server_ends(
    processes: Processes, s3_url: str, proxy: FaultProxy, tmp_path: Path, http: httpx.AsyncClient
) -> None:
    server = await start_catalog_server(processes, tmp_path, env=PATIENT)
    table = Table(await create_on_s3(server, s3_url, proxy), http)
    assert (await table.create()).status_code == 200
    slow = proxy.add(Delay(request_s=1.5), when=http_request("PUT"))

    commit = asyncio.create_task(table.set(slow="1"))
    async with asyncio.timeout(60):
        while not slow.hits:  # noqa: ASYNC110 - another process has no event for us
            await asyncio.sleep(0.01)
    os.kill(server.process.pid, signal.SIGTERM)
    answer = await commit

    assert answer.status_code == 200, answer.text
    assert await server.process.wait_exit() == 0
    await server.process.start()
    assert (await table.load()).json()["metadata"]["properties"]["slow"] == "1"
