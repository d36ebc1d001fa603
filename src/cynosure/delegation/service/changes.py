"""What happens to tasks inside one process, told to those who wait for it there.

Must not break: nothing depends on being told. Another process changes tasks too, so whoever waits also asks
the store now and then.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from cynosure.common.clock import Clock


class Changes:
    """Who waits for what, in one process."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self.is_closed = False
        """Whether nobody is to wait any more."""

    @contextmanager
    def watch(self, task_id: str) -> Iterator[asyncio.Event]:
        """An event that is set when this task is changed; register before looking at the task."""
        event = asyncio.Event()
        self._waiting.setdefault(task_id, []).append(event)
        try:
            yield event
        finally:
            self._waiting[task_id].remove(event)
            if not self._waiting[task_id]:
                del self._waiting[task_id]

    def tell(self, task_id: str) -> None:
        """Something about this task has changed."""
        for event in self._waiting.get(task_id, ()):
            event.set()

    def close(self) -> None:
        """Let everybody go who waits: the process stops."""
        self.is_closed = True
        for task_id in list(self._waiting):
            self.tell(task_id)

    def watch_work(self) -> AbstractContextManager[asyncio.Event]:
        """As `watch`, for whatever can be worked on."""
        return self.watch(_ANY_WORK)

    def tell_work(self) -> None:
        """There is something to do."""
        self.tell(_ANY_WORK)


_ANY_WORK = ""
"""No task has this id."""


async def wait_or_sleep(event: asyncio.Event, clock: Clock, seconds: float) -> bool:
    """Wait for an event, no longer than this; whether it came."""
    if event.is_set():
        return True
    coming = asyncio.ensure_future(event.wait())
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({coming, sleeping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in (coming, sleeping):
            each.cancel()
        await asyncio.gather(coming, sleeping, return_exceptions=True)
    return event.is_set()
