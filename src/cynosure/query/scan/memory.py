"""What scans hold, kept below a worker's limit: an error that says so, rather than a killed process.

All scans of a process share one limit, that of their tasks: a kernel kills processes. Counted are columns of
a row group while they are decoded (by what its footer says), deletes, and batches that are worked on or wait.
How many rows are read at once follows from the size of rows, so that a few rows of many megabytes do not
become one batch.

A scan that finds the others at the limit waits for them. Who holds something is served before who comes new,
and those that come in their order, so that what was begun ends. They may all the same wait for each other, or
for one whose rows nobody fetches: when nothing at all was given back for a while, that is an error.

A maintainer must not break: whatever grows with the data is counted before more of it is read; a scan that is
alone in its process never waits, and what it cannot have then it is refused at once.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Condition
from typing import Final

from cynosure.query.errors import OutOfMemory

_BATCH_BYTES: Final = 32 * 2**20
_PART_OF_LIMIT: Final = 16
_LOOK_S: Final = 0.1
"""How often one that waits looks whether anybody still wants it."""
_PATIENCE_S: Final = 30.0
"""How long nothing may come back while one waits: longer than a row group takes."""
_RESERVED: Final = 4
"""One part of so many is kept for batches, and for scans that read in small pieces."""


class SharedMemory:
    """Bytes of all scans that share a limit. Called from any thread."""

    def __init__(self, patience_s: float = _PATIENCE_S) -> None:
        self._patience = max(1, round(patience_s / _LOOK_S))
        self._changed = Condition()
        self._held = 0
        self._returns = 0
        self._waiting: deque[object] = deque()

    @property
    def held_bytes(self) -> int:
        """Of all together."""
        return self._held

    def try_take(self, size_bytes: int, limit_bytes: int) -> bool:
        """Take it if nobody has to wait for that."""
        with self._changed:
            if self._waiting or self._held + size_bytes > limit_bytes:
                return False
            self._held += size_bytes
            return True

    def take(self, size_bytes: int, limit_bytes: int, *, is_begun: bool, look: Callable[[], None]) -> bool:
        """Take it, or wait for it; whether it was had. `look` is called now and then, and may raise."""
        me = object()
        with self._changed:
            if not is_begun:
                self._waiting.append(me)
            try:
                if not self._wait(me, size_bytes, limit_bytes, is_begun=is_begun, look=look):
                    return False
                self._held += size_bytes
                return True
            finally:
                if not is_begun:
                    self._waiting.remove(me)
                    # The next in the row may have been waiting for its turn only.
                    self._changed.notify_all()

    def _wait(
        self, me: object, size_bytes: int, limit_bytes: int, *, is_begun: bool, look: Callable[[], None]
    ) -> bool:
        returns, looks = self._returns, 0
        while self._held + size_bytes > limit_bytes or not (is_begun or self._waiting[0] is me):
            if looks == self._patience:
                # What it holds comes back now: others wait anew, so that not all of them are refused.
                self._returns += 1
                return False
            self._changed.wait(_LOOK_S)
            looks = looks + 1 if returns == self._returns else 0
            returns = self._returns
            self._changed.release()
            try:
                look()
            finally:
                self._changed.acquire()
        return True

    def give_back(self, size_bytes: int) -> None:
        """Others may have it."""
        with self._changed:
            self._held -= size_bytes
            self._returns += 1
            self._changed.notify_all()


PROCESS: Final = SharedMemory()
"""Of this process: a worker's, or the gateway's."""


def _look_at_nothing() -> None:
    pass


class Budget:
    """What one scan holds. Used by one thread; `close` it, and all is given back."""

    def __init__(
        self,
        limit_bytes: int,
        look: Callable[[], None] = _look_at_nothing,
        shared: SharedMemory = PROCESS,
    ) -> None:
        """`look` is called while it waits for others, and may raise."""
        self._limit = limit_bytes
        self._look = look
        self._shared = shared
        self._held = 0

    @property
    def batch_bytes(self) -> int:
        """What a batch is aimed to be at most."""
        return min(_BATCH_BYTES, max(self._limit // _PART_OF_LIMIT, 1))

    def try_take(self, size_bytes: int) -> bool:
        """Hold so much more, if that leaves enough for batches and for others, and nobody waits."""
        if not self._shared.try_take(size_bytes, self._limit - self._limit // _RESERVED):
            return False
        self._held += size_bytes
        return True

    def take(self, size_bytes: int) -> None:
        """Hold so much more. `OutOfMemory` when that is too much."""
        if self._held + size_bytes > self._limit:
            raise OutOfMemory(
                "A scan needs more memory than it may have",
                limit_bytes=self._limit,
                fix="Raise query.memory_limit, select fewer columns, or compact the table's deletes.",
            )
        if not self._shared.take(size_bytes, self._limit, is_begun=self._held > 0, look=self._look):
            raise OutOfMemory(
                "A scan waited in vain for memory that scans beside it hold",
                limit_bytes=self._limit,
                fix="Run fewer statements at once, fetch the rows of those that run, or raise "
                "query.memory_limit.",
            )
        self._held += size_bytes

    def give_back(self, size_bytes: int) -> None:
        """Hold so much less."""
        # Readers that end after the scan was closed give back what that did already.
        size_bytes = min(size_bytes, self._held)
        if size_bytes:
            self._held -= size_bytes
            self._shared.give_back(size_bytes)

    def detach(self, size_bytes: int) -> Callable[[], None]:
        """What was held goes on being held, by somebody who outlives the scan; gives it back when called."""
        self._held -= size_bytes
        return partial(self._shared.give_back, size_bytes)

    @contextmanager
    def holding(self, size_bytes: int) -> Iterator[None]:
        """Hold so much more for a while."""
        self.take(size_bytes)
        try:
            yield
        finally:
            self.give_back(size_bytes)

    def close(self) -> None:
        """Hold nothing any more."""
        self.give_back(self._held)

    def rows_at_once(self, most: int, rows: int, size_bytes: int) -> int:
        """How many rows to read at once, of so many that have so many bytes together."""
        if not rows or not size_bytes:
            return most
        return max(1, min(most, self.batch_bytes * rows // size_bytes))


class Held:
    """A part of what a scan holds, given back once: by the scan, or by a thread that it left behind."""

    def __init__(self, budget: Budget, size_bytes: int) -> None:
        self._budget = budget
        self._size = size_bytes

    def give_back(self) -> None:
        """Hold it no more. Twice is fine."""
        size_bytes, self._size = self._size, 0
        self._budget.give_back(size_bytes)

    def detach(self) -> Callable[[], None]:
        """See `Budget.detach`."""
        size_bytes, self._size = self._size, 0
        return self._budget.detach(size_bytes)
