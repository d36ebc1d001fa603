"""Idempotency engines of several servers on one store in memory, with one clock in the hands of the test."""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from random import Random

from cynosure.api.idempotency import describe
from cynosure.auth.request_key import RequestKey
from cynosure.common.errors import CynosureError
from cynosure.idempotency.engine import Idempotency
from cynosure.idempotency.record import RECORD, Answer, Record
from cynosure.idempotency.reservations import Claim, Reservations
from cynosure.idempotency.settings import IdempotencySettings
from cynosure.persistence.backends.memory import MemoryBackend, MemoryStore
from cynosure.persistence.batching import Batcher
from cynosure.persistence.cache import ObjectCache
from cynosure.persistence.objects import unseal
from cynosure.persistence.spi import REALM_SCOPE, SYSTEM_REALM, ConditionalWrite, Insert, ObjId, Row, Swap
from cynosure.persistence.store import Store
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_keys import PEPPERS

KEY = "6f1d2c33-1b0e-4a52-9c57-c0ffee000001"
SETTINGS = IdempotencySettings()
LEASE_S = SETTINGS.lease.total_seconds()
KEPT_S = SETTINGS.kept.total_seconds()
OK = Answer(200, ((b"etag", b"v1"),), b"a body that only its caller may read")


def hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def claim(payload: str = "asked for", *, key: str = KEY, is_commit: bool = False) -> Claim:
    """A request with a key."""
    return Claim(
        key=key,
        key_hash=hash_of(key),
        payload_hash=hash_of(payload),
        realm="default",
        method="POST",
        path="/v1/lake/namespaces",
        principal="ann",
        is_commit=is_commit,
    )


class GatedBackend(MemoryBackend):
    """Conditional writes wait while the gate is closed, and fail as often as they are told to."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: list[CynosureError] = []
        self.written: list[ObjId] = []
        self.reached = asyncio.Event()
        """A write stands before the gate."""

    async def insert(self, row: Row) -> bool:
        await self._pass([Insert(row)])
        return await super().insert(row)

    async def swap(self, row: Row, expected_token: str) -> bool:
        await self._pass([Swap(row, expected_token)])
        return await super().swap(row, expected_token)

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        await self._pass(writes)
        return await super().write_each(writes, is_relaxed=is_relaxed)

    async def _pass(self, writes: Sequence[ConditionalWrite]) -> None:
        if not self.gate.is_set():
            self.reached.set()
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        self.written += [write.key.id for write in writes]


class Ids:
    """Counts."""

    def __init__(self, first: int) -> None:
        self._next = first

    def next(self) -> ObjId:
        self._next += 1
        return ObjId(self._next)


class Server:
    """One process."""

    def __init__(
        self, rows: MemoryStore, clock: ManualClock, number: int, settings: IdempotencySettings
    ) -> None:
        self.backend = GatedBackend(rows)
        rng = Random(number)
        self.store = Store(
            self.backend, ObjectCache(0, clock), clock, rng, realm=SYSTEM_REALM, catalog=REALM_SCOPE
        )
        self.batcher = Batcher(self.backend, clock, rng)
        ids = Ids(10_000 * number)
        self.reservations = Reservations(
            self.store, self.batcher, ids, clock, settings, holder=f"server {number}"
        )
        self.engine = Idempotency(self.reservations, clock, settings, describe=describe, peppers=PEPPERS)


class Servers:
    """All processes of a test."""

    def __init__(self, settings: IdempotencySettings = SETTINGS) -> None:
        self.clock = ManualClock()
        self.rows = MemoryStore(is_set_up=True)
        self._settings = settings
        self._started: list[Server] = []

    def start(self) -> Server:
        server = Server(self.rows, self.clock, len(self._started) + 1, self._settings)
        self._started.append(server)
        return server

    async def close(self) -> None:
        for server in self._started:
            server.backend.gate.set()
            await server.engine.close()

    def records(self) -> list[Record]:
        """All that are stored."""
        return [
            unseal(RECORD, key, row.blob)[0] for key, row in self.rows.rows.items() if key.type == RECORD.name
        ]

    @property
    def record(self) -> Record:
        """The only one."""
        (record,) = self.records()
        return record


class Work:
    """What a request does, as the engine sees it: an `Execute`."""

    def __init__(self, *outcomes: Answer | CynosureError | Exception, commits: bool = False) -> None:
        self._outcomes = list(outcomes)
        self._commits = commits
        self.keys: list[RequestKey] = []
        """Of every execution."""
        self.started = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, key: RequestKey) -> Answer:
        self.keys.append(key)
        self.started.set()
        await self.gate.wait()
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        key.is_committed = self._commits
        if isinstance(outcome, Answer):
            return outcome
        raise outcome

    @property
    def executed(self) -> int:
        """How often it was done, rehearsals left out."""
        return sum(not key.is_rehearsal for key in self.keys)
