"""Batch after batch: the lease is checked before each, and a receipt is kept after each.

A storage that cannot keep up is asked less at a time, and later; after some tries the attempt ends, and the
task goes on from the receipts.

A maintainer must not break: a batch of a later stage is not begun while one of an earlier stage is under way.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import groupby
from typing import Final

from cynosure.common.delegated.record import TaskProgress
from cynosure.common.errors import Damaged
from cynosure.common.telemetry.logs import Log
from cynosure.delegation.jobs.live_files.patient import patiently
from cynosure.delegation.jobs.live_files.places import Places
from cynosure.delegation.jobs.live_files.scratch import Row
from cynosure.delegation.jobs.live_files.side_by_side import side_by_side
from cynosure.delegation.jobs.port import JobContext
from cynosure.delegation.jobs.purge.plan import Batch, PlanFolder
from cynosure.delegation.store.port import Receipt
from cynosure.storage.fileio import FileIO
from cynosure.storage.location import Location

WIDTH: Final = 4
"""Batches under way at once."""
_BATCH_S: Final = 5.0
"""Least that must be left of a lease to begin a batch."""

Choose = Callable[[Sequence[Row]], Awaitable[list[Row]]]

_log = Log(__name__)


class Deleting:
    """Deletes the batches of one plan."""

    def __init__(
        self,
        context: JobContext,
        files: FileIO,
        places: Places,
        folder: PlanFolder,
        *,
        done: int,
        choose: Choose | None = None,
    ) -> None:
        self._context = context
        self._files = files
        self._places = places
        self._folder = folder
        self._choose = choose
        """Asked right before a batch is deleted: which of these files may go."""
        self._done = done
        self._total = done
        self._width = WIDTH
        self._busy = 0
        self._freed = asyncio.Event()
        self._longest_s = 0.0
        self.damaged = 0
        """Batches that could not be used any more: what they named is found by the next listing."""

    async def run(self, batches: Sequence[Batch]) -> None:
        """Delete all of them. `StorageUnavailable` or `JobPostponed` when the storage does not let us."""
        self._total = self._done + sum(each.files for each in batches)
        for group in by_stage(batches):
            async with aclosing(side_by_side(self._delete, group, width=WIDTH)) as results:
                async for files in results:
                    self._done += files
                    await self._context.report(TaskProgress("deleting", self._done, self._total))

    async def _delete(self, batch: Batch) -> int:
        try:
            rows = await self._folder.read_batch(batch.name)
        except Damaged as error:
            self.damaged += 1
            _log.event("purge.batch_damaged", task_id=self._context.task_id, batch=batch.name, error=error)
            return 0
        if self._choose is not None:
            rows = await self._choose(rows)
        # In a small table one batch has files of several stages.
        for _, some in groupby(rows, key=lambda row: row[3]):
            chosen = [self._places.locate((place, path)) for place, path, _, _ in some]
            await patiently(self._context.clock, partial(self._delete_files, chosen), self._slow_down)
        receipt = Receipt(
            batch.name, len(rows), sum(size for _, _, size, _ in rows), self._context.clock.now_us()
        )
        await self._context.put_receipts([receipt])
        return len(rows)

    async def _delete_files(self, chosen: Sequence[Location]) -> None:
        async with self._turn():
            self._context.lease.check(needs_s=max(_BATCH_S, 2 * self._longest_s))
            started_s = self._context.clock.monotonic_s()
            await self._files.delete_many(chosen)
            self._longest_s = max(self._longest_s, self._context.clock.monotonic_s() - started_s)

    def _slow_down(self) -> None:
        self._width = max(1, self._width // 2)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None, None]:
        while self._busy >= self._width:
            self._freed.clear()
            await self._freed.wait()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._freed.set()


def by_stage(batches: Iterable[Batch]) -> Iterable[list[Batch]]:
    """Batches that may be deleted side by side: all of one stage. One that has several is alone."""
    group: list[Batch] = []
    for batch in batches:
        if group and not (group[-1].last_role == batch.first_role == batch.last_role == group[0].first_role):
            yield group
            group = []
        group.append(batch)
    if group:
        yield group
