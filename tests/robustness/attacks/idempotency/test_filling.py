"""Keys fill no store for those who may do nothing: I74 and I79."""

import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.idempotency.record import RECORD
from cynosure.idempotency.settings import IdempotencySettings
from cynosure.persistence.spi import SYSTEM_REALM
from tests.api.world import World, open_world
from tests.robustness.attacks.idempotency.lake import NAMESPACES, TABLES, is_replayed, keyed

pytestmark = pytest.mark.anyio


async def measure(world: World) -> tuple[int, int]:
    """How many records there are, and their bytes."""
    store = world.identities.persistence.store(SYSTEM_REALM)
    heads = await store.scan_heads(RECORD, limit=1000)
    return len(heads), sum(head.blob_bytes for head in heads)


async def test_strangers_store_nothing(world: World, root: httpx.AsyncClient) -> None:
    before = await measure(world)
    async with world.client("not-a-token") as stranger:
        answers = [
            await stranger.post(NAMESPACES, json={"namespace": ["x"]}, headers=keyed(f"k{each}"))
            for each in range(5)
        ]

    assert {answer.status_code for answer in answers} == {401}
    assert await measure(world) == before


async def test_who_may_not_do_it_stores_nothing(world: World, root: httpx.AsyncClient) -> None:
    """And may try again with the same key: nothing was decided."""
    before = await measure(world)
    credential = await world.admin(root).create_user("ann", "lake")
    asked: list[tuple[str, str, Any]] = [
        ("POST", NAMESPACES, {"namespace": ["x"]}),
        ("DELETE", f"{TABLES}/t", None),
        ("POST", "principals", {"principal": {"name": "x"}}),
        ("DELETE", "catalogs/lake", None),
    ]
    async with await world.login(credential) as ann:
        answers = [await ann.request(*each[:2], json=each[2], headers=keyed()) for each in asked]

    assert {answer.status_code for answer in answers} == {403}
    assert await measure(world) == before


async def test_a_long_path_makes_no_large_record(world: World, root: httpx.AsyncClient) -> None:
    count, size = await measure(world)

    answer = await root.delete(f"{NAMESPACES}/{random.Random(1).randbytes(25_000).hex()}", headers=keyed())

    assert answer.status_code in (400, 404), answer.text
    after_count, after_size = await measure(world)
    assert after_count == count + 1
    assert after_size - size < 4_000


async def test_turned_off_no_header_costs_or_does_anything(tmp_path: Path) -> None:
    """I79: also one that breaks the rule, or comes twice."""
    async with (
        open_world(tmp_path, idempotency=IdempotencySettings(enabled=False)) as world,
        await world.login(world.root) as root,
    ):
        headers = [("Idempotency-Key", "not a key"), ("Idempotency-Key", "k1")]
        answers = [
            await root.post("principal-roles", json={"principalRole": {"name": "etl"}}, headers=each)
            for each in (headers, keyed("k1"), keyed("k1"))
        ]

        assert [answer.status_code for answer in answers] == [201, 409, 409]
        assert not any(is_replayed(answer) for answer in answers)
        assert await measure(world) == (0, 0)
