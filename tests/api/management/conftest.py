"""A world with a catalog, its root, and somebody without any rights."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.api.world import World, open_world

ErrorOf = Callable[[httpx.Response], tuple[int, str]]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with await world.login(world.root) as client:
        yield client


@pytest.fixture
async def lake(world: World, root: httpx.AsyncClient) -> str:
    """The name of a catalog."""
    answer = await root.post("/catalogs", json=world.catalog("lake"))
    assert answer.status_code == 201, answer.text
    return "lake"


@pytest.fixture
async def nobody(world: World, root: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    """A principal without any role."""
    async with await world.login(await world.admin(root).create_principal("nobody")) as client:
        yield client


class Refusing(NamedTuple):
    """A world that tests share which must not change it: all they send is refused."""

    world: World
    root: httpx.AsyncClient
    nobody: httpx.AsyncClient


@pytest.fixture(scope="module")
async def refusing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Refusing]:
    async with (
        open_world(tmp_path_factory.mktemp("world")) as world,
        await world.login(world.root) as root,
    ):
        admin = world.admin(root)
        await admin.send("POST", "/catalogs", world.catalog("lake"))
        async with await world.login(await admin.create_principal("nobody")) as nobody:
            yield Refusing(world, root, nobody)


@pytest.fixture
def error_of() -> ErrorOf:
    """Status and type of an error, which must have the protocol's envelope."""

    def read(response: httpx.Response) -> tuple[int, str]:
        error = response.json()["error"]
        assert error["code"] == response.status_code
        assert error["message"]
        return response.status_code, error["type"]

    return read
