import asyncio
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from cynosure.common.errors import CorruptObject, MissingObject, OutcomeUnknown, TooLarge, Unavailable
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.objects import Stored, struct_type
from cynosure.persistence.spi import CatalogId, ObjId, ObjKey, RealmId, Row, RowHead
from cynosure.persistence.store import NewObject, Store
from cynosure.testing.harness.clock import ManualClock

pytestmark = pytest.mark.anyio


class Note(Stored, frozen=True, kw_only=True):
    text: str
    data: bytes = b""


NOTE = struct_type("note", Note, is_compressed=False)
RARE = struct_type("rare", Note, negative_cache_s=10)
COUNTER = struct_type("counter", Note, is_mutable=True)
CACHED_COUNTER = struct_type("cached-counter", Note, is_mutable=True, cache_s=10, negative_cache_s=10)


class CountingBackend(MemoryBackend):
    """Counts what is asked of the database."""

    fetched: list[list[ObjKey]]

    async def fetch(self, keys: Any) -> list[Row | None]:
        self.fetched.append(list(keys))
        return await super().fetch(keys)


@pytest.fixture
async def backend() -> CountingBackend:
    backend = CountingBackend(row_bytes=1000)
    backend.fetched = []
    await backend.setup()
    return backend


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def store_on(backend: Any, clock: Any, catalog: str = "c") -> Store:
    return Store(
        backend, ObjectCache(1 << 20, clock), clock, Random(1), realm=RealmId("r"), catalog=CatalogId(catalog)
    )


@pytest.fixture
def store(backend: CountingBackend, clock: ManualClock) -> Store:
    return store_on(backend, clock)


# --- immutable objects ------------------------------------------------------------------------------


async def test_what_is_written_is_loaded_and_then_served_from_memory(
    store: Store, backend: CountingBackend
) -> None:
    note = Note(text="hello")
    await store.write([NewObject(NOTE, ObjId(1), note)])

    unread = store.get(NOTE, ObjId(1))
    loaded = await store.load(NOTE, ObjId(1))
    again = await store.load(NOTE, ObjId(1))

    assert unread is None
    assert loaded == note
    assert again is loaded is store.get(NOTE, ObjId(1))
    assert len(backend.fetched) == 1


async def test_a_remembered_object_is_not_read_back(store: Store, backend: CountingBackend) -> None:
    encoded = store.encode(NewObject(NOTE, ObjId(1), Note(text="hello")))

    store.remember(encoded)

    assert await store.find(NOTE, ObjId(1)) == Note(text="hello")
    assert backend.fetched == []


async def test_a_missing_object_is_none_for_find_and_an_error_for_load(store: Store) -> None:
    assert await store.find(NOTE, ObjId(1)) is None
    with pytest.raises(MissingObject) as missing:
        await store.load(NOTE, ObjId(1))
    with pytest.raises(MissingObject):
        await store.load_many(NOTE, [ObjId(1)])

    assert missing.value.details == {"realm": "r", "catalog": "c", "type": "note", "id": 1}


async def test_many_objects_come_in_order_with_one_read_of_what_is_not_in_memory(
    store: Store, backend: CountingBackend
) -> None:
    await store.write([NewObject(NOTE, ObjId(n), Note(text=str(n))) for n in (1, 2, 3)])
    await store.load(NOTE, ObjId(2))
    backend.fetched.clear()

    found = await store.find_many(NOTE, [ObjId(n) for n in (3, 9, 2, 1, 3)])

    assert [note.text if note else None for note in found] == ["3", None, "2", "1", "3"]
    assert [[key.id for key in keys] for keys in backend.fetched] == [[3, 9, 1, 3]]


async def test_reads_are_batched_as_the_backend_wishes(store: Store, backend: CountingBackend) -> None:
    ids = [ObjId(n) for n in range(1, 600)]
    await store.write([NewObject(NOTE, obj_id, Note(text="x")) for obj_id in ids])

    await store.load_many(NOTE, ids)

    assert [len(keys) for keys in backend.fetched] == [256, 256, 87]


