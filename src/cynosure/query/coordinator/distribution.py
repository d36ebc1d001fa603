"""Whether a statement is distributed, and why not: checks in a fixed order, each with its reason.

Distribution is an optimisation: whatever is missing, the statement still runs, here. What cannot run here is
Spark's in any case; where that has no healthy worker, its engine waits a little for one, and says so.

A maintainer must not break: the order, and the texts: they are in EXPLAIN, in metrics and in the audit.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from cynosure.query.engine import Engine, EngineQuery, WorkerInfo
from cynosure.query.errors import EngineUnavailable, NotAllowed

NO_CLUSTER: Final = "no cluster"
NO_HEALTHY_WORKER: Final = "no healthy worker"
NO_SCAN: Final = "no scan"
FEWER_FILES: Final = "fewer files than workers"
BELOW_THRESHOLD: Final = "below the byte threshold"
LARGE: Final = "large enough to distribute"
OUTSIDE: Final = "outside of the local subset"
LOCAL_OFF: Final = "local execution is off"
FELL_BACK: Final = "distribution failed, run locally"
RUN_ISOLATED: Final = "native scan was refused, run isolated"
NOT_AN_ENGINE: Final = "answered by the coordinator"


class Facts(NamedTuple):
    """What the decision rests on."""

    workers: Sequence[WorkerInfo] | None
    """None: there is no cluster."""
    scans: int
    files: int
    total_bytes: int


class Choice(NamedTuple):
    """Which engine, and why."""

    engine: Engine
    reason: str
    """For metrics: one of the constants."""
    shown: str
    """For people: the constant, and what is behind it."""


def try_distribute(facts: Facts, *, distribute_above: int) -> tuple[bool, str]:
    """Whether scans go to workers, and the reason."""
    if facts.workers is None:
        return False, NO_CLUSTER
    healthy = sum(each.is_healthy for each in facts.workers)
    if not healthy:
        return False, NO_HEALTHY_WORKER
    if not facts.scans:
        return False, NO_SCAN
    if facts.files < healthy:
        return False, FEWER_FILES
    if facts.total_bytes < distribute_above:
        return False, BELOW_THRESHOLD
    return True, LARGE


def choose_engine(
    query: EngineQuery,
    facts: Facts,
    *,
    local: Engine | None,
    spark: Engine | None,
    distribute_above: int,
) -> Choice:
    """The engine of a statement. `NotAllowed` when none can run it."""
    is_distributed, reason = try_distribute(facts, distribute_above=distribute_above)
    if local is None and spark is None:
        raise EngineUnavailable(
            "This gateway has no engine", fix="Switch query.local_execution or query.spark.enabled on."
        )
    if is_distributed and spark is not None and (against := spark.find_reason_against(query)) is None:
        return Choice(spark, reason, reason)
    against = LOCAL_OFF if local is None else local.find_reason_against(query)
    if local is not None and against is None:
        return Choice(local, reason, reason)
    kind = LOCAL_OFF if local is None else OUTSIDE
    shown = LOCAL_OFF if local is None else f"{OUTSIDE}: {against}"
    if reason == NO_HEALTHY_WORKER:
        shown = f"{shown}; {NO_HEALTHY_WORKER}"
    if spark is not None and (refused := spark.find_reason_against(query)) is None:
        return Choice(spark, kind, shown)
    raise NotAllowed(
        "No engine of this gateway runs this statement",
        fix="Write it otherwise, or have Spark switched on for this gateway (query.spark.enabled)."
        if spark is None
        else "Write it otherwise.",
        reason=str(against if spark is None else refused),
    )
