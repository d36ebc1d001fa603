"""A storm whose processes are killed with SIGKILL again and again, each time at another moment.

The processes are forks of this one, which has opened nothing: a new one costs milliseconds, so a test can
afford many deaths.

A maintainer must not break: this process has no event loop and no threads, or its forks would inherit them
half-dead.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from cynosure.common.errors import Unavailable
from cynosure.testing.storm.ledger import Done, read_ledger

_GO_ON_S = 60.0
"""How long the last ones have to be acknowledged something."""


class Hail:
    """Processes that write, each with a ledger of its own, and their deaths."""

    def __init__(self, run_writer: Callable[[Path, int], None], ledgers: list[Path], rng: Random) -> None:
        self._run_writer = run_writer
        self._ledgers = ledgers
        self._rng = rng
        self._pids = [0] * len(ledgers)

    def strike(self, rounds: int) -> None:
        """Kill some of them at random moments, start them again, `rounds` times; then see that they go on."""
        slots = range(len(self._ledgers))
        for slot in slots:
            self._fork(slot)
        for _ in range(rounds):
            time.sleep(self._rng.uniform(0.0, 0.3))
            doomed = self._rng.sample(slots, self._rng.randint(1, len(slots)))
            for slot in doomed:
                os.kill(self._pids[slot], signal.SIGKILL)
            for slot in doomed:
                self._bury(slot)
                self._fork(slot)
        for slot in slots:
            self._see_going_on(slot)
        for slot in slots:
            os.kill(self._pids[slot], signal.SIGKILL)
            self._bury(slot)

    def watch(self, deaths: int) -> None:
        """Let each of them die by its own hand, `deaths` times one after the other."""
        for slot in range(len(self._ledgers)):
            for _ in range(deaths):
                self._fork(slot)
                self._bury(slot)

    def _fork(self, slot: int) -> None:
        seed = self._rng.getrandbits(32)
        self._pids[slot] = os.fork()
        if not self._pids[slot]:
            try:
                self._run_writer(self._ledgers[slot], seed)
            finally:
                os._exit(1)

    def _bury(self, slot: int) -> None:
        _, status = os.waitpid(self._pids[slot], 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            raise Unavailable("A process ended otherwise than by SIGKILL", status=status)

    def _see_going_on(self, slot: int) -> None:
        before = self._acknowledged(slot)
        give_up_s = time.monotonic() + _GO_ON_S
        while self._acknowledged(slot) == before:
            if time.monotonic() > give_up_s:
                raise Unavailable(
                    "A process was acknowledged nothing any more", ledger=str(self._ledgers[slot])
                )
            time.sleep(0.02)

    def _acknowledged(self, slot: int) -> int:
        return sum(isinstance(event, Done) for event in read_ledger(self._ledgers[slot]))
