"""What a suite is, and how one round of a candidate is measured.

A suite is a module `benchmarks/suites/NAME.py` with one function:

    @asynccontextmanager
    async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
        … prepare …
        yield {"one way": one_way, "another way": another_way}
        … clean up …

    async def one_way(meter: Meter) -> None:
        … prepare what is not to be measured …
        with meter.measuring():
            … the work …
        meter.count(operations=1000, rows=…, bytes=…, requests=…)

The runner calls every candidate once per round, in changing order, so that what the machine does
meanwhile hurts all of them alike.

A maintainer must not break: CPU time is taken from the operating system for this process and for every
watched process with all its children, dead or alive; work that moves to another process is never free.
"""

import resource
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import psutil
from msgspec import Struct, field

Value = TypeVar("Value", int, float, str)


class Figures(Struct, frozen=True):
    """One measured round."""

    operations: int
    wall_s: float
    cpu_s: float
    """CPU of this process."""
    watched_cpu_s: float
    """CPU of the watched processes, e.g. the database."""
    bytes: int
    rows: int
    requests: int
    notes: dict[str, float] = field(default_factory=dict)
    """Whatever else the suite reports about the round, e.g. a 99th percentile. The unit is in the name."""


class Meter:
    """Measures one round of one candidate."""

    def __init__(self) -> None:
        self._operations = self._bytes = self._rows = self._requests = 0
        self._wall_s = self._cpu_s = self._watched_cpu_s = 0.0
        self._watched: dict[int, psutil.Process] = {}
        self._notes: dict[str, float] = {}

    def watch(self, pid: int) -> None:
        """Charge the CPU of this process and of its children to the round. Before `measuring`."""
        self._watched[pid] = psutil.Process(pid)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """What happens inside is measured. May be entered several times in a round; the times add up."""
        watched_s, cpu_s, wall_s = self._read_watched_s(), _own_cpu_s(), time.perf_counter()
        try:
            yield
        finally:
            self._wall_s += time.perf_counter() - wall_s
            self._cpu_s += _own_cpu_s() - cpu_s
            self._watched_cpu_s += self._read_watched_s() - watched_s

    def count(self, *, operations: int = 0, bytes: int = 0, rows: int = 0, requests: int = 0) -> None:
        """Add to what the round did. What an operation is, the suite decides and says."""
        self._operations += operations
        self._bytes += bytes
        self._rows += rows
        self._requests += requests

    def note(self, name: str, value: float) -> None:
        """Report one more number about this round; its unit belongs into the name."""
        self._notes[name] = value

    def figures(self) -> Figures:
        """The round, measured. A round without operations or without `measuring` is a mistake."""
        if not (self._operations and self._wall_s):
            raise ValueError("a round must count its operations and do them inside meter.measuring()")
        return Figures(
            operations=self._operations,
            wall_s=self._wall_s,
            cpu_s=self._cpu_s,
            watched_cpu_s=self._watched_cpu_s,
            bytes=self._bytes,
            rows=self._rows,
            requests=self._requests,
            notes=self._notes,
        )

    def _read_watched_s(self) -> float:
        return sum(tree_cpu_s(process) for process in self._watched.values())


Round = Callable[[Meter], Awaitable[None]]
"""Does one round of a candidate."""


class Options:
    """What `--set NAME=VALUE` gave to a suite."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = dict(given)
        self.used: dict[str, str] = {}
        """Every option the suite asked for, with its effective value; kept with the results."""

    def get(self, name: str, default: Value) -> Value:
        """An option in the type of its default."""
        value = type(default)(self._given.pop(name, default))
        self.used[name] = str(value)
        return value

    @property
    def unused(self) -> list[str]:
        """Options that were given and that the suite never asked for: probably misspelt."""
        return sorted(self._given)


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def tree_cpu_s(root: psutil.Process) -> float:
    """CPU of a process and of all below it, so far."""
    # Time of children that ended and were reaped is kept by their parent, so the sum never shrinks.
    total_s = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total_s += times.user + times.system + times.children_user + times.children_system
    return total_s
