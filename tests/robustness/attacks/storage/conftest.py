"""A server with a catalog on every object store there is, and principals with rights in them."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.robustness.attacks.user import MakeUser, User

from .lakes import Lake


@pytest.fixture(scope="session")
def store_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CatalogServer, dict[str, Lake]]]:
    async def start() -> tuple[CatalogServer, dict[str, Lake]]:
        server = await start_catalog_server(processes, directory)
        lakes = {}
        for store in find_s3_servers().values():
            lakes[store.name] = await _make_lake(server, store)
        return server, lakes

    directory = tmp_path_factory.mktemp("stores")
    with Processes(directory) as processes:
        yield asyncio.run(start())


async def _make_lake(server: CatalogServer, store: S3Server) -> Lake:
    name = f"on-{store.name}"
    base = f"s3://{store.bucket}/{secrets.token_hex(6)}"
    await server.create_catalog(name, location=base, storage=store.storage())
    lake = Lake(server, store, name, base)
    async with server.client() as http:
        made = await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
        assert made.status_code == 200, made.text
    return lake


@pytest.fixture(params=["seaweedfs", "minio"])
def lake(request: pytest.FixtureRequest, store_server: tuple[CatalogServer, dict[str, Lake]]) -> Lake:
    """A catalog on each store that gives credentials."""
    return store_server[1][request.param]


@pytest.fixture(params=["seaweedfs", "minio", "no-sts"])
def any_lake(request: pytest.FixtureRequest, store_server: tuple[CatalogServer, dict[str, Lake]]) -> Lake:
    """A catalog on each store."""
    return store_server[1][request.param]


@pytest.fixture
def plain_lake(store_server: tuple[CatalogServer, dict[str, Lake]]) -> Lake:
    """A catalog on a store that gives none."""
    return store_server[1]["no-sts"]


@pytest.fixture
async def owner(store_server: tuple[CatalogServer, dict[str, Lake]]) -> AsyncIterator[httpx.AsyncClient]:
    """A client that is root, who may do everything in these catalogs."""
    async with store_server[0].client() as http:
        yield http


@pytest.fixture
async def make_thief(
    store_server: tuple[CatalogServer, dict[str, Lake]], owner: httpx.AsyncClient
) -> AsyncIterator[MakeUser]:
    """Makes a principal of a fresh name with these privileges in a catalog."""
    users: list[User] = []

    async def make(lake: Lake, *grants: Grant | str) -> User:
        name = f"u{secrets.token_hex(4)}"
        given = [Grant(grant) if isinstance(grant, str) else grant for grant in grants]
        users.append(User(store_server[0], name, await Admin(owner).create_user(name, lake.name, *given)))
        return users[-1]

    yield make
    for user in users:
        await user.http.aclose()
