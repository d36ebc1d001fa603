"""The lease of one attempt, and every change of the task that it allows.

Must not break: once a lease is lost it stays lost. `check` decides from memory and the monotonic clock, so it
also refuses while the store hangs, or after the process was stopped.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

from msgspec.structs import replace

from cynosure.common.clock import Clock
from cynosure.common.errors import LeaseLost, OutcomeUnknown, Unavailable
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.delegation.service.changes import wait_or_sleep
from cynosure.delegation.service.settling import repeat, swap_settled
from cynosure.delegation.store.port import Leased, Receipt, TaskStore
from cynosure.delegation.task_record import TaskRecord

_MAX_HEARTBEAT_S: Final = 10.0
"""A lease may be long; that its worker lives is seen sooner, and so is that somebody cancelled the task."""
_log = Log(__name__)


class HeldLease:
    """A task that this process has. Also what a job sees of it (`JobLease`)."""

    def __init__(
        self, store: TaskStore, clock: Clock, leased: Leased, *, lease_s: float, deadline_s: float
    ) -> None:
        self._store = store
        self._clock = clock
        self._leased = leased
        self._lease_s = lease_s
        self._deadline_s = deadline_s
        """Monotonic; counted from before the lease was asked for."""
        self._changing = asyncio.Lock()
        self._is_lost = False

    @property
    def leased(self) -> Leased:
        """As the store knows it."""
        return self._leased

    @property
    def record(self) -> TaskRecord:
        """The newest version of the task."""
        return self._leased.record

    @property
    def until_us(self) -> int:
        """When it ends unless it is kept."""
        return self._leased.lease_until_us

    @property
    def token(self) -> str:
        """Names this lease."""
        return self._leased.record.lease_token

    @property
    def is_lost(self) -> bool:
        """Whether another worker may have the task now."""
        return self._is_lost or self._clock.monotonic_s() >= self._deadline_s

    def check(self, *, needs_s: float = 5.0) -> None:
        """`LeaseLost` unless the task is ours for so long yet.

        Of a short lease half is asked for at most: it is kept after a third, so more may not be left.
        """
        needs_s = min(needs_s, self._lease_s / 2)
        if self._is_lost or self._clock.monotonic_s() + needs_s >= self._deadline_s:
            raise _lost(self.record)

    async def keep(self, changed: asyncio.Event) -> NoReturn:
        """Keep it until cancelled; `LeaseLost` when it is not ours any more.

        `changed` is set when somebody in this process has changed the task: then it is looked at at once.
        """
        expiring = asyncio.ensure_future(self._expire())
        beating = asyncio.ensure_future(self._beat(changed))
        try:
            # A heartbeat that hangs must not hide that the time is over.
            await asyncio.wait({expiring, beating}, return_when=asyncio.FIRST_COMPLETED)
            for each in (expiring, beating):
                if each.done():
                    each.result()
        finally:
            for each in (expiring, beating):
                each.cancel()
            await asyncio.gather(expiring, beating, return_exceptions=True)
        raise _lost(self.record)

    async def change(
        self, make: Callable[[TaskRecord], TaskRecord], *, tries: int | None = None
    ) -> TaskRecord:
        """Make the next version of the task; `LeaseLost` when it is not ours any more.

        `tries`: how often the store is asked when it does not answer; as often as it takes when left out.
        """
        async with self._changing:
            if self.is_lost:
                self._lose()
            wanted = make(self.record)
            swapped = await swap_settled(self._store, self._clock, self.record, wanted, tries=tries)
            if swapped is None:
                self._lose()
            self._leased = replace(self._leased, record=swapped)
            return swapped

    async def put_receipts(self, receipts: Sequence[Receipt]) -> None:
        """Keep receipts; `LeaseLost` when the task is not ours any more."""
        async with self._changing:
            if self.is_lost:
                self._lose()
            # The same receipts again change nothing, so a lost answer is asked for again.
            if not await repeat(
                self._clock, lambda: self._store.put_receipts(self._leased, receipts), tries=None
            ):
                self._lose()

    async def _beat(self, changed: asyncio.Event) -> NoReturn:
        pause_s = regular_s = min(self._lease_s / 3, _MAX_HEARTBEAT_S)
        while True:
            await wait_or_sleep(changed, self._clock, pause_s)
            changed.clear()
            try:
                await self._extend()
                pause_s = regular_s
            except LeaseLost:
                raise
            except (Unavailable, OutcomeUnknown) as error:
                pause_s = regular_s / 4
                _log.event("task.heartbeat_failed", level=WARNING, task=self.record.task_id, error=error)

    async def _extend(self) -> None:
        async with self._changing:
            if self.is_lost:
                self._lose()
            # Order: both clocks are read before the request is sent.
            deadline_s = self._clock.monotonic_s() + self._lease_s
            if not self.record.status.is_leased:
                # What became of the task is recorded: there is no lease to lose any more.
                self._deadline_s = deadline_s
                return
            now_us, lease_us = self._clock.now_us(), round(self._lease_s * 1_000_000)
            kept = await self._store.keep(self._leased, now_us=now_us, lease_us=lease_us)
            if kept is None or self.is_lost:
                self._lose()
            self._leased = kept
            self._deadline_s = deadline_s

    async def _expire(self) -> NoReturn:
        while (left_s := self._deadline_s - self._clock.monotonic_s()) > 0:
            await self._clock.sleep(left_s)
        self._lose()

    def _lose(self) -> NoReturn:
        self._is_lost = True
        raise _lost(self.record)


def _lost(record: TaskRecord) -> LeaseLost:
    return LeaseLost(
        "This process no longer has the task it works on",
        fix="Nothing to do: whoever has it now goes on, or it was cancelled.",
        task=record.task_id,
    )
