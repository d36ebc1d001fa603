"""Turns at a reference, kept by the simulated database (`Backend.hold_ref`).

First come, first served. A turn ends when it is given back, when its holder's process died, or when the
holder stays silent for too long, as a database ends an idle transaction.

Must not break: a turn excludes only those who ask for one; the comparison in the swap decides, as always.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol, TypeVar

from cynosure.common.errors import Unavailable
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.spi import HeldRef, ObjKey, Reference, RefKey, Row
from cynosure.testing.sim.history import History
from cynosure.testing.sim.loop import Process

T = TypeVar("T")

_PATIENCE_S = 0.8
"""How long one waits for a turn."""
_IDLE_S = 1.5
"""How long a silent holder keeps it."""
_CHECK_S = 0.1


class Carrier(Protocol):
    """The part of the network that turns need."""

    database: MemoryBackend
    process: Process

    async def call(
        self, machine: str, what: str, request: Callable[[], Awaitable[T]], *, is_write: bool
    ) -> T:
        """Send a request and wait for its answer."""
        ...

    def post(self, machine: str, request: Callable[[], Awaitable[object]]) -> None:
        """Send a message without waiting."""
        ...


class Turns:
    """The database's queues, one per reference."""

    def __init__(self, now_s: Callable[[], float], history: History) -> None:
        self._now_s = now_s
        self._history = history
        self._queues: dict[RefKey, deque[_Turn]] = {}

    def take(
        self, network: Carrier, machine: str, process: Process, key: RefKey, head_type: str
    ) -> AbstractAsyncContextManager[HeldRef]:
        """A turn for a server."""
        return _Turn(self, network, machine, process, key, head_type)

    async def wait(self, turn: "_Turn") -> None:
        """Queue up, on the database's side, until the turn comes."""
        queue = self._queues.setdefault(turn.key, deque())
        if not turn.is_over:  # It may have been given back before the wish for it arrived.
            queue.append(turn)
        since_s = turn.heard_s = self._now_s()
        while turn.is_over or queue[0] is not turn:
            if turn.is_over:
                raise Unavailable("The turn at this reference is over")
            first = queue[0]
            if first.process.is_dead or self._now_s() - first.heard_s > _IDLE_S:
                self._history.count("turns ended by the database")
                self.end(first)
            elif self._now_s() - since_s > _PATIENCE_S:
                self.end(turn)
                raise Unavailable("The turn did not come in time")
            else:
                await asyncio.sleep(_CHECK_S)

    def end(self, turn: "_Turn") -> None:
        """The next in the queue may go on."""
        turn.is_over = True
        queue = self._queues.get(turn.key)
        if queue and turn in queue:
            queue.remove(turn)
            if queue:
                queue[0].heard_s = self._now_s()


class _Turn:
    """A turn as its holder sees it; `HeldRef` once entered."""

    def __init__(
        self, turns: Turns, network: Carrier, machine: str, process: Process, key: RefKey, head_type: str
    ) -> None:
        self.key = key
        self.process = process
        self.is_over = False
        self.heard_s = 0.0
        self.current: Reference | None = None
        self.head_row: Row | None = None
        self._turns = turns
        self._network = network
        self._machine = machine
        self._head_type = head_type

    async def __aenter__(self) -> "_Turn":
        async def queue_up() -> tuple[Reference | None, Row | None]:
            await self._turns.wait(self)
            database = self._network.database
            current = (await database.fetch_refs([self.key]))[0]
            head_row = None
            if current is not None:
                head_key = ObjKey(self.key.realm, self.key.catalog, self._head_type, current.head)
                head_row = (await database.fetch([head_key]))[0]
            return current, head_row

        try:
            self.current, self.head_row = await self._network.call(
                self._machine, "take turn", queue_up, is_write=False
            )
        except BaseException:
            self._give_back()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._give_back()

    def _give_back(self) -> None:
        async def end() -> None:
            self._turns.end(self)

        self._network.post(self._machine, end)
