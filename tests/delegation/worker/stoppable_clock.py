"""Time for processes that can be stopped."""

import asyncio

from cynosure.testing.harness.clock import ManualClock


class StoppableClock:
    """The time of the world, for a process that can be stopped: its sleepers wake when it goes on."""

    def __init__(self, world: ManualClock) -> None:
        self._world = world
        self._going = asyncio.Event()
        self._going.set()

    def now_us(self) -> int:
        return self._world.now_us()

    def monotonic_s(self) -> float:
        return self._world.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await self._world.sleep(seconds)
        await self._going.wait()

    def stop(self) -> None:
        self._going.clear()

    def go_on(self) -> None:
        self._going.set()
