"""What servers do by themselves: collect, trim and deliver for all realms, one of them at a time."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.auth.audit.keeper import TASK_NAME, Keeper
from cynosure.auth.audit.opened import open_audit
from cynosure.auth.ports import Authorizer
from cynosure.auth.settings import AuditSettings, check_audit
from cynosure.common.errors import Misconfigured
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import DEFAULT_REALM, REALMS
from cynosure.persistence.scopes import create_realm
from cynosure.persistence.spi import RealmId
from cynosure.testing.harness.clock import ManualClock

from .realm import Realm, names

pytestmark = pytest.mark.anyio

NOBODY_ASKS: Authorizer = None  # type: ignore[assignment]
QUICK = AuditSettings(collect_every=timedelta(seconds=5), retention=timedelta(days=10))


async def pass_until(clock: ManualClock, is_done: object, *, step_s: float = 1.0) -> None:
    """Let time pass while work that does real I/O goes on.

    More and more slowly: where a machine is so slow that leases ran out, they no longer do.
    """
    pause_s = 0.005
    async with asyncio.timeout(60):
        while not await is_done():  # type: ignore[operator]
            await clock.advance(step_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.02, 0.5)


async def test_events_are_collected_delivered_and_trimmed_without_being_asked_for(
    realm: Realm, persistence: Persistence, clock: ManualClock, tmp_path: Path
) -> None:
    """I45."""
    path = tmp_path / "events.jsonl"
    settings = AuditSettings(collect_every=QUICK.collect_every, retention=QUICK.retention, file=path)
    await realm.do("p0")

    def told() -> list[str]:
        """At least once: whoever loses its turn between a delivery and noting it delivers it again."""
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return list(dict.fromkeys(json.loads(line)["targets"][0]["name"] for line in lines))

    async with open_audit(persistence, NOBODY_ASKS, settings):

        async def has_first() -> bool:
            return told() == ["p0"]

        await pass_until(clock, has_first)
        await realm.do("p1")

        async def has_second() -> bool:
            return told() == ["p0", "p1"]

        await pass_until(clock, has_second)
        clock.step_wall(timedelta(days=11).total_seconds())
        await realm.do("p2")

        async def is_trimmed() -> bool:
            return names(await realm.list_events()) == ["p2"] and len(told()) == 3

        await pass_until(clock, is_trimmed, step_s=10)
    assert told() == ["p0", "p1", "p2"]


async def test_one_of_several_does_it_and_another_takes_over_at_once_when_it_stops(
    realm: Realm, persistence: Persistence, clock: ManualClock
) -> None:
    first = open_audit(persistence, NOBODY_ASKS, QUICK)
    await first.__aenter__()

    async def is_running() -> bool:
        found = await persistence.tasks.find(TASK_NAME)
        return found is not None and found.state == "running"

    await pass_until(clock, is_running)
    async with open_audit(persistence, NOBODY_ASKS, QUICK):
        status = await persistence.tasks.find(TASK_NAME)
        await first.__aexit__(None, None, None)
        await pass_until(clock, is_running)
        taken_over = await persistence.tasks.find(TASK_NAME)

    assert status is not None
    assert taken_over is not None
    assert taken_over.started_us > status.started_us
    assert [run.outcome for run in taken_over.runs] == ["interrupted"]


async def test_every_realm_is_looked_after_also_a_new_one(
    realm: Realm, persistence: Persistence, clock: ManualClock
) -> None:
    other = RealmId("other")
    async with open_audit(persistence, NOBODY_ASKS, QUICK) as audit:
        await create_realm(
            persistence.committer(REALMS),
            other,
            backend=persistence.backend,
            ids=persistence.ids,
            clock=clock,
            principal="ann",
        )
        await realm.do("p0")

        async def is_collected() -> bool:
            return bool(await realm.list_events()) and other in audit.collector._runs

        await pass_until(clock, is_collected)


async def test_a_run_ends_by_itself_with_an_account(
    realm: Realm, persistence: Persistence, clock: ManualClock
) -> None:
    keeper = Keeper(persistence, realm.collector, [], QUICK, run_s=20)
    running = asyncio.create_task(persistence.tasks.run_now(keeper.task()))

    async def has_ended() -> bool:
        return running.done()

    await pass_until(clock, has_ended)
    assert ((await running).outcome, (await running).text) == ("succeeded", "collected")


@pytest.mark.parametrize(
    ("audit", "history", "is_fine"),
    [
        (AuditSettings(), timedelta(days=30), True),
        (AuditSettings(collect_every=timedelta(days=30)), timedelta(days=30), False),
        (AuditSettings(retention=timedelta(seconds=5)), timedelta(days=30), False),
    ],
)
async def test_lifetimes_that_contradict_each_other_are_refused(
    audit: AuditSettings, history: timedelta, is_fine: bool
) -> None:
    if is_fine:
        check_audit(audit, history)
        return
    with pytest.raises(Misconfigured, match="collect_every"):
        check_audit(audit, history)


async def test_collecting_goes_on_for_other_realms_when_one_is_damaged(
    realm: Realm, persistence: Persistence, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    broken = RealmId("broken")
    await create_realm(
        persistence.committer(REALMS),
        broken,
        backend=persistence.backend,
        ids=persistence.ids,
        clock=clock,
        principal="ann",
    )
    for ref in await persistence.backend.list_refs(broken):
        assert await persistence.backend.delete_ref(ref)
    await realm.do("p0")

    async with open_audit(persistence, NOBODY_ASKS, QUICK):

        async def is_collected() -> bool:
            return names(await realm.list_events()) == ["p0"]

        await pass_until(clock, is_collected)
    failed = [each for each in caplog.records if each.getMessage() == "audit.collecting_failed"]
    assert failed
    assert DEFAULT_REALM not in {each.cynosure_fields["realm"] for each in failed}  # type: ignore[attr-defined]
