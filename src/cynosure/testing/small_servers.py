"""Several servers in one process on one store, each with a gate before its database.

    async with SmallServers(open_backend, folder) as servers:
        first, second = await servers.start(), await servers.start()
        held = first.gate.hold("commit")
        sent = asyncio.create_task(first.http.post(…))
        await held.wait_reached()                   # the request stands before its commit
        held.let_go.set()

Must not break: everything above the database is production code, put together as a server does it.
"""

import asyncio
import io
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import httpx

from cynosure.api.app import make_service
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.router import Route
from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError, Unavailable
from cynosure.common.key_file import open_keyring
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.spi import Backend, ConditionalWrite, Insert, Limits, ObjKey, Reference, Row, Swap
from cynosure.server.settings import Settings, load_settings
from cynosure.server.wiring import open_serving
from cynosure.testing.crash_matrix.halting import When, Write, count_keys, name_of

OpenStore = Callable[[], Backend]
"""Another handle of the same store."""
T = TypeVar("T")

_PATIENCE_S: Final = 60.0
"""A test that waits for a write that never comes says so after this."""


class Hold:
    """A write that is stopped on its way."""

    def __init__(self, write: Write, when: When) -> None:
        self.write = write
        self.when = when
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    async def wait_reached(self) -> None:
        """Until a request stands there."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self.reached.wait()
        except TimeoutError:
            raise AssertionError(f"nothing came to the place {self.when} {self.write}") from None


class GatedBackend:
    """A backend whose writes can be held, refused, or cut off for good. All else is the inner one's."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner
        self._holds: list[Hold] = []
        self._refusals: dict[Write, CynosureError] = {}
        self._seen: dict[Write, asyncio.Event] = {}
        self._mended: asyncio.Event | None = None
        """Of a server that is cut off."""
        self._written: set[ObjKey] = set()
        self._older: frozenset[ObjKey] = frozenset()
        """Written before `reset`: what is noted of these a little later is not of this test's requests."""

    @property
    def limits(self) -> Limits:
        """See `Backend`."""
        return self._inner.limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    # --- what a test does to it ------------------------------------------------------------------

    def hold(self, write: Write, when: When = "before") -> Hold:
        """Stop the next write of this name."""
        hold = Hold(write, when)
        self._holds.append(hold)
        return hold

    def refuse(self, write: Write, error: CynosureError) -> None:
        """Have all writes of this name fail, without being done."""
        self._refusals[write] = error

    def accept(self) -> None:
        """Refuse nothing any more."""
        self._refusals.clear()

    def cut(self) -> None:
        """From now on no write of this server arrives, and nothing is answered: as if it were dead."""
        self._mended = asyncio.Event()

    def mend(self) -> None:
        """As before. What was sent meanwhile is lost."""
        if self._mended is not None:
            self._mended.set()
            self._mended = None

    async def wait_seen(self, write: Write) -> None:
        """Until a write of this name has come."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._seen.setdefault(write, asyncio.Event()).wait()
        except TimeoutError:
            raise AssertionError(f"no write came that is a {write}") from None

    def reset(self) -> None:
        """As if nothing had been done to it, for the next test."""
        self.end()
        self.accept()
        self._holds.clear()
        self._seen.clear()
        self._older = frozenset(self._written)

    # --- Backend ---------------------------------------------------------------------------------

    async def close(self) -> None:
        """See `Backend`."""
        await self._inner.close()

    async def insert(self, row: Row) -> bool:
        """See `Backend`."""
        return await self._pass(self._name(Insert(row)), lambda: self._inner.insert(row))

    async def swap(self, row: Row, expected_token: str) -> bool:
        """See `Backend`."""
        name = self._name(Swap(row, expected_token))
        return await self._pass(name, lambda: self._inner.swap(row, expected_token))

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        """See `Backend`."""
        names = [name for write in writes if (name := self._name(write))]
        return await self._pass(
            names[0] if names else "", lambda: self._inner.write_each(writes, is_relaxed=is_relaxed)
        )

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        """See `Backend`."""
        name = "commit" if any(map(count_keys, rows)) else "part"
        return await self._pass(name, lambda: self._inner.swap_ref(expected, updated, rows))

    # --- within ----------------------------------------------------------------------------------

    def end(self) -> None:
        """Let go of everything: the test is over."""
        self.mend()
        for hold in self._holds:
            hold.let_go.set()

    def _name(self, write: ConditionalWrite) -> Write:
        self._written.add(write.key)
        return "" if write.key in self._older else name_of(write)

    async def _pass(self, name: Write, call: Callable[[], Awaitable[T]]) -> T:
        if name:
            self._seen.setdefault(name, asyncio.Event()).set()
        await self._stand(name, "before")
        if name in self._refusals:
            raise self._refusals[name]
        outcome = await call()
        await self._stand(name, "after")
        return outcome

    async def _stand(self, name: Write, when: When) -> None:
        for hold in self._holds:
            if name and (hold.write, hold.when) == (name, when) and not hold.reached.is_set():
                hold.reached.set()
                await hold.let_go.wait()
        if self._mended is not None:
            await self._mended.wait()
            raise Unavailable("This server was cut off")


class MovableClock(SystemClock):
    """The machine's clock, which a test may set forward."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def now_us(self) -> int:
        """See `Clock`."""
        return super().now_us() + round(self._ahead_s * 1_000_000)

    def monotonic_s(self) -> float:
        """See `Clock`."""
        return super().monotonic_s() + self._ahead_s

    def advance(self, seconds: float) -> None:
        """Let time pass, without anybody having to wait for it."""
        self._ahead_s += seconds


