"""A statement on a cluster without executors: found out, where Spark itself would wait for ever.

    before the first worker     none is healthy: the driver has none yet, or those that it had are lost
    after it                    none is known: one that is late for a beat may be at work on a long sort

A maintainer must not break: executors register some seconds after their driver began, and are told of some
seconds after that; so nobody is given up at once.
"""

from collections.abc import Callable, Sequence
from typing import Final

from cynosure.common.clock import Clock
from cynosure.query.engine import WorkerInfo
from cynosure.query.errors import EngineUnavailable

_LOOK_S: Final = 0.5


async def until_abandoned(
    workers: Callable[[], Sequence[WorkerInfo]], clock: Clock, *, patience_s: float
) -> None:
    """Until there was nobody to run a statement for so long; for ever, where there is somebody."""
    was_served = False
    served_s = clock.monotonic_s()
    while True:
        known = workers()
        is_served = bool(known) if was_served else any(each.is_healthy for each in known)
        if is_served:
            was_served, served_s = True, clock.monotonic_s()
        elif clock.monotonic_s() - served_s >= patience_s:
            return
        await clock.sleep(min(_LOOK_S, patience_s))


def no_worker() -> EngineUnavailable:
    """What the statement ends with."""
    return EngineUnavailable(
        "Spark has no healthy worker to run the statement",
        fix="Look at the cluster: are there executors (SELECT * FROM system.runtime.workers), and do they "
        "reach the driver? They are waited for as long as query.spark.worker_wait says.",
    )
