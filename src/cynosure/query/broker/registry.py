"""Who scans, and who is well.

    first beat          healthy
    no beat for `missed_heartbeats` x `heartbeat`      unhealthy (without scans: 15 s at least)
    an execution failed there                          unhealthy at once
    one beat                                           healthy again

A beat is one of a scan's stream. What the driver says of its executors (`observe`) counts as one for those
without scans: who scans must beat itself.

A maintainer must not break: nobody is healthy who was never heard of; and the number of workers that are
remembered is bounded, whatever names are told.
"""

from collections.abc import Iterable
from typing import Final

from cynosure.common.clock import Clock
from cynosure.query.engine import WorkerInfo
from cynosure.query.settings import BrokerSettings

MAX_WORKERS: Final = 4_096
FORGOTTEN_AFTER_S: Final = 600.0
"""Workers that nobody heard of for so long are not told of any more."""
IDLE_PATIENCE_S: Final = 15.0
"""At least, for workers without scans: the driver tells of them every five seconds, however scans beat."""


class _Worker:
    """One executor."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cores = 1
        self.is_marked = True
        """Unhealthy until the next beat: new ones, and those where something failed."""
        self.beat_s = 0.0
        """On the monotonic clock."""
        self.heard_s = 0.0
        self.active = 0


class WorkerRegistry:
    """All workers that are known. Answers from memory; one event loop only."""

    def __init__(self, settings: BrokerSettings, clock: Clock) -> None:
        self._patience_s = settings.heartbeat.total_seconds() * settings.missed_heartbeats
        self._idle_patience_s = max(self._patience_s, IDLE_PATIENCE_S)
        self._clock = clock
        self._workers: dict[str, _Worker] = {}

    def beat(self, name: str) -> None:
        """A scan there is alive."""
        self._beat(self._get(name))

    def mark_unhealthy(self, name: str) -> None:
        """Something failed there: nothing more is expected of it until it beats again."""
        self._get(name).is_marked = True

    def begin(self, name: str) -> None:
        """A scan begins there. Saying so is a beat."""
        worker = self._get(name)
        worker.active += 1
        self._beat(worker)

    def end(self, name: str) -> None:
        """One of its scans is over, in whatever way."""
        worker = self._get(name)
        worker.active = max(0, worker.active - 1)

    def observe(self, executors: Iterable[tuple[str, int]]) -> None:
        """What the driver says: names (`HOST/EXECUTOR-ID`) and cores of all executors that it has now.

        Others, without scans, are forgotten.
        """
        seen = set()
        for name, cores in executors:
            worker = self._get(name)
            # The driver's name is the one that people know from Spark.
            worker.name, worker.cores = name, cores
            seen.add(_key(name))
            if not worker.active:
                self._beat(worker)
        for key in [key for key, each in self._workers.items() if not each.active and key not in seen]:
            del self._workers[key]

    def workers(self) -> list[WorkerInfo]:
        """All of them, healthy or not, by name."""
        now_s = self._clock.monotonic_s()
        for key in [
            key
            for key, each in self._workers.items()
            if not each.active and now_s - each.heard_s > FORGOTTEN_AFTER_S
        ]:
            del self._workers[key]
        return sorted(
            (
                WorkerInfo(
                    name=each.name,
                    is_healthy=self._is_healthy(each, now_s),
                    active_fragments=each.active,
                    cores=each.cores,
                )
                for each in self._workers.values()
            ),
            key=lambda each: each.name,
        )

    def _is_healthy(self, worker: _Worker, now_s: float) -> bool:
        patience_s = self._patience_s if worker.active else self._idle_patience_s
        return not worker.is_marked and now_s - worker.beat_s < patience_s

    def _beat(self, worker: _Worker) -> None:
        worker.is_marked = False
        worker.beat_s = worker.heard_s = self._clock.monotonic_s()

    def _get(self, name: str) -> _Worker:
        key = _key(name)
        if (worker := self._workers.get(key)) is None:
            if len(self._workers) >= MAX_WORKERS:
                self._drop_oldest()
            worker = self._workers[key] = _Worker(name)
            worker.heard_s = self._clock.monotonic_s()
        return worker

    def _drop_oldest(self) -> None:
        idle = [key for key, each in self._workers.items() if not each.active] or list(self._workers)
        del self._workers[min(idle, key=lambda key: self._workers[key].heard_s)]


def _key(name: str) -> str:
    """Executor ids are unique in an application; the driver and a scan may name the host differently."""
    return name.rpartition("/")[2]
