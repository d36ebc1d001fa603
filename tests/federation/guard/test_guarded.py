"""A remote that is slow, fails or is gone costs bounded work, and no other catalog anything (I120)."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from cynosure.catalog.errors import NoSuchNamespace
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.common.telemetry.request_scope import request_scope
from cynosure.federation.errors import FederationOff, RemoteBusy, RemoteMisbehaved, RemoteUnavailable
from cynosure.federation.guard.guarded import GuardedRemote
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.clock import ManualClock
from tests.federation.guard.scripted_remote import ScriptedRemote

pytestmark = pytest.mark.anyio

DOWN = RemoteUnavailable("far", reason="scripted")
Guard = Callable[..., GuardedRemote]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def guard(clock: ManualClock) -> Guard:
    def make(remote: ScriptedRemote, **settings: object) -> GuardedRemote:
        return GuardedRemote(
            "far", lambda: remote, FederationSettings(**{"retries": 0, **settings}), clock, random.Random(1)
        )

    return make


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_read_is_tried_again(guard: Guard, clock: ManualClock) -> None:
    remote = ScriptedRemote(DOWN, DOWN, {"a": "b"})
    asked = asyncio.create_task(guard(remote, retries=2).load_namespace(("ns",)))
    await clock.advance(5)

    assert await asked == {"a": "b"}
    assert remote.asked == 3


async def test_a_read_is_not_tried_for_ever(guard: Guard, clock: ManualClock) -> None:
    remote = ScriptedRemote(*[DOWN] * 9)
    asked = asyncio.create_task(guard(remote, retries=2).load_namespace(("ns",)))
    await clock.advance(5)

    with pytest.raises(RemoteUnavailable):
        await asked
    assert remote.asked == 3


async def test_a_change_is_sent_once(guard: Guard) -> None:
    remote = ScriptedRemote(DOWN)

    with pytest.raises(RemoteUnavailable):
        await guard(remote, retries=2).drop_namespace(("ns",))
    assert remote.asked == 1


async def test_retries_of_a_remote_that_is_down_are_few(guard: Guard, clock: ManualClock) -> None:
    remote = ScriptedRemote(*[DOWN] * 1_000)
    guarded = guard(remote, retries=2, break_after=10_000)
    for _ in range(100):
        asked = asyncio.create_task(guarded.load_namespace(("ns",)))
        while not asked.done():
            await clock.advance(0.1)
        with pytest.raises(RemoteUnavailable):
            await asked

    assert remote.asked <= 100 + 12


async def test_a_refusal_is_passed_on_and_is_no_failure(guard: Guard) -> None:
    remote = ScriptedRemote(*[NoSuchNamespace("ns")] * 10)
    guarded = guard(remote, break_after=2)
    for _ in range(10):
        with pytest.raises(NoSuchNamespace):
            await guarded.load_namespace(("ns",))

    assert guarded.health().breaker == "closed"
    assert remote.asked == 10


async def test_who_makes_a_remote_stumble_does_not_close_it_to_others(guard: Guard) -> None:
    stumbling = RemoteUnavailable("far", reason="status 500", status=500)
    unknown = OutcomeUnknown("It may have been applied", status=500)
    # In answers that no one can use, in words of its own, and while another attempt is under way.
    unknowns = [OutcomeUnknown("It may have been applied", status=status) for status in (200, 409, "Meta")]
    remote = ScriptedRemote(*[stumbling] * 5, *[unknown] * 2, *unknowns)
    guarded = guard(remote, break_after=2, retries=0)
    for _ in range(5):
        with pytest.raises(RemoteUnavailable):
            await guarded.load_namespace(("ns",))
    for _ in range(5):
        with pytest.raises(OutcomeUnknown):
            await guarded.drop_namespace(("ns",))

    assert guarded.health().breaker == "closed"
    assert guarded.health().failures == 10
    assert remote.asked == 10


@pytest.mark.parametrize("status", [429, 400])
async def test_who_asks_too_often_does_not_close_it_to_others(guard: Guard, status: int) -> None:
    patience = RemoteUnavailable("far", reason="it asks for patience", status=status)
    remote = ScriptedRemote(*[patience] * 6)
    guarded = guard(remote, break_after=2)
    for ask in (guarded.load_namespace, guarded.drop_namespace) * 3:
        with pytest.raises(RemoteUnavailable):
            await ask(("ns",))

    assert (guarded.health().breaker, remote.asked) == ("closed", 6)


@pytest.mark.parametrize(("error", "breaker"), [(KeyError("x"), "closed"), (ConnectionResetError(), "open")])
async def test_an_answer_that_nobody_foresaw_is_one(guard: Guard, error: Exception, breaker: str) -> None:
    guarded = guard(ScriptedRemote(*[error] * 2), break_after=2)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            await guarded.drop_namespace(("ns",))

    assert guarded.health().breaker == breaker


@pytest.mark.parametrize("status", [502, 503, 504, 521, None])
async def test_what_only_something_before_the_remote_answered_is_a_failure(
    guard: Guard, status: int | None
) -> None:
    told = {} if status is None else {"status": status}
    remote = ScriptedRemote(*[OutcomeUnknown("It may have been applied", **told)] * 2)
    guarded = guard(remote, break_after=2)
    for _ in range(2):
        with pytest.raises(OutcomeUnknown):
            await guarded.drop_namespace(("ns",))

    assert guarded.health().breaker == "open"


async def test_a_remote_that_fails_is_left_alone(guard: Guard, clock: ManualClock) -> None:
    remote = ScriptedRemote(DOWN, DOWN)
    guarded = guard(remote, break_after=2, break_for=timedelta(seconds=10))
    for _ in range(5):
        with pytest.raises(RemoteUnavailable):
            await guarded.load_namespace(("ns",))
    assert remote.asked == 2
    assert guarded.health().breaker == "open"

    await clock.advance(12.1)
    await guarded.load_namespace(("ns",))
    health = guarded.health()
    assert (health.breaker, health.failures, health.last_error) == ("closed", 0, "RemoteUnavailable")
    assert health.last_success_ms > health.last_failure_ms > 0


async def test_a_probe_that_is_cancelled_makes_way_for_another(guard: Guard, clock: ManualClock) -> None:
    remote = ScriptedRemote(DOWN, asyncio.Event())
    guarded = guard(remote, break_after=1)
    with pytest.raises(RemoteUnavailable):
        await guarded.load_namespace(("ns",))
    await clock.advance(12.1)
    probe = asyncio.create_task(guarded.load_namespace(("ns",)))
    await settle()
    with pytest.raises(RemoteUnavailable):
        await guarded.load_namespace(("ns",))
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe

    assert await guarded.load_namespace(("ns",)) == {}


async def test_what_nobody_foresaw_is_told_without_its_words(guard: Guard) -> None:
    remote = ScriptedRemote(KeyError("s3cret"), ConnectionResetError("s3cret"))
    guarded = guard(remote)

    with pytest.raises(RemoteMisbehaved) as misbehaved:
        await guarded.load_namespace(("ns",))
    with pytest.raises(RemoteUnavailable) as unavailable:
        await guarded.load_namespace(("ns",))
    assert "s3cret" not in f"{misbehaved.value}{misbehaved.value.details}"
    assert "s3cret" not in f"{unavailable.value}{unavailable.value.details}"


@pytest.mark.parametrize("error", [KeyError("x"), ConnectionResetError(), TimeoutError()])
async def test_a_change_that_broke_off_has_an_unknown_outcome(guard: Guard, error: Exception) -> None:
    with pytest.raises(OutcomeUnknown):
        await guard(ScriptedRemote(error)).drop_namespace(("ns",))


async def test_a_slow_answer_ends_at_the_deadline(guard: Guard) -> None:
    remote = ScriptedRemote(asyncio.Event(), asyncio.Event())
    guarded = guard(remote, timeout=timedelta(milliseconds=20))

    with pytest.raises(RemoteUnavailable):
        await guarded.load_namespace(("ns",))
    with pytest.raises(OutcomeUnknown):
        await guarded.drop_namespace(("ns",))
    assert remote.running == 0


async def test_a_change_that_never_had_its_turn_was_not_made(guard: Guard) -> None:
    remote = ScriptedRemote()
    guarded = guard(remote, concurrent=1, timeout=timedelta(milliseconds=20))
    await guarded._limit.acquire()  # somebody who does not hand it back

    with pytest.raises(RemoteUnavailable):
        await guarded.drop_namespace(("ns",))
    assert remote.asked == 0


async def test_so_many_at_once_and_so_many_waiting(guard: Guard) -> None:
    remote = ScriptedRemote(*[held := asyncio.Event()] * 3)
    guarded = guard(remote, concurrent=2, waiting=3)
    asked = [asyncio.create_task(guarded.load_namespace((str(number),))) for number in range(6)]
    await settle()
    health = guarded.health()
    assert (health.running, health.waiting) == (2, 3)
    assert isinstance(asked[-1].exception(), RemoteUnavailable)
    held.set()
    await asyncio.gather(*asked[:-1])

    assert remote.most_running == 2
    assert [levels[0] for levels in remote.order] == ["0", "1", "2", "3", "4"]


async def test_who_asks_a_thousand_times_is_turned_away_and_no_other(guard: Guard) -> None:
    remote = ScriptedRemote(*[held := asyncio.Event()] * 2_000)
    guarded = guard(remote, concurrent=16, waiting=256)

    async def ask(who: str) -> str:
        with request_scope(principal=who):
            try:
                await guarded.load_namespace((who,))
            except RemoteBusy:
                return f"{who} away"
            return who

    many = [asyncio.create_task(ask("many")) for _ in range(1_000)]
    await settle()
    few = [asyncio.create_task(ask(f"p{number}")) for number in range(20)]
    await settle()
    assert (guarded.health().running, guarded.health().waiting) == (16, 256)
    held.set()

    assert await asyncio.gather(*few) == [f"p{number}" for number in range(20)]
    # Twelve were under way; of the turns behind them "many" had one in twenty.
    assert Counter(each[0] == "many" for each in remote.order[12:34]) == {False: 20, True: 2}
    assert Counter(await asyncio.gather(*many)) == {"many": 12 + 240, "many away": 748}
    assert (guarded.health().running, guarded.health().waiting) == (0, 0)


async def test_what_nobody_asked_for_has_a_line_of_its_own(guard: Guard) -> None:
    remote = ScriptedRemote(*[held := asyncio.Event()] * 9)
    guarded = guard(remote, concurrent=1, waiting=3)
    with request_scope(principal="many"):
        many = [asyncio.create_task(guarded.load_namespace(("many",))) for _ in range(4)]
        await settle()
    background = asyncio.create_task(guarded.load_namespace(("background",)))
    await settle()
    held.set()
    await background

    assert [levels[0] for levels in remote.order][:3] == ["many", "many", "background"]
    assert [type(each) for each in await asyncio.gather(*many, return_exceptions=True)].count(RemoteBusy) == 1


async def test_who_waited_long_for_its_turn_does_not_say_that_the_remote_fails(
    guard: Guard, clock: ManualClock
) -> None:
    remote = ScriptedRemote(asyncio.Event(), TimeoutError())
    guarded = guard(remote, concurrent=1, break_after=1, timeout=timedelta(seconds=30))
    await guarded._limit.acquire()
    late = asyncio.create_task(guarded.load_namespace(("late",)))
    await settle()
    await clock.advance(29.95)
    guarded._limit.release()

    with pytest.raises(RemoteUnavailable):
        await late
    assert (remote.asked, guarded.health().breaker) == (1, "closed")
    with pytest.raises(RemoteUnavailable):
        await guarded.load_namespace(("in time",))
    assert guarded.health().breaker == "open"


async def test_a_server_that_may_not_ask_remotes_asks_none(guard: Guard) -> None:
    remote = ScriptedRemote()
    guarded = guard(remote, enabled=False)

    with pytest.raises(FederationOff) as read:
        await guarded.load_namespace(("ns",))
    with pytest.raises(FederationOff):
        await guarded.drop_namespace(("ns",))
    assert remote.asked == 0
    assert "federation.enabled" in read.value.fix
    assert (guarded.health().breaker, guarded.health().running) == ("closed", 0)


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_a_remote_does_turns_come_back_and_it_is_asked_again(
    guard: Guard, clock: ManualClock, seed: int
) -> None:
    """Requests of several principals that are answered, refused, lost, stumbled over, held and cancelled."""
    rng = random.Random(seed)
    stumbled = RemoteUnavailable("far", reason="scripted", status=500)
    refused, lost = NoSuchNamespace("ns"), ConnectionResetError()
    kinds = [dict, lambda: DOWN, lambda: stumbled, lambda: refused, lambda: lost, asyncio.Event]
    remote = ScriptedRemote(*(rng.choice(kinds)() for _ in range(400)))
    held = [each for each in remote.script if isinstance(each, asyncio.Event)]
    guarded = guard(remote, concurrent=3, concurrent_each=2, waiting=5, break_after=2, retries=1)
    tasks: list[asyncio.Task[object]] = []
    for _ in range(200):
        step = rng.random()
        if step < 0.6:
            ask = rng.choice([guarded.load_namespace, guarded.drop_namespace])
            with request_scope(principal=rng.choice("abc")):
                tasks.append(asyncio.create_task(ask(("ns",))))
        elif step < 0.75 and tasks:
            rng.choice(tasks).cancel()
        elif step < 0.9 and held:
            held.pop(0).set()
        else:
            await clock.advance(rng.choice([0.1, 1, 13]))
        await settle()
        health = guarded.health()
        assert health.running == remote.running <= 3
        assert health.waiting <= 5
    for event in held:
        event.set()
    while not all(each.done() for each in tasks):
        await clock.advance(1)
    told = [each.exception() for each in tasks if not each.cancelled()]
    assert all(each is None or isinstance(each, CynosureError) for each in told)
    health = guarded.health()
    assert (health.running, health.waiting, guarded.is_busy) == (0, 0, False)

    remote.script.clear()
    await clock.advance(13)
    assert await guarded.load_namespace(("ns",)) == {}
    assert guarded.health().breaker == "closed"


async def test_of_many_who_come_after_a_break_one_tries(guard: Guard, clock: ManualClock) -> None:
    remote = ScriptedRemote(DOWN, held := asyncio.Event())
    guarded = guard(remote, break_after=1, concurrent=2)
    with pytest.raises(RemoteUnavailable):
        await guarded.load_namespace(("ns",))
    await clock.advance(12.1)
    tasks = [asyncio.create_task(guarded.load_namespace((str(number),))) for number in range(10)]
    await settle()
    assert (remote.asked, sum(each.done() for each in tasks)) == (2, 9)
    held.set()

    await tasks[0]
    assert {type(each.exception()) for each in tasks[1:]} == {RemoteUnavailable}
    assert (guarded.health().breaker, guarded.health().running) == ("closed", 0)


async def test_who_is_cancelled_frees_its_turn(guard: Guard) -> None:
    remote = ScriptedRemote(asyncio.Event())
    guarded = guard(remote, concurrent=1)
    gone = asyncio.create_task(guarded.load_namespace(("gone",)))
    await settle()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone

    assert await guarded.load_namespace(("ns",)) == {}
    assert guarded.health().running == 0


async def test_what_runs_ends_on_a_client_that_was_retired(guard: Guard) -> None:
    remote = ScriptedRemote(held := asyncio.Event())
    guarded = guard(remote)
    running = asyncio.create_task(guarded.load_namespace(("ns",)))
    await settle()
    await guarded.retire()
    assert not remote.is_closed
    held.set()
    await running

    assert remote.is_closed
