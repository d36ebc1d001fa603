"""Declared Prometheus metrics that are right with several worker processes.

Each worker writes its numbers into memory-mapped files named after its *slot* (0, 1, 2 …), not its
process id: a worker that takes a dead one's slot goes on with its counters, so they never fall within a
run, and the number of files stays bounded however often workers die. Gauges describe a live process
and go with it (`forget_worker`). `render` reads the files of all workers, whichever process it runs in.

    supervisor                           worker in slot 0
    prepare_directory(d)
    start worker with (d, "0")           start_metrics(directory=d, slot="0")
    worker died: forget_worker(d, "0")   … COMMITS.inc(outcome="won") …   render()

A maintainer must not break: no two live processes share a slot; no process forks after `start_metrics`.
"""

import errno
import os
import shutil
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol
from weakref import WeakSet

import prometheus_client
from prometheus_client import values as prometheus_values
from prometheus_client.metrics_core import Metric as Samples
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector, CollectorRegistry

from cynosure.common.errors import Misconfigured

SECONDS_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_FILE_BYTES = 2**20
"""Room for some 4,000 series per worker and kind."""
CONTENT_TYPE = prometheus_client.CONTENT_TYPE_PLAIN_0_0_4


class Metric(ABC):
    """A declared metric. Declare it once, at module level, in the room that it describes."""

    kind: ClassVar[str]
    declared: ClassVar[dict[str, "Metric"]] = {}
    """Every metric of the modules that are imported, by full name."""

    def __init__(self, room: str, name: str, text: str, *, labels: tuple[str, ...] = ()) -> None:
        self.name = f"cynosure_{room}_{name}"
        self.text = text
        self.labels = labels
        self._live: Any = None
        self._live_in: object = None
        self._children: dict[tuple[tuple[str, str], ...], Any] = {}
        """Series by their labels: looking them up in the library costs more than counting."""
        if Metric.declared.setdefault(self.name, self) is not self:
            raise TypeError(f"metric {self.name} is declared twice")

    @abstractmethod
    def _bind(self, registry: CollectorRegistry) -> Any: ...

    def series(self, labels: dict[str, str]) -> Any:
        """The live series, or `None` when metrics are off."""
        if _recorder.registry is None:
            return None
        if self._live_in is not _recorder.registry:
            self._live = self._bind(_recorder.registry)
            self._live_in = _recorder.registry
            self._children.clear()
        if not self.labels:
            return self._live
        key = tuple(labels.items())
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self._live.labels(**labels)
        return child


class Counter(Metric):
    """A number that only rises. Its full name ends in `_total`."""

    kind = "counter"

    def __init__(self, room: str, name: str, text: str, *, labels: tuple[str, ...] = ()) -> None:
        super().__init__(room, f"{name}_total", text, labels=labels)

    def inc(self, amount: float = 1, **labels: str) -> None:
        """Count."""
        if (series := self.series(labels)) is not None:
            series.inc(amount)

    def _bind(self, registry: CollectorRegistry) -> Any:
        return prometheus_client.Counter(self.name, self.text, self.labels, registry=registry)


class Gauge(Metric):
    """A state of the live workers, combined over them by sum, largest or smallest."""

    kind = "gauge"

    def __init__(
        self,
        room: str,
        name: str,
        text: str,
        *,
        labels: tuple[str, ...] = (),
        combine: Literal["sum", "max", "min"] = "sum",
    ) -> None:
        super().__init__(room, name, text, labels=labels)
        self.combine = combine

    def set(self, value: float, **labels: str) -> None:
        """Set this worker's value."""
        if (series := self.series(labels)) is not None:
            series.set(value)

    def inc(self, amount: float = 1, **labels: str) -> None:
        """Change this worker's value; negative amounts lower it."""
        if (series := self.series(labels)) is not None:
            series.inc(amount)

    def _bind(self, registry: CollectorRegistry) -> Any:
        mode: Any = f"live{self.combine}"
        return prometheus_client.Gauge(
            self.name, self.text, self.labels, registry=registry, multiprocess_mode=mode
        )


class Histogram(Metric):
    """How values are distributed. The name ends in the unit, `_seconds` or `_bytes`."""

    kind = "histogram"

    def __init__(
        self,
        room: str,
        name: str,
        text: str,
        *,
        labels: tuple[str, ...] = (),
        buckets: tuple[float, ...] = SECONDS_BUCKETS,
    ) -> None:
        super().__init__(room, name, text, labels=labels)
        self.buckets = buckets

    def observe(self, value: float, **labels: str) -> None:
        """Add one value."""
        if (series := self.series(labels)) is not None:
            series.observe(value)

    def tally(self) -> "Tally":
        """An empty tally of values for this histogram."""
        return Tally(self.buckets)

    def add(self, tally: "Tally", **labels: str) -> None:
        """Add all values of a tally. The library itself has no way to add more than one."""
        if (series := self.series(labels)) is not None:
            series._sum.inc(tally.sum)
            for bucket, count in zip(series._buckets, tally.counts, strict=True):
                if count:
                    bucket.inc(count)

    def _bind(self, registry: CollectorRegistry) -> Any:
        return prometheus_client.Histogram(
            self.name, self.text, self.labels, registry=registry, buckets=self.buckets
        )


