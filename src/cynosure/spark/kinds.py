"""What a driver is for: the session that it opens, what a job there has, and what its errors mean.

A maintainer must not break: a kind is named by the parent, which is the only one that a driver listens to.
"""

import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from cynosure.common.errors import CynosureError, NotFound
from cynosure.spark.wire import Run, Start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Ask = Callable[[str, Any], Any]
"""A question of a job to its parent: what, and with what value."""
DriverJob = Callable[[Any, dict[str, Any]], dict[str, Any]]
"""A function that runs in a driver: it gets its link and parameters, and blocks its thread."""


class JobLink:
    """One run of a job. All of it may be used from any thread of the driver."""

    def __init__(self, spark: "SparkSession", task_id: str, ask: Ask, *, is_classic: bool = True) -> None:
        self.spark = spark
        """A session of its own."""
        self.task_id = task_id
        self.is_classic = is_classic
        """Whether there is a `SparkContext`; Spark Connect has none."""
        self._ask = ask
        self._cancelled = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self._cancelled.set()

    def close(self) -> None:
        """The job is over: give back what its session holds."""


class DriverKind(Protocol):
    """What a driver is for. Its methods are called in the child."""

    def open(self, start: Start) -> "SparkSession":
        """The one session that all others come from."""
        ...

    def link(self, spark: "SparkSession", start: Start, run: Run, ask: Ask) -> JobLink:
        """What one run of a job has, with a session of its own."""
        ...

    def to_error(self, raised: BaseException) -> CynosureError:
        """The error of our tree for whatever was raised there."""
        ...


def load(place: str) -> Any:
    """What is at a place: `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def load_job(name: str, jobs: Mapping[str, str]) -> DriverJob:
    """The function of this name."""
    place = jobs.get(name)
    if place is None:
        raise NotFound("There is no such job for Spark", name=name)
    job: DriverJob = load(place)
    return job
