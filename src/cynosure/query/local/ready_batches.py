"""Batches that scans have made and DuckDB has not taken yet: few, and counted.

A maintainer must not break: what waits counts as memory of this process' scans, but a batch that DuckDB waits
for is never held back for that: memory comes back by its going on.
"""

from collections import deque
from queue import Empty
from threading import Condition
from typing import TYPE_CHECKING, Final

from cynosure.query.scan.memory import Budget

if TYPE_CHECKING:
    import pyarrow as pa

_MOST: Final = 4
_LOOK_S: Final = 0.1
"""How long one waits before it may look whether anybody still wants it."""


class ReadyBatches:
    """A queue of a few; `None` is the last word of a thread. Called from any thread."""

    def __init__(self, limit_bytes: int) -> None:
        self._changed = Condition()
        self._budget = Budget(limit_bytes)
        """Used with the lock of `_changed` only."""
        self._batches: deque[tuple[pa.RecordBatch | None, int]] = deque()
        self._is_closed = False

    def put(self, batch: "pa.RecordBatch | None") -> bool:
        """Whether there was room for it, now or soon. After `close` there is none."""
        with self._changed:
            is_done = self._changed.wait_for(lambda: self._is_closed or self._admit(batch), _LOOK_S)
            self._changed.notify_all()
            return is_done and not self._is_closed

    def _admit(self, batch: "pa.RecordBatch | None") -> bool:
        if len(self._batches) >= _MOST:
            return False
        size_bytes = 0 if batch is None else batch.nbytes
        if size_bytes and not self._budget.try_take(size_bytes):
            if self._batches:
                return False
            size_bytes = 0
        self._batches.append((batch, size_bytes))
        return True

    def get(self) -> "pa.RecordBatch | None":
        """The next. `Empty` when there is none soon."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._batches, _LOOK_S):
                raise Empty
            batch, size_bytes = self._batches.popleft()
            self._budget.give_back(size_bytes)
            self._changed.notify_all()
            return batch

    def close(self) -> None:
        """Nobody takes what is left, nor what comes from a thread that goes on for a while."""
        with self._changed:
            self._is_closed = True
            self._batches.clear()
            self._budget.close()
            self._changed.notify_all()
