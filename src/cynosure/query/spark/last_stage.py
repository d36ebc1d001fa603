"""The rows of a statement's last stage, in jobs of some partitions: the one whose rows go out, and the next.

    partitions of a job     1, 1, 4, 16 … as many as there are cores, or as their rows leave room for

Spark gives a job's rows when all of them are there, and keeps them in the driver until they are read. A job
with more of them than it may have (`spark.driver.maxResultSize`) it ends; that one is run again in parts. So
however rows are spread over partitions, a statement's are no more than those of two jobs.

A maintainer must not break: rows come in the order of partitions; who reads slowly holds Spark back; and
whoever leaves before the end leaves no job, no thread, and no rows in Java.
"""

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Final, Protocol

_AT_ONCE: Final = 2
_GROWTH: Final = 4
_SHARE: Final = 2
"""Of what a job's rows may be, this part is aimed for: the next partitions may have more than the last."""


class Rows(Protocol):
    """Arrow's batches of a job that is done, in the order of its partitions."""

    def __iter__(self) -> Iterator[bytes]: ...
    def close(self) -> None:
        """Let go of those that were not read. Twice is fine."""


class Cluster(Protocol):
    """What runs the jobs."""

    def enter(self) -> None:
        """Called in each thread that is to run jobs: they are the statement's from then on."""

    def run(self, parts: range) -> Rows:
        """Run these partitions. Blocks its thread."""
        ...

    def is_too_large(self, raised: BaseException) -> bool:
        """Whether a job was ended because of how many rows it had."""
        ...

    def count_slots(self) -> int:
        """How many tasks run at once now."""
        ...

    def find_most_bytes(self) -> int:
        """How much a job's rows may be."""
        ...

    def cancel(self) -> None:
        """End all jobs of the statement, and those that it is about to begin."""


class LastStage:
    """One statement's. Used once."""

    def __init__(self, cluster: Cluster, count: int) -> None:
        self._cluster = cluster
        self._count = count
        self._size = 1
        self._room_bytes = 0
        self._jobs: dict[Future[Rows], range] = {}
        """Whose rows are not read yet, in their order."""

    def batches(self) -> Generator[bytes]:
        """Closing it ends all jobs."""
        if self._count > 1:
            yield from self._in_jobs()
        elif self._count:
            # Most statements: no thread, and nothing is asked that decides nothing.
            with closing(self._cluster.run(range(1))) as rows:
                yield from rows

    def _in_jobs(self) -> Iterator[bytes]:
        self._room_bytes = self._cluster.find_most_bytes() // _SHARE
        pool = ThreadPoolExecutor(_AT_ONCE, "cynosure-rows", initializer=self._cluster.enter)
        try:
            begun: deque[Future[Rows]] = deque()
            at = 0
            while at < self._count or begun:
                while at < self._count and len(begun) < _AT_ONCE:
                    size = max(min(self._size, self._cluster.count_slots()), 1)
                    parts = range(at, min(at + size, self._count))
                    begun.append(self._begin(pool, parts))
                    at = parts.stop
                yield from self._read(pool, begun.popleft())
        finally:
            self._leave(pool)

    def _begin(self, pool: ThreadPoolExecutor, parts: range) -> "Future[Rows]":
        job = pool.submit(self._cluster.run, parts)
        self._jobs[job] = parts
        return job

    def _read(self, pool: ThreadPoolExecutor, job: "Future[Rows]") -> Iterator[bytes]:
        parts = self._jobs[job]
        try:
            rows = job.result()
        except Exception as error:
            if len(parts) == 1 or not self._cluster.is_too_large(error):
                raise
            del self._jobs[job]
            self._size = size = max(len(parts) // _GROWTH, 1)
            for first in range(parts.start, parts.stop, size):
                some = range(first, min(first + size, parts.stop))
                yield from self._read(pool, self._begin(pool, some))
            return
        total = 0
        with closing(rows):
            for batch in rows:
                total += len(batch)
                yield batch
        del self._jobs[job]
        room = self._room_bytes * len(parts) // max(total, 1)
        self._size = max(min(self._size * _GROWTH, room), 1)

    def _leave(self, pool: ThreadPoolExecutor) -> None:
        if self._jobs:
            # Whatever ended the statement counts, and not that Java is gone.
            with suppress(Exception):
                self._cluster.cancel()
        pool.shutdown()
        for job in self._jobs:
            if job.exception() is None:
                job.result().close()