class SmallServer:
    """One of them."""

    def __init__(
        self,
        http: httpx.AsyncClient,
        gate: GatedBackend,
        persistence: Persistence,
        settings: Settings,
        routes: Sequence[Route],
    ) -> None:
        self.http = http
        self.gate = gate
        self.persistence = persistence
        self.settings = settings
        self.routes = routes


class SmallServers:
    """Servers on one store; all end with this."""

    def __init__(self, open_store: OpenStore, folder: Path) -> None:
        self.clock = MovableClock()
        self._open_store = open_store
        self._folder = folder
        self._stack = AsyncExitStack()
        self._gates: list[GatedBackend] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for gate in self._gates:
            gate.end()
        await self._stack.aclose()

    async def start(self, **settings: str) -> SmallServer:
        """Another server; settings by their names with `__` for dots. Its client is an operator."""
        overrides = {name.replace("__", "."): value for name, value in settings.items()}
        overrides |= {
            "server.data_dir": str(self._folder),
            "storage.file_roots.files": str(self._folder),
            "server.request_timeout": "61s",
        }
        loaded = load_settings(environment={}, overrides=overrides)
        gate = GatedBackend(self._open_store())
        self._gates.append(gate)
        enter = self._stack.enter_async_context
        persistence = await enter(
            open_persistence_on(
                cast(Backend, gate),  # The rest is the inner one's.
                loaded.persistence,
                initialise=True,
                clock=self.clock,
                key_lifetime=loaded.idempotency.kept,
            )
        )
        keyring = cache(lambda: open_keyring(loaded.keyring, self._folder))
        serving = await enter(open_serving(loaded, persistence, keyring, io.StringIO()))
        service = make_service(
            serving.routes(),
            title="small",
            version="1",
            clock=self.clock,
            rng=random.Random(1),
            gate=OperatorGate(),
            once=serving.once,
        )
        transport = httpx.ASGITransport(app=cast(Any, service.app))
        http = await enter(httpx.AsyncClient(transport=transport, base_url="http://test", timeout=None))
        return SmallServer(http, gate, persistence, loaded, service.routes)


class KeptOpen:
    """A backend that closing leaves as it is: what is in memory has one handle only."""

    def __init__(self, inner: Backend) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def close(self) -> None:
        """See `Backend`."""
