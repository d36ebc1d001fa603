"""Who scans: which attempt of Spark, on which executor.

Spark does not tell Python its executor's id (the local property `spark.executor.id` is always the driver's).
Found in Spark 4.1: on Kubernetes it is in the environment, on a standalone cluster in the address of the
executor's log; YARN has containers instead. Without any of them everything runs in the driver.

A maintainer must not break: names are `HOST/EXECUTOR-ID` with the id that the driver knows it by; see
`query.broker.registry`, which brings both together.
"""

import os
import socket
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

_LOG_URL: Final = "SPARK_LOG_URL_STDERR"
_IDS: Final = ("SPARK_EXECUTOR_ID", "CONTAINER_ID")
_DRIVER: Final = "driver"
"""Spark's name for itself in local mode."""


class Attempt(Struct, frozen=True):
    """One attempt at a task of Spark."""

    attempt_id: int = 0
    number: int = 0
    place: str = ""
    """`STAGE/PARTITION`."""
    worker: str = ""
    process: str = ""


def current_attempt() -> Attempt:
    """The attempt that this code runs in."""
    from pyspark import TaskContext  # noqa: PLC0415 - an extra

    worker, process = name_worker(os.environ), f"{socket.gethostname()}:{os.getpid()}"
    context = TaskContext.get()
    if context is None:
        return Attempt(worker=worker, process=process)
    return Attempt(
        attempt_id=context.taskAttemptId(),
        number=context.attemptNumber(),
        place=f"{context.stageId()}/{context.partitionId()}",
        worker=worker,
        process=process,
    )


def name_worker(environment: Mapping[str, str]) -> str:
    """`HOST/EXECUTOR-ID`, from what an executor has around it."""
    host = socket.gethostname()
    url = urlsplit(environment.get(_LOG_URL, ""))
    if executors := parse_qs(url.query).get("executorId"):
        return f"{url.hostname or host}/{executors[0]}"
    executor = next((environment[name] for name in _IDS if environment.get(name)), _DRIVER)
    return f"{host}/{executor}"
