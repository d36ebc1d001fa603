"""The room opened and closed: everything of one store that a process shares.

    async with open_persistence(url, settings) as persistence:
        await persistence.committer(key).commit(request)

Must not break: the order of closing. Commits under way finish before the node id is given back, and the
node id is given back before the backend closes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from random import Random, SystemRandom

from cynosure.common.clock import Clock, SystemClock
from cynosure.common.errors import AlreadyExists
from cynosure.common.paging import PageTokens
from cynosure.persistence import metrics
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.commit import Base, CommitLimits, Committer, Counters
from cynosure.persistence.core_types import load_types
from cynosure.persistence.gc.collect import Collector
from cynosure.persistence.heads import Heads
from cynosure.persistence.history.chain import Chain
from cynosure.persistence.ids import IdSource, LeasedIds, NodeLeases, Owner, this_process
from cynosure.persistence.index import IndexLimits, encode_key
from cynosure.persistence.objects import TypeRegistry
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.references import (
    DEFAULT_REALM,
    INDEXES,
    REALMS,
    ensure_reference,
    realm_reference,
)
from cynosure.persistence.scopes import (
    create_realm,
    list_realms,
    mend_catalogs,
    mend_realms,
    sweep_unlisted,
)
from cynosure.persistence.settings import KEY_LIFETIME, PersistenceSettings, check_lifetimes
from cynosure.persistence.spi import REALM_SCOPE, SYSTEM_REALM, Backend, CatalogId, RealmId, RefKey
from cynosure.persistence.store import Store
from cynosure.persistence.store_info import StoreInfo, ensure_store_info, load_store_info
from cynosure.persistence.tasks import CoordinatedTasks

_DEFAULTS = PersistenceSettings()


class Persistence:
    """One store, as one process uses it."""

    def __init__(
        self,
        backend: Backend,
        *,
        ids: IdSource,
        info: StoreInfo,
        types: TypeRegistry,
        cache: ObjectCache,
        settings: PersistenceSettings,
        clock: Clock,
        rng: Random,
        owner: Owner,
        leases: NodeLeases,
        key_lifetime: timedelta = KEY_LIFETIME,
    ) -> None:
        self.backend = backend
        self.ids = ids
        self.leases = leases
        self.owner = owner
        self.info = info
        self.types = types
        self.cache = cache
        self.settings = settings
        self.clock = clock
        self.rng = rng
        self.counters = Counters()
        self.heads = Heads(backend, clock, max_staleness_s=settings.head_staleness.total_seconds())
        self.page_tokens = PageTokens(info.page_key, clock, settings.page_token_life)
        self.limits = commit_limits(settings, key_lifetime)
        self.tasks = CoordinatedTasks(self.store(SYSTEM_REALM), clock, rng, owner)
        self._committers: dict[RefKey, Committer] = {}
        self._chains: dict[RefKey, Chain] = {}
        self._published = (0, 0, 0)

    def store(self, realm: RealmId, catalog: CatalogId = REALM_SCOPE) -> Store:
        """The typed objects of one scope."""
        return Store(self.backend, self.cache, self.clock, self.rng, realm=realm, catalog=catalog)

    def committer(self, key: RefKey) -> Committer:
        """The one committer of a reference in this process: that is what makes groups."""
        committer = self._committers.get(key)
        if committer is None:
            committer = self._committers[key] = Committer(
                key,
                store=self.store(key.realm, key.catalog),
                heads=self.heads,
                ids=self.ids,
                clock=self.clock,
                rng=self.rng,
                limits=self.limits,
                counters=self.counters,
                indexes=INDEXES[key.name],
            )
        return committer

    def knows(self, key: RefKey) -> bool:
        """Whether this process has used the reference."""
        return key in self._committers

    async def read(self, key: RefKey) -> Base:
        """The current state of a reference that a stranger may have named; `NotFound` when there is none.

        Nothing is kept for names that do not exist: anybody can think of any number of those.
        """
        committer = self._committers.get(key)
        if committer is None:
            await self.heads.load(key)
            committer = self.committer(key)
        return await committer.read()

    def chain(self, key: RefKey) -> Chain:
        """The order of a reference's commits, as far as this process has asked for it."""
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = Chain(self.store(key.realm, key.catalog))
        return chain

    def collector(self) -> Collector:
        """A garbage collection of the whole store."""
        return Collector(
            self.backend,
            self.store,
            types=self.types,
            ids=self.ids,
            clock=self.clock,
            settings=self.settings.gc,
        )

    def publish(self) -> None:
        """Bring metrics up to date that are too hot to count one by one. Call it every few seconds."""
        metrics.CACHE_BYTES.set(self.cache.weight_bytes)
        now = (self.cache.hits, self.cache.misses, self.heads.reads)
        counters = (metrics.CACHE_HITS, metrics.CACHE_MISSES, metrics.HEAD_READS)
        for counter, value, before in zip(counters, now, self._published, strict=True):
            counter.inc(value - before)
        self._published = now

    async def sweep_unlisted(self) -> list[RefKey]:
        """Delete references that no list names, and make those that listed scopes lack (`scopes.py`)."""
        await self.mend()
        return await sweep_unlisted(
            self.backend, self._is_listed, clock=self.clock, grace=self.settings.gc.grace
        )

    async def mend(self) -> list[RefKey]:
        """Make the references that listed realms and catalogs lack; those that were made."""
        realms = self.committer(REALMS)
        made = await mend_realms(realms, self.backend, self.clock)
        for realm in await list_realms(realms):
            catalogs = self.committer(realm_reference(realm, "catalogs"))
            made += await mend_catalogs(catalogs, self.backend, self.clock)
        return made

    async def _is_listed(self, key: RefKey) -> bool:
        realms = (await self.committer(REALMS).read()).state
        if await realms.find("names", encode_key(key.realm)) is None:
            return False
        if key.catalog == REALM_SCOPE:
            return True
        catalogs = (await self.committer(realm_reference(key.realm, "catalogs")).read()).state
        return await catalogs.find("ids", encode_key(key.catalog)) is not None

    async def close(self) -> None:
        """Wait for commits under way."""
        for committer in self._committers.values():
            await committer.close()


