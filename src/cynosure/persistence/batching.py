"""Conditional writes of many callers in few calls of the database.

A caller awaits its own write. What arrives while a call is under way goes together with the next one, so
nothing waits for company, and the busier the process, the larger the calls: sixteen callers that arrive
together cost one call, those who arrive in between one more. One batcher serves all scopes of a backend.

Must not break: two writes of the same row never travel in one call, and go in the order of their arrival; an
outcome reaches the one whose write it is; a caller that is cancelled before its write is sent leaves nothing
behind, later its write's outcome is as unknown to it as any other.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from cynosure.common.clock import Clock
from cynosure.common.errors import BadInput, CynosureError, TooLarge, Unavailable
from cynosure.persistence.objects import ObjectType
from cynosure.persistence.settling import settle_each, unsettled
from cynosure.persistence.spi import Backend, ConditionalWrite, DeleteIf, ObjId, ObjKey
from cynosure.persistence.store import Store, Versioned, as_versioned

MOST_WRITES: Final = 128
MOST_BYTES: Final = 4 << 20
"""Of rows in one call: the first in it should not wait long for the last."""

T = TypeVar("T")


class _Waiting(NamedTuple):
    write: ConditionalWrite
    is_relaxed: bool
    outcome: "asyncio.Future[bool]"


class Batcher:
    """The verbs of `Store` for updateable objects, with the writes of whoever else asks at the time.

    The same promises: an unknown outcome of `insert` and `swap` is settled; `None` and `False` are lost
    races. A write that `is_relaxed` may be undone by the death of the machine (`Backend.write_each`).
    """

    def __init__(self, backend: Backend, clock: Clock, rng: Random) -> None:
        self._backend = backend
        self._clock = clock
        self._rng = rng
        self._waiting: deque[_Waiting] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._is_closed = False

    async def insert(
        self, store: Store, object_type: ObjectType[T], obj_id: ObjId, value: T, *, is_relaxed: bool = False
    ) -> Versioned[T] | None:
        """Create an updateable object; `None` when it exists already."""
        write = store.to_insert(object_type, obj_id, value)
        return as_versioned(value, write) if await self._send(store, write, is_relaxed=is_relaxed) else None

    async def swap(
        self,
        store: Store,
        object_type: ObjectType[T],
        old: Versioned[T],
        value: T,
        *,
        is_relaxed: bool = False,
    ) -> Versioned[T] | None:
        """Replace an updateable object; `None` when someone else changed it first."""
        write = store.to_swap(object_type, old, value)
        return as_versioned(value, write) if await self._send(store, write, is_relaxed=is_relaxed) else None

    async def swap_all(
        self,
        store: Store,
        object_type: ObjectType[T],
        changes: Sequence[tuple[Versioned[T], T]],
        *,
        is_relaxed: bool = False,
    ) -> list[Versioned[T] | None]:
        """As many `swap`s, each on its own; `None` also for one whose outcome could not be found out.

        For whoever has many at once: it costs no task for each.
        """
        writes = [store.to_swap(object_type, old, value) for old, value in changes]
        try:
            outcomes = await asyncio.gather(
                *[self._enqueue(write, is_relaxed=is_relaxed) for write in writes], return_exceptions=True
            )
        finally:
            for write in writes:
                store.forget(write.key)
        return [
            as_versioned(value, write) if outcome is True else None
            for (_, value), write, outcome in zip(changes, writes, outcomes, strict=True)
        ]

    async def delete_if(
        self, store: Store, object_type: ObjectType[Any], old: Versioned[Any], *, is_relaxed: bool = False
    ) -> bool:
        """Delete an updateable object; `False` when someone else changed it first."""
        return await self._send(store, store.to_delete(object_type, old), is_relaxed=is_relaxed)

    async def close(self) -> None:
        """Send what waits, then refuse what comes (`Unavailable`)."""
        self._is_closed = True
        if self._sending is not None:
            await self._sending

    # --- within ---------------------------------------------------------------------------------

    async def _send(self, store: Store, write: ConditionalWrite, *, is_relaxed: bool) -> bool:
        try:
            return await self._enqueue(write, is_relaxed=is_relaxed)
        finally:
            store.forget(write.key)

    def _enqueue(self, write: ConditionalWrite, *, is_relaxed: bool) -> "asyncio.Future[bool]":
        if self._is_closed:
            raise _stopped()
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[bool] = loop.create_future()
        self._waiting.append(_Waiting(write, is_relaxed, outcome))
        if self._sending is None:
            # A task of its own: the call goes on for the others when the caller that began it is cancelled.
            self._sending = loop.create_task(self._send_all())
        return outcome

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                batch = self._take_batch()
                if not batch:
                    continue
                try:
                    await self._send_batch(batch)
                except Exception as error:  # of any kind: it is theirs who wait for it
                    for waiting in batch:
                        _refuse(waiting, error)
                except BaseException:
                    # Cancelled with the event loop. What was sent may be applied, what was not is not.
                    for waiting in batch:
                        _refuse(waiting, unsettled(waiting.write))
                    for waiting in self._waiting:
                        _refuse(waiting, _stopped())
                    self._waiting.clear()
                    raise
        finally:
            self._sending = None

    async def _send_batch(self, batch: list[_Waiting]) -> None:
        try:
            await self._send_at_once(batch)
        except (BadInput, TooLarge):
            # Nothing was sent. Whose write it is that breaks the rules, each finds out alone.
            if len(batch) == 1:
                raise
            for waiting in batch:
                try:
                    await self._send_at_once([waiting])
                except CynosureError as error:
                    _refuse(waiting, error)

    async def _send_at_once(self, batch: list[_Waiting]) -> None:
        outcomes = await settle_each(
            self._backend,
            self._clock,
            self._rng,
            [waiting.write for waiting in batch],
            is_relaxed=all(waiting.is_relaxed for waiting in batch),
        )
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if waiting.outcome.done():
                continue
            if outcome is None:
                waiting.outcome.set_exception(unsettled(waiting.write))
            else:
                waiting.outcome.set_result(outcome)

    def _take_batch(self) -> list[_Waiting]:
        batch: list[_Waiting] = []
        keys: set[ObjKey] = set()
        later: list[_Waiting] = []
        size_bytes = 0
        while self._waiting and len(batch) < MOST_WRITES and size_bytes < MOST_BYTES:
            waiting = self._waiting.popleft()
            write = waiting.write
            if waiting.outcome.done():  # cancelled
                continue
            if write.key in keys:
                later.append(waiting)
                continue
            keys.add(write.key)
            batch.append(waiting)
            size_bytes += 0 if isinstance(write, DeleteIf) else len(write.row.blob)
        self._waiting.extendleft(reversed(later))
        return batch


def _refuse(waiting: _Waiting, error: Exception) -> None:
    if not waiting.outcome.done():
        waiting.outcome.set_exception(error)


def _stopped() -> Unavailable:
    return Unavailable("This server is being stopped")
