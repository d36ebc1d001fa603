"""Processes killed at any moment of a commit: what was acknowledged stays, the rest is whole or absent."""

import asyncio
import random
from collections.abc import Callable

import pytest

pytestmark = pytest.mark.anyio

Scale = Callable[[int, int], int]


async def test_kill_9_at_random_moments_loses_and_doubles_nothing(
    storms, rng: random.Random, scale: Scale
) -> None:
    """I4, I5, I11, I12."""
    await storms.hail(processes=3, rounds=scale(6, 80), seed=rng.getrandbits(32))

    verdict = await storms.verify()
    assert verdict.problems == ()
    assert verdict.refused == verdict.unknown == 0
    assert verdict.acknowledged <= verdict.committed <= verdict.sent


async def test_a_process_killed_between_the_swap_and_its_answer_leaves_the_commit_once(
    storms, rng: random.Random, scale: Scale
) -> None:
    """I4."""
    deaths = scale(5, 50)

    await storms.hail("--kill-after-swap", "0.2", processes=1, rounds=deaths, seed=rng.getrandbits(32))

    verdict = await storms.verify()
    assert verdict.problems == ()
    # Some of them died over the storm's own reference: requests are in the chain that nobody was told of.
    assert verdict.committed > verdict.acknowledged


async def test_several_processes_share_a_reference_fairly(storms, rng: random.Random) -> None:
    """I4."""
    names = ["first", "second"]
    running = await asyncio.gather(*(storms.start(name, seed=rng.getrandbits(32)) for name in names))

    # However long the other one has been winning, each is served again and again.
    for name, process in zip(names, running, strict=True):
        await storms.wait_for(name, 20, process)

    for process in running:
        await process.stop()
    assert (await storms.verify()).problems == ()
