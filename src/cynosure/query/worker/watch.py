"""One scan, seen from both of its threads: the one that scans, and the one that talks to the broker.

A maintainer must not break: older credentials never replace newer ones; and time in which Spark has not asked
for the next batch is not time in which the scan stands still.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.query.scan.port import ScanProgress
from cynosure.query.scan_task import Credentials
from cynosure.query.stream.frames import Beat


class StreamWatch:
    """A `ScanWatch` that a stream feeds."""

    def __init__(self, credentials: Credentials, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._lock = threading.Lock()
        self._credentials = credentials
        self._progress = ScanProgress()
        self._moved_s = clock.monotonic_s()
        self._is_given = False
        self._probe = 0
        self._answered = 0
        self._ended: CynosureError | None = None

    # By the thread that scans

    def credentials(self) -> Credentials:
        """See `ScanWatch`."""
        with self._lock:
            return self._credentials

    def advance(self, progress: ScanProgress) -> None:
        """See `ScanWatch`."""
        with self._lock:
            self._progress = progress
            self._moved_s = self._clock.monotonic_s()
            is_asked, self._answered = self._probe > self._answered, self._probe
            ended = self._ended
        if is_asked:
            self._wake()
        if ended is not None:
            raise ended

    def check(self) -> None:
        """Raise why nobody wants the scan any more, if that is so."""
        with self._lock:
            ended = self._ended
        if ended is not None:
            raise ended

    @contextmanager
    def given(self) -> Iterator[None]:
        """While Spark has a batch, and did not ask for the next one."""
        with self._lock:
            self._is_given = True
        try:
            yield
        finally:
            with self._lock:
                self._is_given = False
                self._moved_s = self._clock.monotonic_s()

    @property
    def progress(self) -> ScanProgress:
        """The last that was told."""
        with self._lock:
            return self._progress

    # By the thread that talks

    def offer(self, credentials: Credentials) -> None:
        """Taken if they are newer."""
        with self._lock:
            if credentials.number > self._credentials.number:
                self._credentials = credentials

    def ask(self, number: int) -> None:
        """A probe. The scanning thread answers it, or Spark does by not asking for more."""
        with self._lock:
            self._probe = max(self._probe, number)

    def end(self, error: CynosureError) -> None:
        """Nobody wants the scan any more. The first reason stays."""
        with self._lock:
            self._ended = self._ended or error

    def beat(self) -> Beat:
        """How it is now."""
        with self._lock:
            if self._is_given:
                self._answered = self._probe
                idle_s = 0.0
            else:
                idle_s = self._clock.monotonic_s() - self._moved_s
            return Beat(
                files=self._progress.files,
                rows=self._progress.rows,
                bytes=self._progress.bytes,
                probe=self._answered,
                idle_ms=round(idle_s * 1_000),
            )
