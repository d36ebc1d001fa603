"""One simulated server: production's classes, wired as a server wires them, in a process of their own.

Must not break: nothing of production is replaced by a stand-in. `Parts` exists so that a test can put a
deliberately broken variant in, to prove that the checker notices.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from cynosure.api.idempotency import describe
from cynosure.catalog.background import Background
from cynosure.catalog.joining import Joining
from cynosure.common.errors import CynosureError
from cynosure.idempotency.engine import Idempotency
from cynosure.idempotency.record import PART, RECORD
from cynosure.idempotency.reservations import Reservations
from cynosure.persistence.backends.memory import MemoryBackend
from cynosure.persistence.batching import Batcher
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import COMMIT, CommitLimits, Committer, Counters, Holds
from cynosure.persistence.commit.key_log import KEY_RUN
from cynosure.persistence.gc.collect import Collector
from cynosure.persistence.gc.doomed import DOOMED
from cynosure.persistence.gc.pins import PIN
from cynosure.persistence.heads import Heads
from cynosure.persistence.ids import NODE_LEASE, LeasedIds, NodeLeases, Owner
from cynosure.persistence.index_nodes import INDEX_NODE
from cynosure.persistence.objects import TypeRegistry
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import (
    REALM_SCOPE,
    SYSTEM_REALM,
    Backend,
    CatalogId,
    Limits,
    ObjId,
    RealmId,
    RefKey,
)
from cynosure.persistence.store import Store
from cynosure.persistence.tasks import TASK, TaskLoop
from cynosure.testing.sim.chores import ChoreBook, WatchedTasks, chore_task, collection_task, expiry_task
from cynosure.testing.sim.clock import SimClock
from cynosure.testing.sim.faults import FaultyBackend, Network
from cynosure.testing.sim.history import History
from cynosure.testing.sim.loop import SimLoop
from cynosure.testing.sim.operations import DETAIL, ENTITY
from cynosure.testing.sim.turns import Turns
from cynosure.testing.sim.weather import Weather
from cynosure.testing.small_keys import PEPPERS

T = TypeVar("T")

REALM, CATALOG = RealmId("default"), CatalogId("sales")
REFERENCES = (RefKey(REALM, CATALOG, "main"), RefKey(REALM, CATALOG, "side"))
INDEXES: Mapping[str, Holds] = {"names": "objects", "ids": "bytes", "locations": "bytes"}
TYPES = TypeRegistry(
    [COMMIT, KEY_RUN, INDEX_NODE, PIN, DOOMED, NODE_LEASE, TASK, RECORD, PART, ENTITY, DETAIL]
)

_NODES_IN_USE = 6
"""So few, that node ids are handed from server to server all the time."""


class ServerDied(Exception):
    """The server a client was talking to crashed."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The classes a server is made of; tests of the checker replace one."""

    store: type[Store] = Store
    heads: type[Heads] = Heads
    committer: type[Committer] = Committer
    collector: type[Collector] = Collector
    leases: type[NodeLeases] = NodeLeases
    tasks: type[WatchedTasks] = WatchedTasks
    reservations: type[Reservations] = Reservations
    idempotency: type[Idempotency] = Idempotency


class _FewNodes(Random):
    """Draws node ids from the first few only."""

    def sample(self, population: Sequence[Any], k: int, **options: Any) -> list[Any]:
        """See `Random`."""
        drawn = list(population[:_NODES_IN_USE])
        self.shuffle(drawn)
        return drawn


class _NotedIds:
    """An `IdSource` whose ids are written down."""

    def __init__(self, server: "SimServer", history: History) -> None:
        self._server = server
        self._history = history

    def next(self) -> ObjId:
        """See `IdSource`."""
        obj_id = self._server.lease._ids.next()
        self._history.note_id(self._server.name, obj_id)
        self._server.check_node()
        return obj_id


