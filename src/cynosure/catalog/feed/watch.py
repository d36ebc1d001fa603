"""Waiting for the next commit.

A commit by this process could be told at once, one by another only by looking at the head. Those who look at
the same time share one read (`persistence.heads`), so looking is the only way, and a cheap one.
"""

from cynosure.catalog.watching import Watching
from cynosure.common.clock import Clock
from cynosure.persistence.commit import Base, Committer
from cynosure.persistence.spi import ObjId

LOOK_EVERY_S = 0.1


async def wait_for_commit(
    committer: Committer, clock: Clock, watching: Watching, known: ObjId, timeout_s: float
) -> Base:
    """The state once its commit is another than `known`; the same one when that takes too long."""
    deadline_s = clock.monotonic_s() + timeout_s
    while True:
        base = await committer.read()
        left_s = deadline_s - clock.monotonic_s()
        if base.ref.head != known or left_s <= 0 or watching.is_ending:
            return base
        await clock.sleep(min(LOOK_EVERY_S, left_s))
