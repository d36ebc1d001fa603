"""One statement while it runs: whether somebody still wants it, and what went wrong first.

Shared by the event loop, the threads that scan and DuckDB's own.

A maintainer must not break: the first failure is the one that is told; everything that follows from it (a
connection that was interrupted, a reader that was closed) is not.
"""

from threading import Event, Lock
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.query.engine import RunningFragment
from cynosure.query.errors import DeadlinePassed
from cynosure.query.scan_task import Credentials

WORKER: Final = "local"
"""Where these fragments run, in reports."""
_GRACE_S: Final = 1.0
_LEAST_GRACE_S: Final = 0.2


class Reading:
    """A fragment that a thread reads."""

    def __init__(self, fragment_id: str, begun_s: float) -> None:
        self.fragment_id = fragment_id
        self.begun_s = begun_s
        self.rows = 0
        self.bytes = 0

    def tell(self, now_s: float) -> RunningFragment:
        """How far it is."""
        elapsed_ms = int((now_s - self.begun_s) * 1_000)
        return RunningFragment(self.fragment_id, WORKER, 0, elapsed_ms, self.rows, self.bytes)


class Run:
    """State of one statement."""

    def __init__(self, clock: Clock, deadline_s: float) -> None:
        self._clock = clock
        self._deadline_s = deadline_s
        self._lock = Lock()
        self._failure: CynosureError | None = None
        self.is_over = Event()
        """Set once: nobody wants anything of it any more."""
        self._over_s: float | None = None
        self._credentials: dict[str, Credentials] = {}
        self.reading: set[Reading] = set()
        """What its threads read now; each of them adds its own, and takes it away."""

    @property
    def failure(self) -> CynosureError | None:
        """What went wrong first."""
        return self._failure

    @property
    def left_s(self) -> float:
        """Until the deadline."""
        return self._deadline_s - self._clock.monotonic_s()

    def fail(self, error: CynosureError) -> CynosureError:
        """End it with an error; the first one counts."""
        with self._lock:
            if self._failure is None and not self.is_over.is_set():
                self._failure = error
            self._end()
        return self._failure or error

    def renew_credentials(self, view: str, newer: Credentials) -> None:
        """Of a relation."""
        self._credentials[view] = newer

    def credentials(self, view: str) -> Credentials | None:
        """The newest of a relation; None: those that its tasks came with."""
        return self._credentials.get(view)

    def finish(self) -> None:
        """End it without one."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if not self.is_over.is_set():
            self._over_s = self._clock.monotonic_s()
            self.is_over.set()

    @property
    def grace_s(self) -> float:
        """How long to wait for threads that were told to end: where it is over, for all of them together."""
        if self._over_s is None:
            return _GRACE_S
        return max(_LEAST_GRACE_S, self._over_s + _GRACE_S - self._clock.monotonic_s())

    def check(self) -> None:
        """Raises what ended it, also for the deadline."""
        if self._failure is not None:
            raise self._failure
        if self.left_s <= 0:
            raise self.fail(passed())


def passed() -> DeadlinePassed:
    """The error of a statement that takes too long."""
    return DeadlinePassed(
        "The statement took longer than it may",
        fix="Ask for less, or raise query.timeout or the statement's own timeout.",
    )
