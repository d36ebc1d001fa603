"""Trying again what changes nothing: a few times, and never more than a tenth of all requests.

Retries help against a lost packet and harm a remote that is down: there they are all that is sent. So each
request earns a tenth of a retry, and what was not used is forgotten after a while.
"""

from collections import deque
from typing import Final

from cynosure.common.clock import Clock

_WINDOW_S: Final = 60.0
_SHARE: Final = 0.1
_FREE: Final = 3
"""Retries in a window that need no earlier requests, else a quiet remote would never be tried again."""
_SLICES: Final = 12


class RetryBudget:
    """How many retries of one remote are left, in one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slices: deque[tuple[int, int, int]] = deque()
        """When (in slices of the window), requests, retries."""

    def note_request(self) -> None:
        """A request was sent for the first time."""
        self._count(1, 0)

    def take(self) -> bool:
        """Whether another retry may be sent; it counts as sent then."""
        self._forget()
        requests = sum(each[1] for each in self._slices)
        retries = sum(each[2] for each in self._slices)
        if retries + 1 > max(_FREE, requests * _SHARE):
            return False
        self._count(0, 1)
        return True

    def _count(self, requests: int, retries: int) -> None:
        now = self._now()
        if self._slices and self._slices[-1][0] == now:
            _, before, again = self._slices.pop()
            requests, retries = requests + before, retries + again
        else:
            self._forget()
        self._slices.append((now, requests, retries))

    def _forget(self) -> None:
        oldest = self._now() - _SLICES
        while self._slices and self._slices[0][0] <= oldest:
            self._slices.popleft()

    def _now(self) -> int:
        return int(self._clock.monotonic_s() * _SLICES / _WINDOW_S)
