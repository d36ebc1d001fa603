"""Garbage collection: exact, patient with the slow, safe from the stopped."""

import asyncio
from datetime import timedelta
from random import Random

import pytest

from cynosure.common.errors import LeaseLost, MissingObject
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import (
    COMMIT,
    CommitLimits,
    Committed,
    Prepared,
    Request,
    View,
    key_log,
)
from cynosure.persistence.commit.key_log import KEY_RUN
from cynosure.persistence.core_types import OBJECT_TYPES
from cynosure.persistence.gc.collect import Collector, GcProgress
from cynosure.persistence.gc.pace import Pacer
from cynosure.persistence.gc.pins import drop_pin, renew_pin, set_pin
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.objects import ObjRef, Stored, TypeRegistry, struct_type
from cynosure.persistence.settings import GcSettings
from cynosure.persistence.spi import CatalogId, ObjKey, RealmId, Reference
from cynosure.persistence.store import NewObject, Store
from cynosure.testing import workload
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import MAIN, SmallStore

pytestmark = pytest.mark.anyio

GRACE_S = 3 * 3600
DAY_S = 24 * 3600
SETTINGS = GcSettings(history_retention=timedelta(days=2), rows_per_second=0)


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def small(clock: ManualClock) -> SmallStore:
    small = SmallStore(clock)
    await small.setup()
    return small


def collector(
    small: SmallStore,
    settings: GcSettings = SETTINGS,
    types: tuple[object, ...] = (*OBJECT_TYPES, *workload.OBJECT_TYPES),
) -> Collector:
    cache = ObjectCache(1 << 20, small.clock)

    def store_of(realm: RealmId, catalog: CatalogId) -> Store:
        return Store(small.backend, cache, small.clock, Random(3), realm=realm, catalog=catalog)

    return Collector(
        small.backend,
        store_of,
        types=TypeRegistry(types),  # type: ignore[arg-type]
        ids=small.ids,
        clock=small.clock,
        settings=settings,
    )


def keys_of(small: SmallStore, type_name: str) -> set[ObjKey]:
    return {key for key in small.backend._store.rows if key.type == type_name}


async def age(clock: ManualClock) -> None:
    await clock.advance(5 * DAY_S)


async def test_what_only_collected_history_reached_is_deleted(small: SmallStore, clock: ManualClock) -> None:
    """I17."""
    committer = small.committer()
    for _ in range(30):
        await committer.commit(small.items.add("t"))
    await age(clock)
    await committer.commit(small.items.add("t"))

    report = await collector(small).run()

    # The head, and the commits before it that are recent heads: nothing else.
    recent = (await small.ref()).recent
    assert report.deleted == report.doomed > 0
    assert len(keys_of(small, "commit")) <= 1 + len(recent) + 1
    assert list((await small.counts()).values()) == [31]
    await small.assert_whole()


async def test_nothing_younger_than_the_grace_period_is_deleted(
    small: SmallStore, clock: ManualClock
) -> None:
    """I16."""
    store = small.store()
    item = workload.Item(stable_id=small.ids.next(), location="")
    await store.write([NewObject(workload.ITEM, small.ids.next(), item)])
    await clock.advance(GRACE_S - 1)

    assert (await collector(small).run()).deleted == 0

    await clock.advance(2)
    assert (await collector(small).run()).deleted == 1


async def test_retained_history_can_still_be_read(small: SmallStore, clock: ManualClock) -> None:
    """I16."""
    committer = small.committer()
    ids = []
    for day in range(6):
        ids.append((await committer.commit(small.items.create(f"t{day}"))).commit_id)
        for _ in range(20):
            await committer.commit(small.items.add("noise"))
        await clock.advance(DAY_S)

    await collector(small).run()

    chain = await small.chain()
    oldest = chain[-1]
    assert oldest not in ids[:3] or oldest in (await small.ref()).recent
    assert set(ids[4:]) <= set(chain)
    await small.assert_whole()


async def test_a_pinned_commit_stays_until_the_pin_is_dropped(small: SmallStore, clock: ManualClock) -> None:
    """I16."""
    committer = small.committer()
    for number in range(40):
        await committer.commit(small.items.add(f"t{number % 4}"))
    pinned = (await small.chain())[25]
    pin = await set_pin(
        small.store(),
        head=(await small.ref()).head,
        commit=pinned,
        owner="export",
        life_s=30 * DAY_S,
        ids=small.ids,
        clock=clock,
        retention=timedelta(days=2),
    )
    await age(clock)
    await committer.commit(small.items.add("t0"))

    await collector(small).run()
    from cynosure.persistence.history.check import check_commit

    assert await check_commit(small.store(), pinned) == []

    await drop_pin(small.store(), pin)
    await collector(small).run()
    assert await small.store().find(COMMIT, pinned) is None


