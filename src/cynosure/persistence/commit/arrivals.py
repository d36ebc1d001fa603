"""Requests that are about to join the queue, so that a group can wait a moment for them.

Callers answered a moment ago often come again at once. Without a short wait they would miss the group that
is formed right after their answer, and two half-full groups would follow each other for ever.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

_STEPS = 3
"""Steps of the event loop from an answer to the caller's next request."""


class Arrivals:
    """Counts requests that are being prepared for the first time."""

    def __init__(self) -> None:
        self._count = 0
        self._all_here: asyncio.Future[None] | None = None

    @contextmanager
    def one(self) -> Iterator[None]:
        """A request is on its way to the queue."""
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            if not self._count and self._all_here is not None and not self._all_here.done():
                self._all_here.set_result(None)

    async def wait(self, *, patience_s: float = 0.0) -> None:
        """Let them come: those who come at once, and for up to `patience_s` those who are under way."""
        for _ in range(_STEPS):
            await asyncio.sleep(0)
        if self._count and patience_s:
            self._all_here = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._all_here}, timeout=patience_s)
