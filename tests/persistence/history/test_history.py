"""Log, state at a time, comparison, restore, reset and check."""

import asyncio
from datetime import timedelta

import pytest

from cynosure.common.errors import BadInput, Damaged, Expired, NotFound
from cynosure.persistence.commit import COMMIT, Committed
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.history.compare import compare
from cynosure.persistence.history.log import state_at_commit, state_at_time, walk_log
from cynosure.persistence.history.reset import reset_to_recent
from cynosure.persistence.history.restore import restore
from cynosure.persistence.index import encode_key
from cynosure.persistence.spi import ObjId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import MAIN, SmallStore

pytestmark = pytest.mark.anyio
RETENTION = timedelta(days=30)


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def small(clock: ManualClock) -> SmallStore:
    small = SmallStore(clock)
    await small.setup()
    return small


async def commit_days(small: SmallStore, clock: ManualClock, days: int) -> list[ObjId]:
    committer = small.committer()
    ids = []
    for day in range(days):
        ids.append((await committer.commit(small.items.create(f"t{day}"))).commit_id)
        await clock.advance(24 * 3600)
    return ids


def names(*numbers: int) -> set[str]:
    return {encode_key(f"t{number}").decode() for number in numbers}


async def test_the_log_lists_all_commits_newest_first(small: SmallStore, clock: ManualClock) -> None:
    ids = await commit_days(small, clock, 20)

    store = small.store()
    entries = [entry async for entry in walk_log(store, ids[-1])]

    assert [entry.id for entry in entries] == ids[::-1]
    assert [entry.record.sequence for entry in entries] == list(range(20, 0, -1))


async def test_the_log_of_an_empty_reference_is_empty(small: SmallStore) -> None:
    assert [entry async for entry in walk_log(small.store(), NO_COMMIT)] == []


async def test_the_state_at_a_time_is_the_last_commit_before_it(
    small: SmallStore, clock: ManualClock
) -> None:
    start_us = clock.now_us()
    ids = await commit_days(small, clock, 5)
    noon_us = start_us + int(timedelta(days=2, hours=12).total_seconds() * 1_000_000)

    state = await state_at_time(small.store(), ids[-1], noon_us)

    assert state.commit_id == ids[2]


async def test_before_the_first_commit_the_state_was_empty(small: SmallStore, clock: ManualClock) -> None:
    start_us = clock.now_us()
    ids = await commit_days(small, clock, 2)

    state = await state_at_time(small.store(), ids[-1], start_us - 1)

    assert await state.scan("names", limit=10) == []


async def test_a_time_before_the_collected_history_is_expired(small: SmallStore, clock: ManualClock) -> None:
    start_us = clock.now_us()
    ids = await commit_days(small, clock, 5)
    await small.backend.delete([small.store().key(COMMIT, each) for each in ids[:2]])

    with pytest.raises(Expired):
        await state_at_time(small.store(), ids[-1], start_us)


async def test_only_commits_of_the_chain_are_found_in_it(small: SmallStore, clock: ManualClock) -> None:
    ids = await commit_days(small, clock, 3)

    assert (await state_at_commit(small.store(), ids[-1], ids[0])).commit_id == ids[0]
    with pytest.raises(NotFound):
        await state_at_commit(small.store(), ids[0], ids[-1])
    with pytest.raises(NotFound):
        await state_at_commit(small.store(), ids[-1], ObjId(12345))


async def test_a_comparison_names_every_entry_that_differs(small: SmallStore) -> None:
    committer = small.committer()
    for name in ("kept", "dropped", "changed"):
        await committer.commit(small.items.create(name))
    before = (await committer.read()).state
    await committer.commit(small.items.drop("dropped"))
    await committer.commit(small.items.add("changed"))
    await committer.commit(small.items.create("created"))
    after = (await committer.read()).state

    differences = {
        (each.index, each.key): (each.before is not None, each.after is not None)
        async for each in compare(before, after)
        if each.index == "names"
    }

    assert differences == {
        ("names", encode_key("dropped")): (True, False),
        ("names", encode_key("changed")): (True, True),
        ("names", encode_key("created")): (False, True),
    }


async def test_a_restore_is_a_new_commit_with_the_old_state(small: SmallStore, clock: ManualClock) -> None:
    """I18."""
    ids = await commit_days(small, clock, 5)
    committer = small.committer()

    outcome = await restore(
        committer, ids[1], principal="op", request_id="r1", clock=clock, retention=RETENTION
    )

    assert isinstance(outcome, Committed)
    assert outcome.result == 3 * 3  # Three items, each in three indexes.
    assert set(await small.counts()) == names(0, 1)
    chain = await small.chain()
    assert chain[1:] == ids[::-1]
    record = (await small.store().load(COMMIT, chain[0])).record
    assert record.requests[0].operation == "restore"
    assert record.requests[0].changes[0].kind == "restored"
    await small.assert_whole()


