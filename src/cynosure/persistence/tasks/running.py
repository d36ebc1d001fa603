"""One run of a coordinated task: what its work sees, and the lease that is kept meanwhile.

Must not break: once a run is lost it stays lost, even if its row could still be renewed; `check` decides
from memory and the monotonic clock, so it also refuses while the database hangs, or after a pause.
"""

import asyncio
from collections.abc import Callable
from typing import NoReturn

from msgspec.structs import replace

from cynosure.common.clock import Clock
from cynosure.common.errors import Contended, LeaseLost, OutcomeUnknown, TooLarge, Unavailable
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.persistence.store import Store, Versioned
from cynosure.persistence.tasks.row import PROGRESS_BYTES, TASK, TaskRow, to_us

_OWN_RACES = 4
"""How often an update may lose against an earlier attempt of its own whose answer was lost."""
log = Log(__name__)


class TaskRun:
    """A run under way. The task's work calls `check` and `save`; `CoordinatedTasks` does the rest."""

    def __init__(self, store: Store, clock: Clock, row: Versioned[TaskRow], deadline_s: float) -> None:
        self._store = store
        self._clock = clock
        self._row = row
        self._deadline_s = deadline_s
        self._updating = asyncio.Lock()
        self._is_lost = False

    @property
    def name(self) -> str:
        """The task's name."""
        return self._row.value.name

    @property
    def attempt(self) -> int:
        """1 for the first attempt at the present piece of work."""
        return self._row.value.attempt

    @property
    def progress(self) -> bytes:
        """What was saved last, by this run or the one that it goes on from. Empty at the beginning."""
        return self._row.value.progress

    @property
    def row(self) -> TaskRow:
        """The task's row as this run last wrote it."""
        return self._row.value

    @property
    def is_lost(self) -> bool:
        """Whether another instance may run this task now."""
        return self._is_lost or self._clock.monotonic_s() >= self._deadline_s

    def check(self) -> None:
        """Raise `LeaseLost` if another instance may run this task now. Call it before each batch."""
        if self.is_lost:
            self._lose()

    async def save(self, progress: bytes) -> None:
        """Write down where the work stands, so that whoever goes on after a crash begins there."""
        if len(progress) > PROGRESS_BYTES:
            raise TooLarge(
                "The progress of a task is too large to save",
                field="progress",
                fix="Keep large progress in objects of its own and save their ids.",
                bytes=len(progress),
                limit_bytes=PROGRESS_BYTES,
            )
        await self._renew(lambda row: replace(row, progress=progress))

    async def keep(self) -> NoReturn:
        """Renew the lease until cancelled; `LeaseLost` when someone took it over."""
        lease_s = self._row.value.lease_s
        pause_s = lease_s / 3
        while True:
            await self._clock.sleep(pause_s)
            try:
                await self._renew(lambda row: row)
                pause_s = lease_s / 3
            except LeaseLost:
                raise
            except (Unavailable, OutcomeUnknown) as error:
                pause_s = lease_s / 12
                log.event("task.renewal_failed", level=WARNING, task=self.name, error=error)

    async def expire(self) -> NoReturn:
        """Sleep until the lease ends, then `LeaseLost`. Needed when a renewal hangs."""
        while (left_s := self._deadline_s - self._clock.monotonic_s()) > 0:
            await self._clock.sleep(left_s)
        self._lose()

    async def finish(self, change: Callable[[TaskRow], TaskRow]) -> TaskRow:
        """Write the last version of the row, even if the time ran out, as long as nobody took it over."""
        async with self._updating:
            await self._swap(change)
        return self._row.value

    async def _renew(self, change: Callable[[TaskRow], TaskRow]) -> None:
        async with self._updating:
            self.check()
            # Order: both clocks are read before the request is sent.
            deadline_s, now_us = self._clock.monotonic_s() + self._row.value.lease_s, self._clock.now_us()

            def renewed(row: TaskRow) -> TaskRow:
                # Never shorter: a clock that was set back must not give away what it promised before.
                until_us = max(row.lease_until_us, now_us + to_us(row.lease_s))
                return replace(change(row), lease_until_us=until_us)

            await self._swap(renewed)
            self.check()
            self._deadline_s = deadline_s

    async def _swap(self, change: Callable[[TaskRow], TaskRow]) -> None:
        for _ in range(_OWN_RACES):
            wanted = change(self._row.value)
            if swapped := await self._store.swap(TASK, self._row, wanted):
                self._row = swapped
                return
            current = await self._store.fetch(TASK, self._row.id)
            if current is None:
                self._lose()
            if current.value.holder == self._row.value.holder:
                self._row = current
            elif not wanted.holder and current.value.history[:1] == wanted.history[:1]:
                # An earlier attempt to end this run was applied, and its answer was lost.
                self._row = current._replace(value=wanted)
                return
            else:
                self._lose()
        raise Contended(
            "The row of a task could not be changed, because answers of the database keep getting lost",
            fix="Try again.",
            task=self.name,
        )

    def _lose(self) -> NoReturn:
        self._is_lost = True
        raise LeaseLost(
            "This process no longer holds the task it runs",
            fix="Nothing to do: whoever holds it now goes on from the saved progress.",
            task=self.name,
        )
