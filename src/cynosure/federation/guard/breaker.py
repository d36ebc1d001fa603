"""A remote that fails again and again is left alone for a while, then tried by one request.

    closed ──`break_after` failures in a row──► open ──`break_for`──► half-open ──the probe succeeds──► closed
                                                 ▲                        │
                                                 └────the probe fails─────┘

A maintainer must not break: only failures of the remote count. One that refuses, or says that there is no
such table, is well; else any caller could close a catalog to all others by asking for what is not there.
"""

import random
from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.federation.settings import FederationSettings

BreakerState = Literal["closed", "open", "half-open"]

_JITTER: Final = 0.2
"""So that many servers do not try a remote again at the same moment."""


class Ticket(Struct, frozen=True):
    """A request that was let through. Its outcome counts only while the breaker is as it was then."""

    turn: int
    is_probe: bool = False


class Breaker:
    """The breaker of one remote in one process."""

    def __init__(
        self,
        settings: FederationSettings,
        clock: Clock,
        rng: random.Random,
        *,
        moved: Callable[[BreakerState], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._rng = rng
        self._moved = moved
        self._turn = 0
        self._failures = 0
        self._until_s: float | None = None
        """When it is tried again; `None`: it is closed."""
        self._is_probing = False

    @property
    def state(self) -> BreakerState:
        """What it lets through now: everything, nothing, or one request."""
        if self._until_s is None:
            return "closed"
        return "open" if self.open_s > 0 else "half-open"

    @property
    def open_s(self) -> float:
        """Seconds until it is tried again."""
        return 0.0 if self._until_s is None else max(0.0, self._until_s - self._clock.monotonic_s())

    def admit(self) -> Ticket | None:
        """Let a request through, or not. Each ticket is handed back once: `succeed`, `fail` or `abandon`."""
        if self._until_s is None:
            return Ticket(self._turn)
        if self.open_s > 0 or self._is_probing:
            return None
        self._is_probing = True
        self._moved("half-open")
        return Ticket(self._turn, is_probe=True)

    def succeed(self, ticket: Ticket) -> None:
        """The remote answered."""
        if ticket.turn != self._turn:
            return
        self._failures = 0
        if ticket.is_probe:
            self._until_s = None
            self._begin("closed")

    def fail(self, ticket: Ticket) -> None:
        """The remote did not answer, or not what it should."""
        if ticket.turn != self._turn:
            # Sent before it broke: those come back late, and must not keep it broken.
            return
        self._failures += 1
        if ticket.is_probe or self._failures >= self._settings.break_after:
            wait_s = self._settings.break_for.total_seconds()
            self._until_s = self._clock.monotonic_s() + wait_s * self._rng.uniform(1.0, 1.0 + _JITTER)
            self._begin("open")

    def abandon(self, ticket: Ticket) -> None:
        """Nobody waited for the answer: nothing was learned, and another request may be the probe."""
        if ticket.turn == self._turn and ticket.is_probe:
            self._is_probing = False

    def _begin(self, state: BreakerState) -> None:
        self._turn += 1
        self._failures = 0
        self._is_probing = False
        self._moved(state)
