"""Pages of events: complete, ordered, filtered, resumable, and only for those who may."""

import asyncio
from datetime import timedelta

import pytest

from cynosure.auth.audit.catalog_names import CatalogNames
from cynosure.auth.audit.collect import EventCollector
from cynosure.auth.audit.cursor import EventCursors
from cynosure.auth.audit.denials import Denial, DenialLog
from cynosure.auth.audit.events import StoredEvent, StoredTarget
from cynosure.auth.audit.journal import append, audit_of, find_time, load_batches
from cynosure.auth.audit.read import EventFilter, EventPage, EventReader
from cynosure.auth.audit.retention import trim_events
from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.ports import Decision, Missing, Target
from cynosure.auth.rbac.operations import READ_EVENTS, Operation
from cynosure.auth.require import AccessDenied
from cynosure.common.errors import BadInput, Expired
from cynosure.persistence.commit import View
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import RealmId
from cynosure.testing.harness.clock import ManualClock

from .realm import Realm

pytestmark = pytest.mark.anyio

RETENTION = timedelta(days=100)
ANN = Caller("ann")
ALL = EventFilter()


class OnlyAnn:
    """An authorizer that lets one principal read events, until told otherwise."""

    def __init__(self) -> None:
        self.may_read = True

    async def decide(
        self,
        caller: Caller,
        operation: Operation,
        targets: tuple[Target, ...],
        view: View | None,
        *,
        explain: bool = False,
    ) -> Decision:
        assert operation is READ_EVENTS
        if caller.principal == "ann" and self.may_read:
            return Decision(True)
        return Decision(False, (Missing("SERVICE_MANAGE_ACCESS", "realm", targets[0].name),))


@pytest.fixture
def authorizer() -> OnlyAnn:
    return OnlyAnn()


@pytest.fixture
def reader(realm: Realm, authorizer: OnlyAnn) -> EventReader:
    persistence = realm.persistence
    return EventReader(persistence, authorizer, realm.collector, EventCursors(persistence, RETENTION))


def names(page: EventPage) -> list[str]:
    return [each.name for event in page.events for each in event.targets]


async def test_following_cursors_tells_every_event_once_in_order(realm: Realm, reader: EventReader) -> None:
    """I45."""
    told: list[str] = []
    cursor = None
    for at in range(30):
        await realm.do(f"p{at}")
        if at % 7 == 0:
            page = await reader.read(ANN, ALL, cursor=cursor, limit=3)
            told += names(page)
            cursor = page.cursor
    while True:
        page = await reader.read(ANN, ALL, cursor=cursor, limit=4)
        told += names(page)
        cursor = page.cursor
        if not page.has_more:
            break

    assert told == [f"p{at}" for at in range(30)]
    assert (await reader.read(ANN, ALL, cursor=cursor)).events == []


async def test_an_event_is_told_with_everything_known_of_it(realm: Realm, reader: EventReader) -> None:
    await realm.create_catalog()
    await realm.create_table("a", "t", operation="create-table", request_id="r1", roles=("etl",), actor="gw")

    (event,) = (await reader.read(ANN, EventFilter(operation="create-table"))).events

    assert event.id.isdigit()
    assert event.time.startswith("2026-01-01T00:00:00.00")
    assert (event.realm, event.kind, event.decision) == ("default", "change", "allowed")
    assert (event.principal, event.actor, event.roles, event.request_id) == ("ann", "gw", ("etl",), "r1")
    assert (event.catalog, event.targets[0].kind, event.targets[0].name) == ("lake", "table", "a.t")


async def test_filters_leave_what_was_asked_for(
    realm: Realm, reader: EventReader, persistence: Persistence, clock: ManualClock
) -> None:
    await realm.create_catalog()
    await realm.create_table("a", "t", operation="create-table")
    await realm.create_table("a.b", "u", principal="bob", operation="create-table")
    await realm.do("carl", principal="bob", actor="gateway")
    denials = DenialLog(persistence, CatalogNames(persistence), failures_per_minute=9)
    await denials.record(Denial(DEFAULT_REALM, "eve", "", (), "load-table", "table a.t", "r", "no"))

    async def ask(**wanted: object) -> list[str]:
        return names(await reader.read(ANN, EventFilter(**wanted)))  # type: ignore[arg-type]

    assert await ask(principal="bob") == ["a.b.u", "carl"]
    assert await ask(principal="gateway") == ["carl"]
    assert await ask(operation="create-table") == ["a.t", "a.b.u"]
    assert await ask(decision="denied") == ["table a.t"]
    assert await ask(catalog="lake") == ["lake", "a.t", "a.b.u"]
    assert await ask(target="a") == ["a.t", "a.b.u"]
    assert await ask(target="a.t") == ["a.t"]
    assert await ask(principal="bob", operation="create-table") == ["a.b.u"]
    assert await ask(principal="nobody") == []
    now_us = clock.now_us()
    assert await ask(since_us=now_us + 1) == []
    assert len(await ask(since_us=now_us - 1_000_000, until_us=now_us + 1)) == 5
    assert await ask(until_us=now_us - 1_000_000) == []


async def test_a_place_in_time_is_found_in_a_long_list(persistence: Persistence, clock: ManualClock) -> None:
    for at in range(100):
        clock.step_wall(60)
        event = StoredEvent(time_us=clock.now_us(), kind="change", targets=(StoredTarget(name=str(at)),))
        # What was done a while ago may be told only now.
        late = StoredEvent(time_us=clock.now_us() - 600_000_000, kind="change")
        await append(persistence, DEFAULT_REALM, [event, late], operation="test")
    state = (await audit_of(persistence, DEFAULT_REALM).read()).state
    everything = [each for batch in await load_batches(state, 0, 1_000) for each in batch.numbered()]

    for minutes in (0, 1, 33, 50, 99, 120):
        since_us = clock.now_us() - minutes * 60_000_000
        start = await find_time(state, since_us)
        assert not [number for number, event in everything if number <= start and event.time_us >= since_us]
        wanted = [number for number, event in everything if number > start]
        assert len(wanted) <= 2 * (minutes + 1)


