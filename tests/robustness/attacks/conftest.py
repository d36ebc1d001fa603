"""One server to be attacked, with a catalog `lake` and a table `ns.t`, and users with few rights."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.harness.processes import Processes

from .user import LAKE, MakeUser, User


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    async def start() -> CatalogServer:
        server = await start_catalog_server(processes, directory)
        await server.create_catalog("lake")
        async with server.client() as http:
            made = [
                await http.post(f"{LAKE}/namespaces", json={"namespace": ["ns"]}),
                await http.post(f"{LAKE}/namespaces/ns/tables", json={"name": "t", "schema": SCHEMA}),
            ]
        assert [answer.status_code for answer in made] == [200, 200]
        return server

    directory = tmp_path_factory.mktemp("attacks")
    with Processes(directory) as processes:
        yield asyncio.run(start())


@pytest.fixture
async def root(server: CatalogServer) -> AsyncIterator[httpx.AsyncClient]:
    async with server.client() as http:
        yield http


@pytest.fixture
def admin(root: httpx.AsyncClient) -> Admin:
    return Admin(root)


@pytest.fixture
async def make_user(server: CatalogServer, admin: Admin) -> AsyncIterator[MakeUser]:
    """Makes a principal of a fresh name with these privileges in `lake`."""
    users: list[User] = []

    async def make(*grants: Grant | str) -> User:
        name = f"u{secrets.token_hex(4)}"
        given = [Grant(grant) if isinstance(grant, str) else grant for grant in grants]
        users.append(User(server, name, await admin.create_user(name, "lake", *given)))
        return users[-1]

    yield make
    for user in users:
        await user.http.aclose()