async def test_a_pin_that_ran_out_keeps_nothing_and_cannot_be_renewed(
    small: SmallStore, clock: ManualClock
) -> None:
    committer = small.committer()
    for number in range(40):
        await committer.commit(small.items.add(f"t{number % 4}"))
    pinned = (await small.chain())[25]
    pin = await set_pin(
        small.store(),
        head=(await small.ref()).head,
        commit=pinned,
        owner="export",
        life_s=60,
        ids=small.ids,
        clock=clock,
        retention=timedelta(days=2),
    )
    await age(clock)
    await committer.commit(small.items.add("t0"))
    await collector(small).run()

    assert await small.store().find(COMMIT, pinned) is None
    assert keys_of(small, "pin") == set()
    with pytest.raises(LeaseLost):
        await renew_pin(small.store(), pin, life_s=60, clock=clock)


async def test_a_commit_prepared_before_and_swapped_after_a_collection_loses_nothing(
    small: SmallStore, clock: ManualClock
) -> None:
    """I16. A process is stopped between writing its objects and swapping, past grace; then it goes on."""
    slow = SmallStore(clock, carries_rows=False)
    slow.backend._store = small.backend._store
    slow.ids = small.ids
    slow.items = small.items
    stopped, may_go_on = asyncio.Event(), asyncio.Event()

    async def stop_first(expected: Reference, updated: Reference, apply: object) -> bool:
        if not stopped.is_set():
            stopped.set()
            await may_go_on.wait()
        return await apply()  # type: ignore[operator]

    slow.backend.rule = stop_first
    commit = asyncio.create_task(slow.committer().commit(slow.items.add("t")))
    await stopped.wait()
    written = keys_of(small, "test-item")
    assert written
    await age(clock)

    await collector(small).run()
    assert keys_of(small, "test-item") == set()  # Collected: nothing reached it.
    may_go_on.set()
    for _ in range(200):
        await clock.advance(0.1)
        if commit.done():
            break

    # It was past its deadline, so it may say so; what it must not do is point to a collected object.
    assert isinstance(commit.exception() or commit.result(), Committed | Exception)
    await small.assert_whole()


async def test_a_paused_collection_that_goes_on_later_deletes_nothing_new(
    small: SmallStore, clock: ManualClock
) -> None:
    committer = small.committer()
    for number in range(50):
        await committer.commit(small.items.add(f"t{number % 7}"))
    await age(clock)
    await committer.commit(small.items.add("t0"))
    is_deleting, may_go_on = asyncio.Event(), asyncio.Event()

    async def pause(progress: GcProgress) -> None:
        if progress.phase == "delete":
            is_deleting.set()
            await may_go_on.wait()

    paused = asyncio.create_task(collector(small).run(report=pause))
    await is_deleting.wait()
    await collector(small).run()  # Another instance took over and finished.
    for number in range(30):
        await committer.commit(small.items.add(f"t{number % 7}"))
    await clock.advance(GRACE_S * 2)
    for number in range(30):
        await committer.commit(small.items.add(f"u{number % 7}"))
    may_go_on.set()
    await paused

    await small.assert_whole()
    assert sum((await small.counts()).values()) == 50 + 1 + 30 + 30


async def test_an_interrupted_collection_goes_on_from_its_saved_set(
    small: SmallStore, clock: ManualClock
) -> None:
    committer = small.committer()
    for number in range(600):
        await committer.commit(small.items.add(f"t{number % 7}"))
    await age(clock)
    await committer.commit(small.items.add("t0"))
    saved: list[GcProgress] = []

    async def crash_after_first_batch(progress: GcProgress) -> None:
        if progress.phase == "delete":
            saved.append(progress)
            if progress.done > 0:
                raise LeaseLost("stopped")

    with pytest.raises(LeaseLost):
        await collector(small).run(report=crash_after_first_batch)
    left = len(small.backend._store.rows)

    report = await collector(small).run(resume=saved[-1])

    assert report.deleted > 0
    assert len(small.backend._store.rows) == left - report.deleted
    assert (await collector(small).run()).doomed <= 1  # At most the saved set itself, once it is old enough.
    await small.assert_whole()


async def test_a_dry_run_says_what_it_would_delete_and_changes_nothing(
    small: SmallStore, clock: ManualClock
) -> None:
    committer = small.committer()
    for _ in range(40):
        await committer.commit(small.items.add("t"))
    await age(clock)
    await committer.commit(small.items.add("t"))
    before = dict(small.backend._store.rows)
    ref = await small.ref()

    dry = await collector(small).run(is_dry_run=True)

    assert dry.is_dry_run
    assert dry.doomed > 0 == dry.deleted
    assert small.backend._store.rows == before
    assert await small.ref() == ref
    assert (await collector(small).run()).deleted == dry.doomed


