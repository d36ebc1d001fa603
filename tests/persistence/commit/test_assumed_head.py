"""A change is prepared on the head a process knows; every other answer rests on one that was read."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cynosure.common.errors import AlreadyExists, Conflict
from cynosure.persistence.commit import Committed, Prepared, Request, View, find_object
from cynosure.persistence.index import encode_key
from cynosure.persistence.spi import Reference
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import SmallStore
from cynosure.testing.workload import ITEM

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def bench(clock: ManualClock) -> SmallStore:
    bench = SmallStore(clock)
    await bench.setup()
    return bench


def count_reads(bench: SmallStore) -> list[int]:
    """Grows by one with every read of the reference."""
    reads: list[int] = []
    fetch_refs_now = bench.backend.fetch_refs_now

    def counted(keys):
        reads.append(len(keys))
        return fetch_refs_now(keys)

    bench.backend.fetch_refs_now = counted
    return reads


async def test_one_commit_after_another_reads_no_head(bench: SmallStore) -> None:
    committer = bench.committer()
    await committer.commit(bench.items.add("t"))
    reads = count_reads(bench)

    for _ in range(10):
        await committer.commit(bench.items.add("t"))

    assert reads == []
    assert await bench.counts() == {"t": 11}


async def test_after_a_while_the_head_is_read_again(bench: SmallStore, clock: ManualClock) -> None:
    ours, theirs = bench.committer(), bench.committer()
    await ours.commit(bench.items.add("t"))
    await clock.advance(2)
    await theirs.commit(bench.items.add("t"))

    await ours.commit(bench.items.add("t"))

    assert bench.counters.lost == 0
    assert await bench.counts() == {"t": 3}


async def test_a_change_prepared_on_a_head_that_moved_is_prepared_again_without_a_pause(
    bench: SmallStore,
) -> None:
    ours, theirs = bench.committer(), bench.committer()
    await ours.commit(bench.items.add("t"))
    await theirs.commit(bench.items.add("t"))

    outcome = await ours.commit(bench.items.add("t"))  # the clock stands still: a pause would never end

    assert isinstance(outcome, Committed)
    assert outcome.result == 3
    assert bench.counters.lost == 1


async def test_after_a_loss_heads_are_read_for_a_while(bench: SmallStore) -> None:
    ours, theirs = bench.committer(), bench.committer()
    await ours.commit(bench.items.add("t"))
    for _ in range(5):
        await theirs.commit(bench.items.add("t"))
        await ours.commit(bench.items.add("t"))

    assert bench.counters.lost == 2, "one each: both have assumed once"


async def test_a_refusal_rests_on_a_head_that_was_read(bench: SmallStore) -> None:
    """I12."""
    ours, theirs = bench.committer(), bench.committer()
    await ours.commit(bench.items.create("t"))
    await theirs.commit(bench.items.drop("t"))

    outcome = await ours.commit(bench.items.create("t"))

    assert isinstance(outcome, Committed)


async def test_a_true_refusal_reaches_the_caller(bench: SmallStore) -> None:
    committer = bench.committer()
    await committer.commit(bench.items.create("t"))
    reads = count_reads(bench)

    with pytest.raises(AlreadyExists):
        await committer.commit(bench.items.create("t"))

    assert reads == [1]


async def test_that_nothing_is_to_be_done_rests_on_a_head_that_was_read(bench: SmallStore) -> None:
    """I12."""
    ours, theirs = bench.committer(), bench.committer()
    await ours.commit(bench.items.create("t"))
    await theirs.commit(bench.items.drop("t"))

    async def create_unless_there(view: View) -> Prepared[bool]:
        if await view.find("names", b"t") is not None:
            return Prepared(False)
        return await bench.items.create("t").prepare(view)

    await ours.commit(Request(create_unless_there, "tester", "ensure"))

    assert await bench.counts() == {"t": 0}


async def test_a_refusal_in_a_group_that_swaps_nothing_is_asked_again_on_a_read_head(
    bench: SmallStore, clock: ManualClock
) -> None:
    """I12."""
    ours, theirs = bench.committer(), bench.committer()
    await theirs.commit(bench.items.add("t"))

    async def overtaken(
        expected: Reference, updated: Reference, apply: Callable[[], Awaitable[bool]]
    ) -> bool:
        bench.backend.rule = None
        await theirs.commit(bench.items.add("t"))
        return await apply()

    async def only_odd(view: View) -> Prepared[int]:
        item = await find_object(view, "names", encode_key("t"), ITEM)
        assert item is not None
        if item.count % 2 == 0:
            await theirs.commit(bench.items.add("t"))  # what the refusal says is no longer true
            raise Conflict("Even")
        return await bench.items.add("t").prepare(view)

    bench.backend.rule = overtaken
    commit = asyncio.create_task(ours.commit(Request(only_odd, "tester", "odd", is_exclusive=True)))
    await clock.wait_for_sleepers(1)
    await clock.advance(1)
    outcome = await commit

    assert isinstance(outcome, Committed)
    assert outcome.result == 4


async def test_requests_of_callers_that_come_again_at_once_share_a_commit(bench: SmallStore) -> None:
    committer = bench.committer()

    async def write(number: int) -> None:
        for _ in range(10):
            await committer.commit(bench.items.add(f"t{number}"))

    await asyncio.gather(*(write(number) for number in range(8)))

    assert bench.counters.requests == 80
    assert bench.counters.commits <= 12
