import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from cynosure.common.errors import CorruptObject, NewerFormat
from cynosure.persistence.commit import AlreadyCommitted, CommitLimits, Committed, Committer
from cynosure.persistence.commit import key_log as key_logs
from cynosure.persistence.commit.key_log import (
    ENTRY_BYTES,
    FORMAT,
    KEY_RUN,
    KeyLog,
    KeyRun,
    RunRef,
    short_hash,
)
from cynosure.persistence.commit.recent_keys import KeyFinder
from cynosure.persistence.history.check import check_commit
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.objects import seal, unseal
from cynosure.persistence.reach import Reach
from cynosure.persistence.spi import ObjId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import SmallStore

pytestmark = pytest.mark.anyio

LIFETIME_S = 400


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which a few dozen keys do what a million does."""
    monkeypatch.setattr(key_logs, "TAIL_ENTRIES", 4)
    monkeypatch.setattr(key_logs, "FAN_IN", 3)
    monkeypatch.setattr(key_logs, "LARGEST_MERGED", 30)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def bench(clock: ManualClock) -> SmallStore:
    bench = SmallStore(clock)
    await bench.setup()
    return bench


@pytest.fixture
def make_committer(bench: SmallStore) -> Callable[[], Committer]:
    limits = CommitLimits(index=IndexLimits(), key_lifetime_s=LIFETIME_S)
    return lambda: bench.committer(limits=limits)


def hash_of(number: int) -> bytes:
    return number.to_bytes(8, "big")


async def commit_keys(bench: SmallStore, committer: Committer, *keys: str) -> dict[str, ObjId]:
    """Commit keys at once; where each of them is."""
    outcomes: list[Any] = await asyncio.gather(
        *(committer.commit(bench.items.add(f"t {key}", key_hash=key)) for key in keys)
    )
    assert all(isinstance(outcome, Committed) for outcome in outcomes)
    return {key: outcome.commit_id for key, outcome in zip(keys, outcomes, strict=True)}


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("seed", range(6))
async def test_every_key_is_found_in_its_commit_for_its_lifetime_and_no_other_key_is(
    bench: SmallStore, clock: ManualClock, make_committer: Callable[[], Committer], seed: int
) -> None:
    """I10. Several processes, groups of any size, with and without keys, over several lifetimes."""
    rng = Random(seed)
    committers = [make_committer(), make_committer()]
    committed: dict[str, tuple[ObjId, int]] = {}
    most_runs = 0

    for step in range(60):
        committer = rng.choice(committers)
        if rng.random() < 0.2:
            await committer.commit(bench.items.add("no key"))
        keys = [f"{seed} {step} {number}" for number in range(rng.choice((0, 1, 1, 2, 7)))]
        found = await commit_keys(bench, committer, *keys)
        committed.update((key, (at, clock.now_us())) for key, at in found.items())
        most_runs = max(most_runs, len((await committer.read()).state.commit.key_log.runs))
        await clock.advance(rng.choice((0, 1, 30)))

    since_us = clock.now_us() - LIFETIME_S * 1_000_000
    live = {key: at for key, (at, time_us) in committed.items() if time_us >= since_us}
    for committer in (*committers, make_committer()):
        assert {key: await committer.find_key(key) for key in live} == live
        assert [await committer.find_key(key) for key in committed if key not in live] == [None] * (
            len(committed) - len(live)
        )
        assert await committer.find_key("never sent") is None
    assert 0 < len(live) < len(committed)
    assert 1 < most_runs < 20
    await bench.assert_whole()


@pytest.mark.usefixtures("small_runs")
async def test_keys_with_the_same_short_hash_are_told_apart(
    bench: SmallStore, make_committer: Callable[[], Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """I10."""
    monkeypatch.setattr("cynosure.persistence.commit.recent_keys.short_hash", lambda key: b"all same")
    committer = make_committer()
    committed: dict[str, ObjId] = {}
    for number in range(20):
        committed |= await commit_keys(bench, committer, f"a{number}", f"b{number}")

    assert {key: await committer.find_key(key) for key in committed} == committed
    assert await make_committer().find_key("c") is None
    again = await committer.commit(bench.items.add("t", key_hash="a0"))
    assert again == AlreadyCommitted(committed["a0"], "a0")


@pytest.mark.usefixtures("small_runs")
async def test_a_key_used_again_after_its_lifetime_is_found_in_its_new_commit(
    bench: SmallStore, clock: ManualClock, make_committer: Callable[[], Committer]
) -> None:
    committer = make_committer()
    first = await commit_keys(bench, committer, "again", *(f"a{number}" for number in range(10)))
    await clock.advance(LIFETIME_S + 1)

    second = await commit_keys(bench, committer, "again", *(f"b{number}" for number in range(10)))

    assert second["again"] != first["again"]
    assert await committer.find_key("again") == second["again"]


@pytest.mark.usefixtures("small_runs")
async def test_runs_whose_keys_are_all_too_old_leave_with_the_next_commit_also_without_a_key(
    bench: SmallStore, clock: ManualClock, make_committer: Callable[[], Committer]
) -> None:
    committer = make_committer()
    await commit_keys(bench, committer, *(f"a{number}" for number in range(9)))
    await clock.advance(LIFETIME_S / 2)
    kept = await commit_keys(bench, committer, *(f"b{number}" for number in range(9)))
    await clock.advance(LIFETIME_S / 2 + 1)
    before = (await committer.read()).state.commit.key_log

    await committer.commit(bench.items.add("no key"))

    after = (await committer.read()).state.commit.key_log
    assert 0 < len(after.runs) < len(before.runs)
    assert {key: await committer.find_key(key) for key in kept} == kept


async def test_a_commit_without_a_key_carries_the_log_along_as_it_is(
    bench: SmallStore, make_committer: Callable[[], Committer]
) -> None:
    committer = make_committer()
    await commit_keys(bench, committer, "a")
    before = (await committer.read()).state.commit.record.key_log

    await committer.commit(bench.items.add("t"))

    assert (await committer.read()).state.commit.record.key_log == before


async def test_a_state_that_never_had_a_key_stores_nothing_of_them(bench: SmallStore) -> None:
    committer = bench.committer()
    await committer.commit(bench.items.add("t"))

    assert (await committer.read()).state.commit.record.key_log == b""


@pytest.mark.usefixtures("small_runs")
async def test_what_an_earlier_state_is_known_not_to_have_is_looked_for_in_the_rest(
    bench: SmallStore, make_committer: Callable[[], Committer]
) -> None:
    """I10. However the runs between the two states were made and merged."""
    committer = make_committer()
    states = [(await committer.read()).state]
    committed: dict[str, tuple[ObjId, int]] = {}
    for step in range(40):
        found = await commit_keys(bench, committer, f"k{step}", f"l{step}")
        states.append((await committer.read()).state)
        committed.update((key, (at, len(states) - 1)) for key, at in found.items())

    finder = KeyFinder(states[0].store)
    for key, (commit_id, since) in committed.items():
        for earlier in range(0, since, 3):
            for later in (since, len(states) - 1):
                found_in = await finder.find(
                    states[later].commit, key, since_us=0, absent_in=states[earlier].commit
                )
                assert found_in == commit_id, (key, earlier, later)
    last = states[-1].commit
    assert await finder.find(last, "never sent", since_us=0, absent_in=states[20].commit) is None
    assert await finder.find(last, "never sent", since_us=0, absent_in=last) is None


# --- what keeps runs alive --------------------------------------------------------------------------


@pytest.mark.usefixtures("small_runs")
async def test_runs_are_reached_from_the_commits_that_name_them_and_missed_when_lost(
    bench: SmallStore, make_committer: Callable[[], Committer]
) -> None:
    """I16."""
    committer = make_committer()
    for number in range(12):
        await commit_keys(bench, committer, f"a{number}", f"b{number}")
    head = (await bench.ref()).head
    runs = (await bench.state()).commit.key_log.runs
    store = bench.store()
    reach = Reach(store)

    await reach.mark_commit(head)

    assert len(runs) > 1
    assert {run.id for run in runs} <= set(reach.marked)
    assert await check_commit(store, head) == []
    await bench.backend.delete([store.key(KEY_RUN, runs[0].id)])
    assert len(await check_commit(store, head)) == 1


# --- stored form ------------------------------------------------------------------------------------


def test_a_short_hash_never_changes() -> None:
    assert short_hash("0f" * 32).hex() == "0f48cda2629d547d"


@pytest.mark.parametrize("seed", range(5))
def test_a_run_finds_what_is_in_it_and_nothing_else(seed: int) -> None:
    rng = Random(seed)
    entries = [(rng.randrange(200) << rng.choice((0, 56)), rng.getrandbits(63)) for _ in range(150)]
    tails = [KeyLog.EMPTY.with_entries([hash_of(hash)], ObjId(commit)).tail for hash, commit in entries]

    run = KeyRun.of(b"".join(tails[:70]), KeyRun.of(*tails[70:]).data)

    assert run.count == 150
    for number in (*range(200), *(number << 56 for number in range(200)), 1 << 63, (1 << 64) - 1):
        assert sorted(run.find(number)) == sorted(commit for hash, commit in entries if hash == number)


def test_a_hash_across_two_entries_of_the_tail_is_no_entry() -> None:
    log = KeyLog.EMPTY.with_entries([hash_of(1), hash_of(2)], ObjId(0x0102030405060708))
    across = log.tail[4:12]

    assert list(log.find_in_tail(across)) == []
    assert list(log.find_in_tail(hash_of(2))) == [0x0102030405060708]


def test_a_hash_that_is_also_a_commit_is_found_where_it_is_a_hash() -> None:
    log = KeyLog.EMPTY.with_entries([hash_of(7)], ObjId(8)).with_entries([hash_of(8)], ObjId(9))

    assert list(log.find_in_tail(hash_of(8))) == [9]


def test_a_log_is_what_was_packed() -> None:
    runs = (RunRef(ObjId(5), 128, 10), RunRef(ObjId((1 << 63) - 1), 1 << 20, 1 << 51))
    for log in (KeyLog(runs, b""), KeyLog((), b"x" * ENTRY_BYTES), KeyLog(runs, b"y" * 3 * ENTRY_BYTES)):
        unpacked = KeyLog.unpack(log.pack())

        assert (unpacked.runs, unpacked.tail) == (log.runs, log.tail)
        assert unpacked.pack() == log.pack()
    assert KeyLog.EMPTY.pack() == b""
    assert KeyLog.unpack(b"") is KeyLog.EMPTY


def test_a_damaged_log_is_refused_and_a_newer_one_said_to_be_newer() -> None:
    packed = KeyLog((RunRef(ObjId(5), 128, 10),), b"x" * ENTRY_BYTES).pack()

    for damaged in (packed[:2], packed[:20], packed[:-1], b"\0" + packed[1:]):
        with pytest.raises(CorruptObject):
            KeyLog.unpack(damaged)
    with pytest.raises(NewerFormat):
        KeyLog.unpack(bytes([FORMAT + 1]) + packed[1:])


async def test_a_run_that_is_cut_off_is_damage(bench: SmallStore) -> None:
    key = bench.store().key(KEY_RUN, ObjId(1))
    whole = seal(KEY_RUN, KeyRun.of(b"x" * 2 * ENTRY_BYTES))
    # With a checksum that fits: only the run itself can know.
    shorter = KeyRun.of(b"x" * 2 * ENTRY_BYTES)
    object.__setattr__(shorter, "data", shorter.data[:-1])

    assert unseal(KEY_RUN, key, whole)[0].count == 2
    with pytest.raises(CorruptObject):
        unseal(KEY_RUN, key, seal(KEY_RUN, shorter))
