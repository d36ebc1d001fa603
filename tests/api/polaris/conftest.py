"""A world with an internal and an external catalog, and somebody without any rights."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.api.world import World, open_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with await world.login(world.root) as client:
        for name, kind in (("lake", "INTERNAL"), ("ext", "EXTERNAL")):
            answer = await client.post("/catalogs", json=world.catalog(name, type=kind))
            assert answer.status_code == 201, answer.text
            await world.admin(client).grant_content(name)
        yield client


@pytest.fixture
async def nobody(world: World, root: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    async with await world.login(await world.admin(root).create_principal("nobody")) as client:
        yield client
