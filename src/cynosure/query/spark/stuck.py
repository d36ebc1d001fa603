"""What goes on in a driver though nobody waits for it, and when the driver is to be ended for it.

    tasks    of a local driver, a core each: some loops of Spark do not notice that they were cancelled
    runs     jobs that plan: constant parts of a statement are evaluated there, for however long it takes

A cluster ends executors with such tasks itself (`spark.task.reaper.*`).

A maintainer must not break: what is merely slow to end is left alone; and whoever uses the driver loses it
only when there is hardly anything left of it.
"""

import os
from collections.abc import Callable, Set
from typing import Final

_TIMES: Final = 4
"""So often in a row the same thing was there, which runs for nobody."""


class StuckWatch:
    """Looks at one driver."""

    def __init__(self, count_cores: Callable[[], int | None] = os.cpu_count) -> None:
        self._most_runs = max(count_cores() or 1, 1)
        self._tasks: dict[int, int] = {}
        self._runs: dict[int, int] = {}

    def note(self, *, tasks: Set[int], runs: Set[int], cores: int, is_idle: bool) -> bool:
        """What was seen, by ids that do not come again; whether the driver is to be ended."""
        self._tasks = {each: self._tasks.get(each, 0) + 1 for each in tasks}
        self._runs = {each: self._runs.get(each, 0) + 1 for each in runs}
        stuck_tasks, stuck_runs = (
            sum(times >= _TIMES for times in each.values()) for each in (self._tasks, self._runs)
        )
        if is_idle:
            return bool(stuck_tasks or stuck_runs)
        return bool(stuck_tasks and stuck_tasks >= cores) or stuck_runs >= self._most_runs
