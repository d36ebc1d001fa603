"""Attempts at fragments, and who makes them, from memory: what `system.runtime.tasks` says of those that run.

A maintainer must not break: the number of ended attempts that are remembered is bounded. Files and bytes of a
scan tell of hidden rows: whoever shows these rows to a user decides about them.
"""

from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from cynosure.query.engine import WorkerInfo

MAX_ENDED: Final = 2_000


class Outcome(StrEnum):
    """What became of one attempt at a fragment."""

    RUNNING = "running"
    DONE = "done"
    """All rows were given."""
    LEFT = "left"
    """Spark wanted no more of them."""
    FAILED = "failed"
    LOST = "lost"
    """It did not beat."""
    STUCK = "stuck"
    """It beat, and did not move."""
    CLOSED = "closed"
    """Its process ended without a word."""
    FENCED = "fenced"
    """A newer attempt came."""
    STOPPED = "stopped"
    """The statement ended."""


class TaskRow(Struct, frozen=True):
    """One attempt at a fragment."""

    query_id: str
    fragment_id: str
    relation: str
    """What people call the table."""
    worker: str
    process: str
    attempt: int
    outcome: Outcome
    started_us: int
    elapsed_ms: int
    rows: int
    bytes: int
    files: int


class RuntimeRecord:
    """Attempts that run, and the last that ended."""

    def __init__(self, running: Callable[[], list[TaskRow]], workers: Callable[[], list[WorkerInfo]]) -> None:
        self._running = running
        self._workers = workers
        self._ended: deque[TaskRow] = deque(maxlen=MAX_ENDED)

    def ended(self, row: TaskRow) -> None:
        """Remember it."""
        self._ended.append(row)

    def running(self, query_id: str) -> list[TaskRow]:
        """Those of a statement that run."""
        return [each for each in self._running() if each.query_id == query_id]

    def tasks(self) -> list[TaskRow]:
        """Those that run, then those that ended, the newest first."""
        return [*self._running(), *reversed(self._ended)]

    def workers(self) -> list[WorkerInfo]:
        """All that are known, healthy or not."""
        return self._workers()
