"""The flow of a request with a key: reserve, execute, finalize; or wait, replay, take over."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
import pytest

from cynosure.auth.request_key import Overtaken, Refused, Rehearsed
from cynosure.common.errors import (
    AlreadyExists,
    CynosureError,
    Forbidden,
    KeyReused,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from cynosure.idempotency.errors import CommitInProgress, RequestInProgress
from cynosure.idempotency.record import Answer
from tests.idempotency.engines import KEPT_S, KEY, LEASE_S, OK, SETTINGS, Servers, Work, claim

pytestmark = pytest.mark.anyio

TAKEN = AlreadyExists("The namespace exists", name="a namespace that only its caller may know")


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    servers = Servers()
    yield servers
    await servers.close()


async def refused(servers: Servers) -> None:
    """A request was refused, and its refusal is stored."""
    with pytest.raises(AlreadyExists):
        await servers.start().engine.run(claim(), Work(TAKEN))


def hidden() -> NotFound:
    error = NotFound("No such table")
    error.__cause__ = Forbidden("No right to see it")
    return error


# --- execute ----------------------------------------------------------------------------------------


async def test_a_new_request_is_executed_and_answered(servers: Servers) -> None:
    work = Work(OK, commits=True)

    outcome = await servers.start().engine.run(claim(), work)

    assert (outcome.answer, outcome.is_replayed, work.executed) == (OK, False, 1)
    assert not work.keys[0].is_repeat


async def test_what_is_in_the_chain_is_answered_before_its_record_says_so(servers: Servers) -> None:
    server, work = servers.start(), Work(OK, commits=True)
    work.gate.clear()
    running = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    server.backend.gate.clear()
    work.gate.set()

    assert (await running).answer == OK
    assert servers.record.state == "IN_PROGRESS"
    server.backend.gate.set()
    await server.engine.close()
    assert (servers.record.state, servers.record.is_in_chain) == ("FINALIZED", True)


async def test_what_is_in_no_chain_is_told_only_when_it_is_stored(servers: Servers) -> None:
    server, work = servers.start(), Work(TAKEN)
    work.gate.clear()
    running = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    server.backend.gate.clear()
    work.gate.set()
    await server.backend.reached.wait()

    assert not running.done()
    server.backend.gate.set()
    with pytest.raises(AlreadyExists):
        await running
    assert (servers.record.state, servers.record.status) == ("FINALIZED", 409)


async def test_a_refusal_that_cannot_be_stored_is_not_told(servers: Servers) -> None:
    server, work = servers.start(), Work(TAKEN)
    work.gate.clear()
    running = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    server.backend.errors = [Unavailable("The database does not answer")]
    work.gate.set()

    with pytest.raises(Unavailable):
        await running
    assert servers.record.state == "IN_PROGRESS"


@pytest.mark.parametrize(
    "error",
    [Unavailable("Away"), OutcomeUnknown("Who knows"), Forbidden("No right"), hidden()],
    ids=lambda error: type(error).__name__,
)
async def test_what_may_end_differently_next_time_is_not_kept(servers: Servers, error: CynosureError) -> None:
    work = Work(error, OK)
    with pytest.raises(type(error)):
        await servers.start().engine.run(claim(), work)

    outcome = await servers.start().engine.run(claim(), work)

    assert (outcome.answer, work.executed) == (OK, 2)


async def test_an_attempt_after_one_without_an_outcome_knows_of_it(servers: Servers) -> None:
    work = Work(OutcomeUnknown("Who knows"), OK)
    with pytest.raises(OutcomeUnknown):
        await servers.start().engine.run(claim(), work)

    await servers.start().engine.run(claim(), work)

    assert [key.is_repeat for key in work.keys] == [False, True]


async def test_an_attempt_that_is_overtaken_asks_again_and_hears_the_answer(servers: Servers) -> None:
    work = Work(Overtaken(), OK, commits=True)

    outcome = await servers.start().engine.run(claim(), work)

    assert outcome.answer == OK
    assert [key.is_repeat for key in work.keys] == [False, True]


async def test_a_refusal_in_the_chain_is_the_answer(servers: Servers) -> None:
    answer = Answer(404, (), b"gone")

    outcome = await servers.start().engine.run(claim(), Work(Refused(answer.pack()), commits=True))

    assert outcome.answer == answer
    await servers.close()
    assert (servers.record.status, servers.record.is_in_chain, servers.record.sealed) == (404, True, b"")


async def test_a_cancelled_request_is_free_for_the_next_attempt_at_once(servers: Servers) -> None:
    server, work = servers.start(), Work(OK)
    work.gate.clear()
    running = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    work.gate.set()
    await server.engine.close()

    outcome = await servers.start().engine.run(claim(), work)

    assert outcome.answer == OK
    assert work.keys[-1].is_repeat


async def test_a_defect_leaves_the_request_to_the_next_attempt(servers: Servers) -> None:
    server, work = servers.start(), Work(RuntimeError("a defect"), OK)
    with pytest.raises(RuntimeError):
        await server.engine.run(claim(), work)
    await server.engine.close()

    assert (await servers.start().engine.run(claim(), work)).answer == OK


async def test_nothing_of_an_ended_request_stays_in_memory(servers: Servers) -> None:
    server = servers.start()
    await server.engine.run(claim(key="one"), Work(OK, commits=True))
    await server.engine.run(claim(key="two"), Work(OK))
    with pytest.raises(AlreadyExists):
        await server.engine.run(claim(key="three"), Work(TAKEN))
    with pytest.raises(Unavailable):
        await server.engine.run(claim(key="four"), Work(Unavailable("Away")))

    await server.engine.close()

    assert not server.engine._running
    assert not server.engine._finishing
    assert not server.engine._leases._held


async def test_closing_waits_for_what_is_answered_and_not_noted(servers: Servers) -> None:
    server, work = servers.start(), Work(OK, commits=True)
    work.gate.clear()
    running = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    server.backend.gate.clear()
    work.gate.set()
    await running
    closing = asyncio.create_task(server.engine.close())
    await server.backend.reached.wait()

    assert not closing.done()
    server.backend.gate.set()
    await closing
    assert servers.record.state == "FINALIZED"


async def test_closing_waits_for_a_note_that_is_being_written(servers: Servers) -> None:
    server = servers.start()
    await server.engine.run(claim(), Work(OK, commits=True))
    server.backend.gate.clear()
    await servers.clock.advance(1)
    await server.backend.reached.wait()
    closing = asyncio.create_task(server.engine.close())
    for _ in range(20):
        await asyncio.sleep(0)

    assert not closing.done()
    server.backend.gate.set()
    await closing
    assert servers.record.state == "FINALIZED"
    assert not server.engine._running


# --- replay -----------------------------------------------------------------------------------------


async def test_a_stored_refusal_is_told_again_and_nothing_is_done(servers: Servers) -> None:
    await refused(servers)
    work = Work(Rehearsed())

    outcome = await servers.start().engine.run(claim(), work)

    assert (outcome.answer.status, outcome.is_replayed) == (409, True)
    assert b"a namespace that only its caller may know" in outcome.answer.body
    assert (len(work.keys), work.executed) == (1, 0)


async def test_an_answer_without_a_commit_is_told_again_byte_for_byte(servers: Servers) -> None:
    await servers.start().engine.run(claim(), Work(OK))

    outcome = await servers.start().engine.run(claim(), Work(Answer(200, (), b"another one")))

    assert (outcome.answer, outcome.is_replayed) == (OK, True)


async def test_a_stored_refusal_outlasts_its_cause(servers: Servers) -> None:
    await refused(servers)

    outcome = await servers.start().engine.run(claim(), Work(NotFound("No such catalog")))

    assert outcome.answer.status == 409


@pytest.mark.parametrize("error", [Forbidden("No right"), hidden(), Unavailable("Away")])
async def test_who_may_no_longer_do_it_is_not_told(servers: Servers, error: CynosureError) -> None:
    await refused(servers)

    with pytest.raises(type(error)):
        await servers.start().engine.run(claim(), Work(error))


async def test_what_is_in_the_chain_is_asked_for_again(servers: Servers) -> None:
    server = servers.start()
    await server.engine.run(claim(), Work(OK, commits=True))
    await server.engine.close()
    work = Work(OK, commits=True)

    await servers.start().engine.run(claim(), work)

    assert [key.is_repeat for key in work.keys] == [True]


async def test_an_expired_key_is_executed_again_as_a_further_attempt(servers: Servers) -> None:
    await refused(servers)
    await servers.clock.advance(KEPT_S)
    work = Work(OK)

    outcome = await servers.start().engine.run(claim("something else"), work)

    assert (outcome.answer, outcome.is_replayed) == (OK, False)
    assert work.keys[0].is_repeat


async def test_a_key_is_known_until_the_end_of_its_life(servers: Servers) -> None:
    await refused(servers)
    await servers.clock.advance(KEPT_S - 1)

    assert (await servers.start().engine.run(claim(), Work(Rehearsed()))).is_replayed


# --- another payload --------------------------------------------------------------------------------


async def test_another_payload_is_refused_when_the_first_is_settled(servers: Servers) -> None:
    await refused(servers)
    work = Work(OK)

    with pytest.raises(KeyReused):
        await servers.start().engine.run(claim("something else"), work)
    assert not work.keys


async def test_another_payload_is_refused_while_the_first_runs_here(servers: Servers) -> None:
    server, first, second = servers.start(), Work(OK), Work(OK)
    first.gate.clear()
    running = asyncio.create_task(server.engine.run(claim(), first))
    await first.started.wait()

    with pytest.raises(KeyReused):
        await server.engine.run(claim("something else"), second)
    first.gate.set()
    await running
    assert not second.keys


async def test_another_payload_is_refused_while_the_first_runs_elsewhere(servers: Servers) -> None:
    first, second = Work(OK), Work(OK)
    first.gate.clear()
    running = asyncio.create_task(servers.start().engine.run(claim(), first))
    await first.started.wait()

    with pytest.raises(KeyReused):
        await servers.start().engine.run(claim("something else"), second)
    first.gate.set()
    await running
    assert not second.keys


async def test_a_conflict_found_in_the_chain_leaves_no_record(servers: Servers) -> None:
    with pytest.raises(KeyReused):
        await servers.start().engine.run(claim(), Work(KeyReused()))

    assert servers.records() == []


async def test_who_may_do_nothing_leaves_no_record(servers: Servers) -> None:
    with pytest.raises(Forbidden):
        await servers.start().engine.run(claim(), Work(Forbidden("No right")))

    assert servers.records() == []


async def test_who_is_refused_something_after_its_commit_is_still_known(servers: Servers) -> None:
    """Credentials for what it made, say. The next attempt must know that there was one."""
    with pytest.raises(Forbidden):
        await servers.start().engine.run(claim(), Work(Forbidden("No right"), commits=True))

    assert (servers.record.state, servers.record.lease_until_us) == ("IN_PROGRESS", 0)


# --- in flight --------------------------------------------------------------------------------------


async def test_a_duplicate_in_one_process_waits_and_is_told_the_same(servers: Servers) -> None:
    server, work = servers.start(), Work(OK)
    work.gate.clear()
    first = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    second = asyncio.create_task(server.engine.run(claim(), work))
    work.gate.set()

    assert [(await each).answer for each in (first, second)] == [OK, OK]
    assert work.executed == 1


async def test_a_duplicate_whose_first_ended_without_an_outcome_is_executed(servers: Servers) -> None:
    server, work = servers.start(), Work(Unavailable("Away"), OK)
    work.gate.clear()
    first = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    second = asyncio.create_task(server.engine.run(claim(), work))
    work.gate.set()

    with pytest.raises(Unavailable):
        await first
    assert (await second).answer == OK


@pytest.mark.parametrize(("is_commit", "error"), [(False, RequestInProgress), (True, CommitInProgress)])
async def test_a_duplicate_in_one_process_waits_no_longer_than_it_should(
    is_commit: bool, error: type[CynosureError]
) -> None:
    servers = Servers(msgspec.structs.replace(SETTINGS, wait=timedelta(milliseconds=20)))
    server, work = servers.start(), Work(OK)
    work.gate.clear()
    first = asyncio.create_task(server.engine.run(claim(is_commit=is_commit), work))
    await work.started.wait()

    with pytest.raises(error):
        await server.engine.run(claim(is_commit=is_commit), work)
    work.gate.set()
    await first
    await servers.close()


@pytest.mark.parametrize(("is_commit", "error"), [(False, RequestInProgress), (True, CommitInProgress)])
async def test_a_duplicate_elsewhere_waits_no_longer_than_it_should(
    servers: Servers, is_commit: bool, error: type[CynosureError]
) -> None:
    work = Work(OK)
    work.gate.clear()
    first = asyncio.create_task(servers.start().engine.run(claim(is_commit=is_commit), work))
    await work.started.wait()
    second = asyncio.create_task(servers.start().engine.run(claim(is_commit=is_commit), work))
    wait_s = SETTINGS.wait.total_seconds()

    await servers.clock.advance(wait_s - 1)
    assert not second.done()
    await servers.clock.advance(2)

    with pytest.raises(error):
        await second
    assert len(work.keys) == 1
    work.gate.set()
    await first


async def test_who_waits_for_another_process_does_not_hold_up_the_end_of_its_own(servers: Servers) -> None:
    work = Work(OK)
    work.gate.clear()
    first = asyncio.create_task(servers.start().engine.run(claim(), work))
    await work.started.wait()
    ending = servers.start().engine
    second = asyncio.create_task(ending.run(claim(), work))
    await servers.clock.advance(1)
    assert not second.done()

    ending.stop_waiting()
    await servers.clock.advance(0.5)

    with pytest.raises(RequestInProgress):
        await second
    work.gate.set()
    assert (await first).answer == OK


async def test_a_duplicate_elsewhere_hears_of_the_outcome_soon(servers: Servers) -> None:
    work = Work(OK)
    work.gate.clear()
    first = asyncio.create_task(servers.start().engine.run(claim(), work))
    await work.started.wait()
    second = asyncio.create_task(servers.start().engine.run(claim(), Work(Rehearsed())))
    await servers.clock.advance(5)
    work.gate.set()
    await first

    await servers.clock.advance(0.5)

    assert second.done()
    assert (await second).is_replayed


async def test_a_holder_at_work_is_not_given_up_however_long_it_takes(servers: Servers) -> None:
    work, other = Work(OK), Work(OK)
    work.gate.clear()
    first = asyncio.create_task(servers.start().engine.run(claim(), work))
    await work.started.wait()

    await servers.clock.advance(10 * LEASE_S)

    second = asyncio.create_task(servers.start().engine.run(claim(), other))
    await servers.clock.advance(1)
    assert not other.keys
    work.gate.set()
    await first
    await servers.clock.advance(1)
    assert (await second).is_replayed


async def test_a_silent_holder_is_taken_over_when_its_lease_is_out(servers: Servers) -> None:
    server, work, other = servers.start(), Work(OK), Work(OK)
    work.gate.clear()
    first = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    server.backend.gate.clear()
    second = asyncio.create_task(servers.start().engine.run(claim(), other))

    await servers.clock.advance(LEASE_S - 1)
    assert not other.keys
    await servers.clock.advance(2)

    assert (await second).answer == OK
    assert other.keys[0].is_repeat
    first.cancel()


async def test_who_was_taken_over_says_what_the_other_one_said(servers: Servers) -> None:
    server, work = servers.start(), Work(NotFound("No such namespace"), Rehearsed())
    work.gate.clear()
    first = asyncio.create_task(server.engine.run(claim(), work))
    await work.started.wait()
    server.backend.gate.clear()
    await servers.clock.advance(LEASE_S + 1)
    with pytest.raises(AlreadyExists):
        await servers.start().engine.run(claim(), Work(TAKEN))

    work.gate.set()
    server.backend.gate.set()
    await servers.clock.advance(1)

    outcome = await first
    assert (outcome.answer.status, outcome.is_replayed) == (409, True)


# --- what is written --------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [OK, TAKEN], ids=["answer", "refusal"])
async def test_a_record_holds_neither_the_key_nor_anything_of_the_answer(
    servers: Servers, outcome: Answer | CynosureError
) -> None:
    with contextlib.suppress(AlreadyExists):
        await servers.start().engine.run(claim(), Work(outcome))

    stored = msgspec.msgpack.encode(servers.record)
    assert servers.record.sealed
    for text in (KEY.encode(), b"only its caller may"):
        assert text not in stored
        assert not any(text in row.blob for row in servers.rows.rows.values())
