import asyncio
from typing import Any

import pytest

from cynosure.common.errors import Conflict, Misconfigured, TooLarge
from cynosure.persistence.ids.owner import Owner
from cynosure.persistence.ids.snowflake import named_id
from cynosure.persistence.objects import seal, unseal
from cynosure.persistence.spi import REALM_SCOPE, SYSTEM_REALM, ObjKey
from cynosure.persistence.tasks import TASK, Retry, Task, TaskRun
from cynosure.persistence.tasks.row import PROGRESS_BYTES, TaskRow, claimed, succeeded

from .work import HOUR_S, SECOND_US, Gate, fails, quick, task_of, tasks_of

pytestmark = pytest.mark.anyio


# --- when it runs -----------------------------------------------------------------------------------


async def test_a_new_task_is_due_at_once_and_then_every_interval(make_world: Any) -> None:
    world = await make_world()
    tasks, task = tasks_of(world.process()), task_of(quick)

    first = await tasks.run_if_due(task)
    too_early = await tasks.run_if_due(task)
    await world.clock.advance(HOUR_S)
    second = await tasks.run_if_due(task)

    assert (first.outcome, first.text, first.attempt) == ("succeeded", "swept 3", 1)
    assert too_early is None
    assert second.outcome == "succeeded"


async def test_a_new_task_can_wait_for_its_first_time(make_world: Any) -> None:
    world = await make_world()
    tasks, task = tasks_of(world.process()), task_of(quick, first_after_s=100)

    assert await tasks.run_if_due(task) is None
    await world.clock.advance(99)
    assert await tasks.run_if_due(task) is None
    await world.clock.advance(1)

    assert (await tasks.run_if_due(task)).outcome == "succeeded"


async def test_of_two_instances_that_race_one_runs(make_world: Any) -> None:
    world = await make_world()
    gate = Gate()
    runs = [asyncio.create_task(tasks_of(world.process(name)).run_if_due(task_of(gate))) for name in "abcde"]

    await gate.began.wait()
    done, _ = await asyncio.wait(runs, timeout=None, return_when=asyncio.FIRST_COMPLETED)
    gate.may_end.set()
    records = await asyncio.gather(*runs)

    assert len(done) >= 1
    assert len(gate.runs) == 1
    assert [record.outcome for record in records if record] == ["succeeded"]


async def test_a_due_time_further_away_than_possible_is_not_believed(make_world: Any) -> None:
    world = await make_world()
    wrong = world.process("wrong", skew_s=365 * 24 * HOUR_S)
    await tasks_of(wrong).run_if_due(task_of(quick))

    record = await tasks_of(world.process()).run_if_due(task_of(quick))

    assert record.outcome == "succeeded"


async def test_run_now_runs_what_is_not_due_and_refuses_what_is_running(make_world: Any) -> None:
    world = await make_world()
    here, there = tasks_of(world.process("here")), tasks_of(world.process("there"))
    await here.run_if_due(task_of(quick))
    gate = Gate()

    forced = asyncio.create_task(here.run_now(task_of(gate)))
    await gate.began.wait()
    with pytest.raises(Conflict) as refused:
        await there.run_now(task_of(gate))
    gate.may_end.set()

    assert refused.value.details["owner"] == "here:1"
    assert (await forced).outcome == "succeeded"


