"""A backend around another one that kills or stops its own process at a chosen write of one request.

It is offered under the scheme `halting:` (`halting:sqlite:store.db`) by a package that `pair.py` puts on the
path of one server. Orders come in a folder, whose name is in the environment:

    order       what is to happen, JSON of `Order`; read at each write of interest
    seen        the writes that were seen since the order came, one in each line
    halted      the order, once it is being carried out

Must not break: nothing is held up without an order, and an order is carried out once.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from cynosure.idempotency.record import RECORD
from cynosure.persistence.commit.records import COMMIT
from cynosure.persistence.objects import unseal
from cynosure.persistence.open_backend import open_backend as open_any
from cynosure.persistence.spi import (
    Backend,
    ConditionalWrite,
    Insert,
    Limits,
    Reference,
    Row,
    Swap,
)

SCHEME: Final = "halting"
FOLDER_VARIABLE: Final = "CYNOSURE_HALTING_FOLDER"

How = Literal["kill", "stop", "watch"]
"""`watch`: only note what is seen."""
When = Literal["before", "after"]
Write = str
"""`reserve`, `commit`, `finalize`, `joint` (a commit that several requests share), or `part N`: the N-th
other change of a reference, counted from 1."""
T = TypeVar("T")


class Order(Struct, frozen=True):
    """What is to happen to this process."""

    how: How
    when: When = "before"
    write: Write = ""


class Orders:
    """The folder with the order, as both sides use it."""

    def __init__(self, folder: Path) -> None:
        self._order = folder / "order"
        self._seen = folder / "seen"
        self._halted = folder / "halted"

    def give(self, order: Order) -> None:
        """From now on."""
        self._seen.unlink(missing_ok=True)
        self._halted.unlink(missing_ok=True)
        # Renamed: a server must not see half of it.
        draft = self._order.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(order))
        draft.rename(self._order)

    def take_back(self) -> None:
        """No order any more."""
        self._order.unlink(missing_ok=True)

    def find(self) -> Order | None:
        """The order, if there is one that has not been carried out."""
        try:
            return msgspec.json.decode(self._order.read_bytes(), type=Order)
        except FileNotFoundError:
            return None

    def note(self, write: Write) -> None:
        """A write of interest comes."""
        with self._seen.open("a") as file:
            file.write(f"{write}\n")

    def seen(self) -> list[Write]:
        """All that came."""
        return self._seen.read_text().splitlines() if self._seen.exists() else []

    def begin(self) -> None:
        """It is being carried out now."""
        self._order.rename(self._halted)

    @property
    def is_carried_out(self) -> bool:
        """The process has halted, or is about to."""
        return self._halted.exists()


class HaltingBackend:
    """Everything is the inner backend's, but for when this process ends."""

    def __init__(self, inner: Backend, orders: Orders) -> None:
        self._inner = inner
        self._orders = orders
        self._writing = 0

    @property
    def limits(self) -> Limits:
        """See `Backend`."""
        return self._inner.limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def write(self, rows: Sequence[Row]) -> None:
        """See `Backend`."""
        await self._counted(self._inner.write(rows))

    async def insert(self, row: Row) -> bool:
        """See `Backend`."""
        return await self._halting(name_of(Insert(row)), lambda: self._inner.insert(row))

    async def swap(self, row: Row, expected_token: str) -> bool:
        """See `Backend`."""
        write = Swap(row, expected_token)
        return await self._halting(name_of(write), lambda: self._inner.swap(row, expected_token))

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        """See `Backend`."""
        names = [name for write in writes if (name := name_of(write))]
        return await self._halting(
            names[0] if names else "", lambda: self._inner.write_each(writes, is_relaxed=is_relaxed)
        )

    async def insert_ref(self, ref: Reference) -> bool:
        """See `Backend`."""
        return await self._halting("part", lambda: self._inner.insert_ref(ref))

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        """See `Backend`."""
        name = name_commit(max(map(count_keys, rows), default=0))
        return await self._halting(name, lambda: self._inner.swap_ref(expected, updated, rows))

    async def delete_ref(self, expected: Reference) -> bool:
        """See `Backend`."""
        return await self._halting("part", lambda: self._inner.delete_ref(expected))

    # --- within ----------------------------------------------------------------------------------

    async def _halting(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        order = self._orders.find() if name else None
        if order is None:
            return await self._counted(call())
        if name == "part":
            name = f"part {1 + sum(each.startswith('part') for each in self._orders.seen())}"
        self._orders.note(name)
        is_it = order.write == name and order.how != "watch"
        if is_it and order.when == "before":
            await self._halt(order)
        outcome = await self._counted(call())
        # A lost race is not a step: the same write comes again.
        if is_it and order.when == "after" and outcome:
            await self._halt(order)
        return outcome

    async def _halt(self, order: Order) -> None:
        # Not while another write is under way: SQLite's only lock would stay with a process that is stopped.
        while self._writing:  # noqa: ASYNC110
            await asyncio.sleep(0)
        self._orders.begin()
        os.kill(os.getpid(), signal.SIGKILL if order.how == "kill" else signal.SIGSTOP)

    async def _counted(self, write: Awaitable[T]) -> T:
        self._writing += 1
        try:
            return await write
        finally:
            self._writing -= 1


def name_of(write: ConditionalWrite) -> Write:
    """What a conditional write is to a request with a key; empty for those that are nothing to it."""
    if write.key.type != RECORD.name:
        return ""
    if isinstance(write, Insert):
        return "reserve"
    if isinstance(write, Swap) and unseal(RECORD, write.key, write.row.blob)[0].state == "FINALIZED":
        return "finalize"
    return ""


def name_commit(keys: int) -> Write:
    """What a swap of a reference is, whose commit has so many requests with a key."""
    return ("part", "commit")[keys] if keys < 2 else "joint"


def count_keys(row: Row) -> int:
    """How many requests with a key it has, if it is a commit."""
    if row.key.type != COMMIT.name:
        return 0
    commit, _ = unseal(COMMIT, row.key, row.blob)
    return sum(bool(request.key_hash) for request in commit.record.requests)


def open_backend(url: str, options: Mapping[str, str]) -> Backend:
    """`halting:URL`."""
    orders = Orders(Path(os.environ[FOLDER_VARIABLE]))
    return HaltingBackend(open_any(url.removeprefix(f"{SCHEME}:"), options), orders)