async def test_a_restore_can_be_undone(small: SmallStore, clock: ManualClock) -> None:
    ids = await commit_days(small, clock, 4)
    committer = small.committer()
    for target in (ids[0], ids[-1]):
        await restore(committer, target, principal="op", request_id="", clock=clock, retention=RETENTION)

    assert set(await small.counts()) == names(0, 1, 2, 3)


async def test_a_restore_amid_writers_is_exact_and_loses_none_after_it(
    small: SmallStore, clock: ManualClock
) -> None:
    ids = await commit_days(small, clock, 3)
    committer, other = small.committer(), small.committer()

    async def write(number: int) -> None:
        await (committer if number % 2 else other).commit(small.items.create(f"w{number}"))

    writers = [asyncio.create_task(write(number)) for number in range(20)]
    restoring = asyncio.create_task(
        restore(committer, ids[0], principal="op", request_id="", clock=clock, retention=RETENTION)
    )
    while not (restoring.done() and all(task.done() for task in writers)):
        await clock.advance(0.05)
    outcome = restoring.result()

    # Everything committed after the restore is there, everything before it is not.
    store = small.store()
    expected = names(0)
    async for entry in walk_log(store, (await small.chain())[0]):
        if entry.id == outcome.commit_id:
            break
        expected |= {change.key.decode() for each in entry.record.requests for change in each.changes}
    assert set(await small.counts()) == expected
    await small.assert_whole()


async def test_a_commit_near_the_end_of_retention_is_not_restored(
    small: SmallStore, clock: ManualClock
) -> None:
    ids = await commit_days(small, clock, 3)
    await clock.advance((28 * 24 - 1) * 3600)  # 30 days less an hour after the second replaced the first.

    with pytest.raises(Expired):
        await restore(
            small.committer(), ids[0], principal="op", request_id="", clock=clock, retention=RETENTION
        )


async def test_the_state_before_a_mistake_is_restored_however_old_its_last_commit_is(
    small: SmallStore, clock: ManualClock
) -> None:
    ids = await commit_days(small, clock, 2)
    await clock.advance(60 * 24 * 3600)
    committer = small.committer()
    await committer.commit(small.items.drop("t0"))

    outcome = await restore(
        committer, ids[-1], principal="op", request_id="", clock=clock, retention=RETENTION
    )

    assert isinstance(outcome, Committed)
    assert set(await small.counts()) == names(0, 1)


@pytest.mark.parametrize("reference", ["grants", "principals", "settings"])
async def test_rights_are_not_revived_unless_asked_for(
    small: SmallStore, clock: ManualClock, reference: str
) -> None:
    """I18."""
    committer = small.committer()
    committer.key = MAIN._replace(name=reference)

    with pytest.raises(BadInput, match="revoked"):
        await restore(committer, ObjId(1), principal="op", request_id="", clock=clock, retention=RETENTION)


async def test_what_was_recorded_is_not_made_unrecorded(small: SmallStore, clock: ManualClock) -> None:
    committer = small.committer()
    committer.key = MAIN._replace(name="audit")

    with pytest.raises(BadInput, match="record"):
        await restore(
            committer,
            ObjId(1),
            principal="op",
            request_id="",
            clock=clock,
            retention=RETENTION,
            revive_rights=True,
        )


async def test_a_disaster_reset_goes_to_a_recent_head_under_a_new_generation(
    small: SmallStore, clock: ManualClock
) -> None:
    """I18."""
    ids = await commit_days(small, clock, 5)
    ref = await small.ref()
    # The newest commit did not make it to the replica.
    await small.backend.delete([small.store().key(COMMIT, ids[-1])])

    moved = await reset_to_recent(small.backend, small.store(), ref, ids[-2])

    assert (moved.head, moved.generation) == (ids[-2], ref.generation + 1)
    assert set(await small.counts()) == names(0, 1, 2, 3)
    await small.committer().commit(small.items.create("t9"))
    assert set(await small.counts()) == names(0, 1, 2, 3, 9)


async def test_a_disaster_reset_refuses_other_and_incomplete_heads(
    small: SmallStore, clock: ManualClock
) -> None:
    ids = await commit_days(small, clock, 5)
    ref = await small.ref()
    await small.backend.delete([small.store().key(COMMIT, ids[2])])

    with pytest.raises(BadInput, match="status"):
        await reset_to_recent(small.backend, small.store(), ref, ObjId(77))
    with pytest.raises(Damaged, match="older"):
        await reset_to_recent(small.backend, small.store(), ref, ids[2])


async def test_a_check_finds_missing_and_damaged_objects(small: SmallStore, clock: ManualClock) -> None:
    await commit_days(small, clock, 3)
    rows = small.backend._store.rows
    items = sorted(key for key in rows if key.type == "test-item")
    del rows[items[0]]
    rows[items[1]] = rows[items[1]]._replace(blob=b"garbage")

    report = await check_reference(small.store(), await small.ref())

    assert report.commits == 3
    assert len(report.problems) == 2
    assert str(items[0].id) in report.problems[0] + report.problems[1]
