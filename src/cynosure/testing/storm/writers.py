"""The workload of a storm: writers that add to items' counts, and readers that add all counts up.

Each request has an id of its own, which the commit records. So afterwards the chain itself says which
requests were applied, in which order, and what each must have been answered.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.persistence.commit import AlreadyCommitted, Committer, Prepared, Request, State, View
from cynosure.persistence.core_types import OBJECT_TYPES
from cynosure.persistence.index import encode_key
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.objects import ObjRef, TypeRegistry
from cynosure.persistence.open_backend import open_backend
from cynosure.persistence.references import (
    DEFAULT_REALM,
    catalog_reference,
    ensure_reference,
    realm_reference,
)
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import Backend, CatalogId
from cynosure.testing import workload
from cynosure.testing.storm.ledger import Again, Done, Failed, Ledger, Seen, Sent, now_s

CATALOG = CatalogId("storm")
MAIN = catalog_reference(DEFAULT_REALM, CATALOG, "main")
TYPES = TypeRegistry([*OBJECT_TYPES, *workload.OBJECT_TYPES])

_PAUSE_AFTER_FAILURE_S = 0.02
_DEFAULTS = PersistenceSettings()


class Storm(Struct, frozen=True):
    """How hard it blows."""

    name: str
    """Begins the ids of this process' requests; no two incarnations of a process may share it."""
    writers: int = 4
    readers: int = 1
    items: int = 8
    payload_bytes: int = 0
    has_keys: bool = False
    """Requests carry idempotency keys and are repeated until they are known to be committed."""


@asynccontextmanager
async def open_storm(
    url: str,
    settings: PersistenceSettings = _DEFAULTS,
    *,
    clock: Clock | None = None,
    rng: Random | None = None,
    wrap: Callable[[Backend], Backend] = lambda backend: backend,
) -> AsyncIterator[Persistence]:
    """The store with the storm's reference in it. Several processes may do this at once."""
    backend = wrap(open_backend(url))
    opened = open_persistence_on(backend, settings, initialise=True, types=TYPES, clock=clock, rng=rng)
    async with opened as persistence:
        await ensure_reference(backend, MAIN, persistence.clock)
        await _list_catalog(persistence)
        yield persistence


async def _list_catalog(persistence: Persistence) -> None:
    """Have the realm list the catalog, or the repairer of half-made scopes would sweep its reference."""
    key = encode_key(CATALOG)

    async def prepare(view: View) -> Prepared[None]:
        if await view.find("ids", key) is not None:
            return Prepared(None)
        return Prepared(None, {"ids": {key: key}})

    catalogs = persistence.committer(realm_reference(DEFAULT_REALM, "catalogs"))
    await catalogs.commit(Request(prepare, "storm", "list-catalog"))


async def blow(persistence: Persistence, ledger: Ledger, storm: Storm, rng: Random) -> None:
    """Write and read until cancelled."""
    committer = persistence.committer(MAIN)
    items = workload.Items(persistence.ids, payload=rng.randbytes(storm.payload_bytes))
    async with asyncio.TaskGroup() as group:
        for number in range(storm.writers):
            writer = _Writer(f"{storm.name}.{number}", committer, items, ledger, storm, Random(rng.random()))
            group.create_task(writer.write_on())
        for _ in range(storm.readers):
            group.create_task(_read_on(committer, ledger))


async def write_some(
    persistence: Persistence, ledger: Ledger, storm: Storm, rng: Random, requests: int
) -> None:
    """Write from one writer until so many requests were sent and answered."""
    items = workload.Items(persistence.ids, payload=rng.randbytes(storm.payload_bytes))
    name = f"{storm.name}.{rng.getrandbits(64):016x}"  # It may be called again.
    writer = _Writer(name, persistence.committer(MAIN), items, ledger, storm, rng)
    for _ in range(requests):
        await writer.write_one()


class _Writer:
    def __init__(
        self,
        name: str,
        committer: Committer,
        items: workload.Items,
        ledger: Ledger,
        storm: Storm,
        rng: Random,
    ) -> None:
        self._name = name
        self._committer = committer
        self._items = items
        self._ledger = ledger
        self._storm = storm
        self._rng = rng
        self._count = 0

    async def write_on(self) -> None:
        while True:
            await self.write_one()

    async def write_one(self) -> None:
        self._count += 1
        request_id = f"{self._name}.{self._count}"
        names = self._rng.sample(range(self._storm.items), self._rng.choice((1, 1, 2)))
        amounts = tuple((f"item-{name}", self._rng.randint(1, 9)) for name in names)
        self._ledger.note(Sent(request_id, now_s(), amounts))
        request = replace(
            self._items.add_all([(encode_key(name), amount) for name, amount in amounts]),
            request_id=request_id,
            key_hash=request_id if self._storm.has_keys else "",
        )
        while not await self._commit(request) and self._storm.has_keys:
            self._ledger.note(Again(request_id))

    async def _commit(self, request: Request[int]) -> bool:
        try:
            outcome = await self._committer.commit(request)
        except CynosureError as error:
            is_unknown = isinstance(error, OutcomeUnknown)
            self._ledger.note(Failed(request.request_id, now_s(), type(error).__name__, is_unknown))
            await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)
            return False
        if isinstance(outcome, AlreadyCommitted):
            sequence = (await State.load(self._committer.store, outcome.commit_id)).commit.record.sequence
            done = Done(request.request_id, now_s(), outcome.commit_id, sequence, None)
        else:
            done = Done(request.request_id, now_s(), outcome.commit_id, outcome.sequence, outcome.result)
        self._ledger.note(done)
        return True


async def _read_on(committer: Committer, ledger: Ledger) -> None:
    while True:
        since_s = now_s()
        try:
            state = (await committer.read()).state
            total = sum((await read_counts(state)).values())
        except CynosureError:
            await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)
            continue
        ledger.note(Seen(since_s, now_s(), state.commit.record.sequence, total))
        await asyncio.sleep(_PAUSE_AFTER_FAILURE_S)


async def read_counts(state: State) -> dict[str, int]:
    """Every item's count in one state."""
    entries = await state.scan("names", limit=10_000)
    ids = [ObjRef.unpack(value).id for _, value in entries]
    items = await state.load_many(workload.ITEM, ids)
    return {key.decode(): item.count for (key, _), item in zip(entries, items, strict=True)}
