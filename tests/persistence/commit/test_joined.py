"""Several requests answered by one change: all of them are in its commit, or none (I10, I81)."""

import asyncio

import pytest

from cynosure.persistence.commit import AlreadyCommitted, Committed, Joined, Prepared, Request, View
from cynosure.persistence.index import encode_key
from cynosure.testing.small_store import SmallStore

pytestmark = pytest.mark.anyio


def joint(bench: SmallStore, *keys: str) -> Request[int]:
    """One addition that stands for a request of each of these keys."""
    first, *others = keys
    added = bench.items.add("t", key_hash=first)

    async def prepare(view: View) -> Prepared[int]:
        prepared = await added.prepare(view)
        joined = [Joined("other", "add", f"r-{key}", key, receipt=key.encode()) for key in others]
        return Prepared(prepared.result, prepared.changes, prepared.objects, prepared.feed, joined=joined)

    return Request(prepare, "tester", operation="add", key_hash=first, joined_keys=tuple(others))


async def test_every_joined_request_has_a_record_of_its_own(bench: SmallStore) -> None:
    committer = bench.committer()
    done = await committer.commit(joint(bench, "k1", "k2", "k3"))

    assert isinstance(done, Committed)
    record = (await committer.read()).state.commit.record
    assert [(each.principal, each.key_hash) for each in record.requests] == [
        ("tester", "k1"),
        ("other", "k2"),
        ("other", "k3"),
    ]
    assert record.requests[2].receipt == b"k3"
    assert {key: await committer.find_key(key) for key in ("k1", "k2", "k3", "k4")} == {
        "k1": done.commit_id,
        "k2": done.commit_id,
        "k3": done.commit_id,
        "k4": None,
    }


async def test_a_joined_key_is_not_committed_again(bench: SmallStore) -> None:
    committer = bench.committer()
    first = await committer.commit(joint(bench, "k1", "k2"))
    assert isinstance(first, Committed)

    alone = await committer.commit(bench.items.add("t", key_hash="k2"))
    joined = await bench.committer().commit(joint(bench, "k5", "k6", "k2"))

    assert alone == joined == AlreadyCommitted(first.commit_id, "k2")
    assert await committer.find_key("k5") is None
    assert await bench.counts() == {encode_key("t").decode(): 1}


async def test_of_joints_at_once_with_a_key_in_common_one_is_committed(bench: SmallStore) -> None:
    committers = [bench.committer(), bench.committer()]
    joints = [joint(bench, f"k{number}", "common") for number in range(8)]

    outcomes = await asyncio.gather(
        *(committers[at % 2].commit(request) for at, request in enumerate(joints))
    )

    assert sum(isinstance(each, Committed) for each in outcomes) == 1
    assert {each.key_hash for each in outcomes if isinstance(each, AlreadyCommitted)} == {"common"}
    assert await bench.counts() == {encode_key("t").decode(): 1}