async def test_a_page_waits_for_the_first_event_that_passes(
    realm: Realm, reader: EventReader, clock: ManualClock
) -> None:
    page = await reader.read(ANN, ALL)
    waiting = asyncio.create_task(
        reader.read(ANN, EventFilter(principal="bob"), cursor=page.cursor, wait_s=30)
    )
    await clock.wait_for_sleepers(1)
    await realm.do("p1")
    await clock.advance(1)
    await clock.wait_for_sleepers(1)
    assert not waiting.done()

    await realm.do("p2", principal="bob")
    await clock.advance(1)

    assert names(await waiting) == ["p2"]


async def test_a_page_does_not_wait_longer_than_asked(reader: EventReader, clock: ManualClock) -> None:
    waiting = asyncio.create_task(reader.read(ANN, ALL, wait_s=3))
    for _ in range(3):
        await clock.wait_for_sleepers(1)
        await clock.advance(1)

    page = await waiting
    assert (page.events, page.has_more) == ([], False)


async def test_nobody_waits_for_events_of_a_process_that_ends(
    reader: EventReader, clock: ManualClock
) -> None:
    waiting = asyncio.create_task(reader.read(ANN, ALL, wait_s=30))
    await clock.wait_for_sleepers(1)

    reader.stop_waiting()
    await clock.advance(1)

    assert (await waiting).events == []


async def test_rights_that_are_taken_away_end_a_wait(
    realm: Realm, reader: EventReader, authorizer: OnlyAnn, clock: ManualClock
) -> None:
    waiting = asyncio.create_task(reader.read(ANN, ALL, wait_s=30))
    await clock.wait_for_sleepers(1)

    authorizer.may_read = False
    await realm.do("p1")
    await clock.advance(1)

    with pytest.raises(AccessDenied):
        await waiting


async def test_only_those_who_may_read_events(reader: EventReader) -> None:
    with pytest.raises(AccessDenied, match="SERVICE_MANAGE_ACCESS"):
        await reader.read(Caller("bob"), ALL)
    assert (await reader.read(operator_caller(), ALL)).events == []


@pytest.mark.parametrize("cursor", ["", "x", "A" * 60])
async def test_a_cursor_that_is_not_ours_is_refused(reader: EventReader, cursor: str) -> None:
    with pytest.raises(BadInput) as refused:
        await reader.read(ANN, ALL, cursor=cursor)
    assert refused.value.field == "cursor"


async def test_a_cursor_of_another_realm_is_refused(reader: EventReader, persistence: Persistence) -> None:
    foreign = EventCursors(persistence, RETENTION).seal(RealmId("other"), 1)
    with pytest.raises(BadInput):
        await reader.read(ANN, ALL, cursor=foreign)


@pytest.mark.parametrize(("limit", "wait_s"), [(0, 0), (1_001, 0), (1, -1), (1, 61)])
async def test_numbers_out_of_range_are_refused(reader: EventReader, limit: int, wait_s: float) -> None:
    with pytest.raises(BadInput):
        await reader.read(ANN, ALL, limit=limit, wait_s=wait_s)


# --- retention ------------------------------------------------------------------------------------------


async def test_old_events_go_and_a_cursor_into_them_is_expired(
    realm: Realm, reader: EventReader, persistence: Persistence, clock: ManualClock
) -> None:
    """I45."""
    await realm.do("p0")
    early = (await reader.read(ANN, ALL, limit=1)).cursor
    await realm.do("p1")
    assert names(await reader.read(ANN, ALL)) == ["p0", "p1"]
    clock.step_wall(RETENTION.total_seconds() - 10)
    await realm.do("p2")
    late = (await reader.read(ANN, ALL)).cursor
    assert await trim_events(persistence, DEFAULT_REALM, RETENTION) == 0
    clock.step_wall(10)

    assert await trim_events(persistence, DEFAULT_REALM, RETENTION) == 2

    assert names(await reader.read(ANN, ALL)) == ["p2"]
    assert (await reader.read(ANN, ALL, cursor=late)).events == []
    with pytest.raises(Expired):
        await reader.read(ANN, ALL, cursor=early)


async def test_a_cursor_between_kept_and_lost_events_is_expired_though_it_is_young(
    realm: Realm, persistence: Persistence, clock: ManualClock, reader: EventReader
) -> None:
    for at in range(3):
        await realm.do(f"p{at}")
        await realm.collect()
    cursor = (await reader.read(ANN, ALL, limit=1)).cursor
    clock.step_wall(10)

    await trim_events(persistence, DEFAULT_REALM, timedelta(seconds=1))

    with pytest.raises(Expired):
        await reader.read(ANN, ALL, cursor=cursor)
    assert (await reader.read(ANN, ALL)).events == []
    await realm.do("p3")
    assert names(await reader.read(ANN, ALL)) == ["p3"]


async def test_what_was_collected_is_not_collected_again_after_it_was_trimmed(
    realm: Realm, persistence: Persistence, clock: ManualClock
) -> None:
    """I43."""
    await realm.do("p0")
    await realm.collect()
    clock.step_wall(10)
    await trim_events(persistence, DEFAULT_REALM, timedelta(seconds=1))

    another = EventCollector(persistence, CatalogNames(persistence))
    await another.collect(DEFAULT_REALM)

    assert await realm.list_events() == []
