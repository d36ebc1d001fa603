"""One audit event per statement, whatever became of it.

A maintainer must not break: nobody waits for the event to get an answer; an event that cannot be recorded is
in the log, without constants of the statement.
"""

import asyncio
import random
from typing import Final

import msgspec

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, NotAuthenticated
from cynosure.common.retry import Backoff
from cynosure.common.telemetry.logs import ERROR, Log
from cynosure.query.catalog_access.port import CatalogSession, QueryEvent
from cynosure.query.coordinator.metrics import UNRECORDED

_TRY_S: Final = 60.0
_log = Log(__name__)


class Auditor:
    """Records events in the background."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._recording: set[asyncio.Task[None]] = set()

    def record(
        self, session: CatalogSession, event: QueryEvent, *, newest: CatalogSession | None = None
    ) -> None:
        """Begin to record an event; with a newer session of its user where the first is not let in any more.

        Not at once with the newer one: its token may be for fewer roles than the statement ran with.
        """
        task = asyncio.create_task(self._record(session, event, newest))
        self._recording.add(task)
        task.add_done_callback(self._recording.discard)

    async def flush(self, timeout_s: float) -> None:
        """Wait for all that is under way; what takes longer is given up, and logged."""
        if not self._recording:
            return
        _, left = await asyncio.wait(set(self._recording), timeout=timeout_s)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _record(
        self, session: CatalogSession, event: QueryEvent, newest: CatalogSession | None
    ) -> None:
        backoff = Backoff(self._clock, self._rng, first_s=0.2, max_s=10.0, deadline_s=_TRY_S)
        try:
            while True:
                try:
                    await session.record(event)
                except CynosureError as error:
                    if isinstance(error, NotAuthenticated) and newest is not None:
                        session, newest = newest, None
                        continue
                    if not await backoff.wait():
                        self._lose(event, error)
                        return
                else:
                    return
        except asyncio.CancelledError as error:
            self._lose(event, error)
            raise

    def _lose(self, event: QueryEvent, error: BaseException) -> None:
        UNRECORDED.inc()
        # The event has an `error` of its own, and a line has one: how the statement failed is its `kind`.
        fields = msgspec.to_builtins(event)
        _log.event("query.audit.lost", level=ERROR, error=error, kind=fields.pop("error"), **fields)
