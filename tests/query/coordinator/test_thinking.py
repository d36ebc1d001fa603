"""Parsing that takes long costs whoever asked for it, and nobody else."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from cynosure.query.coordinator.thinking import Thinking
from cynosure.query.errors import QueueFull

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]


class Slow:
    """Work that takes until it is released, and counts how often it was begun."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.begun = threading.Semaphore(0)
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        self.begun.release()
        self.release.wait()
        return "slow"

    async def wait_begun(self, times: int) -> None:
        for _ in range(times):
            await asyncio.to_thread(self.begun.acquire)


@pytest.fixture
async def thinking() -> AsyncIterator[Thinking]:
    made = Thinking(5)
    yield made
    made.close()


async def test_one_user_does_not_stop_others(thinking: Thinking) -> None:
    slow = Slow()
    waiting = [asyncio.create_task(thinking.run("ann", slow)) for _ in range(7)]
    await slow.wait_begun(2)
    for user in ("bob", "eve"):
        assert await thinking.run(user, lambda: "quick") == "quick"
    assert slow.count == 2
    with pytest.raises(QueueFull) as caught:
        await thinking.run("ann", slow)
    assert caught.value.fix
    slow.release.set()
    assert await asyncio.gather(*waiting) == ["slow"] * 7
    assert await thinking.run("ann", lambda: "quick") == "quick"


async def test_a_turn_is_given_back_when_the_thread_is_done(thinking: Thinking) -> None:
    slow = Slow()
    running = [asyncio.create_task(thinking.run("ann", slow)) for _ in range(2)]
    await slow.wait_begun(2)
    waiting = asyncio.create_task(thinking.run("ann", slow))
    await asyncio.sleep(0)
    for each in (*running, waiting):
        each.cancel()
    await asyncio.gather(*running, waiting, return_exceptions=True)
    next_ = asyncio.create_task(thinking.run("ann", lambda: "next"))
    # The threads are still at work, so it is not begun.
    done, _ = await asyncio.wait([next_], timeout=0.05)
    assert not done
    slow.release.set()
    assert await next_ == "next"
    assert slow.count == 2


async def test_errors_come_back_and_cost_no_turn(thinking: Thinking) -> None:
    def fail() -> None:
        raise ValueError("no")

    for _ in range(9):
        with pytest.raises(ValueError, match="no"):
            await thinking.run("ann", fail)