async def test_tasks_whose_names_hash_alike_are_refused(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    await process.store.insert(TASK, named_id("sweep"), TaskRow(name="another"))

    with pytest.raises(Misconfigured, match="Rename one"):
        await tasks_of(process).run_if_due(task_of(quick))


# --- failure ----------------------------------------------------------------------------------------


async def test_a_failure_is_recorded_and_retried_later_and_later(make_world: Any) -> None:
    world = await make_world()
    tasks = tasks_of(world.process())
    task = task_of(fails, retry=Retry(first_s=100, max_s=300))
    waits = []

    for _ in range(4):
        record = await tasks.run_if_due(task)
        status = await tasks.find("sweep")
        waits.append((status.next_due_us - world.clock.now_us()) / SECOND_US)
        await world.clock.advance(waits[-1])

    assert (record.outcome, record.text, record.attempt) == ("failed", "ValueError: no luck", 4)
    for wait, about in zip(waits, [100, 200, 300, 300], strict=True):
        assert about * 0.75 <= wait <= about * 1.25


async def test_a_retry_goes_on_from_the_saved_progress(make_world: Any) -> None:
    world = await make_world()
    tasks = tasks_of(world.process())
    seen: list[tuple[int, bytes]] = []

    async def halfway(run: TaskRun) -> str:
        seen.append((run.attempt, run.progress))
        if run.attempt == 1:
            await run.save(b"half")
            raise ValueError("no luck")
        return "whole"

    await tasks.run_if_due(task_of(halfway))
    await world.clock.advance(HOUR_S)
    await tasks.run_if_due(task_of(halfway))
    await world.clock.advance(HOUR_S)
    await tasks.run_if_due(task_of(halfway))

    assert seen == [(1, b""), (2, b"half"), (1, b"")]


async def test_after_the_last_attempt_the_task_is_given_up_until_its_regular_time(make_world: Any) -> None:
    world = await make_world()
    tasks = tasks_of(world.process())

    async def spoils(run: TaskRun) -> str:
        await run.save(b"poison")
        raise ValueError("no luck")

    task = task_of(spoils, retry=Retry(first_s=1, max_s=1, attempts=2))
    await tasks.run_if_due(task)
    await world.clock.advance(2)
    await tasks.run_if_due(task)

    status = await tasks.find("sweep")
    assert status.next_due_us == world.clock.now_us() + 3600 * SECOND_US
    assert (status.attempt, status.progress_bytes) == (0, 0)


async def test_work_that_cancels_itself_has_failed(make_world: Any) -> None:
    world = await make_world()

    async def gives_in(run: TaskRun) -> str:
        raise asyncio.CancelledError

    record = await tasks_of(world.process()).run_if_due(task_of(gives_in))

    assert (record.outcome, record.text) == ("failed", "cancelled from within")


# --- what is kept -----------------------------------------------------------------------------------


async def test_the_history_is_bounded_and_newest_first(make_world: Any) -> None:
    world = await make_world()
    tasks = tasks_of(world.process())
    count = 0

    async def counts(run: TaskRun) -> str:
        nonlocal count
        count += 1
        return f"run {count} " + "x" * 10_000

    for _ in range(25):
        await tasks.run_now(task_of(counts))

    (status,) = await tasks.list()
    assert [run.text.split()[1] for run in status.runs] == [str(number) for number in range(25, 5, -1)]
    assert len(status.result) == 2000
    assert all(len(run.text) == 500 for run in status.runs)


async def test_progress_beyond_its_limit_is_refused_with_the_way_out(make_world: Any) -> None:
    world = await make_world()
    caught = []

    async def greedy(run: TaskRun) -> str:
        await run.save(b"x" * PROGRESS_BYTES)
        try:
            await run.save(b"x" * (PROGRESS_BYTES + 1))
        except TooLarge as error:
            caught.append(error.fix)
        return "ok"

    record = await tasks_of(world.process()).run_if_due(task_of(greedy))

    assert record.outcome == "succeeded"
    assert caught == ["Keep large progress in objects of its own and save their ids."]


async def test_the_listing_is_by_name_and_per_scope(make_world: Any) -> None:
    world = await make_world()
    tasks = tasks_of(world.process())
    for name in ("gc", "audit", "metrics"):
        await tasks.run_if_due(Task(name=name, every_s=1, run=quick))

    assert [status.name for status in await tasks.list()] == ["audit", "gc", "metrics"]
    assert await tasks.find("unheard of") is None


def test_golden_bytes_of_a_task(golden: Any) -> None:
    owner = Owner(host="catalog-1", pid=4711, started_us=1_767_225_500_000_000)
    begun = claimed(
        TaskRow(name="gc", next_due_us=1_767_225_600_000_000),
        holder="00112233445566778899aabb",
        owner=owner,
        now_us=1_767_225_600_000_000,
        lease_s=60.0,
    )
    row = succeeded(begun, "collected 7", 1_767_225_700_000_000, next_due_us=1_767_398_400_000_000)

    blob = golden("task-v1.bin", seal(TASK, row))

    key = ObjKey(SYSTEM_REALM, REALM_SCOPE, TASK.name, named_id("gc"))
    assert unseal(TASK, key, blob)[0] == row
