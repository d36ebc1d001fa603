"""What the storage room counts.

What happens thousands of times a second is tallied and told to the metrics once a second: telling them costs
more than a small file does.

A maintainer must not break: tallies belong to the process, because storages come and go with configurations
and what was counted must stay.
"""

import asyncio
from collections import defaultdict
from typing import Final

from cynosure.common.telemetry.metrics import Counter, Histogram, Tally, publish_before_render

OPERATIONS: Final = Counter(
    "storage",
    "operations",
    "Operations on files, by storage type, operation and outcome.",
    labels=("storage", "operation", "outcome"),
)
SECONDS: Final = Histogram(
    "storage",
    "operation_seconds",
    "Time of operations on files that succeeded, with waits and retries; of a listing, until its first file.",
    labels=("storage", "operation"),
)
READ_BYTES: Final = Counter("storage", "read_bytes", "Bytes read from files.", labels=("storage",))
WRITTEN_BYTES: Final = Counter("storage", "written_bytes", "Bytes written to files.", labels=("storage",))
VENDED: Final = Counter("storage", "vended", "Credentials given to clients from memory.", labels=("storage",))
MINTED: Final = Counter(
    "storage",
    "minted",
    "Credentials asked of token services, by outcome (ok, refused, unavailable).",
    labels=("storage", "outcome"),
)
MINT_SECONDS: Final = Histogram(
    "storage", "mint_seconds", "Time that new credentials took.", labels=("storage",)
)

_PUBLISH_EVERY_S: Final = 1.0


class Tallies:
    """What was counted since it was last told."""

    def __init__(self) -> None:
        self._failed: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        self._done: dict[tuple[str, str], Tally] = {}
        self._bytes: defaultdict[tuple[Counter, str], int] = defaultdict(int)
        self._vended: defaultdict[str, int] = defaultdict(int)
        self._publishing_in: asyncio.AbstractEventLoop | None = None

    def done(self, storage: str, operation: str, seconds: float) -> None:
        """An operation on files that succeeded."""
        tally = self._done.get((storage, operation))
        if tally is None:
            tally = self._done[storage, operation] = SECONDS.tally()
        tally.observe(seconds)
        self._publish_soon()

    def failed(self, storage: str, operation: str, outcome: str) -> None:
        """One that did not."""
        self._failed[storage, operation, outcome] += 1
        self._publish_soon()

    def read(self, storage: str, size_bytes: int) -> None:
        """Bytes that came from files."""
        self._bytes[READ_BYTES, storage] += size_bytes

    def written(self, storage: str, size_bytes: int) -> None:
        """Bytes that went into files."""
        self._bytes[WRITTEN_BYTES, storage] += size_bytes

    def vended(self, storage: str) -> None:
        """Credentials that came from memory."""
        self._vended[storage] += 1
        self._publish_soon()

    def publish(self) -> None:
        """Tell the metrics."""
        self._publishing_in = None
        for (storage, operation), tally in self._done.items():
            OPERATIONS.inc(tally.count, storage=storage, operation=operation, outcome="ok")
            SECONDS.add(tally, storage=storage, operation=operation)
        for (storage, operation, outcome), count in self._failed.items():
            OPERATIONS.inc(count, storage=storage, operation=operation, outcome=outcome)
        for (counter, storage), size_bytes in self._bytes.items():
            counter.inc(size_bytes, storage=storage)
        for storage, count in self._vended.items():
            VENDED.inc(count, storage=storage)
        for each in (self._done, self._failed, self._bytes, self._vended):
            each.clear()

    def _publish_soon(self) -> None:
        # A timer, not the next operation: after a burst the last of it must show as well.
        if self._publishing_in is None or self._publishing_in.is_closed():
            self._publishing_in = asyncio.get_running_loop()
            self._publishing_in.call_later(_PUBLISH_EVERY_S, self.publish)
            publish_before_render(self)


TALLIES: Final = Tallies()
"""Of this process."""
