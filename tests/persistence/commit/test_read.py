"""`Committer.read`: always the current head, and no more work than the head has moved."""

import pytest

from cynosure.common.errors import NotFound
from cynosure.testing.small_store import SmallStore

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
