"""Commits become events: every one, once, whoever collects."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cynosure.auth.audit.backlog import COLLECTED, REMOVED, RESET
from cynosure.auth.audit.catalog_names import CatalogNames
from cynosure.auth.audit.collect import EventCollector
from cynosure.common.errors import Unavailable
from cynosure.persistence.history.reset import reset_to_recent
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.references import DEFAULT_REALM, catalog_reference, realm_reference
from cynosure.testing.harness.clock import ManualClock

from .conftest import Open
from .realm import LAKE, SETTINGS, Realm, names

pytestmark = pytest.mark.anyio

PRINCIPALS = realm_reference(DEFAULT_REALM, "principals")


async def test_every_commit_of_the_realm_and_its_catalogs_becomes_an_event_once(realm: Realm) -> None:
    """I43."""
    await realm.create_catalog()
    await realm.do("bob", operation="create-principal", request_id="r1", actor="gateway", roles=("admin",))
    await realm.create_table("a", "t")

    events = await realm.collect()
    assert await realm.collect() == events

    assert names(events) == ["lake", "bob", "a.t"]
    by_name = {event.targets[0].name: event for event in events}
    bob = by_name["bob"]
    assert (bob.principal, bob.actor, bob.roles, bob.request_id) == ("ann", "gateway", ("admin",), "r1")
    assert (bob.operation, bob.decision, bob.kind) == ("create-principal", "allowed", "change")
    assert (bob.catalog, bob.catalog_id) == ("", "")
    assert (bob.reference, bob.sequence, bob.targets[0].id) == ("principals", 1, "7")
    table = by_name["a.t"]
    assert (table.catalog, table.catalog_id, table.reference) == ("lake", LAKE, "main")
    assert (table.targets[0].kind, table.targets[0].change) == ("table", "table-created")


async def test_events_are_told_in_the_order_of_time_over_all_references(
    realm: Realm, clock: ManualClock
) -> None:
    await realm.create_catalog()
    for at in range(6):
        clock.step_wall(1)
        await (realm.do(f"p{at}") if at % 2 else realm.create_table("a", f"t{at}"))

    assert names(await realm.collect()) == ["lake", "a.t0", "p1", "a.t2", "p3", "a.t4", "p5"]


async def test_numbers_grow_and_are_never_used_again(realm: Realm) -> None:
    for at in range(5):
        await realm.do(f"p{at}")
        await realm.collect()

    numbers = [number for number, _ in await realm.list_numbered()]

    assert numbers == sorted(set(numbers))
    assert len(numbers) == 5


async def test_collectors_of_several_processes_tell_everything_once(tmp_path: Path) -> None:
    """I43."""
    url = f"sqlite:{tmp_path / 'store.db'}"
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(open_persistence(url, SETTINGS, initialise=True))
            for _ in range(3)
        ]
        await _race([Realm(store) for store in stores])


async def test_collectors_of_several_processes_on_postgres_tell_everything_once(
    postgres_schema_url: str,
) -> None:
    """I43."""
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(open_persistence(postgres_schema_url, SETTINGS, initialise=True))
            for _ in range(3)
        ]
        await _race([Realm(store) for store in stores])


async def test_collectors_of_one_process_tell_everything_once(persistence: Persistence) -> None:
    await _race([Realm(persistence) for _ in range(3)])


async def _race(realms: list[Realm]) -> None:
    realm = realms[0]

    async def write() -> None:
        for at in range(60):
            await realm.do(f"p{at}")

    async def collect(each: Realm) -> None:
        while not writing.done():
            await each.collector.collect(DEFAULT_REALM)

    writing = asyncio.create_task(write())
    await asyncio.gather(writing, *(collect(each) for each in realms))
    events = await realm.collect()

    assert names(events) == [f"p{at}" for at in range(60)]
    assert [event.sequence for event in events] == list(range(1, 61))


async def test_a_collection_that_cannot_be_written_is_done_again(
    realm: Realm, monkeypatch: pytest.MonkeyPatch
) -> None:
    await realm.do("bob")
    backend = realm.persistence.backend
    swap_ref = backend.swap_ref

    async def refuse(*_: object) -> bool:
        raise Unavailable("The database is away")

    monkeypatch.setattr(backend, "swap_ref", refuse)
    with pytest.raises(Unavailable):
        await realm.collector.collect(DEFAULT_REALM)
    monkeypatch.setattr(backend, "swap_ref", swap_ref)

    assert names(await realm.collect()) == ["bob"]


async def test_a_reader_sees_what_was_acknowledged_before_also_while_a_collection_is_under_way(
    realm: Realm,
) -> None:
    """I43."""
    await realm.do("p0")
    first = asyncio.create_task(realm.collector.collect(DEFAULT_REALM))
    await asyncio.sleep(0)
    await realm.do("p1")

    await realm.collector.collect(DEFAULT_REALM)

    assert "p1" in names(await realm.list_events())
    await first


async def test_more_than_one_call_does_is_told_in_order_by_several(
    realm: Realm, persistence: Persistence
) -> None:
    small = EventCollector(persistence, CatalogNames(persistence), append_events=2, round_events=3)
    await realm.create_catalog()
    for at in range(40):
        await realm.do(f"p{at}")

    calls = 1
    while not await small.collect(DEFAULT_REALM):
        calls += 1

    assert calls > 1
    assert names(await realm.list_events()) == ["lake", *(f"p{at}" for at in range(40))]


# --- what cannot be told any more -------------------------------------------------------------------


async def test_history_that_was_collected_first_is_a_gap_that_says_so(
    open_store: Open, clock: ManualClock
) -> None:
    """I43."""
    # A cache would still know commits that the database has not.
    forgetful = msgspec.structs.replace(SETTINGS, cache_bytes=0, recent_heads=1)
    async with open_store(forgetful) as persistence:
        realm = Realm(persistence)
        await realm.do("p0")
        await realm.collect()
        for at in range(1, 40):
            await realm.do(f"p{at}")
        clock.step_wall(timedelta(days=40).total_seconds())
        await realm.do("p40")
        clock.step_wall(timedelta(days=40).total_seconds())
        await realm.do("p41")
        await persistence.collector().run()

        events = await realm.collect()

    assert [event.kind for event in events] == ["change", "gap", "change", "change"]
    gap = events[1]
    assert (gap.reason, gap.sequence, gap.count, gap.reference) == (COLLECTED, 2, 39, "principals")
    assert gap.decision == ""
    assert names(events) == ["p0", "p40", "p41"]


async def test_a_reset_reference_is_told_from_where_it_was_reset_to(
    realm: Realm, persistence: Persistence
) -> None:
    for at in range(5):
        await realm.do(f"p{at}")
    await realm.collect()
    (ref,) = await persistence.backend.fetch_refs([PRINCIPALS])
    assert ref is not None
    await reset_to_recent(persistence.backend, persistence.store(DEFAULT_REALM), ref, ref.recent[2])
    await realm.do("q2")

    events = await realm.collect()

    assert names(events) == ["p0", "p1", "p2", "p3", "p4", "q2"]
    (gap,) = [event for event in events if event.kind == "gap"]
    assert gap.reason == RESET
    assert (gap.sequence, gap.count) == (3, 3)
    assert [event.sequence for event in events if event.kind == "change"] == [1, 2, 3, 4, 5, 3]


# --- catalogs that go ---------------------------------------------------------------------------------


async def test_a_dropped_catalog_is_told_to_its_end_and_then_forgotten(realm: Realm) -> None:
    """I43."""
    await realm.create_catalog()
    await realm.create_table("a", "t")
    await realm.drop_catalog()

    events = await realm.collect()
    # It was not known yet when the list told of its drop.
    assert names(events) == ["lake", "lake", "a.t"]
    assert {event.catalog for event in events if event.reference == "main"} == {"lake"}

    await realm.delete_catalog()
    assert await realm.collect() == events
    positions, _ = await realm.collector._look(DEFAULT_REALM)
    assert not [key for key in positions if key.catalog == LAKE]


async def test_a_catalog_that_is_gone_before_it_was_told_is_a_gap(realm: Realm) -> None:
    await realm.create_catalog()
    await realm.create_table("a", "t")
    await realm.drop_catalog()
    await realm.delete_catalog()

    events = await realm.collect()

    assert names(events) == ["lake", "lake"]
    gaps = [event for event in events if event.kind == "gap"]
    assert {(gap.reason, gap.catalog, gap.reference) for gap in gaps} == {
        (REMOVED, "lake", "main"),
        (REMOVED, "lake", "grants"),
    }
    assert await realm.collect() == events


async def test_what_happens_in_a_dropped_catalog_is_told_as_long_as_its_references_are_there(
    realm: Realm, persistence: Persistence
) -> None:
    await realm.create_catalog()
    await realm.drop_catalog()
    await realm.collect()
    await realm.create_table("a", "late")

    assert names(await realm.collect()) == ["lake", "lake", "a.late"]
    main = catalog_reference(DEFAULT_REALM, LAKE, "main")
    assert main in (await realm.collector._look(DEFAULT_REALM))[0]
