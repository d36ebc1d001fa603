"""Commits where reads may be served from memory for a while."""

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import CommitLimits, Committer
from cynosure.persistence.heads import Heads
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.references import INDEXES
from cynosure.persistence.spi import Reference, RefKey
from cynosure.persistence.store import Store
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import MAIN, RuledBackend, SmallStore

pytestmark = pytest.mark.anyio

STALENESS_S = 4.0


class HeldReads(RuledBackend):
    """A database behind a network: the reads named here arrive only when they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[asyncio.Event] = []
        self.waiting = 0

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> None:  # type: ignore[override]
        return None

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        if self.held:
            self.waiting += 1
            await self.held.pop(0).wait()
        return await super().fetch_refs(keys)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def bench(clock: ManualClock) -> SmallStore:
    bench = SmallStore(clock)
    bench.backend = HeldReads()
    await bench.setup()
    return bench


def patient_committer(bench: SmallStore) -> Committer:
    """Its heads may be old."""
    clock, rng = bench.clock, Random(7)
    cache = ObjectCache(1 << 24, clock)
    return Committer(
        MAIN,
        store=Store(bench.backend, cache, clock, rng, realm=MAIN.realm, catalog=MAIN.catalog),
        heads=Heads(bench.backend, clock, max_staleness_s=STALENESS_S),
        ids=bench.ids,
        clock=clock,
        rng=rng,
        limits=CommitLimits(index=IndexLimits()),
        counters=bench.counters,
        indexes=INDEXES["main"],
    )


async def pass_time(clock: ManualClock, commit: asyncio.Task[Any], *, most_s: float) -> None:
    """Until it has ended, or for so long."""
    until_s = clock.monotonic_s() + most_s
    while not commit.done() and clock.monotonic_s() < until_s:
        await clock.advance(0.05)


async def test_after_a_lost_race_the_head_is_read_although_one_is_remembered(
    bench: SmallStore, clock: ManualClock
) -> None:
    ours, theirs = patient_committer(bench), bench.committer()
    await ours.read()
    await theirs.commit(bench.items.add("t"))

    commit = asyncio.create_task(ours.commit(bench.items.add("t")))
    await pass_time(clock, commit, most_s=STALENESS_S / 2)

    assert commit.done()
    assert commit.result().result == 2
    assert bench.counters.lost == 1


async def test_a_request_is_not_prepared_on_a_remembered_head_that_the_committer_knows_to_be_old(
    bench: SmallStore, clock: ManualClock
) -> None:
    """Before, it was prepared again and again, without a pause, for as long as that head was remembered."""
    ours, backend = patient_committer(bench), bench.backend
    sent, answered, overtaken = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def raise_generation() -> None:
        ref = await bench.ref()
        assert await backend.swap_ref(ref, ref._replace(generation=ref.generation + 1))

    async def lose_slowly(expected: Reference, updated: Reference, apply: Any) -> bool:
        backend.rule = None
        await raise_generation()
        backend.held = [overtaken]
        sent.set()
        await answered.wait()
        return bool(await apply())

    backend.rule = lose_slowly
    commit = asyncio.create_task(ours.commit(bench.items.add("a")))
    await sent.wait()
    await clock.advance(STALENESS_S + 1)  # what was remembered before is forgotten
    answered.set()
    while not backend.waiting:
        await clock.advance(0.1)
    # The committer reads the head after its lost race. This read starts later and ends earlier, so it is
    # the one that is remembered, and old by the time the other arrives.
    await clock.advance(0.1)
    assert (await ours.read()).ref.generation == 1
    await raise_generation()

    overtaken.set()
    await pass_time(clock, commit, most_s=STALENESS_S / 2)

    assert commit.done()
    assert bench.counters.prepared_again == 1
    assert await bench.counts() == {"a": 1}
