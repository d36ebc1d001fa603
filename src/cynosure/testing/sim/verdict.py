"""A run in short, as one process sends it to another."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from cynosure.testing.sim.world import Run, run_keyed_seed, run_seed

_TAIL = 60


class Verdict(NamedTuple):
    """What a worker process sends back of a run."""

    seed: int
    broken: str
    tail: list[str]
    counts: dict[str, int]
    cpu_s: float
    steps: int
    span_s: float


def judge(seed: int) -> Verdict:
    """Run one seed, in any process."""
    return _judge(seed, run_seed)


def judge_keyed(seed: int) -> Verdict:
    """As `judge`, for a run with Idempotency-Keys."""
    return _judge(seed, run_keyed_seed)


def _judge(seed: int, run_one: Callable[[int], Run]) -> Verdict:
    logging.disable(logging.CRITICAL)  # Servers that crash and lose their leases would fill the screen.
    started_s = time.process_time()
    run = run_one(seed)
    cpu_s = time.process_time() - started_s
    lines = run.history.lines(_TAIL) if run.broken else []
    return Verdict(seed, str(run.broken or ""), lines, run.history.counts, cpu_s, run.steps, run.span_s)
