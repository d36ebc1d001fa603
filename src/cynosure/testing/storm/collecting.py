"""Garbage collection as the coordinated task, with a lease so short that a test can outwait it."""

from cynosure.persistence.ids import this_process
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.maintenance import gc_task
from cynosure.persistence.spi import SYSTEM_REALM
from cynosure.persistence.tasks import CoordinatedTasks, RunRecord


async def collect_once(persistence: Persistence, lease_s: float) -> RunRecord:
    """Collect now, or go on where a run that was abandoned stands. `Conflict` while somebody does."""
    clock = persistence.clock
    tasks = CoordinatedTasks(
        persistence.store(SYSTEM_REALM),
        clock,
        persistence.rng,
        this_process(clock),
        lease_s=lease_s,
        skew_margin_s=lease_s / 10,
    )
    return await tasks.run_now(gc_task(persistence))
