"""Waiting between attempts: random, bounded by a deadline, and fair to those who waited long.

Ordinary exponential backoff is unfair: who lost most often sleeps longest and so meets a newcomer,
who sleeps shortest, again and again. Here the bound of a sleep first doubles from `first_s` to
`max_s`, which spreads a crowd, and then *shrinks* with the time waited: after `8 * max_s` seconds it
is halved, after `16 * max_s` it is a third, and so on, never below `first_s`. The longer one has waited,
the more often one tries compared with newcomers.

No attempt may begin after the deadline, also when the process was stopped in its sleep: garbage
collection relies on it (commit deadline < grace).
"""

import random

from cynosure.common.clock import Clock

_PATIENCE = 8.0
"""How many `max_s` one waits until the bound is halved."""


class Backoff:
    """The waits of one operation, from its first attempt to its deadline. Make a new one per operation."""

    def __init__(
        self,
        clock: Clock,
        rng: random.Random,
        *,
        first_s: float = 0.01,
        max_s: float = 0.25,
        deadline_s: float,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._first_s = first_s
        self._max_s = max_s
        self._started_s = clock.monotonic_s()
        self._deadline_s = self._started_s + deadline_s
        self.waits = 0
        """How many times `wait` was called, so one less than the attempts made."""

    @property
    def waited_s(self) -> float:
        """Seconds since the operation began."""
        return self._clock.monotonic_s() - self._started_s

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self._deadline_s - self._clock.monotonic_s())

    def bound_s(self) -> float:
        """Upper bound of the next sleep; the sleep itself is drawn evenly from its upper half."""
        # The exponent is capped because a float overflows at 2**1024.
        crowd_s = min(self._max_s, self._first_s * 2.0 ** min(self.waits, 64))
        return max(self._first_s, crowd_s / (1.0 + self.waited_s / (_PATIENCE * self._max_s)))

    async def wait(self, *, at_least_s: float = 0.0) -> bool:
        """Sleep before the next attempt. `False` when there must be none: the deadline is too near.

        `at_least_s` is what the other side asked for (`Retry-After`).
        """
        sleep_s = max(self.bound_s() * self._rng.uniform(0.5, 1.0), at_least_s)
        self.waits += 1
        if sleep_s >= self.remaining_s:
            return False
        await self._clock.sleep(sleep_s)
        return self.remaining_s > 0.0
