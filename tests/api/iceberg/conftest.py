"""A server with one catalog, and a client whose paths begin inside that catalog."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.catalog.directory import Directory
from cynosure.common.clock import SystemClock
from cynosure.testing.small_api import open_client
from cynosure.testing.small_catalog import make_catalog, open_directory_in


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path) as directory:
        await make_catalog(directory, tmp_path, "lake")
        yield directory


@pytest.fixture
async def client(directory: Directory) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(directory) as client:
        yield client


SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "data", "required": False, "type": "string"},
    ],
}


@pytest.fixture
def schema() -> dict[str, object]:
    return SCHEMA


@pytest.fixture
def view_version() -> dict[str, object]:
    return {
        "version-id": 1,
        "timestamp-ms": 1_750_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "test"},
        "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
        "default-namespace": ["a"],
    }


ErrorOf = Callable[[httpx.Response], tuple[int, str]]


@pytest.fixture
def error_of() -> ErrorOf:
    """Status and type of an error, which must have the protocol's envelope."""

    def read(response: httpx.Response) -> tuple[int, str]:
        error = response.json()["error"]
        assert error["code"] == response.status_code
        assert error["message"]
        return response.status_code, error["type"]

    return read


VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": [],
}
FURNITURE = [
    ("namespaces", {"namespace": ["a"]}),
    ("namespaces", {"namespace": ["a", "b"]}),
    ("namespaces/a/tables", {"name": "t", "schema": SCHEMA}),
    ("namespaces/a/views", {"name": "v", "schema": SCHEMA, "view-version": VERSION}),
]


class Server:
    """A service with one furnished catalog, for tests that are not async themselves."""

    def __init__(self, runner: asyncio.Runner, client: httpx.AsyncClient, base: str) -> None:
        self._runner = runner
        self._client = client
        self.base = base
        """Where the catalog's files are."""

    def furnish(self) -> None:
        """Put back what earlier requests may have dropped."""
        for path, body in FURNITURE:
            self._runner.run(self._client.post(f"/api/catalog/v1/lake/{path}", json=body))

    def send(self, method: str, path: str, **request: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **request))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    async def start() -> tuple[AsyncExitStack, httpx.AsyncClient]:
        stack = AsyncExitStack()
        directory = await stack.enter_async_context(open_directory_in(tmp_path))
        await make_catalog(directory, tmp_path)
        service = make_service(
            iceberg_routes(Catalogs(directory)),
            title="test",
            version="1",
            clock=SystemClock(),
            rng=random.Random(1),
            gate=OperatorGate(),
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        client = httpx.AsyncClient(transport=transport, base_url="http://test")
        return stack, await stack.enter_async_context(client)

    with asyncio.Runner() as runner:
        stack, client = runner.run(start())
        yield Server(runner, client, f"file://{tmp_path}/lake")
        runner.run(stack.aclose())
