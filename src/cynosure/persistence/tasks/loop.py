"""Run registered tasks in the background of a server.

Must not break: all servers poll, so polls are spread at random; and one task's failure or length never
delays another one.
"""

import asyncio
from random import Random
from types import TracebackType
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.telemetry.logs import ERROR, Log
from cynosure.persistence.tasks.coordinated import CoordinatedTasks
from cynosure.persistence.tasks.task import Task

_SHORTEST_POLL_S: Final = 0.1

log = Log(__name__)


class TaskLoop:
    """`async with TaskLoop(...) as loop: loop.register(tasks, task)`; leaving interrupts what runs."""

    def __init__(self, clock: Clock, rng: Random, *, poll_s: float = 30.0) -> None:
        self._clock = clock
        self._rng = rng
        self._poll_s = poll_s
        self._polling: list[asyncio.Task[None]] = []

    def register(self, tasks: CoordinatedTasks, task: Task) -> None:
        """Run this task whenever it is due, from now on."""
        self._polling.append(asyncio.create_task(self._poll(tasks, task), name=f"poll {task.name}"))

    async def __aenter__(self) -> "TaskLoop":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        polling, self._polling = self._polling, []
        for task in polling:
            task.cancel()
        if polling:
            await asyncio.wait(polling)

    async def _poll(self, tasks: CoordinatedTasks, task: Task) -> None:
        # One that is to run more often than others is looked at more often.
        poll_s = max(_SHORTEST_POLL_S, min(self._poll_s, task.every_s))
        # Never at once: servers that start together must not all ask at the same moment.
        await self._clock.sleep(poll_s * self._rng.uniform(0.0, 0.5))
        while True:
            try:
                await tasks.run_if_due(task)
            except Exception as error:
                # The outermost place: whatever it was, the task is tried again at the next poll.
                log.event("task.poll_failed", level=ERROR, task=task.name, error=error, with_traceback=True)
            await self._clock.sleep(poll_s * self._rng.uniform(0.75, 1.25))