async def test_an_object_larger_than_a_row_is_split_and_joined(
    backend: CountingBackend, clock: ManualClock
) -> None:
    note = Note(text="large", data=bytes(range(256)) * 20)
    await store_on(backend, clock).write([NewObject(NOTE, ObjId(1), note)])

    found = await store_on(backend, clock).find(NOTE, ObjId(1))

    heads = await backend.scan(after=None, limit=100)
    assert found == note
    assert len(heads) == 7
    assert max(head.blob_bytes for head in heads) == 1000


async def test_a_lost_part_is_said_to_be_missing(backend: CountingBackend, clock: ManualClock) -> None:
    await store_on(backend, clock).write([NewObject(NOTE, ObjId(1), Note(text="large", data=bytes(5000)))])
    await backend.delete([ObjKey(RealmId("r"), CatalogId("c"), "note#2", ObjId(1))])

    with pytest.raises(MissingObject) as missing:
        await store_on(backend, clock).find(NOTE, ObjId(1))

    assert missing.value.details["parts"] == [2]


async def test_damage_is_an_error_and_is_not_remembered(store: Store, backend: CountingBackend) -> None:
    await backend.write([Row(store.key(NOTE, ObjId(1)), b"\x01 damaged from here on")])

    for _ in range(2):
        with pytest.raises(CorruptObject):
            await store.find(NOTE, ObjId(1))

    assert len(backend.fetched) == 2


async def test_absence_is_remembered_only_for_types_that_say_so(
    store: Store, backend: CountingBackend, clock: ManualClock
) -> None:
    for _ in range(2):
        await store.find(NOTE, ObjId(1))
        await store.find(RARE, ObjId(1))
    fetched = [keys[0].type for keys in backend.fetched]
    await clock.advance(10)
    await store.find(RARE, ObjId(1))

    assert fetched == ["note", "rare", "note"]
    assert [keys[0].type for keys in backend.fetched] == [*fetched, "rare"]


async def test_what_this_process_writes_is_not_hidden_by_a_remembered_absence(store: Store) -> None:
    await store.find(RARE, ObjId(1))

    await store.write([NewObject(RARE, ObjId(1), Note(text="new"))])

    assert await store.find(RARE, ObjId(1)) == Note(text="new")


async def test_scopes_do_not_see_each_other_though_they_share_a_cache(
    backend: CountingBackend, clock: ManualClock
) -> None:
    cache = ObjectCache(1 << 20, clock)
    one, two = (
        Store(backend, cache, clock, Random(1), realm=RealmId("r"), catalog=CatalogId(name)) for name in "ab"
    )
    await one.write([NewObject(NOTE, ObjId(1), Note(text="one"))])
    await one.load(NOTE, ObjId(1))

    assert await two.find(NOTE, ObjId(1)) is None


# --- updateable objects -----------------------------------------------------------------------------


async def test_insert_wins_once_and_swap_wins_for_the_version_it_read(store: Store) -> None:
    first = await store.insert(COUNTER, ObjId(1), Note(text="1"))
    taken = await store.insert(COUNTER, ObjId(1), Note(text="other"))
    second = await store.swap(COUNTER, first, replace(first.value, text="2"))
    stale = await store.swap(COUNTER, first, replace(first.value, text="stale"))

    assert taken is None
    assert stale is None
    assert await store.fetch(COUNTER, ObjId(1)) == second
    assert second.token != first.token


async def test_delete_if_wins_only_for_the_current_version(store: Store) -> None:
    first = await store.insert(COUNTER, ObjId(1), Note(text="1"))
    second = await store.swap(COUNTER, first, Note(text="2"))

    assert not await store.delete_if(COUNTER, first)
    assert await store.delete_if(COUNTER, second)
    assert await store.fetch(COUNTER, ObjId(1)) is None


