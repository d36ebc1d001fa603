"""Threads that were left behind: their statement ended while they waited for a storage that says nothing.

Nothing can stop such a thread. It ends when the storage answers, or when its reader gives up after
`storage.operation_timeout`; then it sees that nobody wants its rows. What it holds counts as memory of scans
until it has ended.

A maintainer must not break: where too many are left, no further scan begins. A storage that says nothing
costs a bounded number of threads, however many statements ask for it.
"""

from collections.abc import Iterable
from threading import Lock, Thread
from typing import Final

from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.query.errors import EngineUnavailable

MOST: Final = 32
"""Two for each relation of a statement that hangs, so some ten statements."""
_log = Log(__name__)


class LeftScans:
    """Of all statements of an engine. Called from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._threads: set[Thread] = set()

    def add(self, threads: Iterable[Thread]) -> None:
        """These go on without anybody who waits for them."""
        with self._lock:
            added = [each for each in threads if each.is_alive()]
            self._threads.update(added)
        if added:
            _log.event("local.scans_left", level=WARNING, added=len(added), all=self.count())

    def __contains__(self, thread: Thread) -> bool:
        with self._lock:
            return thread in self._threads

    def count(self) -> int:
        """Those that have not ended yet."""
        with self._lock:
            self._threads = {each for each in self._threads if each.is_alive()}
            return len(self._threads)

    def check(self) -> None:
        """`EngineUnavailable` when no further scan may begin."""
        if self.count() >= MOST:
            raise EngineUnavailable(
                "Too many scans of ended statements still wait for a storage that does not answer",
                fix="Send the statement again later; see whether the catalogs' storages answer.",
            )
