"""Notes in records that an outcome is in the chain: written soon after the answer, many at once.

Nobody waits for them, and a server that dies before it wrote them leaves nothing undone: whoever repeats such
a request finds its key in the chain. So they wait a moment for each other, and travel with what others write.
"""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log
from cynosure.idempotency.reservations import Held, Reservations

_PATIENCE_S: Final = 0.05
"""For so long another server takes the request for one in progress, and looks again."""
_log = Log(__name__)


class Note(NamedTuple):
    """One of them."""

    held: Held
    status: int
    end: Callable[[], None]
    """Called when it is written, or will never be."""


class Notes:
    """The notes of one process."""

    def __init__(self, reservations: Reservations, clock: Clock) -> None:
        self._reservations = reservations
        self._clock = clock
        self._waiting: list[Note] = []
        self._writer: asyncio.Task[None] | None = None
        self._writing: asyncio.Task[None] | None = None

    def add(self, note: Note) -> None:
        """Write it soon."""
        self._waiting.append(note)
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_on(), name="idempotency notes")

    async def close(self) -> None:
        """Write what waits, now."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.cancel()
            await asyncio.wait([writer])
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self._write()

    async def _write_on(self) -> None:
        try:
            while self._waiting:
                await self._clock.sleep(_PATIENCE_S)
                # A task of its own: closing ends the waiting, and not what is being written.
                self._writing = asyncio.create_task(self._write())
                await asyncio.shield(self._writing)
        finally:
            self._writer = None

    async def _write(self) -> None:
        notes, self._waiting = self._waiting, []
        try:
            await self._reservations.finalize_in_chain([(note.held, note.status) for note in notes])
        except CynosureError as error:
            # The leases run out, and whoever repeats the requests finds them in the chain.
            _log.event("idempotency.not_noted", level=WARNING, error=error, count=len(notes))
        finally:
            for note in notes:
                note.end()
