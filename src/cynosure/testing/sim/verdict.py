"""A run in short, as one process sends it to another."""

import logging
import time
from typing import NamedTuple

from cynosure.testing.sim.world import run_seed

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


def judge(seed: int, tail: int = _TAIL) -> Verdict:
    """Run one seed, in any process."""
    logging.disable(logging.CRITICAL)  # Servers that crash and lose their leases would fill the screen.
    started_s = time.process_time()
    run = run_seed(seed)
    cpu_s = time.process_time() - started_s
    lines = run.history.lines(tail) if run.broken else []
    return Verdict(seed, str(run.broken or ""), lines, run.history.counts, cpu_s, run.steps, run.span_s)
