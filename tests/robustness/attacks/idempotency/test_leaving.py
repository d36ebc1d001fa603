"""Clients that leave at any moment: whoever asks again gets one outcome, soon: I73 and I74."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import count
from pathlib import Path

import httpx
import pytest

from cynosure.idempotency.settings import IdempotencySettings
from tests.api.world import World, open_world
from tests.robustness.attacks.idempotency.lake import NAMESPACES, SCHEMA, TABLES, keyed, told

pytestmark = pytest.mark.anyio

EVERY = 3
"""Turns of the event loop between one moment to leave and the next."""
Asked = asyncio.Task[httpx.Response]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    # Whoever left while its reservation was being written is waited for until the lease is out.
    settings = IdempotencySettings(lease=timedelta(seconds=1), wait=timedelta(seconds=20))
    async with open_world(tmp_path, idempotency=settings) as opened:
        yield opened


def ask(client: httpx.AsyncClient, url: str, body: object, key: str) -> Asked:
    return asyncio.create_task(client.post(url, json=body, headers=keyed(key)))


async def leave_after(turns: int, asked: Asked) -> bool:
    """Leave a request; whether it had no answer by then."""
    for _ in range(turns):
        if asked.done():
            return False
        await asyncio.sleep(0)
    asked.cancel()
    await asyncio.wait([asked])
    return asked.cancelled()


@pytest.mark.parametrize("is_refused", [False, True], ids=["done", "refused"])
async def test_whoever_leaves_finds_one_outcome_afterwards(root: httpx.AsyncClient, is_refused: bool) -> None:
    for turns in count(0, EVERY):
        key, wanted = f"k{turns}", {"name": "t" if is_refused else f"t{turns}", "schema": SCHEMA}

        is_left = await leave_after(turns, ask(root, TABLES, wanted, key))
        again = [await ask(root, TABLES, wanted, key) for _ in range(2)]

        assert again[0].status_code == (409 if is_refused else 200), f"{turns}: {again[0].text}"
        assert told(again[1]) == told(again[0])
        if not is_left:
            break


async def test_those_who_wait_are_answered_when_the_first_one_leaves(root: httpx.AsyncClient) -> None:
    for turns in count(0, EVERY):
        key, wanted = f"k{turns}", {"namespace": [f"n{turns}"]}
        first = ask(root, NAMESPACES, wanted, key)
        waiting = [ask(root, NAMESPACES, wanted, key) for _ in range(3)]

        is_left = await leave_after(turns, first)
        answers = await asyncio.gather(*waiting)

        # Made twice, it would be refused as taken.
        assert answers[0].status_code == 200, f"{turns}: {answers[0].text}"
        assert {told(each) for each in answers} == {told(answers[0])}
        if not is_left:
            break
