"""Refusals are kept: before they are answered, in few commits, and strangers cannot fill the store."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from cynosure.auth.audit.catalog_names import CatalogNames
from cynosure.auth.audit.denials import Denial, DenialLog, denial_of
from cynosure.auth.caller import Caller
from cynosure.auth.ports import Decision, Missing
from cynosure.auth.rbac import operations as ops
from cynosure.auth.require import AccessDenied
from cynosure.auth.targets import CatalogRoleTarget, RealmTarget
from cynosure.common.errors import Forbidden, NotAuthenticated, Unavailable
from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import DEFAULT_REALM, realm_reference
from cynosure.persistence.spi import RealmId
from cynosure.testing.harness.clock import ManualClock

from .realm import LAKE, Realm

pytestmark = pytest.mark.anyio

ANN = Caller("ann", roles=("readers",), actor="gateway")
AUDIT = realm_reference(DEFAULT_REALM, "audit")


@pytest.fixture
async def denials(persistence: Persistence) -> AsyncIterator[DenialLog]:
    log = DenialLog(persistence, CatalogNames(persistence), failures_per_minute=3, patience_s=60)
    yield log
    await log.close()


def denied(name: str = "ann", **more: object) -> Denial:
    fields = {"actor": "", "roles": (), "operation": "load-table", "target": "table a.t", "request_id": "r"}
    return Denial(DEFAULT_REALM, name, **{**fields, "reason": "no", **more})  # type: ignore[arg-type]


def stranger(realm: RealmId = DEFAULT_REALM) -> Denial:
    error = NotAuthenticated("The token is not good", token="secret-token")
    return denial_of(error, realm=realm, caller=None, request_id="r", operation="loadTable")


async def test_a_refusal_is_in_the_events_when_it_has_been_recorded(realm: Realm, denials: DenialLog) -> None:
    """I44."""
    await realm.create_catalog()
    decision = Decision(False, (Missing("CATALOG_ROLE_DROP", "catalog-role", "etl"),))
    targets = (CatalogRoleTarget(LAKE, "etl"), RealmTarget("default"))
    error = AccessDenied(ANN, ops.DELETE_CATALOG_ROLE, targets, decision)

    denial = denial_of(error, realm=DEFAULT_REALM, caller=ANN, request_id="r9", operation="deleteCatalogRole")
    await denials.record(denial)

    (event,) = await realm.list_events()
    assert (event.kind, event.decision, event.operation) == ("denial", "denied", "delete-catalog-role")
    assert (event.principal, event.actor, event.roles, event.request_id) == (
        "ann",
        "gateway",
        ("readers",),
        "r9",
    )
    assert [(each.kind, each.name) for each in event.targets] == [
        ("catalog-role", "etl"),
        ("realm", "default"),
    ]
    assert (event.catalog, event.catalog_id, event.missing) == ("lake", LAKE, ("CATALOG_ROLE_DROP",))


async def test_a_refusal_that_is_not_of_the_authorizer_is_told_by_its_operation_and_message(
    realm: Realm, denials: DenialLog
) -> None:
    error = Forbidden("The location may not be used", location="s3://secret")
    await denials.record(
        denial_of(error, realm=DEFAULT_REALM, caller=ANN, request_id="r", operation="createTable")
    )

    (event,) = await realm.list_events()
    assert (event.operation, event.reason, event.targets) == (
        "createTable",
        "The location may not be used",
        (),
    )


async def test_refusals_that_arrive_together_share_a_commit(
    realm: Realm, persistence: Persistence, denials: DenialLog
) -> None:
    """I44."""
    await asyncio.gather(*(denials.record(denied(f"p{at}")) for at in range(200)))

    assert sorted(event.principal for event in await realm.list_events()) == sorted(
        f"p{at}" for at in range(200)
    )
    base = await persistence.committer(AUDIT).read()
    assert base.state.commit.record.sequence <= 3


async def test_refusals_and_collected_changes_are_in_one_list(realm: Realm, denials: DenialLog) -> None:
    async def deny() -> None:
        for at in range(20):
            await denials.record(denied(f"d{at}"))

    async def change() -> None:
        for at in range(20):
            await realm.do(f"c{at}")
            await realm.collector.collect(DEFAULT_REALM)

    await asyncio.gather(deny(), change())

    numbered = await realm.list_numbered()
    numbers = [number for number, _ in numbered]
    assert len(numbers) == 40
    assert numbers == sorted(set(numbers))
    assert [event.principal for _, event in numbered if event.kind == "denial"] == [
        f"d{at}" for at in range(20)
    ]


async def test_a_store_that_cannot_be_written_does_not_change_the_refusal_and_the_log_has_it(
    persistence: Persistence,
    denials: DenialLog,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """I44."""

    async def refuse(*_: object) -> bool:
        raise Unavailable("The database is away")

    monkeypatch.setattr(persistence.backend, "swap_ref", refuse)
    with caplog.at_level(logging.WARNING):
        await denials.record(denied())

    (record,) = [each for each in caplog.records if each.getMessage() == "audit.denial_unwritten"]
    fields = record.cynosure_fields  # type: ignore[attr-defined]
    assert fields["denial"] == denied()
    assert "away" in fields["cause"]


async def test_a_store_that_hangs_does_not_hold_up_the_refusal(
    persistence: Persistence, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, realm: Realm
) -> None:
    denials = DenialLog(persistence, CatalogNames(persistence), failures_per_minute=3, patience_s=0.01)
    backend, go_on = persistence.backend, asyncio.Event()
    swap_ref = backend.swap_ref

    async def hang(*arguments: object) -> bool:
        await go_on.wait()
        return await swap_ref(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(backend, "swap_ref", hang)
    await denials.record(denied())
    said = [each.getMessage() for each in caplog.records]
    assert said.count("audit.denial_unwritten") == 1

    go_on.set()
    await denials.close()
    assert [event.principal for event in await realm.list_events()] == ["ann"]


async def test_more_than_may_wait_go_to_the_log(
    persistence: Persistence, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, realm: Realm
) -> None:
    denials = DenialLog(
        persistence, CatalogNames(persistence), failures_per_minute=3, patience_s=0.01, most_waiting=5
    )

    await asyncio.gather(*(denials.record(denied(f"p{at}")) for at in range(8)))
    await denials.close()

    unwritten = [each for each in caplog.records if each.getMessage() == "audit.denial_unwritten"]
    assert len(unwritten) >= 3
    assert len(await realm.list_events()) == 5


# --- strangers ----------------------------------------------------------------------------------------


async def test_of_failed_authentications_so_many_are_written_and_the_rest_is_counted(
    realm: Realm, denials: DenialLog, clock: ManualClock
) -> None:
    """I44."""
    for _ in range(50):
        await denials.record(stranger())
    await clock.wait_for_sleepers(1)
    await clock.advance(61)
    await denials.close()

    events = await realm.list_events()
    assert [event.kind for event in events] == ["authentication-failure"] * 4
    assert [event.count for event in events] == [1, 1, 1, 47]
    assert events[0].reason == "The token is not good"
    assert events[0].principal == ""


async def test_the_count_is_not_lost_when_the_process_ends(realm: Realm, denials: DenialLog) -> None:
    for _ in range(5):
        await denials.record(stranger())
    await denials.close()

    assert sum(event.count for event in await realm.list_events()) == 5


async def test_time_lets_more_of_them_be_written(
    realm: Realm, denials: DenialLog, clock: ManualClock
) -> None:
    for _ in range(3):
        for _ in range(3):
            await denials.record(stranger())
        await clock.advance(60)
    await denials.close()

    assert [event.count for event in await realm.list_events()] == [1] * 9


async def test_a_principal_cannot_fill_the_store_and_the_log_has_the_rest(
    realm: Realm, persistence: Persistence, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """I44."""
    denials = DenialLog(persistence, CatalogNames(persistence), failures_per_minute=3, denials_per_minute=60)
    for at in range(11):
        await asyncio.gather(*(denials.record(denied("eve", request_id=f"{at}.{n}")) for n in range(100)))
    await denials.record(denied("ann"))
    await clock.wait_for_sleepers(1)
    await clock.advance(61)
    await denials.record(denied("eve", request_id="later"))
    await denials.close()

    events = await realm.list_events()
    eve = [event for event in events if event.principal == "eve"]
    assert sum(event.count for event in eve) == 1_101
    assert len(eve) == 1_002
    assert [event.count for event in eve if event.count > 1] == [100]
    assert "later" in [event.request_id for event in eve]
    assert [event.principal for event in events if event.principal != "eve"] == ["ann"]
    logged = [each for each in caplog.records if each.getMessage() == "audit.denial_unwritten"]
    assert len(logged) == 100


async def test_nothing_is_kept_for_a_realm_that_does_not_exist(
    persistence: Persistence, denials: DenialLog, caplog: pytest.LogCaptureFixture
) -> None:
    await denials.record(stranger(RealmId("made-up")))
    await denials.close()

    assert "audit.denial_unwritten" in [each.getMessage() for each in caplog.records]
    assert not [key for key in persistence._committers if key.realm == "made-up"]


async def test_long_text_of_strangers_is_cut(realm: Realm, denials: DenialLog) -> None:
    await denials.record(denied("p" * 100_000, target="t" * 100_000))

    (event,) = await realm.list_events()
    assert len(event.principal) == len(event.targets[0].name) == 1_000


async def test_refusals_and_events_are_counted(realm: Realm, denials: DenialLog) -> None:
    start_metrics()
    try:
        await denials.record(denied())
        for _ in range(4):
            await denials.record(stranger())
        await realm.do("p0")
        await realm.collect()
        shown = render().decode()
    finally:
        stop_metrics()

    assert 'cynosure_audit_denials_total{kind="denial"} 1.0' in shown
    assert 'cynosure_audit_denials_total{kind="authentication-failure"} 4.0' in shown
    assert "cynosure_audit_denials_suppressed_total 1.0" in shown
    assert "cynosure_audit_events_total 1.0" in shown
