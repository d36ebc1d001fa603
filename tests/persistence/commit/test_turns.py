"""Fairness between processes that commit to one reference."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from cynosure.persistence.spi import Reference, RefKey
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import RuledBackend, SmallStore

pytestmark = pytest.mark.anyio


class Turn(NamedTuple):
    """A turn as a database offers it: it stops others who ask, and nobody else."""

    current: Reference | None
    head_row: None = None


class TurnBackend(RuledBackend):
    def __init__(self) -> None:
        super().__init__()
        self._lock = asyncio.Lock()

    @property
    def is_held(self) -> bool:
        return self._lock.locked()

    @asynccontextmanager
    async def hold_ref(self, key: RefKey, head_type: str) -> AsyncIterator[Turn]:  # type: ignore[override]
        async with self._lock:
            yield Turn((await self.fetch_refs([key]))[0])


@pytest.fixture
async def bench() -> SmallStore:
    bench = SmallStore()
    bench.backend = TurnBackend()
    await bench.setup()
    return bench


async def test_a_process_that_always_wins_asks_for_a_turn_now_and_then(bench: SmallStore) -> None:
    committer = bench.committer()

    for _ in range(100):
        await committer.commit(bench.items.add("t"))

    assert bench.counters.lost == 0
    assert bench.counters.turns == 3


async def test_one_that_asks_is_not_starved_by_one_that_never_has_to(bench: SmallStore) -> None:
    busy, patient = bench.committer(), bench.committer()
    is_served = asyncio.Event()

    async def win_always() -> int:
        commits = 0
        while not is_served.is_set():
            await busy.commit(bench.items.add("hot"))
            commits += 1
        return commits

    async def ask() -> None:
        for _ in range(5):
            await patient.commit(bench.items.add("hot"))
        is_served.set()

    commits, _ = await asyncio.gather(win_always(), ask())

    assert commits < 5 * 64


async def test_whoever_meets_others_in_a_turn_goes_on_taking_turns(bench: SmallStore) -> None:
    ours, theirs = bench.committer(), bench.committer()
    for _ in range(32):
        await ours.commit(bench.items.add("ours"))
    await theirs.commit(bench.items.add("theirs"))
    assert bench.counters.turns == 0
    swaps_in_turns = 0

    async def in_a_turn(
        _expected: Reference, _updated: Reference, apply: Callable[[], Awaitable[bool]]
    ) -> bool:
        nonlocal swaps_in_turns
        swaps_in_turns += bench.backend.is_held
        return await apply()

    bench.backend.rule = in_a_turn
    for _ in range(20):
        await ours.commit(bench.items.add("ours"))

    assert swaps_in_turns == 20


async def test_a_turn_goes_on_from_group_to_group_but_not_for_ever(bench: SmallStore) -> None:
    ours, theirs = bench.committer(), bench.committer()
    for _ in range(32):
        await ours.commit(bench.items.add("ours"))
    await theirs.commit(bench.items.add("theirs"))

    for _ in range(20):
        await ours.commit(bench.items.add("ours"))

    assert bench.counters.turns == 3, "of eight groups, eight and four"


async def test_without_turns_a_head_is_read_after_the_pause_and_not_before() -> None:
    clock = ManualClock()
    bench = SmallStore(clock)
    await bench.setup()
    ours, theirs = bench.committer(), bench.committer()

    async def overtaken(
        expected: Reference, updated: Reference, apply: Callable[[], Awaitable[bool]]
    ) -> bool:
        bench.backend.rule = None
        await theirs.commit(bench.items.add("theirs"))
        return await apply()

    bench.backend.rule = overtaken
    commit = asyncio.create_task(ours.commit(bench.items.add("ours")))
    await clock.wait_for_sleepers(1)
    await theirs.commit(bench.items.add("theirs"))
    await clock.advance(1)
    await commit

    assert bench.counters.lost == 1
