import itertools
from typing import Any

import pytest

from cynosure.persistence.tasks import CoordinatedTasks, Task, TaskLoop, TaskRun

pytestmark = pytest.mark.anyio


def tasks_of(process: Any) -> CoordinatedTasks:
    return CoordinatedTasks(process.store, process.clock, process.rng, process.owner)


async def test_registered_tasks_run_when_due_on_one_of_the_servers(make_world: Any) -> None:
    world = await make_world()
    ran: list[tuple[str, float]] = []

    def counting(host: str) -> Task:
        async def run(run: TaskRun) -> str:
            ran.append((host, world.clock.monotonic_s()))
            return "done"

        return Task(name="sweep", every_s=600, run=run)

    servers = [world.process(name) for name in ("a", "b")]
    async with (
        TaskLoop(servers[0].clock, servers[0].rng) as one,
        TaskLoop(servers[1].clock, servers[1].rng) as two,
    ):
        one.register(tasks_of(servers[0]), counting("a"))
        two.register(tasks_of(servers[1]), counting("b"))
        for _ in range(60):
            await world.clock.advance(60)

    gaps = [later - earlier for (_, earlier), (_, later) in itertools.pairwise(ran)]
    assert len(ran) == 6
    assert all(600 <= gap <= 640 for gap in gaps)


async def test_a_task_that_is_to_run_often_does_not_wait_for_the_polls_of_others(make_world: Any) -> None:
    world = await make_world()
    process = world.process()
    ran: list[float] = []

    async def run(run: TaskRun) -> str:
        ran.append(world.clock.monotonic_s())
        return "done"

    async with TaskLoop(process.clock, process.rng) as loop:
        loop.register(tasks_of(process), Task(name="prompt", every_s=2, run=run, first_after_s=0))
        for _ in range(60):
            await world.clock.advance(1)

    assert all(2 <= later - earlier <= 6 for earlier, later in itertools.pairwise(ran))
    assert len(ran) >= 10


async def test_a_task_that_fails_to_be_claimed_is_tried_again_and_delays_no_other(make_world: Any) -> None:
    world = await make_world()
    broken, sound = world.process("broken"), world.process("sound")
    broken.backend.is_down = True
    ran: list[str] = []

    async def run(run: TaskRun) -> str:
        ran.append(run.name)
        return "done"

    async with TaskLoop(sound.clock, sound.rng) as loop:
        loop.register(tasks_of(broken), Task(name="late", every_s=6000, run=run))
        loop.register(tasks_of(sound), Task(name="prompt", every_s=6000, run=run))
        await world.clock.advance(40)
        before = list(ran)
        broken.backend.is_down = False
        await world.clock.advance(40)

    assert before == ["prompt"]
    assert ran == ["prompt", "late"]


async def test_leaving_interrupts_what_runs_and_leaves_nothing_behind(make_world: Any) -> None:
    world = await make_world()
    process = world.process()

    async def endless(run: TaskRun) -> str:
        while True:
            await process.clock.sleep(1)

    async with TaskLoop(process.clock, process.rng) as loop:
        loop.register(tasks_of(process), Task(name="endless", every_s=60, run=endless))
        await world.clock.advance(30)
        during = (await tasks_of(process).find("endless")).state
    await world.clock.advance(0)

    status = await tasks_of(process).find("endless")
    assert during == "running"
    assert (status.state, status.runs[0].outcome) == ("idle", "interrupted")
    assert world.clock.sleeping == 0
