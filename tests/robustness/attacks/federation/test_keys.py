"""Idempotency-Keys of others, and used twice, on the way to a remote."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.testing.admin import Grant
from cynosure.testing.memory_remote import MemoryRemote
from tests.api.world import World, open_world

pytestmark = pytest.mark.anyio

FAR = "http://test/api/catalog/v1/far"
KEY = {"Idempotency-Key": "0197f3a2-7c1e-7b3a-9d2e-5a1b2c3d4e5f"}


class KeyedRemote(MemoryRemote):
    """Remembers the keys that it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str | None] = []

    async def create_namespace(self, namespace: Any, properties: Any, *, key: str | None = None) -> Any:
        self.keys.append(key)
        return await super().create_namespace(namespace, properties, key=key)


class Far(NamedTuple):
    world: World
    root: httpx.AsyncClient
    remote: KeyedRemote


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    remote = KeyedRemote()
    async with (
        open_world(tmp_path, remotes=lambda _: remote) as world,
        await world.login(world.root) as root,
    ):
        connection = {
            "connectionType": "ICEBERG_REST",
            "uri": "http://127.0.0.1:1/",
            "authenticationParameters": {"authenticationType": "BEARER", "bearerToken": "a-token-of-a-test"},
        }
        wanted = world.catalog("far", type="EXTERNAL", connectionConfigInfo=connection)
        assert (await root.post("/catalogs", json=wanted)).status_code == 201
        yield Far(world, root, remote)


def create(client: httpx.AsyncClient, name: str) -> Any:
    return client.post(f"{FAR}/namespaces", json={"namespace": [name]}, headers=KEY)


async def test_a_key_is_for_one_request(far: Far) -> None:
    first, again = await create(far.root, "a"), await create(far.root, "a")
    other = await create(far.root, "b")

    assert (first.status_code, again.status_code, other.status_code) == (200, 200, 422), other.text
    assert again.json() == first.json()
    assert far.remote.asked.count("create-namespace") == 1


async def test_many_with_one_key_at_once_are_one(far: Far) -> None:
    answers = await asyncio.gather(*(create(far.root, "a") for _ in range(20)))

    assert {each.status_code for each in answers} <= {200, 409}
    assert 200 in {each.status_code for each in answers}
    assert far.remote.asked.count("create-namespace") == 1


async def test_a_key_of_somebody_else_brings_nothing_of_theirs(far: Far) -> None:
    await create(far.root, "a")
    admin = far.world.admin(far.root)
    nobody = await admin.create_user("nobody", "far")
    maker = await admin.create_user("maker", "far", Grant("NAMESPACE_FULL_METADATA"))
    asked = len(far.remote.asked)
    async with await far.world.login(nobody) as client:
        refused = await create(client, "a")
    assert refused.status_code in (403, 404)
    assert len(far.remote.asked) == asked
    async with await far.world.login(maker) as client:
        taken, own = await create(client, "a"), await create(client, "c")

    # Not told what root was told: it is judged anew. The refusal has used up the maker's own key.
    assert (taken.status_code, own.status_code) == (409, 422)
    # Nothing of a client's own text goes to a remote.
    assert KEY["Idempotency-Key"] not in far.remote.keys