async def test_an_updateable_object_must_fit_one_row(store: Store) -> None:
    with pytest.raises(TooLarge) as refused:
        await store.insert(
            struct_type("counter", Note, is_mutable=True, is_compressed=False),
            ObjId(1),
            Note(text="", data=bytes(1000)),
        )

    assert refused.value.details["limit_bytes"] == 1000


async def test_updateable_objects_are_never_cached_unless_their_type_allows_it(
    store: Store, backend: CountingBackend, clock: ManualClock
) -> None:
    other = store_on(backend, clock)
    for object_type in (COUNTER, CACHED_COUNTER):
        first = await store.insert(object_type, ObjId(1), Note(text="old"))
        await store.find(object_type, ObjId(1))
        await other.swap(object_type, first, Note(text="new"))

    uncached = await store.find(COUNTER, ObjId(1))
    cached = await store.find(CACHED_COUNTER, ObjId(1))
    await clock.advance(10)

    assert (uncached.text, cached.text) == ("new", "old")
    assert (await store.find(CACHED_COUNTER, ObjId(1))).text == "new"


async def test_a_process_sees_its_own_updates_whatever_is_cached(store: Store) -> None:
    assert await store.find(CACHED_COUNTER, ObjId(1)) is None
    first = await store.insert(CACHED_COUNTER, ObjId(1), Note(text="1"))
    after_insert = await store.find(CACHED_COUNTER, ObjId(1))
    second = await store.swap(CACHED_COUNTER, first, Note(text="2"))
    after_swap = await store.find(CACHED_COUNTER, ObjId(1))
    await store.delete_if(CACHED_COUNTER, second)

    assert (after_insert.text, after_swap.text) == ("1", "2")
    assert await store.find(CACHED_COUNTER, ObjId(1)) is None


async def test_a_scan_gives_all_of_one_type_and_scope_in_order_also_id_zero(
    backend: CountingBackend, clock: ManualClock
) -> None:
    store, neighbour = store_on(backend, clock), store_on(backend, clock, "d")
    for obj_id in (0, 7, 3, (1 << 63) - 1, *range(1000, 1300)):
        await store.insert(COUNTER, ObjId(obj_id), Note(text=str(obj_id)))
    await store.insert(CACHED_COUNTER, ObjId(1), Note(text="another type"))
    await neighbour.insert(COUNTER, ObjId(1), Note(text="another scope"))

    found = await store.scan(COUNTER)

    assert [row.id for row in found] == [0, 3, 7, *range(1000, 1300), (1 << 63) - 1]
    assert [row.id for row in await neighbour.scan(COUNTER)] == [1]
    assert await neighbour.scan(CACHED_COUNTER) == []


async def test_heads_of_one_type_and_scope_come_in_pages_in_order_also_id_zero(
    backend: CountingBackend, clock: ManualClock
) -> None:
    store, neighbour = store_on(backend, clock), store_on(backend, clock, "d")
    ids = [0, 3, 7, *range(1000, 1030), (1 << 63) - 1]
    for obj_id in reversed(ids):
        await store.insert(COUNTER, ObjId(obj_id), Note(text=str(obj_id)))
    await store.insert(CACHED_COUNTER, ObjId(1), Note(text="another type"))
    await neighbour.insert(COUNTER, ObjId(1), Note(text="another scope"))

    found: list[RowHead] = []
    while page := await store.scan_heads(COUNTER, after=found[-1].key.id if found else None, limit=10):
        assert len(page) <= 11
        found += page

    assert [head.key.id for head in found] == ids
    first = await store.fetch(COUNTER, ObjId(0))
    assert first is not None
    assert (found[0].token, found[0].created_us) == (first.token, first.created_us)
    assert [head.key.id for head in await neighbour.scan_heads(COUNTER)] == [1]
    assert await neighbour.scan_heads(CACHED_COUNTER) == []


