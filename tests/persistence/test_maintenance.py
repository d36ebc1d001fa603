"""A store's coordinated tasks: one collects, one sweeps, and a successor goes on where one died."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from random import Random

import pytest

from cynosure.common.errors import LeaseLost
from cynosure.persistence.backends.memory import MemoryBackend, MemoryStore
from cynosure.persistence.core_types import OBJECT_TYPES
from cynosure.persistence.gc.collect import GcProgress, GcReport
from cynosure.persistence.lifecycle import Persistence, open_persistence_on
from cynosure.persistence.maintenance import GC, SWEEP, describe, gc_task, maintenance_tasks, sweep_task
from cynosure.persistence.objects import TypeRegistry
from cynosure.persistence.references import DEFAULT_REALM, ensure_reference, realm_reference
from cynosure.persistence.scopes import prepare_references
from cynosure.persistence.settings import GcSettings, PersistenceSettings
from cynosure.persistence.spi import RealmId
from cynosure.persistence.store import NewObject
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.workload import ITEM, Item

pytestmark = pytest.mark.anyio

SETTINGS = PersistenceSettings(gc=GcSettings(rows_per_second=0))
GRACE_S = SETTINGS.gc.grace.total_seconds()


class Servers:
    """Several servers on one store, with one clock."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore()
        self._stack = stack

    async def start(self, backend: MemoryBackend | None = None) -> Persistence:
        opened = open_persistence_on(
            backend or MemoryBackend(self.store),
            SETTINGS,
            initialise=True,
            types=TypeRegistry([*OBJECT_TYPES, ITEM]),
            clock=self.clock,
            rng=Random(7),
        )
        return await self._stack.enter_async_context(opened)

    def items(self) -> int:
        return sum(key.type == ITEM.name for key in self.store.rows)


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with AsyncExitStack() as stack:
        yield Servers(stack)


async def leave_garbage(servers: Servers, server: Persistence, rows: int) -> None:
    item = Item(stable_id=server.ids.next(), location="")
    await server.store(DEFAULT_REALM).write([NewObject(ITEM, server.ids.next(), item) for _ in range(rows)])
    await servers.clock.advance(GRACE_S + 1)


async def test_every_server_offers_the_same_tasks_and_none_runs_at_once(servers: Servers) -> None:
    tasks = maintenance_tasks(await servers.start())

    assert [task.name for task in tasks] == [GC, SWEEP]
    assert all(task.first_after_s > 0 for task in tasks)
    assert tasks[0].every_s == SETTINGS.gc.interval.total_seconds()


async def test_a_collection_deletes_garbage_and_tells_how_far_it_is(servers: Servers) -> None:
    """I17."""
    server = await servers.start()
    await leave_garbage(servers, server, 10)
    watched: list[GcProgress] = []

    record = await server.tasks.run_now(gc_task(server, watch=watched.append))

    assert record.outcome == "succeeded"
    assert "deleted 10" in record.text
    assert servers.items() == 0
    assert [progress.phase for progress in watched if progress.doomed] == ["delete", "delete"]


def test_a_dry_run_is_described_as_one() -> None:
    assert describe(GcReport(scanned=5, doomed=3, is_dry_run=True)).endswith("would delete 3")
    assert describe(GcReport(scanned=5, doomed=3, deleted=3)).endswith("rows, deleted 3")


class DyingBackend(MemoryBackend):
    """The process hangs for ever in its second batch of deletions."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.deletes = 0
        self.hangs = asyncio.Event()

    async def delete(self, keys) -> None:
        self.deletes += 1
        if self.deletes == 2:
            self.hangs.set()
            await asyncio.Event().wait()
        await super().delete(keys)


async def test_a_successor_goes_on_where_a_dead_collector_stood(servers: Servers) -> None:
    backend = DyingBackend(servers.store)
    dying = await servers.start(backend)
    heir = await servers.start()
    await leave_garbage(servers, dying, 1_200)
    running = asyncio.create_task(dying.tasks.run_now(gc_task(dying)))
    await backend.hangs.wait()
    assert servers.items() == 700
    scanned: list[GcProgress] = []

    # Nobody renews a dead process' lease; the manual clock passes it before the renewal is asked for.
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    record = await heir.tasks.run_now(gc_task(heir, watch=scanned.append))

    assert record.outcome == "succeeded"
    assert servers.items() == 0
    # It neither listed nor marked again.
    assert {progress.phase for progress in scanned} == {"delete"}


async def test_a_collector_that_lost_its_lease_deletes_nothing_more(servers: Servers) -> None:
    server = await servers.start()
    await leave_garbage(servers, server, 1_200)

    class Lost:
        progress = b""
        checks = 0

        def check(self) -> None:
            self.checks += 1
            if servers.items() < 1_200:
                raise LeaseLost("taken over")

        async def save(self, progress: bytes) -> None:
            pass

    with pytest.raises(LeaseLost):
        await gc_task(server).run(Lost())  # type: ignore[arg-type]

    assert servers.items() == 700


async def test_the_sweep_deletes_half_made_realms_and_makes_what_is_missing(servers: Servers) -> None:
    """I19."""
    server = await servers.start()
    abandoned = [realm_reference(RealmId("abandoned"), "catalogs")]
    await prepare_references(server.backend, abandoned, servers.clock)
    lost = realm_reference(DEFAULT_REALM, "settings")
    del servers.store.refs[lost]
    await servers.clock.advance(GRACE_S + 1)

    record = await server.tasks.run_now(sweep_task(server))

    assert record.text == "deleted 1 references"
    assert abandoned[0] not in servers.store.refs
    assert lost in servers.store.refs
    assert not await ensure_reference(server.backend, lost, servers.clock)
