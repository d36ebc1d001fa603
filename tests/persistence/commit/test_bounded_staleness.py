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


class HeldReads(RuledBackend):
    """A database behind a network: the reads named here arrive only when they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[asyncio.Event] = []
        self.reads = 0

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> None:  # type: ignore[override]
        return None

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        self.reads += 1
        if self.held:
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
    """Its heads may be a minute old."""
    clock, rng = bench.clock, Random(7)
    cache = ObjectCache(1 << 24, clock)
    return Committer(
        MAIN,
        store=Store(bench.backend, cache, clock, rng, realm=MAIN.realm, catalog=MAIN.catalog),
        heads=Heads(bench.backend, clock, max_staleness_s=60.0),
        ids=bench.ids,
        clock=clock,
        rng=rng,
        limits=CommitLimits(index=IndexLimits()),
        counters=bench.counters,
        indexes=INDEXES["main"],
    )


async def pass_time(clock: ManualClock, *commits: asyncio.Task[Any]) -> None:
    """Until they have ended, and less than heads may be old."""
    for _ in range(100):
        if not all(commit.done() for commit in commits):
            await clock.advance(0.1)


async def test_after_a_lost_race_the_head_is_read_although_one_is_remembered(
    bench: SmallStore, clock: ManualClock
) -> None:
    ours, theirs = patient_committer(bench), bench.committer()
    await ours.read()
    await theirs.commit(bench.items.add("t"))

    commit = asyncio.create_task(ours.commit(bench.items.add("t")))
    await pass_time(clock, commit)

    assert commit.done()
    assert commit.result().result == 2
    assert bench.counters.lost == 1


async def test_a_request_that_met_a_newer_head_is_not_prepared_on_the_remembered_one_for_ever(
    bench: SmallStore, clock: ManualClock
) -> None:
    ours, backend = patient_committer(bench), bench.backend
    overtaken = asyncio.Event()
    backend.held = [overtaken]
    first = asyncio.create_task(ours.commit(bench.items.add("a")))
    await clock.advance(1)
    # This read starts later and ends earlier, so it is the one that is remembered.
    old = (await ours.read()).ref
    assert await backend.swap_ref(old, old._replace(generation=old.generation + 1))
    second = asyncio.create_task(ours.commit(bench.items.add("b")))
    await asyncio.sleep(0)

    # Now the first reads the raised generation, and meets the second, prepared on the older one, in a group.
    overtaken.set()
    await pass_time(clock, first, second)

    assert first.done()
    assert second.done()
    assert await bench.counts() == {"a": 1, "b": 1}
    assert bench.counters.prepared_again <= 2
