"""Slows down who guesses secrets: so many wrong ones, then one every few seconds.

In memory, per server, and by client *and* address: a stranger elsewhere cannot lock a client out, and many
addresses gain little, since secrets that we make have 128 bits.

Must not break: whether a client exists makes no difference here.
"""

from typing import Final

from cynosure.common.clock import Clock

BURST: Final = 20
"""Wrong guesses that nobody is slowed down for."""
REFILL_S: Final = 3.0
"""After those, one more in this time."""
_MOST_KEPT: Final = 20_000


class Failures:
    """Counts failures by whoever made them."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_s = clock.monotonic_s
        self._full_s: dict[tuple[str, ...], float] = {}
        """When nothing of a guesser's failures counts any more."""

    def wait_s(self, who: tuple[str, ...]) -> float:
        """How long they must wait before the next guess; 0 when they need not."""
        return max(0.0, self._full_s.get(who, 0.0) - (BURST - 1) * REFILL_S - self._monotonic_s())

    def count(self, who: tuple[str, ...]) -> None:
        """They failed."""
        full_s = max(self._full_s.pop(who, 0.0), self._monotonic_s()) + REFILL_S
        if len(self._full_s) >= _MOST_KEPT:
            # The one that failed longest ago.
            del self._full_s[next(iter(self._full_s))]
        self._full_s[who] = full_s
