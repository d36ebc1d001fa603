"""A small world of processes that share one store: each has its own clock, and its own luck with answers.

A maintainer must not break: everything a world does follows from its seed and from what the test tells it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest

from cynosure.common.errors import OutcomeUnknown, Unavailable
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.ids.owner import Owner
from cynosure.persistence.spi import REALM_SCOPE, SYSTEM_REALM, ConditionalWrite, Limits, ObjKey, Row
from cynosure.persistence.store import Store
from cynosure.testing.harness.clock import ManualClock

T = TypeVar("T")


class ProcessClock:
    """The shared time, seen by one process: its wall clock may be wrong, and the process may be stopped."""

    def __init__(self, world_clock: ManualClock, skew_s: float = 0.0) -> None:
        self.world_clock = world_clock
        self._skew_us = round(skew_s * 1_000_000)
        self._runs = asyncio.Event()
        self._runs.set()

    def now_us(self) -> int:
        return self.world_clock.now_us() + self._skew_us

    def monotonic_s(self) -> float:
        return self.world_clock.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await self.world_clock.sleep(seconds)
        await self.while_stopped()

    def step_wall(self, seconds: float) -> None:
        self._skew_us += round(seconds * 1_000_000)

    @property
    def is_stopped(self) -> bool:
        return not self._runs.is_set()

    def stop(self) -> None:
        """As SIGSTOP: nothing that waits for this clock or the database goes on."""
        self._runs.clear()

    def go_on(self) -> None:
        """As SIGCONT."""
        self._runs.set()

    async def while_stopped(self) -> None:
        await self._runs.wait()


class UnluckyBackend:
    """One process' connection to the shared store. `next_fault` says what happens to a conditional write.

    `"before"`: not applied, outcome unknown. `"after"`: applied, outcome unknown. `"down"`: refused.
    """

    def __init__(self, inner: MemoryBackend, clock: ProcessClock) -> None:
        self._inner = inner
        self._clock = clock
        self.faults: list[str] = []
        """Faults of the next conditional writes, first one first; then all goes well."""
        self.draw_fault: Callable[[], str] = lambda: ""
        self.draw_delay_s: Callable[[], float] = lambda: 0.0
        self.is_down = False
        self.writes = 0

    @property
    def limits(self) -> Limits:
        return self._inner.limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def fetch(self, keys: list[ObjKey]) -> list[Row | None]:
        await self._travel()
        if self.is_down:
            raise Unavailable("The database does not answer")
        rows = await self._inner.fetch(keys)
        await self._travel()
        return rows

    async def insert(self, row: Row) -> bool:
        return await self._unlucky(lambda: self._inner.insert(row))

    async def swap(self, row: Row, expected_token: str) -> bool:
        return await self._unlucky(lambda: self._inner.swap(row, expected_token))

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        return await self._unlucky(lambda: self._inner.write_each(writes, is_relaxed=is_relaxed))

    async def _unlucky(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        self.writes += 1
        fault = self.faults.pop(0) if self.faults else self.draw_fault()
        await self._travel()
        if fault == "down" or self.is_down:
            raise Unavailable("The database does not answer")
        if fault == "before":
            raise OutcomeUnknown("The answer was lost")
        won = await call()
        await self._travel()
        if fault == "after":
            raise OutcomeUnknown("The answer was lost")
        return won

    async def _travel(self) -> None:
        delay_s = self.draw_delay_s()
        if delay_s:
            await self._clock.sleep(delay_s)
        await self._clock.while_stopped()


class Process:
    """One process of the world."""

    def __init__(self, world: "World", name: str, skew_s: float) -> None:
        self.name = name
        self.clock = ProcessClock(world.clock, skew_s)
        self.rng = Random(world.rng.random())
        self.backend = UnluckyBackend(world.backend, self.clock)
        self.owner = Owner(host=name, pid=1, started_us=self.clock.now_us())
        self.store = Store(
            self.backend,
            ObjectCache(1 << 20, self.clock),
            self.clock,
            self.rng,
            realm=SYSTEM_REALM,
            catalog=REALM_SCOPE,
        )


class World:
    """Shared time and one shared store."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = Random(seed)
        self.clock = ManualClock()
        self.backend = MemoryBackend()

    def process(self, name: str = "a", *, skew_s: float = 0.0) -> Process:
        return Process(self, name, skew_s)


@pytest.fixture
def make_world() -> Callable[..., Any]:
    """Makes a world whose store is set up. Async: `world = await make_world(seed)`."""

    async def make(seed: int = 0) -> World:
        world = World(seed)
        await world.backend.setup()
        return world

    return make


@pytest.fixture
def golden() -> Callable[[str, bytes], bytes]:
    """Compares encoded bytes with a file of tests/golden. Such a file is never rewritten, only added."""

    def compare(name: str, encoded: bytes) -> bytes:
        stored = (Path(__file__).parents[1] / "golden" / name).read_bytes()
        assert encoded.hex() == stored.hex()
        return stored

    return compare


@pytest.fixture
def settle() -> Callable[..., Any]:
    """Runs a coroutine to its end while the world's time passes in small steps."""

    async def run(world: World, work: Coroutine[Any, Any, Any], *, step_s: float = 0.05) -> Any:
        task = asyncio.ensure_future(work)
        while not task.done():
            await world.clock.advance(step_s)
        return await task

    return run