async def test_a_page_of_heads_begins_after_the_id_it_is_told(store: Store) -> None:
    for obj_id in (0, 1, 2):
        await store.insert(COUNTER, ObjId(obj_id), Note(text="x"))

    assert [head.key.id for head in await store.scan_heads(COUNTER, after=ObjId(0))] == [1, 2]
    assert await store.scan_heads(COUNTER, after=ObjId(2)) == []


async def test_of_scanned_objects_only_those_that_did_not_change_are_deleted(store: Store) -> None:
    for obj_id in range(5):
        await store.insert(COUNTER, ObjId(obj_id), Note(text="old"))
    heads = await store.scan_heads(COUNTER)
    current = await store.fetch(COUNTER, ObjId(3))
    assert current is not None
    assert await store.swap(COUNTER, current, Note(text="new"))

    assert await store.delete_each(heads) == 4

    assert [row.value.text for row in await store.scan(COUNTER)] == ["new"]
    assert await store.delete_each(heads) == 0
    assert await store.delete_each([]) == 0


async def test_deletions_of_many_are_sent_as_the_backend_wishes_and_seen_by_the_cache(
    store: Store, backend: CountingBackend
) -> None:
    count = 2 * backend.limits.fetch_batch + 3
    for obj_id in range(count):
        await store.insert(CACHED_COUNTER, ObjId(obj_id), Note(text="x"))
    assert await store.find(CACHED_COUNTER, ObjId(1)) is not None
    heads = await store.scan_heads(CACHED_COUNTER, limit=count)

    assert await store.delete_each(heads, is_relaxed=True) == count

    assert await store.find(CACHED_COUNTER, ObjId(1)) is None
    assert await store.scan(CACHED_COUNTER) == []


# --- unknown outcomes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults",
    [["before"], ["after"], ["before", "after"], ["after", "down", "before"], ["before", "down", "down"]],
)
async def test_an_unknown_outcome_is_settled_by_asking_again(
    make_world: Any, settle: Any, faults: list[str]
) -> None:
    world = await make_world()
    process = world.process()
    process.backend.faults = list(faults)

    first = await settle(world, process.store.insert(COUNTER, ObjId(1), Note(text="1")))
    process.backend.faults = list(faults)
    second = await settle(world, process.store.swap(COUNTER, first, Note(text="2")))

    assert await process.store.fetch(COUNTER, ObjId(1)) == second


async def test_a_lost_race_found_after_an_unknown_outcome_stays_unknown(make_world: Any, settle: Any) -> None:
    """Ours may have been applied before the other one replaced it; nobody can tell."""
    world = await make_world()
    ours, theirs = world.process("ours"), world.process("theirs")
    first = await ours.store.insert(COUNTER, ObjId(1), Note(text="1"))
    ours.backend.faults = ["after"]

    async def overtake() -> None:
        current = await theirs.store.fetch(COUNTER, ObjId(1))
        while current.value.text == "1":
            await world.clock.sleep(0.0001)
            current = await theirs.store.fetch(COUNTER, ObjId(1))
        assert await theirs.store.swap(COUNTER, current, Note(text="theirs"))

    overtaking = asyncio.create_task(overtake())
    with pytest.raises(OutcomeUnknown):
        await settle(world, ours.store.swap(COUNTER, first, Note(text="ours")), step_s=0.0001)
    await overtaking


async def test_a_refusal_after_an_unknown_outcome_does_not_become_nothing_was_applied(
    make_world: Any, settle: Any
) -> None:
    world = await make_world()
    process = world.process()
    process.backend.faults = ["after", *["down"] * 20]

    with pytest.raises(OutcomeUnknown):
        await settle(world, process.store.insert(COUNTER, ObjId(1), Note(text="1")), step_s=1)


async def test_a_refusal_at_first_is_passed_on_at_once(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    process.backend.faults = ["down"]

    with pytest.raises(Unavailable):
        await process.store.insert(COUNTER, ObjId(1), Note(text="1"))

    assert process.backend.writes == 1
