"""PostgreSQL does what it was told and its answer is lost."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from random import Random

import asyncpg
import pytest

from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Misconfigured, OutcomeUnknown
from cynosure.delegation.store.objects import ObjectTaskStore
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.store.port import Receipt, TaskStore
from cynosure.delegation.transitions import cancelled, running
from cynosure.persistence.lifecycle import open_persistence, open_persistence_on
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import Reference
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import CutRequest, LoseAnswer, executes
from cynosure.testing.small_store import RuledBackend
from cynosure.testing.task_store_kit.samples import LEASE, after, id_of, lease, new

pytestmark = pytest.mark.anyio


@pytest.fixture
async def proxy(postgres_schema_url: str) -> AsyncIterator[FaultProxy]:
    async with FaultProxy.to_url(postgres_schema_url, rng=Random(1)) as proxy:
        yield proxy


@pytest.fixture
async def store(proxy: FaultProxy) -> AsyncIterator[TaskStore]:
    async with open_task_store(proxy.url, "default") as store:
        yield store


async def test_a_lease_whose_answer_is_lost_is_found_again(store: TaskStore, proxy: FaultProxy) -> None:
    await store.insert(new("a"))
    await store.insert(new("b", at=1))
    rule = proxy.add(LoseAnswer(), when=executes("SKIP LOCKED"))

    leased = await lease(store, at=2)

    assert rule.hits == 1
    assert (leased.record.correlation_id, leased.found, leased.lease_until_us) == (
        "a",
        "new",
        after(2) + LEASE,
    )
    assert await store.find(id_of("a")) == leased.record
    assert (await lease(store, at=2)).record.correlation_id == "b"
    assert [len(await store.history(id_of(name))) for name in "ab"] == [2, 2]


async def test_a_lost_lease_that_cannot_be_looked_for_now_is_found_by_the_next_call(
    store: TaskStore, proxy: FaultProxy
) -> None:
    await store.insert(new("a"))
    proxy.add(LoseAnswer(), when=executes("SKIP LOCKED"))
    proxy.add(CutRequest(), when=executes("v.version = t.version - 1"), times=3)

    with pytest.raises(OutcomeUnknown):
        await store.lease("worker-1", now_us=after(1), lease_us=LEASE)
    proxy.clear()

    leased = await lease(store, at=2)
    assert leased.lease_until_us == after(1) + LEASE
    assert leased.record.attempt_count == 1
    assert await store.keep(leased, now_us=after(3), lease_us=LEASE) is not None


async def test_a_lease_that_never_arrived_is_not_taken_for_one_that_did(
    store: TaskStore, proxy: FaultProxy
) -> None:
    await store.insert(new("a"))
    proxy.add(CutRequest(after_bytes=7), when=executes("SKIP LOCKED"))

    with pytest.raises(OutcomeUnknown):
        await store.lease("worker-1", now_us=after(1), lease_us=LEASE)

    leased = await lease(store, at=2)
    assert (leased.found, leased.record.attempt_count) == ("new", 1)


async def test_a_change_whose_answer_is_lost_is_seen_to_be_there(store: TaskStore, proxy: FaultProxy) -> None:
    record = await store.insert(new("a"))
    rule = proxy.add(LoseAnswer(), when=executes("moved AS"))

    swapped = await store.swap(record, cancelled(record, now_us=after(1)))

    assert rule.hits == 1
    assert swapped is not None
    assert swapped.status is TaskStatus.FAILURE
    assert len(await store.history(record.task_id)) == 2


async def test_a_change_that_never_arrived_is_of_unknown_outcome(store: TaskStore, proxy: FaultProxy) -> None:
    await store.insert(new("a"))
    leased = await lease(store, at=1)
    proxy.add(CutRequest(after_bytes=7), when=executes("moved AS"))

    with pytest.raises(OutcomeUnknown):
        await store.swap(leased.record, running(leased.record, now_us=after(2)))

    assert await store.swap(leased.record, running(leased.record, now_us=after(2))) is not None


async def test_receipts_whose_answer_is_lost_can_be_put_again(store: TaskStore, proxy: FaultProxy) -> None:
    await store.insert(new("a"))
    leased = await lease(store, at=1)
    proxy.add(LoseAnswer(), when=executes("held AS"))
    receipts = [Receipt("one", 10, 100, after(2))]

    with pytest.raises(OutcomeUnknown):
        await store.put_receipts(leased, receipts)

    assert await store.put_receipts(leased, receipts)
    assert (await store.receipts(id_of("a"))).files == 10


async def test_a_lost_lease_in_a_store_of_objects_is_found_by_the_next_call() -> None:
    backend = RuledBackend()
    is_losing = False

    async def lose(expected: Reference, updated: Reference, apply: Callable[[], Awaitable[bool]]) -> bool:
        moved = await apply()
        if is_losing:
            raise OutcomeUnknown("The answer was lost")
        return moved

    # The commit loop looks for the outcome by itself, and gives up at its deadline.
    settings = PersistenceSettings(commit_deadline=timedelta(seconds=2))
    async with open_persistence_on(backend, settings, initialise=True) as persistence:
        store = ObjectTaskStore(persistence, DEFAULT_REALM)
        await store.insert(new("a"))
        backend.rule = lose
        is_losing = True
        with pytest.raises(OutcomeUnknown):
            await store.lease("worker-1", now_us=after(1), lease_us=LEASE)
        is_losing = False

        found = await lease(store, at=2)

    assert (found.record.attempt_count, found.lease_until_us) == (1, after(1) + LEASE)


async def test_the_tables_of_a_catalog_are_not_taken_for_a_store_of_tasks(
    postgres_schema_url: str, postgres_url: str
) -> None:
    async with open_persistence(postgres_schema_url, initialise=True):
        pass

    with pytest.raises(Misconfigured) as refused:
        async with open_task_store(postgres_schema_url, "default"):
            pass

    assert "schema" in refused.value.fix
    connection = await asyncpg.connect(postgres_url)
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


async def test_the_columns_of_the_proposal_are_in_the_table(
    postgres_schema_url: str, postgres_url: str
) -> None:
    async with open_task_store(postgres_schema_url, "default"):
        connection = await asyncpg.connect(postgres_url)
        schema = postgres_schema_url.rpartition("=")[2]
        rows = await connection.fetch(
            "SELECT column_name FROM information_schema.columns "
            "WHERE table_schema = $1 AND table_name = 'delegation_task_versions'",
            schema,
        )
        await connection.close()

    assert {row[0] for row in rows} >= {
        "task_id", "version", "parent_id", "task_type", "task_payload", "status", "received_timestamp",
        "last_status_change_ts", "attempt_count", "created_ts", "lease_acquired_ts", "result_summary",
        "result_extended", "next_scheduled_run_ts",
    }  # fmt: skip
