"""Work that an answer does not wait for, such as deleting files nobody needs.

Must not break: none of it may be needed for correctness. A crash loses it; the sweep makes up for it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

from cynosure.common.errors import CynosureError
from cynosure.common.telemetry.logs import WARNING, Log

_log = Log(__name__)


class Background:
    """The tasks of one process."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._stops: list[Callable[[], None]] = []

    def stop_with(self, stop: Callable[[], None]) -> None:
        """Call this when everything ends: for work that nobody waits for then."""
        self._stops.append(stop)

    def start(self, name: str, work: Coroutine[Any, Any, None], *, context: Context | None = None) -> None:
        """Begin, and forget; what goes wrong is logged. `context`, if it is not the work of this request."""
        task = asyncio.create_task(self._run(name, work), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop what can be stopped, and wait for what was begun."""
        for stop in self._stops:
            stop()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except CynosureError as error:
            _log.event(f"{name}.failed", level=WARNING, error=error)