def commit_limits(settings: PersistenceSettings, key_lifetime: timedelta = KEY_LIFETIME) -> CommitLimits:
    """The commit loop's limits, from the settings."""
    index = IndexLimits(buffer_bytes=settings.index_buffer_bytes, leaf_entries=settings.index_leaf_entries)
    return CommitLimits(
        index=index,
        deadline_s=settings.commit_deadline.total_seconds(),
        key_lifetime_s=key_lifetime.total_seconds(),
        recent_heads=settings.recent_heads,
    )


@asynccontextmanager
async def open_persistence(
    url: str,
    settings: PersistenceSettings = _DEFAULTS,
    *,
    initialise: bool = False,
    clock: Clock | None = None,
    rng: Random | None = None,
    key_lifetime: timedelta = KEY_LIFETIME,
) -> AsyncIterator[Persistence]:
    """Open a store for reading and writing. `initialise` makes an empty one ready; else it is refused.

    `key_lifetime`: how long idempotency keys are known in a state.
    """
    check_lifetimes(settings, key_lifetime)
    backend = open_backend(url)
    opened = open_persistence_on(
        backend, settings, initialise=initialise, clock=clock, rng=rng, key_lifetime=key_lifetime
    )
    async with opened as persistence:
        yield persistence


@asynccontextmanager
async def open_persistence_on(
    backend: Backend,
    settings: PersistenceSettings = _DEFAULTS,
    *,
    initialise: bool = False,
    types: TypeRegistry | None = None,
    clock: Clock | None = None,
    rng: Random | None = None,
    key_lifetime: timedelta = KEY_LIFETIME,
) -> AsyncIterator[Persistence]:
    """As `open_persistence`, on a backend that is at hand; it is closed at the end all the same.

    `types` left out: those of all installed packages.
    """
    clock = clock or SystemClock()
    rng = rng or SystemRandom()
    try:
        check_lifetimes(settings, key_lifetime)
        await backend.setup()
        cache = ObjectCache(settings.cache_bytes, clock)
        system = Store(backend, cache, clock, rng, realm=SYSTEM_REALM, catalog=REALM_SCOPE)
        info = await (ensure_store_info(system, clock, rng) if initialise else load_store_info(system))
        owner = this_process(clock)
        leases = NodeLeases(
            system, clock, rng, owner=owner, lease_s=settings.node_lease.duration.total_seconds()
        )
        renew_every_s = settings.node_lease.renewal.total_seconds()
        async with LeasedIds(leases, clock, rng, renew_every_s=renew_every_s) as ids:
            persistence = Persistence(
                backend,
                ids=ids,
                info=info,
                types=types or load_types(),
                cache=cache,
                settings=settings,
                clock=clock,
                rng=rng,
                owner=owner,
                leases=leases,
                key_lifetime=key_lifetime,
            )
            if initialise:
                await _initialise(persistence)
            try:
                yield persistence
            finally:
                await persistence.close()
    finally:
        await backend.close()


async def _initialise(persistence: Persistence) -> None:
    """Create what a new store needs. Safe to repeat and to race."""
    backend, clock = persistence.backend, persistence.clock
    await ensure_reference(backend, REALMS, clock)
    realms = persistence.committer(REALMS)
    if DEFAULT_REALM not in await list_realms(realms):
        with suppress(AlreadyExists):  # Another server was faster.
            await create_realm(
                realms, DEFAULT_REALM, backend=backend, ids=persistence.ids, clock=clock, principal="system"
            )
    await persistence.mend()