class Tally:
    """Values counted by the buckets of a histogram, to be added to it together: a tenth of the cost each."""

    __slots__ = ("_bounds", "count", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.count = 0
        self.sum = 0.0
        self.counts = [0] * (len(bounds) + 1)
        """The last one is for what is above all bounds."""

    def observe(self, value: float) -> None:
        """Count one value."""
        self.count += 1
        self.sum += value
        self.counts[bisect_left(self._bounds, value)] += 1


class Publisher(Protocol):
    """Something that counts by itself and brings its metrics up to date when asked."""

    def publish(self) -> None:
        """Do it. Called on the thread of the event loop."""
        ...


class _Recorder:
    """Where this process writes. One per process, because counting must be possible from anywhere."""

    def __init__(self) -> None:
        self.registry: CollectorRegistry | None = None
        self.directory: Path | None = None
        self.publishers: WeakSet[Publisher] = WeakSet()


_recorder = _Recorder()


def start_metrics(*, directory: Path | None = None, slot: str = "0") -> None:
    """Begin to record: in memory for a single process, else in `directory` as the worker of this slot.

    What was recorded before is gone; call it once, before the first request.
    """
    if directory is None:
        prometheus_values.ValueClass = prometheus_values.MutexValue
    else:
        _reserve_files(directory, slot)
        # The library takes the directory from the environment only, each time it opens a file.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
        prometheus_values.ValueClass = prometheus_values.MultiProcessValue(lambda: slot)  # type: ignore[no-untyped-call]
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    _recorder.registry = CollectorRegistry()
    _recorder.directory = directory
    _recorder.publishers.clear()
    for metric in Metric.declared.values():
        # So that a counter reads 0 before its first event, and an alert on it can tell 0 from absent.
        if not metric.labels:
            metric.series({})


def stop_metrics() -> None:
    """Stop recording; declared metrics ignore what they are told."""
    _recorder.registry = None
    _recorder.directory = None
    _recorder.publishers.clear()


def publish_before_render(publisher: Publisher) -> None:
    """Ask it to publish whenever this process shows metrics, for as long as it lives."""
    _recorder.publishers.add(publisher)


def render() -> bytes:
    """All numbers of all workers in Prometheus' text format (`CONTENT_TYPE`); empty when metrics are off."""
    for publisher in list(_recorder.publishers):
        publisher.publish()
    if _recorder.directory is not None:
        return render_directory(_recorder.directory)
    return b"" if _recorder.registry is None else prometheus_client.generate_latest(_recorder.registry)


def render_directory(directory: Path) -> bytes:
    """As `render`, from a process that is no worker itself."""
    return prometheus_client.generate_latest(_AllWorkers(directory))


def prepare_directory(directory: Path) -> None:
    """Make the directory anew and empty, before the first worker of a run: numbers are those of one run."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True, mode=0o700)


def forget_worker(directory: Path, slot: str) -> None:
    """Drop the gauges of a worker that has ended, before its slot is used again. Its counters stay."""
    mark_process_dead(slot, str(directory))  # type: ignore[no-untyped-call]


def _reserve_files(directory: Path, slot: str) -> None:
    """Give the files their disk space now.

    The library would make sparse files, and the first write to a page that a full disk cannot hold
    kills the process (SIGBUS). Metrics must not do that to a server.
    """
    for kind in ("counter", "histogram", "gauge_livesum", "gauge_livemax", "gauge_livemin"):
        path = directory / f"{kind}_{slot}.db"
        try:
            if not path.exists():
                path.write_bytes(bytes(_FILE_BYTES))
        except OSError as error:
            path.unlink(missing_ok=True)
            raise Misconfigured(
                "The metrics directory cannot be written",
                directory=str(directory),
                reason=errno.errorcode.get(error.errno or 0, type(error).__name__),
                fix="Make room for it and check its owner, or set telemetry.metrics to false.",
            ) from error


class _AllWorkers(Collector):
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def collect(self) -> Iterable[Samples]:
        files = [str(path) for path in self._directory.glob("*.db") if _has_bytes(path)]
        return MultiProcessCollector.merge(files)  # type: ignore[no-any-return, no-untyped-call]


def _has_bytes(path: Path) -> bool:
    # A worker may be about to fill a new file; the library fails on one read in between.
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False
