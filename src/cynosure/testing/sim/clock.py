"""The clock of one simulated machine: true elapsed time, and a wall clock that may be wrong.

Must not break: `monotonic_s` is the loop's own time, so that a stopped process finds time passed.
"""

import asyncio
from typing import Final

from cynosure.testing.sim.loop import SimLoop

START_US: Final = 1_772_000_000_000_000
"""Wall time at which every simulation begins: some day of February 2026."""


class SimClock:
    """Implements `Clock`. Survives the processes of its machine."""

    def __init__(self, loop: SimLoop, *, skew_s: float = 0.0, drift: float = 0.0) -> None:
        self._loop = loop
        self._skew_us = round(skew_s * 1_000_000)
        self._drift = drift
        """Wall seconds gained per second."""

    def now_us(self) -> int:
        """See `Clock`."""
        return START_US + round(self._loop.time() * (1.0 + self._drift) * 1_000_000) + self._skew_us

    def monotonic_s(self) -> float:
        """See `Clock`."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await asyncio.sleep(seconds)

    def step(self, seconds: float) -> None:
        """Set the wall clock forward, or back when negative."""
        self._skew_us += round(seconds * 1_000_000)
