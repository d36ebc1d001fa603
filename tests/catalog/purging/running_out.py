"""How the time of somebody who waits for purges runs out in a test: while all of them are waited for."""

import asyncio

import pytest

from cynosure.common.clock import Clock
from cynosure.common.delegated.record import TaskDetails
from cynosure.testing.scripted_executor import ScriptedExecutor


async def wait_until_waited_for(
    executor: ScriptedExecutor, monkeypatch: pytest.MonkeyPatch, purges: int
) -> None:
    """Until somebody waits for the end of each of so many purges."""
    wait, waited = executor.wait, set[str]()

    async def noted(realm: str, task_id: str, timeout_s: float) -> TaskDetails | None:
        waited.add(task_id)
        return await wait(realm, task_id, timeout_s)

    monkeypatch.setattr(executor, "wait", noted)
    async with asyncio.timeout(30):
        while not len(waited) == len({order.task_id for order in executor.orders}) == purges:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def put_forward(clock: Clock, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let so much time have passed."""
    now = clock.monotonic_s
    monkeypatch.setattr(clock, "monotonic_s", lambda: now() + seconds)
