"""What a coordinated task is.

A maintainer must not break: a task's name is stored; renaming one starts a new history.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from cynosure.persistence.tasks.row import TaskRow, to_us
from cynosure.persistence.tasks.running import TaskRun


class Retry(Struct, frozen=True):
    """How long to wait after a run that failed, or that ended without a word."""

    first_s: float = 60.0
    max_s: float = 3600.0
    attempts: int = 0
    """After so many failed attempts the saved progress is dropped and the task waits for its regular
    time. Zero: never give up."""

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row."""
        # The exponent is capped because a float overflows at 2**1024.
        return min(self.max_s, self.first_s * 2.0 ** min(failures - 1, 64))


class Task(Struct, frozen=True):
    """Work that one instance of all servers does regularly."""

    name: str
    """Unique within its realm and catalog."""
    every_s: float
    """Time from the start of a run that succeeds to the next one."""
    run: Callable[[TaskRun], Awaitable[str]]
    """Does the work and returns a short account of it. Safe to repeat; calls `TaskRun.check` before each
    batch of effects."""
    first_after_s: float = 0.0
    """How long a task that has never run waits for its first time."""
    retry: Retry = Retry()

    def due_us(self, row: TaskRow, now_us: int) -> int:
        """When the task is due, as long as it is idle."""
        longest_s = max(self.every_s, self.first_after_s, 2 * self.retry.max_s)
        # Further away than anybody would have set it: a clock was ahead, or the interval was made shorter.
        return row.next_due_us if row.next_due_us <= now_us + to_us(longest_s) else now_us

    def after_failure_us(self, row: TaskRow, now_us: int, spread: float) -> int | None:
        """When to try again after a failure; `None` when it is given up. `spread` is about 1."""
        if self.retry.attempts and row.attempt >= self.retry.attempts:
            return None
        return now_us + to_us(self.retry.delay_s(row.attempt) * spread)

    def takeover_delay_s(self, row: TaskRow) -> float:
        """How long to leave a task alone that ended without a word.

        Nothing the first time; but one that keeps killing its servers must not do so all the time.
        """
        return self.retry.delay_s(row.lost_runs) if row.lost_runs else 0.0
