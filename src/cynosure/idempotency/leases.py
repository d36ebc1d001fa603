"""Keeps reservations alive while their requests are executed: one task for all of a process.

Most requests end long before their lease needs renewing, and cost nothing here.
"""

import asyncio
from typing import Final

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.idempotency.reservations import Held, Reservations

_US: Final = 1_000_000
_log = Log(__name__)


class Leases:
    """The reservations of one process."""

    def __init__(self, reservations: Reservations, clock: Clock, *, lease_s: float) -> None:
        self._reservations = reservations
        self._clock = clock
        self._every_s = lease_s / 3
        # In the order they came, so that one history is one history in the simulator too.
        self._held: dict[Held, None] = {}
        self._renewing: dict[Held, asyncio.Task[None]] = {}
        self._keeper: asyncio.Task[None] | None = None

    def keep(self, held: Held) -> None:
        """Renew this one from now on."""
        self._held[held] = None
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="idempotency leases")

    def leave(self, held: Held) -> None:
        """Renew it no more."""
        del self._held[held]

    async def close(self) -> None:
        """Stop renewing."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            tasks = [keeper, *self._renewing.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _keep(self) -> None:
        while True:
            await self._clock.sleep(self._every_s)
            soon_us = self._clock.now_us() + int(2 * self._every_s * _US)
            for held in self._held:
                is_due = held.record.lease_until_us <= soon_us and not held.is_lost
                if is_due and held not in self._renewing:
                    # Nobody waits for it: one that hangs must not let the others run out.
                    self._renewing[held] = asyncio.create_task(self._renew(held))

    async def _renew(self, held: Held) -> None:
        try:
            if not await self._reservations.renew(held):
                _log.event("idempotency.taken_over", level=WARNING, key_hash=held.record.key_hash)
        except CynosureError as error:
            # Tried again at the next turn. If it runs out meanwhile, others find out what became of it.
            _log.event("idempotency.not_renewed", level=WARNING, error=error)
        finally:
            del self._renewing[held]
