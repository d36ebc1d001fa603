"""A whole API in one process, with root, a catalog `lake`, and a table `ns.t` in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.api.world import World, open_world
from tests.robustness.attacks.idempotency.lake import NAMESPACES, SCHEMA, TABLES


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with await world.login(world.root) as client:
        assert (await client.post("catalogs", json=world.catalog("lake"))).status_code == 201
        await world.admin(client).grant_content("lake")
        assert (await client.post(NAMESPACES, json={"namespace": ["ns"]})).status_code == 200
        assert (await client.post(TABLES, json={"name": "t", "schema": SCHEMA})).status_code == 200
        yield client
