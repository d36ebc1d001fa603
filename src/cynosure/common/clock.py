"""Time as an argument.

Nothing outside this module and the test clocks asks the operating system for the time, so a test or
the simulator can own it. Wall time may step; only `monotonic_s` may measure durations.
"""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time, elapsed time and sleep, from one source."""

    def now_us(self) -> int:
        """Microseconds since the Unix epoch. May step backwards when an operator sets the clock."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never step back and go on while the process is stopped."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Suspend this task."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:  # noqa: D102
        return time.time_ns() // 1_000

    def monotonic_s(self) -> float:  # noqa: D102
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:  # noqa: D102
        await asyncio.sleep(seconds)
