"""A request that waits: whoever sent it is told once what for, when that takes more than a moment."""

from collections.abc import Callable
from typing import Final, NamedTuple

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError

MOMENT_S: Final = 2.0
"""So long nobody wonders why there is no answer."""


class Wait(NamedTuple):
    """What a request waits for."""

    status: int
    """What the server answered last; 0: nothing."""
    error: CynosureError
    """What that means."""
    until_us: int
    """When it is given up."""


OnWait = Callable[[Wait], None]
"""Told of a wait when it begins to be long."""


class Notice:
    """Of one request, from its first attempt to the last."""

    def __init__(self, clock: Clock, on_wait: OnWait | None) -> None:
        self._clock = clock
        self._on_wait = on_wait
        self._began_s = clock.monotonic_s()

    def give(self, status: int, error: CynosureError, *, pause_s: float, left_s: float) -> None:
        """Tell it before a pause that makes the wait a long one; `left_s`: how long attempts go on."""
        waited_s = self._clock.monotonic_s() - self._began_s
        if self._on_wait is None or waited_s + pause_s < MOMENT_S:
            return
        on_wait, self._on_wait = self._on_wait, None
        on_wait(Wait(status, error, self._clock.now_us() + int(left_s * 1_000_000)))
