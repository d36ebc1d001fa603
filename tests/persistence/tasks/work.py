"""Work for coordinated tasks that a test can watch and stop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from cynosure.persistence.tasks import CoordinatedTasks, Task, TaskRun

HOUR_S = 3600.0
SECOND_US = 1_000_000


def tasks_of(process: Any, *, lease_s: float = 60, margin_s: float = 5) -> CoordinatedTasks:
    return CoordinatedTasks(
        process.store, process.clock, process.rng, process.owner, lease_s=lease_s, skew_margin_s=margin_s
    )


def task_of(run: Callable[[TaskRun], Awaitable[str]], **options: Any) -> Task:
    return Task(name="sweep", every_s=options.pop("every_s", HOUR_S), run=run, **options)


async def quick(run: TaskRun) -> str:
    return "swept 3"


class Gate:
    """Work that lasts until the test says otherwise, and tells what happened to it."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.runs: list[TaskRun] = []
        self.was_cancelled = False

    async def __call__(self, run: TaskRun) -> str:
        self.runs.append(run)
        self.began.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return "done"


async def fails(run: TaskRun) -> str:
    raise ValueError("no luck")


async def abandon(running: "asyncio.Task[Any]", process: Any) -> None:
    """As kill -9: the process ends without a word to the database."""
    process.backend.is_down = True
    process.backend.draw_delay_s = lambda: 0.0
    process.clock.go_on()
    running.cancel()
    await asyncio.wait([running])
