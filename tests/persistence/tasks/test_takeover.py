import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cynosure.common.errors import CynosureError, LeaseLost, Unavailable
from cynosure.persistence.tasks import Retry, TaskRun

from .work import HOUR_S, Gate, abandon, quick, task_of, tasks_of

pytestmark = pytest.mark.anyio


# --- keeping, losing and taking over ----------------------------------------------------------------


async def test_a_long_run_keeps_its_lease(make_world: Any) -> None:
    world = await make_world()
    gate = Gate()
    running = asyncio.create_task(tasks_of(world.process("a")).run_if_due(task_of(gate)))
    await gate.began.wait()

    for _ in range(20):
        await world.clock.advance(30)
        assert await tasks_of(world.process("b")).run_if_due(task_of(gate)) is None
        gate.runs[0].check()
    gate.may_end.set()

    assert (await running).outcome == "succeeded"
    assert len(gate.runs) == 1


async def test_a_dead_process_task_is_taken_over_with_progress_and_the_next_attempt(make_world: Any) -> None:
    world = await make_world()
    dying, heir = world.process("dying"), world.process("heir")
    gate = Gate()
    running = asyncio.create_task(tasks_of(dying).run_if_due(task_of(gate)))
    await gate.began.wait()
    await gate.runs[0].save(b"page 7")
    await abandon(running, dying)
    seen = []

    async def goes_on(run: TaskRun) -> str:
        seen.append((run.attempt, run.progress))
        return "done"

    await world.clock.advance(64.9)
    too_early = await tasks_of(heir).run_if_due(task_of(goes_on))
    state = (await tasks_of(heir).find("sweep")).state
    await world.clock.advance(0.1)
    abandoned = (await tasks_of(heir).find("sweep")).state
    record = await tasks_of(heir).run_if_due(task_of(goes_on))

    assert too_early is None
    assert (state, abandoned) == ("running", "abandoned")
    assert seen == [(2, b"page 7")]
    assert record.outcome == "succeeded"
    runs = (await tasks_of(heir).find("sweep")).runs
    assert [(run.owner.host, run.outcome) for run in runs] == [("heir", "succeeded"), ("dying", "lost")]


async def test_a_holder_paused_past_its_lease_is_cancelled_and_fenced(make_world: Any) -> None:
    """I15."""
    world = await make_world()
    slow, heir = world.process("slow"), world.process("heir")
    gate = Gate()
    running = asyncio.create_task(tasks_of(slow).run_if_due(task_of(gate)))
    await gate.began.wait()

    slow.clock.stop()
    await world.clock.advance(66)
    taken = await tasks_of(heir).run_if_due(task_of(quick))
    with pytest.raises(LeaseLost):
        gate.runs[0].check()
    with pytest.raises(LeaseLost):
        await gate.runs[0].save(b"must not be written")
    slow.clock.go_on()
    record = await running

    assert taken.outcome == "succeeded"
    assert gate.was_cancelled
    assert record.outcome == "lost"
    status = await tasks_of(heir).find("sweep")
    assert status.owner.host == "heir"
    assert [run.outcome for run in status.runs] == ["succeeded", "lost"]


async def test_a_holder_whose_row_was_taken_is_cancelled_at_the_next_renewal(make_world: Any) -> None:
    world = await make_world()
    gate = Gate()
    running = asyncio.create_task(tasks_of(world.process("a")).run_if_due(task_of(gate)))
    await gate.began.wait()
    await tasks_of(world.process("fast", skew_s=HOUR_S)).run_if_due(task_of(quick))

    await world.clock.advance(20)
    record = await running

    assert gate.was_cancelled
    assert record.outcome == "lost"


