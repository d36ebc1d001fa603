"""The updateable object of one coordinated task.

All that is known of a task is in one row, so every step is one compare-and-swap. The functions here are
pure: they say what the row becomes.

Must not break: a row that is `running` is changed only by its holder, or by whoever takes it over after
its lease has ended.
"""

from typing import Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from cynosure.persistence.ids.owner import Owner
from cynosure.persistence.objects import Stored, struct_type

HISTORY_RUNS = 20
TEXT_CHARS = 2000
"""Longest account or error of the last run that is kept; earlier ones keep a quarter of it."""
PROGRESS_BYTES = 64 * 1024
"""Most progress a run may save. With all else a row stays far below the smallest row limit (400 kB)."""

Outcome = Literal["succeeded", "failed", "interrupted", "lost"]
"""`interrupted`: its server was shut down. `lost`: it ended without a word, or lost its lease."""


class RunRecord(msgspec.Struct, frozen=True):
    """One run that has ended."""

    started_us: int
    finished_us: int
    attempt: int
    owner: Owner | None
    outcome: str
    """An `Outcome`; a newer version may write others."""
    text: str
    """What the run returned, or the error."""


class TaskRow(Stored, frozen=True, kw_only=True):
    """A coordinated task as the store knows it."""

    name: str
    holder: str = ""
    """Random name of the run under way; empty when the task is idle."""
    owner: Owner | None = None
    """Who runs it, or ran it last."""
    lease_until_us: int = 0
    lease_s: float = 0.0
    """How long the holder keeps a lease without renewing it, by any clock that only measures durations."""
    attempt: int = 0
    """Of the present piece of work, from 1; it ends with success or when given up."""
    lost_runs: int = 0
    """Runs in a row that ended without a word."""
    started_us: int = 0
    finished_us: int = 0
    succeeded_us: int = 0
    result: str = ""
    """Account of the last run that succeeded."""
    error: str = ""
    """Of the last run, if it did not succeed."""
    next_due_us: int = 0
    progress: bytes = b""
    """Where the present piece of work stands, in the task's own words."""
    history: tuple[Raw, ...] = ()
    """Recent `RunRecord`s, newest first. Kept encoded, so that fields of a newer version stay."""

    @property
    def state(self) -> Literal["idle", "running"]:
        """Whether a run is under way, or was when its process died."""
        return "running" if self.holder else "idle"

    def runs(self) -> list[RunRecord]:
        """The recent runs, newest first."""
        return [msgspec.msgpack.decode(raw, type=RunRecord) for raw in self.history]


TASK = struct_type("task", TaskRow, is_mutable=True)


def claimed(row: TaskRow, *, holder: str, owner: Owner, now_us: int, lease_s: float) -> TaskRow:
    """The row when `owner` begins a run. A run that ended without a word gets its record now."""
    if row.holder:
        row = lost(row, "ended without a word", now_us, next_due_us=row.next_due_us)
    return replace(
        row,
        holder=holder,
        owner=owner,
        lease_until_us=now_us + to_us(lease_s),
        lease_s=lease_s,
        attempt=row.attempt + 1,
        started_us=now_us,
    )


def succeeded(row: TaskRow, text: str, now_us: int, *, next_due_us: int) -> TaskRow:
    """The row after a run that did its work."""
    return replace(
        _ended(row, "succeeded", text, now_us),
        attempt=0,
        lost_runs=0,
        succeeded_us=now_us,
        result=text[:TEXT_CHARS],
        error="",
        next_due_us=next_due_us,
        progress=b"",
    )


def failed(row: TaskRow, text: str, now_us: int, *, next_due_us: int) -> TaskRow:
    """The row after a run that failed, to be tried again from its progress."""
    return replace(_ended(row, "failed", text, now_us), lost_runs=0, next_due_us=next_due_us)


def given_up(row: TaskRow, text: str, now_us: int, *, next_due_us: int) -> TaskRow:
    """The row after the last of several failures. Its progress may be the reason, so it goes too."""
    return replace(failed(row, text, now_us, next_due_us=next_due_us), attempt=0, progress=b"")


def lost(row: TaskRow, text: str, now_us: int, *, next_due_us: int) -> TaskRow:
    """The row after a run that could not keep its lease."""
    return replace(_ended(row, "lost", text, now_us), lost_runs=row.lost_runs + 1, next_due_us=next_due_us)


def interrupted(row: TaskRow, text: str, now_us: int) -> TaskRow:
    """The row after a run whose server was shut down: another one may go on at once.

    Not a failed attempt, so the next run has the same number.
    """
    return replace(_ended(row, "interrupted", text, now_us), attempt=row.attempt - 1, next_due_us=now_us)


def _ended(row: TaskRow, outcome: Outcome, text: str, now_us: int) -> TaskRow:
    """The row without its run, which goes to the history."""
    text = text[:TEXT_CHARS]
    record = RunRecord(
        started_us=row.started_us,
        finished_us=now_us,
        attempt=row.attempt,
        owner=row.owner,
        outcome=outcome,
        text=text[: TEXT_CHARS // 4],
    )
    encoded = Raw(msgspec.msgpack.encode(record))
    return replace(
        row,
        holder="",
        finished_us=now_us,
        error=text,
        history=(encoded, *row.history)[:HISTORY_RUNS],
    )


def to_us(seconds: float) -> int:
    """Whole microseconds."""
    return round(seconds * 1_000_000)
