"""`Committer.read`: always the current head, and no more work than the head has moved."""

import asyncio

import pytest

from cynosure.common.errors import NotFound
from cynosure.persistence.spi import ObjId, Reference
from cynosure.testing.small_store import MAIN, SmallStore

pytestmark = pytest.mark.anyio


async def test_while_nothing_moves_the_same_state_is_read(bench: SmallStore) -> None:
    committer = bench.committer()
    await committer.commit(bench.items.add("t"))

    first, second = await committer.read(), await committer.read()

    assert first is second
    assert first.ref == await bench.ref()


async def test_what_anyone_committed_is_read_next(bench: SmallStore) -> None:
    """I12."""
    ours, theirs = bench.committer(), bench.committer()
    for writer in (ours, theirs, theirs, ours, theirs):
        before = await ours.read()

        await writer.commit(bench.items.add("t"))

        after = await ours.read()
        assert after.ref == await bench.ref()
        assert after.state.commit_id == after.ref.head != before.ref.head


async def test_a_raised_generation_is_read_although_the_head_is_the_same(bench: SmallStore) -> None:
    committer = bench.committer()
    await committer.commit(bench.items.add("t"))
    before = (await committer.read()).ref

    assert await bench.backend.swap_ref(before, before._replace(generation=before.generation + 1))

    assert (await committer.read()).ref.generation == before.generation + 1


async def test_a_reference_that_is_deleted_is_not_read_from_memory(bench: SmallStore) -> None:
    committer = bench.committer()
    ref = (await committer.read()).ref

    assert await bench.backend.delete_ref(ref)

    with pytest.raises(NotFound):
        await committer.read()


async def test_a_reader_gets_the_state_of_its_own_read_when_a_later_one_is_faster(bench: SmallStore) -> None:
    """I12: what one reader remembers must not replace what another one has read."""
    writer = bench.committer()
    await writer.commit(bench.items.add("t"))
    old = await bench.ref()
    reader = bench.committer()
    fetch, released = bench.backend.fetch, asyncio.Event()

    async def fetch_slowly(keys):
        if keys[0].id != old.head:
            await released.wait()
        return await fetch(keys)

    await writer.commit(bench.items.add("t"))
    new = await bench.ref()
    bench.backend.fetch = fetch_slowly
    slow = asyncio.create_task(reader.read())
    await asyncio.sleep(0)
    # Back to the old head, as a disaster reset does, so that the next read is of another state and faster.
    reset = Reference(MAIN, ObjId(old.head), new.generation + 1, (), new.created_us)
    assert await bench.backend.swap_ref(new, reset)

    fast = await reader.read()
    released.set()

    assert fast.ref == reset
    assert fast.state.commit_id == old.head
    assert (await slow).ref == new
    assert (await reader.read()).ref == reset
