"""A network between the servers and one database, and what can go wrong on it.

Every call is a message there and an answer back. A message belongs to the network from the moment it is
sent: it arrives, or not, whatever happens to its sender. What the sender is told follows the contract of
`Backend`: `Unavailable` only when nothing was and nothing will be applied (or it was a read),
`OutcomeUnknown` otherwise.

Must not break: the shared database is production's `MemoryBackend`, and no fault reaches into it but one:
when its machine dies, relaxed writes that no other write followed are undone (`Backend.write_each`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from random import Random
from typing import Any, TypeVar

from cynosure.common.errors import CynosureError, OutcomeUnknown, Unavailable
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.spi import (
    ConditionalWrite,
    HeldRef,
    Insert,
    Limits,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
    RowHead,
)
from cynosure.testing.sim.history import History
from cynosure.testing.sim.loop import Process, SimLoop
from cynosure.testing.sim.turns import Turns
from cynosure.testing.sim.weather import CALM, Faults

T = TypeVar("T")


class _Fate(Enum):
    DELIVERED = auto()
    REFUSED = auto()
    REQUEST_LOST = auto()
    ANSWER_LOST = auto()
    LATE = auto()


class Network:
    """Carries messages. Its own process never stops: it is the database's, too."""

    def __init__(
        self, loop: SimLoop, rng: Random, database: MemoryBackend, faults: Faults, history: History
    ) -> None:
        self.database = database
        self.process = loop.new_process("network")
        self.is_down = False
        """Whether the database is away."""
        self.cut_off: set[str] = set()
        """Machines that cannot reach it."""
        self._loop = loop
        self._rng = rng
        self._faults = faults
        self._history = history
        self._unflushed: list[tuple[ObjKey, Row | None]] = []
        """Rows as they were before relaxed writes that nothing has made durable yet."""

    def go_down(self) -> None:
        """The database's machine dies."""
        self.is_down = True
        rows = self.database._store.rows
        self._history.count("relaxed writes undone", len(self._unflushed))
        for key, before in reversed(self._unflushed):
            # Past whoever watches the rows: nobody did this.
            dict.pop(rows, key, None)
            if before is not None:
                dict.__setitem__(rows, key, before)
        self._unflushed.clear()

    async def write_relaxed(self, writes: Sequence[ConditionalWrite]) -> list[bool]:
        """Apply writes that may be undone."""
        outcomes: list[bool] = []
        for write in writes:
            before = (await self.database.fetch([write.key]))[0]
            outcomes += await self.database.write_each([write], is_relaxed=True)
            if outcomes[-1]:
                self._unflushed.append((write.key, None if isinstance(write, Insert) else before))
        return outcomes

    async def write_durably(self, request: Callable[[], Awaitable[T]]) -> T:
        """Apply a write that nothing undoes, nor what was written before it."""
        outcome = await request()
        self._unflushed.clear()
        return outcome

    def heal(self) -> None:
        """From now on every message arrives, and soon."""
        self._faults = CALM
        self.is_down = False
        self.cut_off.clear()

    def travel_s(self) -> float:
        """How long one way takes this time."""
        return self._rng.expovariate(1.0 / self._faults.delay_s)

    async def call(
        self, machine: str, what: str, request: Callable[[], Awaitable[T]], *, is_write: bool
    ) -> T:
        """Send a request and wait for its answer."""
        fate = self._draw(machine)
        if fate is not _Fate.DELIVERED:
            self._history.note(machine, f"message {fate.name.lower()}", what)
            self._history.count(f"messages {fate.name.lower()}")
        if fate is _Fate.REFUSED:
            await asyncio.sleep(self.travel_s())
            raise Unavailable("The database does not answer")
        answer: asyncio.Future[T] = self._loop.create_future()
        patience_s = self._faults.patience_s
        if fate is _Fate.LATE:
            patience_s = self.travel_s()
            arrives_s = patience_s + self._rng.random() * self._faults.late_s
        else:
            arrives_s = self.travel_s()
            if fate is not _Fate.DELIVERED and self._rng.random() < 0.5:
                # Half of the broken connections are noticed at once.
                patience_s = arrives_s + self.travel_s()
        if fate is not _Fate.REQUEST_LOST:
            self._deliver(arrives_s, machine, request, answer, is_answered=fate is _Fate.DELIVERED)
        timer = self._loop.call_later(patience_s, self._give_up, answer, is_write)
        try:
            return await answer
        finally:
            timer.cancel()

    def is_at_hand(self, machine: str) -> bool:
        """Whether the database could answer this machine without any message, this time."""
        return self._draw(machine) is _Fate.DELIVERED

    def post(self, machine: str, request: Callable[[], Awaitable[Any]]) -> None:
        """Send a message that nobody waits for the answer of. It may get lost."""
        if self._draw(machine) in (_Fate.DELIVERED, _Fate.ANSWER_LOST, _Fate.LATE):
            nobody: asyncio.Future[Any] = self._loop.create_future()
            self._deliver(self.travel_s(), machine, request, nobody, is_answered=False)

    def _draw(self, machine: str) -> _Fate:
        faults = self._faults
        if self.is_down or machine in self.cut_off:
            return _Fate.REFUSED if self._rng.random() < 0.5 else _Fate.REQUEST_LOST
        luck = self._rng.random()
        for chance, fate in (
            (faults.refused, _Fate.REFUSED),
            (faults.request_lost, _Fate.REQUEST_LOST),
            (faults.answer_lost, _Fate.ANSWER_LOST),
            (faults.late, _Fate.LATE),
        ):
            if luck < chance:
                return fate
            luck -= chance
        return _Fate.DELIVERED

    def _deliver(
        self,
        arrives_s: float,
        machine: str,
        request: Callable[[], Awaitable[T]],
        answer: "asyncio.Future[T]",
        *,
        is_answered: bool,
    ) -> None:
        async def serve() -> None:
            try:
                outcome: T | CynosureError = await request()
            except CynosureError as error:
                outcome = error
            if is_answered and not self.is_down and machine not in self.cut_off:
                self.process.call_later(self.travel_s(), _set_outcome, answer, outcome)

        def arrive() -> None:
            if not self.is_down:
                self.process.spawn(serve())

        self.process.call_later(arrives_s, arrive)

    def _give_up(self, answer: "asyncio.Future[Any]", is_write: bool) -> None:
        if not answer.done():
            self._history.count("unknown writes" if is_write else "unanswered reads")
            if is_write:
                answer.set_exception(OutcomeUnknown("The database did not answer in time"))
            else:
                answer.set_exception(Unavailable("The database did not answer in time"))


