"""Workers that die, hang, are stopped and go on (I95); and stores whose answers get lost (I96)."""

import asyncio
from collections.abc import Iterator

import pytest

from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import LeaseLost, Unavailable
from cynosure.delegation.jobs.port import JobContext
from cynosure.delegation.store.port import Receipt
from cynosure.delegation.worker.attempt import MOST_LEASES
from cynosure.testing.memory_task_store import Luck
from cynosure.testing.small_delegation import (
    Gate,
    ScriptedJob,
    SmallDelegation,
    make_order,
    stumble,
    succeed,
)

from .stoppable_clock import StoppableClock

pytestmark = pytest.mark.anyio
S = TaskStatus
HOUR_S = 3600


async def test_a_lease_is_kept_while_the_job_runs(small: SmallDelegation) -> None:
    gate = Gate()
    small.job.script = [gate]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker("one")
    await small.start_worker("two", service=small.make_service())

    await small.advance(2 * HOUR_S)
    gate.opened.set()
    await small.settle()

    assert await small.status(task_id) is S.SUCCESS
    assert len(small.job.attempts) == 1


async def test_a_heartbeat_comes_every_ten_seconds_of_a_long_lease(small: SmallDelegation) -> None:
    small.job.script = [Gate()]
    await small.service.submit(make_order())
    await small.start_worker()
    await small.settle()
    small.memory.calls.clear()

    await small.advance(60)

    assert small.memory.calls.count("keep") == 6


async def test_a_task_of_a_dead_worker_is_taken_over_and_logged(
    small: SmallDelegation, caplog: pytest.LogCaptureFixture
) -> None:
    task_id = (await small.service.submit(make_order())).task_id
    now_us = small.clock.now_us()
    await small.store.lease("dead", now_us=now_us, lease_us=HOUR_S * 1_000_000)
    await small.start_worker("two")
    await small.advance(HOUR_S - 10)
    assert small.job.attempts == []

    await small.advance(30)

    details = await small.details(task_id)
    assert (details.status, details.attempt_count, details.worker) == (S.SUCCESS, 2, "two")
    [lost] = [record for record in caplog.records if record.message == "task.lost"]
    assert lost.cynosure_fields["task"] == task_id  # type: ignore[attr-defined]
    assert await small.statuses(task_id) == [
        S.SUBMITTED,
        S.ACQUIRING_RESOURCES,
        S.ACQUIRING_RESOURCES,
        S.RUNNING,
        S.SUCCESS,
    ]


async def test_a_dead_predecessor_of_the_same_name_frees_its_tasks_at_once(small: SmallDelegation) -> None:
    task_id = (await small.service.submit(make_order())).task_id
    await small.store.lease("one", now_us=small.clock.now_us(), lease_us=HOUR_S * 1_000_000)

    await small.start_worker("one", is_predecessor_dead=True)
    await small.settle()  # no time passes

    assert await small.status(task_id) is S.SUCCESS


async def test_a_worker_that_was_stopped_and_goes_on_changes_nothing(small: SmallDelegation) -> None:
    """The first worker sleeps past its lease; another one takes the task and ends it; the first one wakes."""
    clock = StoppableClock(small.clock)
    deleted: list[str] = []
    woken = asyncio.Event()

    async def old(context: JobContext) -> ExecutionResult:
        await context.begin()
        await woken.wait()
        with pytest.raises(LeaseLost):
            context.lease.check()
        with pytest.raises(LeaseLost):
            await context.put_receipts([Receipt("a", 1, 1, 1)])
        with pytest.raises(LeaseLost):
            await context.mark_begun()
        context.lease.check()
        deleted.append("by the first one")
        return ExecutionResult(1)

    first_job, second_job = ScriptedJob(), ScriptedJob()
    first_job.script, second_job.script = [old], [succeed(files=7)]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker("one", service=small.make_service(clock, first_job))
    await small.settle()
    clock.stop()
    await small.start_worker("two", service=small.make_service(job=second_job))
    await small.advance(HOUR_S + 60)
    ended = await small.details(task_id)
    assert (ended.status, ended.worker) == (S.SUCCESS, "two")

    # The job goes on first: before its worker has noticed anything.
    woken.set()
    await small.settle()
    clock.go_on()
    await small.advance(60)

    assert deleted == []
    assert await small.details(task_id) == ended
    assert await small.store.receipts(task_id) == type(await small.store.receipts(task_id))({})


async def test_a_lease_that_cannot_be_kept_stops_the_job_in_time(small: SmallDelegation) -> None:
    gate = Gate()
    small.job.script = [gate, succeed()]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker()
    await small.settle()
    small.memory.rule = lambda name: "unavailable" if name == "keep" else "answered"

    await small.advance(HOUR_S - 60)
    small.job.attempts[0].lease.check()  # still ours
    await small.advance(56)
    with pytest.raises(LeaseLost):
        small.job.attempts[0].lease.check()  # less than five seconds left
    small.job.attempts[0].lease.check(needs_s=1)
    await small.advance(5)

    assert small.job.stopped == [1]
    small.memory.rule = None
    await small.advance(10)
    assert await small.status(task_id) is S.SUCCESS
    assert len(small.job.attempts) == 2