class SimServer:
    """A server process on one machine. Once dead, a new one takes its place."""

    def __init__(
        self,
        name: str,
        machine: str,
        *,
        loop: SimLoop,
        clock: SimClock,
        rng: Random,
        network: Network,
        turns: Turns | None,
        weather: Weather,
        history: History,
        parts: Parts,
        book: ChoreBook,
        peers: Sequence["SimServer"],
    ) -> None:
        self.name = name
        self.machine = machine
        self.clock = clock
        self.weather = weather
        self.process = loop.new_process(name)
        self.is_up = False
        self.is_stopping = False
        self.counters = Counters()
        self._loop = loop
        self._network = network
        self._history = history
        self._parts = parts
        self.rng = rng
        self._waiting: dict[asyncio.Future[Any], None] = {}
        self.backend: Backend = FaultyBackend(
            network,
            machine,
            self.process,
            _limits(weather),
            turns,
            answers_at_once=weather.answers_at_once,
        )
        self._cache = ObjectCache(weather.cache_bytes, clock)
        self.heads = parts.heads(self.backend, clock, max_staleness_s=weather.staleness_s)
        self.settings = PersistenceSettings(gc=weather.gc)
        self._book = book
        self._peers = peers
        owner = Owner(host=machine, pid=1, started_us=clock.now_us())
        system = self.store_of(SYSTEM_REALM, REALM_SCOPE)
        times = {"lease_s": weather.lease_s, "skew_margin_s": weather.lease_margin_s}
        leases = parts.leases(system, clock, _FewNodes(rng.random()), owner, **times)
        self.lease = LeasedIds(leases, clock, rng, renew_every_s=weather.renew_s)
        self.ids = _NotedIds(self, history)
        self._tasks = parts.tasks(system, clock, rng, owner, **times)
        self._tasks.history, self._tasks.server = history, name
        self._task_loop = TaskLoop(clock, rng, poll_s=1.0)
        self.committers = {key: self._committer(key) for key in REFERENCES}
        self.idempotency = self._make_idempotency(system)
        self._background = Background()
        self.joining: Joining[Any] = Joining(self._background)
        self.executing: set[str] = set()
        """Keys of the requests that are being executed, for the checker."""

    def store_of(self, realm: RealmId, catalog: CatalogId) -> Store:
        """The store of one scope."""
        return self._parts.store(
            self.backend, self._cache, self.clock, self.rng, realm=realm, catalog=catalog
        )

    def store(self, realm: RealmId) -> Store:
        """As `Persistence.store`, for the tasks of production."""
        return self.store_of(realm, REALM_SCOPE)

    def collector(self) -> Collector:
        """A garbage collector of this server."""
        return self._parts.collector(
            self.backend,
            self.store_of,
            types=TYPES,
            ids=self.ids,
            clock=self.clock,
            settings=self.weather.gc,
        )

    def _committer(self, key: RefKey) -> Committer:
        limits = CommitLimits(
            index=self.weather.index,
            deadline_s=self.weather.deadline_s,
            key_lifetime_s=self.weather.key_lifetime_s,
            recent_heads=self.weather.recent_heads,
            group_requests=self.weather.group_requests,
            inline_prepare_s=self.weather.inline_prepare_s,
        )
        return self._parts.committer(
            key,
            store=self.store_of(key.realm, key.catalog),
            heads=self.heads,
            ids=self.ids,
            clock=self.clock,
            rng=self.rng,
            limits=limits,
            counters=self.counters,
            indexes=INDEXES,
        )

    def _make_idempotency(self, system: Store) -> Idempotency | None:
        if self.weather.keyed is None:
            return None
        settings = self.weather.keyed.settings
        self._batcher = Batcher(self.backend, self.clock, self.rng)
        reservations = self._parts.reservations(
            system, self._batcher, self.ids, self.clock, settings, holder=self.name
        )
        return self._parts.idempotency(reservations, self.clock, settings, describe=describe, peppers=PEPPERS)

    # --- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Get a node id, however long it takes."""
        while True:
            try:
                await self.lease.__aenter__()
                break
            except CynosureError as error:
                self._history.note(self.name, "cannot start yet", type(error).__name__)
                await self.clock.sleep(0.5)
        if self.weather.has_tasks:
            self._task_loop.register(
                self._tasks, chore_task(self.name, self._book, self.clock, Random(self.rng.random()))
            )
            self._task_loop.register(self._tasks, collection_task(self, self._history))
            if self.weather.keyed is not None:
                self._task_loop.register(self._tasks, expiry_task(self, self.weather.keyed.settings))
        self.is_up = True
        self._history.note(self.name, "up", f"node={self.lease.lease.node if self.lease.lease else None}")

    async def stop(self) -> None:
        """A clean exit."""
        self.is_up, self.is_stopping = False, True
        await self._task_loop.__aexit__(None, None, None)
        if self.idempotency is not None:
            await self.idempotency.close()
            await self._batcher.close()
        await self._background.close()
        for committer in self.committers.values():
            await committer.close()
        await self.lease.__aexit__(None, None, None)

    def check_node(self) -> None:
        """Nobody else may hold this server's node id at this instant, unless clocks are wild."""
        mine = self.lease.lease
        for peer in self._peers:
            other = peer.lease.lease
            if peer is self or peer.process.is_dead or mine is None or other is None:
                continue
            is_held = other.deadline_s > self._loop.time()
            if is_held and other.node == mine.node and not self.weather.has_wild_clock:
                self._history.breach("one holds a node id", f"{self.name} and {peer.name}: {mine.node}")

    def crash(self) -> None:
        """Kill -9. Clients notice a little later."""
        self.is_up = False
        self.process.kill()
        for waiting in self.joining._waiting.values():
            # Its tasks are thrown away after the run; they must find nobody then to hand their turn to.
            waiting.clear()
        for answer in self._waiting:
            self._loop.outside.call_later(self._network.travel_s(), _break_off, answer)
        self._waiting.clear()

    # --- requests -------------------------------------------------------------------------------

    async def call(self, work: Callable[[], Awaitable[T]], *, hang_up_after_s: float | None = None) -> T:
        """Do something in this server, for a client outside of it.

        Errors of the tree come back to the caller; anything else is a bug. When the client hangs up, the
        work is cancelled as a server cancels it, and the client learns nothing more.
        """
        if self.process.is_dead:
            raise ServerDied
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting[answer] = None

        async def serve() -> None:
            try:
                value = await work()
            except CynosureError as error:
                self._loop.outside.call_later(0.001, _fail, answer, error)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                self._history.breach("no bug escapes", f"{self.name}: {error!r}")
                self._loop.outside.call_later(0.001, _fail, answer, error)
            else:
                self._loop.outside.call_later(0.001, _succeed, answer, value)

        task = self.process.spawn(serve())
        if hang_up_after_s is not None:
            self.process.call_later(hang_up_after_s, task.cancel)
            self._loop.call_later(hang_up_after_s, _break_off, answer)
        try:
            return await answer
        finally:
            self._waiting.pop(answer, None)


def _limits(weather: Weather) -> Limits:
    return Limits(
        row_bytes=weather.row_bytes,
        swap_carries_rows=weather.swap_carries_rows,
        is_shared=True,
        is_durable=True,
        fetch_batch=weather.fetch_batch,
    )


def make_database(weather: Weather, store: Any) -> MemoryBackend:
    """The one database all servers share."""
    return MemoryBackend(store, row_bytes=weather.row_bytes)


def _break_off(answer: "asyncio.Future[Any]") -> None:
    if not answer.done():
        answer.set_exception(ServerDied())


def _fail(answer: "asyncio.Future[Any]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


def _succeed(answer: "asyncio.Future[T]", value: T) -> None:
    if not answer.done():
        answer.set_result(value)