class Plugin(Stored, frozen=True):
    child: int = 0


def children(value: Plugin) -> list[ObjRef]:
    return [ObjRef(value.child, "plugin")] if value.child else []  # type: ignore[arg-type]


PLUGIN = struct_type("plugin", Plugin, refs=children)


async def test_objects_of_a_type_that_is_not_installed_survive(small: SmallStore, clock: ManualClock) -> None:
    """I17, I20."""
    store = small.store()
    await store.write([NewObject(PLUGIN, small.ids.next(), Plugin())])
    await age(clock)

    assert (await collector(small).run()).deleted == 0
    assert (await collector(small, types=(*OBJECT_TYPES, PLUGIN)).run()).deleted == 1


async def test_references_in_envelopes_are_followed(small: SmallStore, clock: ManualClock) -> None:
    leaf, middle, loose = small.ids.next(), small.ids.next(), small.ids.next()

    async def prepare(view: View) -> Prepared[None]:
        objects = [
            NewObject(PLUGIN, leaf, Plugin()),
            NewObject(PLUGIN, middle, Plugin(child=leaf)),
            NewObject(PLUGIN, loose, Plugin()),
        ]
        return Prepared(None, {"names": {b"k": ObjRef(middle, "plugin").pack()}}, objects)

    await small.committer().commit(Request(prepare, "tester", "put"))
    await age(clock)

    await collector(small, types=(*OBJECT_TYPES, PLUGIN)).run()

    assert {key.id for key in keys_of(small, "plugin")} == {leaf, middle}


async def test_a_missing_object_stops_the_collection_before_anything_is_deleted(
    small: SmallStore, clock: ManualClock
) -> None:
    committer = small.committer()
    for number in range(40):
        await committer.commit(small.items.add(f"t{number % 4}"))
    await age(clock)
    await committer.commit(small.items.add("t0"))
    state = await small.state()
    value = await state.find("names", (await state.scan("names", limit=1))[0][0])
    assert value is not None
    await small.backend.delete([ObjKey(MAIN.realm, MAIN.catalog, "test-item", ObjRef.unpack(value).id)])
    before = len(small.backend._store.rows)

    with pytest.raises(MissingObject):
        await collector(small).run()

    assert len(small.backend._store.rows) == before


async def test_objects_of_a_deleted_catalog_are_garbage(small: SmallStore, clock: ManualClock) -> None:
    committer = small.committer()
    for number in range(10):
        await committer.commit(small.items.add(f"t{number}"))
    await age(clock)
    assert await small.backend.delete_ref(await small.ref())

    await collector(small).run()

    assert {key.type for key in small.backend._store.rows} == {"gc-doomed"}


class SleepingClock:
    """Time passes only by sleeping."""

    def __init__(self) -> None:
        self.slept_s = 0.0

    def now_us(self) -> int:
        return 0

    def monotonic_s(self) -> float:
        return self.slept_s

    async def sleep(self, seconds: float) -> None:
        self.slept_s += seconds


async def test_the_rate_limit_is_kept_over_any_number_of_calls() -> None:
    clock = SleepingClock()
    pace = Pacer(clock, rows_per_second=100)

    for rows in (1_000, 1, 1, 1, 500, 7, 490):
        await pace(rows)

    assert 19.8 <= clock.slept_s <= 20.0


async def test_a_rate_limit_of_zero_is_none() -> None:
    clock = SleepingClock()

    await Pacer(clock, rows_per_second=0)(10**9)

    assert clock.slept_s == 0


async def test_runs_of_keys_live_as_long_as_a_kept_state_names_them(
    small: SmallStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I16, I17."""
    monkeypatch.setattr(key_log, "TAIL_ENTRIES", 4)
    monkeypatch.setattr(key_log, "FAN_IN", 2)
    limits = CommitLimits(index=IndexLimits(), key_lifetime_s=30 * DAY_S, recent_heads=2)
    committer = small.committer(limits=limits)
    keys = [f"key {number}" for number in range(40)]
    for key in keys:
        await committer.commit(small.items.add("t", key_hash=key))
    await clock.advance(5 * DAY_S)
    await committer.commit(small.items.add("t"))
    await clock.advance(3 * DAY_S)
    await committer.commit(small.items.add("t"))
    await clock.advance(GRACE_S)

    def stored_runs() -> set[int]:
        return {key.id for key in small.backend._store.rows if key.type == KEY_RUN.name}

    before, named = stored_runs(), {run.id for run in (await small.state()).commit.key_log.runs}
    await collector(small).run()

    assert named < before
    assert stored_runs() == named
    assert None not in [await small.committer(limits=limits).store.find(KEY_RUN, run) for run in named]
    await small.assert_whole()