async def test_a_heartbeat_that_hangs_does_not_hide_that_the_time_is_over(small: SmallDelegation) -> None:
    small.job.script = [Gate()]
    await small.service.submit(make_order())
    await small.start_worker()
    await small.settle()

    async def hang() -> Luck:
        await asyncio.Event().wait()
        return "answered"

    small.memory.rule = lambda name: hang() if name == "keep" else "answered"
    await small.advance(HOUR_S + 1)

    assert small.job.stopped == [1]


async def test_a_running_task_that_is_cancelled_stops_at_once(small: SmallDelegation) -> None:
    small.job.script = [Gate()]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker()
    await small.settle()

    await small.service.cancel(task_id)
    await small.settle()  # no time passes

    assert small.job.stopped == [1]
    details = await small.details(task_id)
    assert (details.status, details.error_code) == (S.FAILURE, "CANCELLED")
    assert await small.statuses(task_id) == [S.SUBMITTED, S.ACQUIRING_RESOURCES, S.RUNNING, S.FAILURE]


async def test_a_task_cancelled_elsewhere_stops_with_the_next_heartbeat(small: SmallDelegation) -> None:
    small.job.script = [Gate()]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker()
    await small.settle()

    await small.make_service().cancel(task_id)
    await small.advance(11)

    assert small.job.stopped == [1]
    assert await small.status(task_id) is S.FAILURE


async def test_what_a_job_has_begun_is_told_after_it_was_cancelled(small: SmallDelegation) -> None:
    gate = Gate()

    async def step(context: JobContext) -> ExecutionResult:
        await context.begin()
        await context.mark_begun()
        return await gate(context)

    small.job.script = [step]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker()
    await small.settle()

    assert (await small.service.cancel(task_id)).is_begun


async def test_lost_attempts_are_counted_but_do_not_use_up_the_retries(small: SmallDelegation) -> None:
    task_id = (await small.service.submit(make_order())).task_id
    for _ in range(15):
        await small.store.lease("dead", now_us=small.clock.now_us(), lease_us=1)
        await small.clock.advance(1)
    small.job.script = [stumble(Unavailable("Away"))]

    await small.start_worker()
    await small.settle()

    details = await small.details(task_id)
    assert (details.status, details.attempt_count) == (S.RETRY_SCHEDULED, 16)
    assert details.next_scheduled_run_ts is not None
    assert (details.next_scheduled_run_ts - details.last_status_change_ts).total_seconds() == 60


async def test_a_task_that_kills_its_workers_is_given_up_in_the_end(small: SmallDelegation) -> None:
    task_id = (await small.service.submit(make_order())).task_id
    for _ in range(MOST_LEASES):
        await small.store.lease("dead", now_us=small.clock.now_us(), lease_us=1)
        await small.clock.advance(1)

    await small.start_worker()
    await small.settle()

    details = await small.details(task_id)
    assert (details.status, details.error_code) == (S.FAILURE, "LOST_TOO_OFTEN")
    assert small.job.attempts == []


async def test_a_worker_that_drains_lets_its_tasks_end(small: SmallDelegation) -> None:
    gate = Gate()
    small.job.script = [gate]
    task_id = (await small.service.submit(make_order("a"))).task_id
    worker = await small.start_worker()
    await small.settle()

    closing = asyncio.ensure_future(worker.close(drain_s=30))
    await small.settle()
    later = (await small.service.submit(make_order("b"))).task_id
    await small.advance(10)
    gate.opened.set()
    await small.settle()

    assert closing.done()
    assert await small.status(task_id) is S.SUCCESS
    assert await small.status(later) is S.SUBMITTED


async def test_what_is_not_done_in_time_is_given_back_and_not_counted(small: SmallDelegation) -> None:
    small.job.script = [Gate(), succeed()]
    task_id = (await small.service.submit(make_order())).task_id
    worker = await small.start_worker()
    await small.settle()

    closing = asyncio.ensure_future(worker.close(drain_s=30))
    await small.advance(29)
    assert not closing.done()
    await small.advance(2)

    assert closing.done()
    details = await small.details(task_id)
    assert (details.status, details.attempt_count) == (S.RETRY_SCHEDULED, 0)
    assert small.job.stopped == [1]
    await small.start_worker("two", service=small.make_service())
    await small.settle()  # no time passes
    assert await small.status(task_id) is S.SUCCESS


async def test_a_worker_works_on_so_many_at_once(small: SmallDelegation) -> None:
    gate = Gate()
    small.job.script = [gate]
    ids = [(await small.service.submit(make_order(f"t{number}"))).task_id for number in range(5)]
    worker = await small.start_worker(slots=2)
    await small.settle()
    assert (worker.running, len(small.job.attempts)) == (2, 2)

    gate.opened.set()
    await small.settle()  # no time passes

    assert {await small.status(each) for each in ids} == {S.SUCCESS}
    assert len(small.job.attempts) == 5