def _set_outcome(answer: "asyncio.Future[T]", outcome: "T | CynosureError") -> None:
    if answer.done():
        return
    if isinstance(outcome, CynosureError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


class FaultyBackend:
    """One server's connection to the database. Implements `Backend`."""

    def __init__(
        self,
        network: Network,
        machine: str,
        process: Process,
        limits: Limits,
        turns: Turns | None,
        *,
        answers_at_once: bool = False,
    ) -> None:
        self._network = network
        self._machine = machine
        self._process = process
        self._limits = limits
        self._turns = turns
        self._answers_at_once = answers_at_once
        self._history = network._history

    @property
    def limits(self) -> Limits:
        return self._limits

    async def setup(self) -> None:
        await self._write("setup", self._network.database.setup)

    async def close(self) -> None:
        return

    async def fetch(self, keys: Sequence[ObjKey]) -> list[Row | None]:
        if not keys:
            return []
        return await self._read("fetch", lambda: self._network.database.fetch(keys))

    async def write(self, rows: Sequence[Row]) -> None:
        if rows:
            await self._write("write", lambda: self._network.database.write(rows))

    async def insert(self, row: Row) -> bool:
        return await self._write(f"insert {row.key.type}", lambda: self._network.database.insert(row))

    async def swap(self, row: Row, expected_token: str) -> bool:
        return await self._write(
            f"swap {row.key.type}", lambda: self._network.database.swap(row, expected_token)
        )

    async def delete_if(self, key: ObjKey, expected_token: str) -> bool:
        return await self._write(
            f"delete {key.type}", lambda: self._network.database.delete_if(key, expected_token)
        )

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        if not writes:
            return []
        what = "write each " + ", ".join(sorted({write.key.type for write in writes}))
        if is_relaxed:
            relaxed = self._network.write_relaxed
            return await self._network.call(self._machine, what, lambda: relaxed(writes), is_write=True)
        return await self._write(what, lambda: self._network.database.write_each(writes))

    async def delete(self, keys: Sequence[ObjKey]) -> None:
        if keys:
            await self._write("delete", lambda: self._network.database.delete(keys))

    async def scan(self, *, after: ObjKey | None, limit: int) -> list[RowHead]:
        return await self._read("scan", lambda: self._network.database.scan(after=after, limit=limit))

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        if not keys:
            return []
        return await self._read("fetch refs", lambda: self._network.database.fetch_refs(keys))

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None] | None:
        if not self._answers_at_once or not self._network.is_at_hand(self._machine):
            return None
        self._history.count("reads at once")
        return self._network.database.fetch_refs_now(keys)

    async def list_refs(self, realm: RealmId | None = None) -> list[Reference]:
        return await self._read("list refs", lambda: self._network.database.list_refs(realm))

    async def insert_ref(self, ref: Reference) -> bool:
        return await self._write("insert ref", lambda: self._network.database.insert_ref(ref))

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        self._history.sent.setdefault(updated.head, self._network._loop.time())
        return await self._write(
            f"swap ref {updated.head}", lambda: self._network.database.swap_ref(expected, updated, rows)
        )

    async def delete_ref(self, expected: Reference) -> bool:
        return await self._write("delete ref", lambda: self._network.database.delete_ref(expected))

    def hold_ref(self, key: RefKey, head_type: str) -> AbstractAsyncContextManager[HeldRef] | None:
        if self._turns is None:
            return None
        return self._turns.take(self._network, self._machine, self._process, key, head_type)

    async def _read(self, what: str, request: Callable[[], Awaitable[T]]) -> T:
        return await self._network.call(self._machine, what, request, is_write=False)

    async def _write(self, what: str, request: Callable[[], Awaitable[T]]) -> T:
        durably = self._network.write_durably
        return await self._network.call(self._machine, what, lambda: durably(request), is_write=True)
