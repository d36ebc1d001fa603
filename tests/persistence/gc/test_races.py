"""Collections that meet pins, readers and each other at the worst moment. The simulator found these."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

import pytest
from pyroaring import BitMap64

from cynosure.common.errors import Expired, MissingObject, Unavailable
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import COMMIT, CommitLimits
from cynosure.persistence.core_types import OBJECT_TYPES
from cynosure.persistence.gc.collect import Collector, GcProgress
from cynosure.persistence.gc.doomed import Doomed, DoomedScope
from cynosure.persistence.gc.pins import PIN, Pin, renew_pin, set_pin
from cynosure.persistence.history.check import check_commit
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.objects import Stored, TypeRegistry, struct_type
from cynosure.persistence.settings import GcSettings
from cynosure.persistence.spi import CatalogId, ObjId, ObjKey, RealmId, Row
from cynosure.persistence.store import NewObject, Store, Versioned
from cynosure.testing import workload
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_store import MAIN, CountingIds, SmallStore

pytestmark = pytest.mark.anyio

DAY_S = 24 * 3600
RETENTION = timedelta(days=2)
LIMITS = CommitLimits(index=IndexLimits(), recent_heads=1)
"""One recent head, so that it keeps no old state alive."""


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def small(clock: ManualClock) -> SmallStore:
    small = SmallStore(clock)
    await small.setup()
    return small


def collector(small: SmallStore) -> Collector:
    def store_of(realm: RealmId, catalog: CatalogId) -> Store:
        cache = ObjectCache(0, small.clock)
        return Store(small.backend, cache, small.clock, Random(3), realm=realm, catalog=catalog)

    return Collector(
        small.backend,
        store_of,
        types=TypeRegistry([*OBJECT_TYPES, *workload.OBJECT_TYPES]),
        ids=small.ids,
        clock=small.clock,
        settings=GcSettings(history_retention=RETENTION, rows_per_second=0),
    )


async def commit_days(small: SmallStore, clock: ManualClock, days: int) -> list[ObjId]:
    """Per day the commit that was current at its end."""
    committer = small.committer(limits=LIMITS)
    ids = []
    for day in range(days):
        for _ in range(5):
            await committer.commit(small.items.add("noise"))
        ids.append((await committer.commit(small.items.create(f"t{day}"))).commit_id)
        await clock.advance(DAY_S)
    await committer.commit(small.items.add("noise"))
    return ids


async def pin(
    small: SmallStore, commit: ObjId, *, life_s: float = 10 * DAY_S, store: Store | None = None
) -> Versioned[Pin]:
    return await set_pin(
        store or small.store(),
        head=(await small.ref()).head,
        commit=commit,
        owner="test",
        life_s=life_s,
        ids=small.ids,
        clock=small.clock,
        retention=RETENTION,
    )


async def test_a_state_pinned_while_a_collection_runs_is_kept_however_long_it_takes(
    small: SmallStore, clock: ManualClock
) -> None:
    """I16."""
    ids = await commit_days(small, clock, 4)
    pinned: list[ObjId] = []

    async def pin_late(progress: GcProgress) -> None:
        if progress.phase == "list" and not pinned:
            pinned.append(ids[-2])
            await pin(small, ids[-2])
            await clock.advance(3 * DAY_S)  # When it marks, the pinned state has left the history.

    await collector(small).run(report=pin_late)

    assert await check_commit(small.store(), ids[-2]) == []


async def test_a_pin_renewed_in_the_moment_it_is_found_to_have_run_out_still_counts(
    small: SmallStore, clock: ManualClock
) -> None:
    """I16."""
    ids = await commit_days(small, clock, 2)
    store = small.store()
    placed = await pin(small, ids[0], life_s=60.0, store=store)
    running = collector(small)
    backend = small.backend
    delete_if = backend.delete_if

    async def renewed_before(key: ObjKey, expected_token: str) -> bool:
        behind = ManualClock()  # The holder's own clock says that its time is not over.
        await renew_pin(store, placed, life_s=100 * DAY_S, clock=behind)
        return await delete_if(key, expected_token)

    backend.delete_if = renewed_before  # type: ignore[method-assign]
    await clock.advance(5 * DAY_S)
    await running.run()

    assert await check_commit(small.store(), ids[0]) == []


async def test_a_pin_that_comes_too_late_is_taken_back(small: SmallStore, clock: ManualClock) -> None:
    ids = await commit_days(small, clock, 2)
    backend = small.backend
    insert = backend.insert

    async def after_a_long_stop(row: Row) -> bool:
        await clock.advance(3 * DAY_S)
        return await insert(row)

    backend.insert = after_a_long_stop  # type: ignore[method-assign]
    with pytest.raises(Expired):
        await pin(small, ids[-1])

    assert await small.store().scan(PIN) == []


async def test_what_another_collection_deletes_meanwhile_is_no_damage(
    small: SmallStore, clock: ManualClock
) -> None:
    await commit_days(small, clock, 5)
    other = ManualClock()
    await other.advance(5 * DAY_S + 1800.0)  # Half an hour ahead, so it lets go of a little more.
    ahead = collector(small)
    ahead._clock = other
    # Of the commits that were current two days ago only the last one is left by the one that is ahead.
    leaving = small.store().key(COMMIT, (await small.chain())[8])
    backend = small.backend
    fetch = backend.fetch
    overtaken: list[ObjKey] = []

    async def overtake(keys: Sequence[ObjKey]) -> list[Row | None]:
        rows = await fetch(keys)
        if list(keys) == [leaving] and not overtaken:
            overtaken.append(leaving)
            await ahead.run()
        return rows

    backend.fetch = overtake  # type: ignore[method-assign]
    await collector(small).run()

    assert overtaken
    assert leaving not in backend._store.rows
    await small.assert_whole()


async def test_a_collection_that_was_stopped_for_long_does_not_cry_damage(
    small: SmallStore, clock: ManualClock
) -> None:
    await commit_days(small, clock, 2)
    committer = small.committer(limits=LIMITS)
    passed: list[str] = []

    async def stop(progress: GcProgress) -> None:
        if progress.phase == "mark" and not passed:
            passed.append("")
            for _ in range(5):
                await committer.commit(small.items.add("noise"))
            await clock.advance(5 * DAY_S)
            await collector(small).run()

    with pytest.raises(Unavailable) as refused:
        await collector(small).run(report=stop)

    assert isinstance(refused.value.__cause__, MissingObject)
    await small.assert_whole()


class Wide(Stored, frozen=True):
    text: bytes


WIDE = struct_type("wide", Wide, is_compressed=False)


async def test_an_object_collected_between_the_reads_of_its_rows_is_gone_not_damaged() -> None:
    clock, ids = ManualClock(), CountingIds()
    backend = MemoryBackend(row_bytes=100)
    await backend.setup()
    store = Store(backend, ObjectCache(0, clock), clock, Random(1), realm=MAIN.realm, catalog=MAIN.catalog)
    obj_id = ids.next()
    await store.write([NewObject(WIDE, obj_id, Wide(text=b"x" * 500))])
    fetch = backend.fetch
    fetches: list[list[ObjKey]] = []

    async def collected_after_the_first(keys: list[ObjKey]) -> list[Row | None]:
        rows = await fetch(keys)
        if not fetches:
            await backend.delete(list(backend._store.rows))
        fetches.append(keys)
        return rows

    backend.fetch = collected_after_the_first  # type: ignore[method-assign]

    assert await store.find(WIDE, obj_id) is None


async def test_parts_are_deleted_after_the_objects_they_belong_to() -> None:
    scopes = tuple(
        DoomedScope(
            realm=RealmId(realm), catalog=CatalogId("c"), type=name, ids=BitMap64([1, 2, 3]).serialize()
        )
        for realm in "ab"
        for name in (COMMIT.name, f"{COMMIT.name}#1", "item")
    )

    batches = list(Doomed(scopes=scopes).batches(5))

    kinds = [{"#" in key.type for key in batch} for batch in batches]
    assert kinds == [{False}] * 3 + [{True}] * 2
    assert sum(len(batch) for batch in batches) == 18