async def test_workers_of_one_store_never_have_the_same_task(small: SmallDelegation) -> None:
    for number in range(20):
        await small.service.submit(make_order(f"t{number}"))
    for instance in ("one", "two", "three"):
        await small.start_worker(instance, service=small.make_service())
    await small.advance(20)

    assert sorted(each.task_id for each in small.job.attempts) == sorted(small.memory.versions)
    assert {versions[-1].status for versions in small.memory.versions.values()} == {S.SUCCESS}


CALLS = ("insert", "lease", "swap", "put_receipts", "keep", "history", "receipts", "find")
LUCKS: tuple[Luck, ...] = ("unavailable", "applied, answer lost", "not applied, answer lost")


@pytest.mark.parametrize("luck", LUCKS)
@pytest.mark.parametrize("number", range(14))
async def test_one_lost_answer_anywhere_neither_loses_nor_doubles_a_task(
    small: SmallDelegation, number: int, luck: Luck
) -> None:
    """The n-th call of the store goes wrong, in each way; the task is done, its batches are done once."""
    done: list[str] = []

    async def first(context: JobContext) -> ExecutionResult:
        await context.begin()
        await context.mark_begun()
        await context.put_receipts([Receipt("a", 1, 10, 1)])
        done.append("a")
        raise Unavailable("Away")

    async def second(context: JobContext) -> ExecutionResult:
        await context.begin()
        receipts = await context.receipts()
        if "a" not in receipts.by_batch:
            done.append("a")
        await context.put_receipts([Receipt("b", 2, 20, 1)])
        receipts = await context.receipts()
        return ExecutionResult(receipts.files, receipts.bytes)

    def spoil(calls: Iterator[int]) -> None:
        small.memory.rule = lambda name: luck if next(calls) == number else "answered"

    small.job.script = [first, second]
    spoil(iter(range(10_000)))
    submitting = asyncio.ensure_future(small.service.submit(make_order()))
    await small.advance(5)
    task_id = (await submitting).task_id
    await small.start_worker()
    await small.advance(200)
    small.memory.rule = None

    details = await small.details(task_id)
    assert (details.status, details.execution_result.files_deleted) == (S.SUCCESS, 3)
    assert done == ["a"]
    assert [each.status for each in await small.service.history(task_id)].count(S.SUCCESS) == 1
    versions = [each.version for each in await small.service.history(task_id)]
    assert versions == list(range(1, len(versions) + 1))


@pytest.mark.parametrize("luck", LUCKS)
async def test_an_outcome_is_recorded_however_long_the_store_is_away(
    small: SmallDelegation, luck: Luck
) -> None:
    gate = Gate()
    small.job.script = [gate]
    task_id = (await small.service.submit(make_order())).task_id
    await small.start_worker()
    await small.settle()
    small.memory.rule = lambda name: luck if name == "swap" else "answered"
    gate.opened.set()

    await small.advance(HOUR_S / 2)
    small.memory.rule = None
    await small.advance(10)

    assert await small.status(task_id) is S.SUCCESS
    assert len(small.job.attempts) == 1
    assert [each.status for each in await small.service.history(task_id)].count(S.SUCCESS) == 1


async def test_a_worker_goes_on_when_the_store_is_back(small: SmallDelegation) -> None:
    await small.start_worker()
    small.memory.rule = lambda name: "unavailable" if name == "lease" else "answered"
    task_id = (await small.service.submit(make_order())).task_id
    await small.advance(60)
    assert await small.status(task_id) is S.SUBMITTED

    small.memory.rule = None
    await small.advance(76)

    assert await small.status(task_id) is S.SUCCESS


async def test_a_store_that_is_away_is_asked_ever_less_often(small: SmallDelegation) -> None:
    small.memory.rule = lambda name: "unavailable"
    await small.start_worker()

    await small.advance(600)

    assert 8 <= small.memory.calls.count("lease") <= 16


async def test_a_store_that_is_away_does_not_keep_a_worker_from_closing(small: SmallDelegation) -> None:
    small.job.script = [Gate()]
    await small.service.submit(make_order())
    worker = await small.start_worker()
    await small.settle()
    small.memory.rule = lambda name: "unavailable"

    closing = asyncio.ensure_future(worker.close(drain_s=1))
    await small.advance(15)

    assert closing.done()
    assert worker.running == 0


async def test_tasks_that_ended_long_ago_are_forgotten(small: SmallDelegation) -> None:
    task_id = (await small.service.submit(make_order())).task_id
    waiting = (await small.service.submit(make_order("later", schedule="30 0 1 1 *"))).task_id
    await small.start_worker()
    await small.settle()

    small.clock.step_wall(29 * 86_400)
    await small.advance(HOUR_S)
    assert await small.service.find(task_id) is not None
    small.clock.step_wall(86_400)
    await small.advance(HOUR_S)

    assert await small.service.find(task_id) is None
    assert await small.service.find(waiting) is not None
