"""The list itself: numbers, batches, and the bytes of its marks."""

import asyncio

import msgspec
import pytest

from cynosure.auth.audit.backlog import Position
from cynosure.auth.audit.events import StoredEvent
from cynosure.auth.audit.journal import BATCH_EVENTS, Mark, append, audit_of, find_time, load_batches
from cynosure.persistence.history.reset import reset_to_recent
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import DEFAULT_REALM, realm_reference
from cynosure.persistence.spi import ObjId
from cynosure.testing.harness.clock import ManualClock

from .realm import Realm

pytestmark = pytest.mark.anyio


def event(name: str, time_us: int = 1) -> StoredEvent:
    return StoredEvent(time_us=time_us, kind="change", principal=name)


async def test_marks_and_positions_are_stored_as_they_always_were() -> None:
    """I20."""
    assert msgspec.msgpack.encode(Mark(7, 8)).hex() == "920708"
    position = Position(5, ObjId(6), "lake", is_settled=True)
    assert position.encode().hex() == "940506a46c616b65c3"
    assert Position.decode(bytes.fromhex("920506")) == Position(5, ObjId(6))
    assert Position.decode(None) == Position()


async def test_many_events_become_several_batches_in_one_commit(
    realm: Realm, persistence: Persistence
) -> None:
    wanted = [event(str(at)) for at in range(2 * BATCH_EVENTS + 1)]
    await append(persistence, DEFAULT_REALM, wanted, operation="test")

    assert await realm.list_events() == wanted
    base = await persistence.committer(realm_reference(DEFAULT_REALM, "audit")).read()
    assert base.state.commit.record.sequence == 1


async def test_appends_at_the_same_time_are_all_kept_in_one_order(
    realm: Realm, persistence: Persistence
) -> None:
    """I45."""
    await asyncio.gather(
        *(append(persistence, DEFAULT_REALM, [event(str(at))], operation="test") for at in range(50))
    )

    numbered = await realm.list_numbered()
    assert sorted(int(each.principal) for _, each in numbered) == list(range(50))
    numbers = [number for number, _ in numbered]
    assert numbers == sorted(set(numbers))


async def test_numbers_grow_over_a_disaster_reset_so_no_reader_misses_what_follows(
    realm: Realm, persistence: Persistence, clock: ManualClock
) -> None:
    """I45."""
    for at in range(4):
        await append(persistence, DEFAULT_REALM, [event(str(at))], operation="test")
        clock.step_wall(0.01)
    before = [number for number, _ in await realm.list_numbered()]
    key = realm_reference(DEFAULT_REALM, "audit")
    (ref,) = await persistence.backend.fetch_refs([key])
    assert ref is not None
    await reset_to_recent(persistence.backend, persistence.store(DEFAULT_REALM), ref, ref.recent[1])

    await append(persistence, DEFAULT_REALM, [event("after")], operation="test")

    numbered = await realm.list_numbered()
    assert [each.principal for _, each in numbered] == ["0", "1", "after"]
    assert numbered[-1][0] > max(before)


async def test_a_clock_that_is_ahead_changes_nothing_about_the_order_or_about_finding_a_time(
    realm: Realm, persistence: Persistence, clock: ManualClock
) -> None:
    now_us = clock.now_us()
    for name, time_us in (("a", now_us), ("b", now_us + 3_600_000_000), ("c", now_us)):
        await append(persistence, DEFAULT_REALM, [event(name, time_us)], operation="test")

    numbered = await realm.list_numbered()
    assert [each.principal for _, each in numbered] == ["a", "b", "c"]
    state = (await audit_of(persistence, DEFAULT_REALM).read()).state
    start = await find_time(state, now_us + 1_800_000_000)
    assert "b" in [each.principal for number, each in numbered if number > start]
    times = [batch.recorded_us for batch in await load_batches(state, 0, 10)]
    assert times == sorted(times)
