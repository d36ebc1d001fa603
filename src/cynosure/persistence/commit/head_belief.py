"""What a process believes about its reference without asking the database: the head, and the company.

Both only save work. A head that is believed and wrong loses its swap; a turn that is not asked for leaves
the decision to the swap.
"""

from cynosure.common.clock import Clock
from cynosure.persistence.commit.entry import Base

ASSUMED_S = 1.0
"""How long the head a process last wrote or read is taken for the current one when a change is prepared."""
DOUBTED_S = 5.0
"""After a lost race, how long it is not."""
TURNS_AFTER_LOSS = 64
"""After a lost race, how many groups take turns with other processes (`Backend.hold_ref`)."""
WINS_WITHOUT_TURN = 32
"""After so many groups that won without a turn, one asks for it all the same. A turn stops only those who
ask, so a process that is always first, from its own last commit, would starve those who do."""


class KnownHead:
    """The head as this process last wrote or read it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = 0.0
        self._doubted_until_s = 0.0
        self.base: Base | None = None
        self.is_behind = False
        """Others have moved the reference: the next group begins by reading it."""

    def know(self, base: Base) -> None:
        """It was just written or read."""
        self.base, self._since_s = base, self._clock.monotonic_s()

    def doubt(self) -> None:
        """Others moved it."""
        self._doubted_until_s = self._clock.monotonic_s() + DOUBTED_S
        self.is_behind = True

    def trust(self) -> None:
        """It was read in a turn: who waits for the turn does not move it meanwhile."""
        self._doubted_until_s, self.is_behind = 0.0, False

    def assumed(self) -> Base | None:
        """The base, when it is probably still the head."""
        is_likely = self._doubted_until_s <= self._clock.monotonic_s() <= self._since_s + ASSUMED_S
        return self.base if is_likely else None


class Company:
    """Whether other processes write here too, so that it pays, or is fair, to take turns."""

    def __init__(self) -> None:
        self._turns = 0
        self._wins = 0

    @property
    def is_known(self) -> bool:
        """Others were met lately."""
        return self._turns > 0

    @property
    def wants_turn(self) -> bool:
        """Whether the next group should ask for a turn."""
        return self._turns > 0 or self._wins >= WINS_WITHOUT_TURN

    def ask(self) -> None:
        """A turn is being asked for."""
        self._turns = max(0, self._turns - 1)
        self._wins = 0

    def meet(self) -> None:
        """Others write here."""
        self._turns = TURNS_AFTER_LOSS

    def forget(self) -> None:
        """This backend offers no turns."""
        self._turns = 0

    def win(self, *, is_turn: bool) -> None:
        """A group was committed."""
        self._wins = 0 if is_turn else self._wins + 1