async def test_a_hanging_database_does_not_keep_the_work_alive(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    gate = Gate()
    running = asyncio.create_task(tasks_of(process).run_if_due(task_of(gate)))
    await gate.began.wait()

    process.backend.draw_delay_s = lambda: 1e6
    await world.clock.advance(59.9)
    still_running = not gate.was_cancelled
    await world.clock.advance(0.2)

    assert still_running
    assert gate.was_cancelled
    running.cancel()
    await asyncio.wait([running])


async def test_a_database_that_is_down_for_a_while_does_not_end_a_run(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    gate = Gate()
    running = asyncio.create_task(tasks_of(process).run_if_due(task_of(gate)))
    await gate.began.wait()

    process.backend.is_down = True
    await world.clock.advance(50)
    process.backend.is_down = False
    await world.clock.advance(200)
    gate.may_end.set()

    assert (await running).outcome == "succeeded"


async def test_a_run_that_loses_its_lease_again_and_again_is_backed_off(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    task = task_of(Gate(), retry=Retry(first_s=500, max_s=500))
    starts: list[float] = []
    for _ in range(3):
        gate = Gate()
        dying = world.process("dying")
        running = None
        while running is None:
            attempt = asyncio.create_task(tasks_of(dying).run_if_due(task_of(gate, retry=task.retry)))
            await world.clock.advance(0)
            await world.clock.advance(0)
            if gate.began.is_set():
                running = attempt
            else:
                await world.clock.advance(10)
        starts.append(world.clock.monotonic_s())
        await abandon(running, dying)

    assert starts[1] - starts[0] < 100
    assert starts[2] - starts[1] > 500
    assert (await tasks_of(process).find("sweep")).attempt == 3


async def test_a_shut_down_run_is_handed_over_at_once(make_world: Any) -> None:
    world = await make_world()
    gate = Gate()
    running = asyncio.create_task(tasks_of(world.process("a")).run_if_due(task_of(gate)))
    await gate.began.wait()
    await gate.runs[0].save(b"page 7")

    running.cancel()
    await asyncio.wait([running])
    seen = []

    async def goes_on(run: TaskRun) -> str:
        seen.append((run.attempt, run.progress))
        return "done"

    await tasks_of(world.process("b")).run_if_due(task_of(goes_on))

    assert running.cancelled()
    assert gate.was_cancelled
    assert seen == [(1, b"page 7")]


async def test_a_dead_holder_with_a_clock_far_ahead_is_recognised_by_its_silence(make_world: Any) -> None:
    world = await make_world()
    wrong = world.process("wrong", skew_s=365 * 24 * HOUR_S)
    gate = Gate()
    running = asyncio.create_task(tasks_of(wrong).run_if_due(task_of(gate)))
    await gate.began.wait()
    await abandon(running, wrong)
    tasks = tasks_of(world.process())

    await world.clock.advance(1000)
    first_look = await tasks.run_if_due(task_of(quick))
    await world.clock.advance(64)
    second_look = await tasks.run_if_due(task_of(quick))
    await world.clock.advance(1)
    third_look = await tasks.run_if_due(task_of(quick))

    assert (first_look, second_look) == (None, None)
    assert third_look.outcome == "succeeded"


async def test_a_living_holder_with_a_clock_far_ahead_is_left_alone(make_world: Any) -> None:
    world = await make_world()
    gate = Gate()
    wrong = world.process("wrong", skew_s=365 * 24 * HOUR_S)
    running = asyncio.create_task(tasks_of(wrong).run_if_due(task_of(gate)))
    await gate.began.wait()
    tasks = tasks_of(world.process())

    for _ in range(20):
        await world.clock.advance(30)
        assert await tasks.run_if_due(task_of(quick)) is None
    gate.may_end.set()

    assert (await running).outcome == "succeeded"


# --- lost answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "faults", [["before"], ["after"], ["after", "before", "after"], ["", "after"], ["", "before"]]
)
async def test_lost_answers_of_claim_and_record_run_the_task_once(
    make_world: Any, settle: Any, faults: list[str]
) -> None:
    world = await make_world()
    process = world.process()
    process.backend.faults = list(faults)
    calls = []

    async def counts(run: TaskRun) -> str:
        calls.append(run.attempt)
        return "once"

    record = await settle(world, tasks_of(process).run_if_due(task_of(counts)))

    assert calls == [1]
    assert record.outcome == "succeeded"
    assert [run.outcome for run in (await tasks_of(process).find("sweep")).runs] == ["succeeded"]


async def test_a_record_whose_answers_are_all_lost_is_recognised_when_found(
    make_world: Any, settle: Any
) -> None:
    world = await make_world()
    process = world.process()
    # The claim goes well. The record is applied, and then more answers are lost than one update waits for.
    process.backend.faults = ["", "after", *["before"] * 7]

    record = await settle(world, tasks_of(process).run_if_due(task_of(quick)))

    assert record.outcome == "succeeded"
    assert [run.outcome for run in (await tasks_of(process).find("sweep")).runs] == ["succeeded"]


async def test_a_success_that_cannot_be_recorded_in_time_is_reported_as_lost(
    make_world: Any, settle: Any
) -> None:
    world = await make_world()
    process = world.process()

    async def cuts(run: TaskRun) -> str:
        process.backend.is_down = True
        return "in vain"

    record = await settle(world, tasks_of(process).run_if_due(task_of(cuts)), step_s=1)

    assert record.outcome == "lost"
    process.backend.is_down = False
    assert (await tasks_of(process).find("sweep")).state == "running"


async def test_a_claim_that_cannot_reach_the_database_runs_nothing(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    process.backend.is_down = True
    gate = Gate()

    with pytest.raises(Unavailable):
        await tasks_of(process).run_if_due(task_of(gate))

    assert gate.runs == []


# --- all together -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
async def test_no_two_instances_run_at_the_same_time_whatever_happens(make_world: Any, seed: int) -> None:
    """I15. Servers come, go, are stopped, crash and lose answers; clocks differ by less than the margin."""
    world = await make_world(seed)
    rng = random.Random(seed)
    at_work: dict[str, TaskRun] = {}
    overlaps: list[str] = []
    runs_begun = 0

    def who_may_act() -> list[str]:
        return [name for name, run in at_work.items() if not run.is_lost and not stopped(name)]

    def stopped(name: str) -> bool:
        return people[name].clock.is_stopped

    def works_for(name: str) -> Callable[[TaskRun], Awaitable[str]]:
        async def work(run: TaskRun) -> str:
            nonlocal runs_begun
            runs_begun += 1
            at_work[name] = run
            try:
                for page in range(rng.randrange(1, 6)):
                    run.check()
                    overlaps.extend(other for other in who_may_act() if other != name)
                    await people[name].clock.sleep(rng.choice([0.1, 2.0, 8.0]))
                    await run.save(bytes([page]))
            finally:
                if at_work.get(name) is run:
                    del at_work[name]
            if rng.random() < 0.3:
                raise ValueError("no luck")
            return "done"

        return work

    def start(name: str) -> None:
        process = people[name] = world.process(name, skew_s=skews[name])
        process.backend.draw_fault = lambda: rng.choices(["", "before", "after", "down"], [20, 1, 1, 2])[0]
        process.backend.draw_delay_s = lambda: rng.choices([0.0, 0.2, 3.0], [30, 10, 1])[0]
        tasks = tasks_of(process, lease_s=10)
        task = task_of(works_for(name), every_s=5, retry=Retry(first_s=2, max_s=20))

        async def live() -> None:
            while True:
                with contextlib.suppress(CynosureError):
                    await tasks.run_if_due(task)
                await process.clock.sleep(1)

        lives[name] = asyncio.create_task(live())

    people: dict[str, Any] = {}
    lives: dict[str, asyncio.Task[None]] = {}
    skews = {name: rng.uniform(-2.5, 2.5) for name in "abc"}
    for name in skews:
        start(name)
    try:
        for _ in range(400):
            name = rng.choice("abc")
            action = rng.random()
            if action < 0.15:
                people[name].clock.stop()
            elif action < 0.5:
                people[name].clock.go_on()
            elif action < 0.55:
                at_work.pop(name, None)
                await abandon(lives[name], people[name])
                start(name)
            assert len(who_may_act()) <= 1
            await world.clock.advance(rng.choice([0.0, 0.1, 0.5, 1.0, 2.0, 5.0]))
            assert len(who_may_act()) <= 1
    finally:
        for name, life in lives.items():
            await abandon(life, people[name])
    assert overlaps == []
    assert runs_begun > 10
