"""Group commit: who gets what, when the group, the database or another process interferes."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from cynosure.common.errors import (
    AlreadyExists,
    BadInput,
    Conflict,
    Contended,
    CorruptObject,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.persistence.commit import (
    AlreadyCommitted,
    CommitLimits,
    Committed,
    Prepared,
    Request,
    View,
)
from cynosure.persistence.index import IndexLimits, encode_key
from cynosure.persistence.references import ensure_reference
from cynosure.persistence.spi import CatalogId, ObjId, RealmId, Reference, RefKey
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import SmallStore

pytestmark = pytest.mark.anyio


def key_of(name: str) -> str:
    return encode_key(name).decode()


# --- grouping -----------------------------------------------------------------------------------


async def test_concurrent_requests_share_a_swap(bench: SmallStore) -> None:
    committer = bench.committer()

    outcomes = await asyncio.gather(*(committer.commit(bench.items.add(f"t{n}")) for n in range(32)))

    assert len(await bench.chain()) < 8
    assert await bench.counts() == {key_of(f"t{n}"): 1 for n in range(32)}
    assert {outcome.commit_id for outcome in outcomes} == set(await bench.chain())
    await bench.assert_whole()


async def test_requests_on_one_entity_are_applied_in_order_within_a_group(bench: SmallStore) -> None:
    """I5, I6."""
    committer = bench.committer()

    outcomes = await asyncio.gather(*(committer.commit(bench.items.add("hot")) for _ in range(40)))

    assert sorted(outcome.result for outcome in outcomes) == list(range(1, 41))
    assert len(await bench.chain()) < 20
    await bench.assert_whole()


async def test_every_request_is_in_the_feed_once(bench: SmallStore) -> None:
    """I4, I11."""
    committer = bench.committer()

    await asyncio.gather(*(committer.commit(bench.items.add(f"t{n % 3}")) for n in range(20)))

    store = (await bench.state()).store
    from cynosure.persistence.commit import COMMIT

    records = [(await store.load(COMMIT, each)).record for each in await bench.chain()]
    assert sum(len(record.requests) for record in records) == 20
    assert [record.sequence for record in records] == list(range(len(records), 0, -1))
    assert all(request.principal == "tester" for record in records for request in record.requests)


async def test_a_refused_request_does_not_touch_its_group(bench: SmallStore) -> None:
    """I2, I7."""
    committer = bench.committer()
    await committer.commit(bench.items.create("taken"))

    outcomes = await asyncio.gather(
        *(committer.commit(bench.items.create(name)) for name in ("a", "taken", "b", "c")),
        return_exceptions=True,
    )

    assert isinstance(outcomes[1], AlreadyExists)
    assert all(isinstance(outcomes[n], Committed) for n in (0, 2, 3))


async def test_of_two_that_want_the_same_name_in_one_group_the_later_is_refused(bench: SmallStore) -> None:
    """I8."""
    committer = bench.committer()

    outcomes = await asyncio.gather(
        *(committer.commit(bench.items.create("same", location=f"place{n}")) for n in range(8)),
        return_exceptions=True,
    )

    assert sum(isinstance(outcome, Committed) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 7
    await bench.assert_whole()


async def test_a_slow_request_does_not_hold_up_its_group(bench: SmallStore) -> None:
    """I7."""
    committer = bench.committer()
    is_prepared_again = asyncio.Event()
    may_go_on = asyncio.Event()
    add = bench.items.add("hot")
    calls = 0

    async def slow_the_second_time(view: View) -> Prepared[int]:
        nonlocal calls
        calls += 1
        if calls == 2:
            is_prepared_again.set()
            await may_go_on.wait()
        return await add.prepare(view)

    slow = Request(slow_the_second_time, "tester", "slow")
    first = asyncio.gather(*(committer.commit(bench.items.add("hot")) for _ in range(3)))
    waiting = asyncio.create_task(committer.commit(slow))
    others = asyncio.gather(*(committer.commit(bench.items.add(f"t{n}")) for n in range(3)))

    await first
    await is_prepared_again.wait()
    await others
    assert not waiting.done()

    may_go_on.set()
    assert (await waiting).result == 4


async def test_a_cancelled_caller_does_not_hurt_its_group(bench: SmallStore) -> None:
    """I7."""
    committer = bench.committer()
    tasks = [asyncio.create_task(committer.commit(bench.items.add(f"t{n}"))) for n in range(10)]
    for _ in range(6):
        await asyncio.sleep(0)

    tasks[3].cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(outcomes[3], asyncio.CancelledError)
    assert all(isinstance(outcomes[n], Committed) for n in range(10) if n != 3)
    counts = await bench.counts()
    assert all(counts[key_of(f"t{n}")] == 1 for n in range(10) if n != 3)


async def test_a_request_that_changes_nothing_makes_no_commit(bench: SmallStore) -> None:
    committer = bench.committer()
    await committer.commit(bench.items.add("t"))
    before = await bench.chain()

    async def prepare(view: View) -> Prepared[str]:
        await view.find("names", encode_key("t"))
        return Prepared("nothing to do")

    outcome = await committer.commit(Request(prepare, "tester", "noop"))

    assert outcome == Committed("nothing to do", before[0], 1)
    assert await bench.chain() == before


# --- what a request relied on -------------------------------------------------------------------


async def test_an_emptiness_check_sees_what_was_created_before_it_in_the_group(bench: SmallStore) -> None:
    """I6."""
    committer = bench.committer()
    namespace = encode_key("ns")

    outcomes = await asyncio.gather(
        committer.commit(bench.items.create("ns", "table")),
        committer.commit(bench.items.drop_if_empty(namespace)),
        return_exceptions=True,
    )

    assert isinstance(outcomes[0], Committed)
    assert isinstance(outcomes[1], Conflict)


async def test_prepared_work_is_kept_when_only_others_changed(bench: SmallStore) -> None:
    ours, theirs = bench.committer(), bench.committer()
    await ours.commit(bench.items.add("ours"))
    prepared = 0
    add = bench.items.add("ours")

    async def counted(view: View) -> Prepared[int]:
        nonlocal prepared
        prepared += 1
        result = await add.prepare(view)
        if prepared == 1:
            await theirs.commit(bench.items.add("theirs"))
        return result

    outcome = await ours.commit(Request(counted, "tester", "add"))

    assert isinstance(outcome, Committed)
    assert prepared == 1
    assert await bench.counts() == {key_of("ours"): 2, key_of("theirs"): 1}
    assert bench.counters.lost == 1


async def test_prepared_work_is_thrown_away_when_its_entity_changed(bench: SmallStore) -> None:
    """I6."""
    ours, theirs = bench.committer(), bench.committer()
    await ours.commit(bench.items.add("t"))
    prepared = 0
    add = bench.items.add("t")

    async def counted(view: View) -> Prepared[int]:
        nonlocal prepared
        prepared += 1
        result = await add.prepare(view)
        if prepared == 1:
            await theirs.commit(bench.items.add("t", amount=10))
        return result

    outcome = await ours.commit(Request(counted, "tester", "add"))

    assert outcome.result == 12
    assert prepared == 2


async def test_prepared_work_is_thrown_away_when_the_generation_rose(bench: SmallStore) -> None:
    """I9."""
    committer = bench.committer()
    prepared = 0
    add = bench.items.add("t")

    async def counted(view: View) -> Prepared[int]:
        nonlocal prepared
        prepared += 1
        result = await add.prepare(view)
        if prepared == 1:
            ref = await bench.ref()
            assert await bench.backend.swap_ref(ref, ref._replace(generation=ref.generation + 1))
        return result

    await committer.commit(Request(counted, "tester", "add"))

    assert prepared == 2
    assert (await bench.ref()).generation == 1
    await bench.assert_whole()


async def test_a_moved_guard_makes_a_request_prepare_again(bench: SmallStore) -> None:
    """I6."""
    committer = bench.committer()
    grants = RefKey(RealmId("r"), CatalogId("c"), "grants")
    await ensure_reference(bench.backend, grants, bench.clock)
    prepared = 0
    add = bench.items.add("t")

    async def authorized(view: View) -> Prepared[int]:
        nonlocal prepared
        prepared += 1
        (ref,) = await bench.backend.fetch_refs([grants])
        if prepared == 1:  # A right is revoked after the check.
            await bench.backend.swap_ref(ref, ref._replace(head=bench.ids.next()))
        elif prepared == 2:
            raise NotFound("No right any more")
        result = await add.prepare(view)
        return Prepared(result.result, result.changes, result.objects, result.feed, {grants: ref.head})

    with pytest.raises(NotFound):
        await committer.commit(Request(authorized, "tester", "add"))
    assert await bench.counts() == {}


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_a_moved_guard_is_decided_anew_where_that_is_enough(
    bench: SmallStore, is_revoked: bool
) -> None:
    """I6."""
    committer = bench.committer()
    grants = RefKey(RealmId("r"), CatalogId("c"), "grants")
    await ensure_reference(bench.backend, grants, bench.clock)
    prepared = decided = 0
    add = bench.items.add("t")

    async def decide() -> dict[RefKey, ObjId]:
        nonlocal decided
        decided += 1
        if decided > 1 and is_revoked:
            raise NotFound("No right any more")
        (ref,) = await bench.backend.fetch_refs([grants])
        assert ref is not None
        return {grants: ref.head}

    async def authorized(view: View) -> Prepared[int]:
        nonlocal prepared
        prepared += 1
        guards = await decide()
        if prepared == 1:  # The reference moves after the check.
            (ref,) = await bench.backend.fetch_refs([grants])
            assert ref is not None
            await bench.backend.swap_ref(ref, ref._replace(head=bench.ids.next()))
        return replace(await add.prepare(view), guards=guards, renew=decide)

    if is_revoked:
        with pytest.raises(NotFound):
            await committer.commit(Request(authorized, "tester", "add"))
    else:
        await committer.commit(Request(authorized, "tester", "add"))

    assert await bench.counts() == ({} if is_revoked else {"t": 1})
    assert (prepared, decided) == ((2, 3) if is_revoked else (1, 2))


async def test_who_takes_long_to_decide_anew_does_not_hold_up_the_others(bench: SmallStore) -> None:
    """I7."""
    committer = bench.committer()
    grants = RefKey(RealmId("r"), CatalogId("c"), "grants")
    await ensure_reference(bench.backend, grants, bench.clock)
    decided = asyncio.Event()
    prepared = 0
    slow = bench.items.add("slow")

    async def decide() -> dict[RefKey, ObjId]:
        await decided.wait()
        return {}

    async def authorized(view: View) -> Prepared[int]:
        nonlocal prepared
        prepared += 1
        if prepared > 1:
            return await slow.prepare(view)
        return replace(await slow.prepare(view), guards={grants: ObjId(1)}, renew=decide)

    await asyncio.gather(
        committer.commit(Request(authorized, "tester", "add")), committer.commit(bench.items.add("quick"))
    )

    assert await bench.counts() == {"quick": 1, "slow": 1}
    assert prepared == 2
    assert not decided.is_set()


# --- other processes ----------------------------------------------------------------------------


async def test_processes_on_one_reference_lose_no_update(bench: SmallStore) -> None:
    """I4."""
    committers = [bench.committer() for _ in range(4)]

    async def write(number: int) -> None:
        for _ in range(15):
            await committers[number % 4].commit(bench.items.add(f"t{number % 3}"))

    await asyncio.gather(*(write(number) for number in range(12)))

    assert sum((await bench.counts()).values()) == 12 * 15
    assert bench.counters.lost > 0
    assert len(await bench.chain()) == bench.counters.commits
    await bench.assert_whole()


async def test_a_change_on_a_deleted_reference_is_not_found(bench: SmallStore) -> None:
    committer = bench.committer()
    await committer.commit(bench.items.add("t"))
    assert await bench.backend.delete_ref(await bench.ref())

    with pytest.raises(NotFound):
        await committer.commit(bench.items.add("t"))


# --- lost answers -------------------------------------------------------------------------------

Rule = Callable[[Reference, Reference, Callable[[], Awaitable[bool]]], Awaitable[bool]]


def once(rule: Rule) -> Rule:
    done = False

    async def ruled(expected: Reference, updated: Reference, apply: Callable[[], Awaitable[bool]]) -> bool:
        nonlocal done
        if done:
            return await apply()
        done = True
        return await rule(expected, updated, apply)

    return ruled


async def test_an_answer_lost_after_the_swap_is_found_in_the_chain(bench: SmallStore) -> None:
    """I3."""
    committer = bench.committer()

    async def applied_but_unknown(_e: Reference, _u: Reference, apply: Callable[[], Awaitable[bool]]) -> bool:
        await apply()
        raise OutcomeUnknown("lost")

    bench.backend.rule = once(applied_but_unknown)

    outcome = await committer.commit(bench.items.add("t"))

    assert outcome.result == 1
    assert await bench.counts() == {key_of("t"): 1}
    assert len(await bench.chain()) == 1


async def test_an_answer_lost_before_the_swap_is_swapped_once(bench: SmallStore) -> None:
    committer = bench.committer()

    async def never_arrived(_e: Reference, _u: Reference, _a: Callable[[], Awaitable[bool]]) -> bool:
        raise OutcomeUnknown("lost")

    bench.backend.rule = once(never_arrived)

    await committer.commit(bench.items.add("t"))

    assert await bench.counts() == {key_of("t"): 1}
    assert len(await bench.chain()) == 1


async def test_a_swap_that_lands_late_is_not_applied_twice(bench: SmallStore) -> None:
    """I3, I4."""
    committer = bench.committer()
    late: list[asyncio.Task[bool]] = []

    async def lands_late(_e: Reference, _u: Reference, apply: Callable[[], Awaitable[bool]]) -> bool:
        async def later() -> bool:
            for _ in range(20):
                await asyncio.sleep(0)
            return await apply()

        late.append(asyncio.create_task(later()))
        raise OutcomeUnknown("lost")

    bench.backend.rule = once(lands_late)

    outcomes = await asyncio.gather(*(committer.commit(bench.items.add("t")) for _ in range(5)))
    await asyncio.gather(*late)

    assert sorted(outcome.result for outcome in outcomes) == [1, 2, 3, 4, 5]
    assert await bench.counts() == {key_of("t"): 5}
    await bench.assert_whole()


async def test_an_applied_swap_that_others_built_on_is_still_found(bench: SmallStore) -> None:
    ours, theirs = bench.committer(), bench.committer()

    async def passed_by(_e: Reference, _u: Reference, apply: Callable[[], Awaitable[bool]]) -> bool:
        await apply()
        for _ in range(40):  # More than a commit's own list of parents.
            await theirs.commit(bench.items.add("theirs"))
        raise OutcomeUnknown("lost")

    bench.backend.rule = once(passed_by)

    await ours.commit(bench.items.add("ours"))

    assert await bench.counts() == {key_of("ours"): 1, key_of("theirs"): 40}


async def test_without_any_answer_until_the_deadline_the_outcome_is_unknown() -> None:
    """I1, I3."""
    clock = ManualClock()
    bench = SmallStore(clock)
    await bench.setup()
    backend = bench.backend

    async def silent(_e: Reference, _u: Reference, _a: Callable[[], Awaitable[bool]]) -> bool:
        raise OutcomeUnknown("lost")

    backend.rule = silent
    commit = asyncio.create_task(bench.committer().commit(bench.items.add("t")))
    while not commit.done():
        await clock.advance(1)

    with pytest.raises(OutcomeUnknown):
        await commit
    assert clock.monotonic_s() <= 1_000 + 61


async def test_a_database_that_refuses_is_unavailable_and_nothing_is_applied(bench: SmallStore) -> None:
    """I1, I2."""
    committer = bench.committer()

    async def down(_e: Reference, _u: Reference, _a: Callable[[], Awaitable[bool]]) -> bool:
        raise Unavailable("down")

    bench.backend.rule = down
    with pytest.raises(Unavailable):
        await committer.commit(bench.items.add("t"))

    bench.backend.rule = None
    await committer.commit(bench.items.add("t"))
    assert await bench.counts() == {key_of("t"): 1}


async def test_losing_until_the_deadline_is_contended() -> None:
    """I9."""
    clock = ManualClock()
    bench = SmallStore(clock)
    await bench.setup()
    backend = bench.backend

    async def always_lost(_e: Reference, _u: Reference, _a: Callable[[], Awaitable[bool]]) -> bool:
        return False

    backend.rule = always_lost
    commit = asyncio.create_task(bench.committer().commit(bench.items.add("t")))
    while not commit.done():
        await clock.advance(0.1)

    with pytest.raises(Contended):
        await commit
    assert (await bench.ref()).head == 0


async def test_a_damaged_leaf_fails_only_the_requests_that_need_it(bench: SmallStore) -> None:
    """I7, I20."""
    limits = CommitLimits(index=IndexLimits(buffer_bytes=64, leaf_entries=4, inner_entries=4, root_bytes=64))
    committer = bench.committer(limits=limits)
    for n in range(60):
        await committer.commit(bench.items.create(f"t{n:02}"))
    rows = bench.backend._store.rows  # The store itself, to damage it.
    state = await bench.state()
    from cynosure.persistence.index import links

    tree = state.commit.index("names")
    leaf_id = None
    level = list(links(tree).children)
    while level:
        leaf_id = level[0]
        level = list(links(await state.nodes.load(leaf_id)).children)
    key = next(key for key in rows if key.id == leaf_id)
    rows[key] = rows[key]._replace(blob=rows[key].blob[:-3] + b"???")

    fresh = bench.committer(limits=limits)
    outcomes = await asyncio.gather(
        *(fresh.commit(bench.items.add(f"t{n:02}")) for n in (0, 30, 45, 59)), return_exceptions=True
    )

    assert isinstance(outcomes[0], CorruptObject)
    assert all(isinstance(outcome, Committed) for outcome in outcomes[1:])


async def test_a_wrong_index_name_is_its_own_requests_trouble(bench: SmallStore) -> None:
    """I2, I7."""
    committer = bench.committer()

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {"nonsense": {b"k": b"v"}})

    outcomes = await asyncio.gather(
        committer.commit(bench.items.add("a")),
        committer.commit(Request(prepare, "tester", "wrong")),
        committer.commit(bench.items.add("b")),
        return_exceptions=True,
    )

    assert isinstance(outcomes[1], BadInput)
    assert len(await bench.counts()) == 2


async def test_a_key_that_cannot_be_stored_is_its_own_requests_trouble(bench: SmallStore) -> None:
    """I2, I7."""
    committer = bench.committer()

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {"names": {b"with\x00nul": b"v"}})

    outcomes = await asyncio.gather(
        committer.commit(bench.items.add("a")),
        committer.commit(Request(prepare, "tester", "wrong")),
        committer.commit(bench.items.add("b")),
        return_exceptions=True,
    )

    assert isinstance(outcomes[1], BadInput)
    assert len(await bench.counts()) == 2


async def test_a_defect_in_the_loop_is_told_as_unknown_and_the_loop_goes_on(bench: SmallStore) -> None:
    """I1."""
    committer = bench.committer()

    async def defect(_e: Reference, _u: Reference, _a: Callable[[], Awaitable[bool]]) -> bool:
        raise ZeroDivisionError

    bench.backend.rule = defect
    with pytest.raises(OutcomeUnknown, match="defect"):
        await committer.commit(bench.items.add("t"))

    bench.backend.rule = None
    await committer.commit(bench.items.add("t"))
    assert await bench.counts() == {key_of("t"): 1}


# --- idempotency keys ---------------------------------------------------------------------------


async def test_a_key_is_committed_once(bench: SmallStore) -> None:
    committer = bench.committer()
    first = await committer.commit(bench.items.add("t", key_hash="k1"))

    again = await committer.commit(bench.items.add("t", key_hash="k1"))
    elsewhere = await bench.committer().commit(bench.items.add("t", key_hash="k1"))

    assert again == elsewhere == AlreadyCommitted(first.commit_id, "k1")
    assert await bench.counts() == {key_of("t"): 1}


async def test_a_key_is_committed_once_by_racing_requests(bench: SmallStore) -> None:
    """I10."""
    committers = [bench.committer() for _ in range(3)]

    outcomes = await asyncio.gather(
        *(committers[n % 3].commit(bench.items.add("t", key_hash="same")) for n in range(12))
    )

    committed = [outcome for outcome in outcomes if isinstance(outcome, Committed)]
    assert len(committed) == 1
    others = {outcome.commit_id for outcome in outcomes if isinstance(outcome, AlreadyCommitted)}
    assert others == {committed[0].commit_id}
    assert await bench.counts() == {key_of("t"): 1}


async def test_keys_expire_in_bulk_and_stay_for_their_lifetime() -> None:
    clock = ManualClock()
    bench = SmallStore(clock)
    await bench.setup()
    committer = bench.committer(limits=CommitLimits(index=IndexLimits(), key_lifetime_s=400))
    for n in range(40):
        await committer.commit(bench.items.add("t", key_hash=f"k{n}"))
        await clock.advance(30)

    assert isinstance(await committer.commit(bench.items.add("t", key_hash="k39")), AlreadyCommitted)
    assert isinstance(await committer.commit(bench.items.add("t", key_hash="k28")), AlreadyCommitted)
    assert isinstance(await committer.commit(bench.items.add("t", key_hash="k0")), Committed)


# --- backends without row-carrying swaps --------------------------------------------------------


async def test_prepared_objects_are_written_early_where_a_swap_carries_no_rows() -> None:
    bench = SmallStore(carries_rows=False)
    await bench.setup()
    committer = bench.committer()

    await asyncio.gather(*(committer.commit(bench.items.add(f"t{n}")) for n in range(10)))

    # Only commits and index nodes came with the swaps; the ten items were there before.
    assert bench.backend.rows_swapped < 10
    await bench.assert_whole()
