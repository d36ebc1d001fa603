"""Remove records that have expired: a task of which one of all servers runs one at a time.

Nothing depends on it but space: an expired record counts as unknown whether it is still there or not.

Must not break: a row is removed only as it was seen. A record that somebody has begun anew meanwhile stays.
"""

from collections.abc import AsyncIterator
from typing import Any, Final

from cynosure.idempotency import metrics
from cynosure.idempotency.record import PART, RECORD
from cynosure.idempotency.settings import IdempotencySettings
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.objects import ObjectType
from cynosure.persistence.spi import SYSTEM_REALM, ObjId, RowHead
from cynosure.persistence.store import Store
from cynosure.persistence.tasks import Task, TaskRun

CLEANUP = "idempotency.cleanup"
_PAGE: Final = 500


def cleanup_task(persistence: Persistence, settings: IdempotencySettings) -> Task:
    """The task for the background loop of a server."""
    kept_us = int(settings.kept.total_seconds() * 1_000_000)
    every_s = settings.cleanup.interval.total_seconds()
    store = persistence.store(SYSTEM_REALM)

    async def run(task_run: TaskRun) -> str:
        # Rows carry the time they were last written, and nobody needs one longer than this after that.
        before_us = persistence.clock.now_us() - kept_us
        removed = 0
        for object_type in (RECORD, PART):
            async for heads in _pages(store, object_type):
                task_run.check()
                old = [head for head in heads if head.created_us < before_us]
                count = await store.delete_each(old, is_relaxed=True)
                removed += count
                metrics.CLEANED.inc(count)
        return f"removed {removed} expired records"

    return Task(name=CLEANUP, every_s=every_s, run=run, first_after_s=every_s)


async def _pages(store: Store, object_type: ObjectType[Any]) -> AsyncIterator[list[RowHead]]:
    after: ObjId | None = None
    while heads := await store.scan_heads(object_type, after=after, limit=_PAGE):
        yield heads
        after = heads[-1].key.id
