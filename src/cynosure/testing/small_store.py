"""A whole store in memory with several "processes" on it, for tests of what lives above a backend.

The backend's swaps go through a rule of the test, which can lose, delay or refuse their answers.
"""

from collections.abc import Awaitable, Callable, Sequence
from random import Random

from cynosure.common.clock import Clock, SystemClock
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import CommitLimits, Committer, Counters, State
from cynosure.persistence.heads import Heads
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.history.log import walk_log
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.references import INDEXES, ensure_reference
from cynosure.persistence.spi import CatalogId, Limits, ObjId, RealmId, Reference, RefKey, Row
from cynosure.persistence.store import Store
from cynosure.testing.workload import ITEM, Items

MAIN = RefKey(RealmId("r"), CatalogId("c"), "main")


class CountingIds:
    def __init__(self) -> None:
        self._last = (60_000_000_000 << 22) + 1

    def next(self) -> ObjId:
        self._last += 1
        return ObjId(self._last)


SwapRule = Callable[[Reference, Reference, Callable[[], Awaitable[bool]]], Awaitable[bool]]


class RuledBackend(MemoryBackend):
    """A memory backend whose `swap_ref` goes through a rule of the test."""

    def __init__(self, *, carries_rows: bool = True) -> None:
        super().__init__()
        self.rule: SwapRule | None = None
        self.swaps = 0
        self.rows_swapped = 0
        self._ruled = Limits(
            row_bytes=1 << 20, swap_carries_rows=carries_rows, is_shared=False, is_durable=False
        )

    @property
    def limits(self) -> Limits:
        return self._ruled

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        self.swaps += 1
        self.rows_swapped += len(rows)

        async def apply() -> bool:
            return await super(RuledBackend, self).swap_ref(expected, updated, rows)

        return await (self.rule(expected, updated, apply) if self.rule else apply())


class SmallStore:
    """Several "processes" on one store: a committer each, with a cache and heads of its own."""

    def __init__(self, clock: Clock | None = None, *, carries_rows: bool = True) -> None:
        self.backend = RuledBackend(carries_rows=carries_rows)
        self.clock = clock or SystemClock()
        self.ids = CountingIds()
        self.items = Items(self.ids)
        self.counters = Counters()

    async def setup(self) -> None:
        """Create the reference `MAIN`."""
        await self.backend.setup()
        await ensure_reference(self.backend, MAIN, self.clock)

    def store(self) -> Store:
        """A store with a cache of its own."""
        return Store(
            self.backend,
            ObjectCache(1 << 24, self.clock),
            self.clock,
            Random(7),
            realm=MAIN.realm,
            catalog=MAIN.catalog,
        )

    def committer(self, *, clock: Clock | None = None, limits: CommitLimits | None = None) -> Committer:
        clock = clock or self.clock
        rng = Random(7)
        store = Store(
            self.backend, ObjectCache(1 << 24, clock), clock, rng, realm=MAIN.realm, catalog=MAIN.catalog
        )
        return Committer(
            MAIN,
            store=store,
            heads=Heads(self.backend, clock),
            ids=self.ids,
            clock=clock,
            rng=rng,
            limits=limits or CommitLimits(index=IndexLimits()),
            counters=self.counters,
            indexes=INDEXES["main"],
        )

    async def ref(self) -> Reference:
        ref = (await self.backend.fetch_refs([MAIN]))[0]
        assert ref is not None
        return ref

    async def state(self) -> State:
        return (await self.committer().read()).state

    async def counts(self) -> dict[str, int]:
        state = await self.state()
        return {
            key.decode(): (await state.store.load(ITEM, ObjRef.unpack(value).id)).count
            for key, value in await state.scan("names", limit=10_000)
        }

    async def chain(self) -> list[ObjId]:
        state = await self.state()
        return [entry.id async for entry in walk_log(state.store, state.commit_id)]

    async def assert_whole(self) -> None:
        report = await check_reference((await self.state()).store, await self.ref())
        assert report.problems == ()
