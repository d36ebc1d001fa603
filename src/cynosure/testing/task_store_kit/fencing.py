"""I95. Whoever has lost a lease changes nothing any more."""

import asyncio

from msgspec.structs import replace

from cynosure.common.delegated.record import ExecutionResult, TaskProgress
from cynosure.delegation.store.port import Leased, Receipt, TaskStore
from cynosure.delegation.transitions import failed, running, succeeded
from cynosure.testing.task_store_kit.fixtures import KitFixtures
from cynosure.testing.task_store_kit.samples import LEASE, after, id_of, lease, new, run

RECEIPT = Receipt("batch 1", 10, 100, after(5))


async def lose(store: TaskStore, other: TaskStore) -> tuple[Leased, Leased]:
    """A lease that another worker has taken over, and its own."""
    await store.insert(new("a"))
    old = await lease(store, at=1)
    record = await run(store, old, at=2)
    return Leased(record, old.lease_until_us, old.found), await lease(other, at=61, worker="worker-2")


class FencingTests(KitFixtures):
    async def test_a_lost_lease_cannot_change_the_task(self, store: TaskStore, other: TaskStore) -> None:
        old, taken = await lose(store, other)
        done = succeeded(old.record, now_us=after(62), result=ExecutionResult(1))

        assert await store.swap(old.record, done) is None
        broken = failed(old.record, now_us=after(62), code="X", summary="x")
        assert await store.swap(old.record, broken) is None

        assert await store.find(id_of("a")) == taken.record

    async def test_the_right_version_with_another_lease_changes_nothing(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        _, taken = await lose(store, other)
        forged = replace(taken, record=replace(taken.record, lease_token="0" * 32))

        assert await store.swap(forged.record, running(forged.record, now_us=after(62))) is None
        assert await store.keep(forged, now_us=after(62), lease_us=LEASE) is None
        assert not await store.put_receipts(forged, [RECEIPT])

    async def test_a_lost_lease_cannot_be_kept(self, store: TaskStore, other: TaskStore) -> None:
        old, taken = await lose(store, other)

        assert await store.keep(old, now_us=after(62), lease_us=LEASE) is None
        assert await other.keep(taken, now_us=after(62), lease_us=LEASE) is not None

    async def test_a_lease_that_is_over_cannot_be_kept_even_if_nobody_took_it(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)

        assert await store.keep(leased, now_us=leased.lease_until_us, lease_us=LEASE) is None
        assert (await lease(store, at=61)).found == "lost"

    async def test_a_lost_lease_cannot_put_receipts(self, store: TaskStore, other: TaskStore) -> None:
        old, taken = await lose(store, other)

        assert not await store.put_receipts(old, [RECEIPT])

        assert (await store.receipts(id_of("a"))).by_batch == {}
        assert await other.put_receipts(taken, [RECEIPT])

    async def test_a_released_lease_can_neither_be_kept_nor_put_receipts(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        await store.release("worker-1")

        assert await store.keep(leased, now_us=after(2), lease_us=LEASE) is None
        assert not await store.put_receipts(leased, [RECEIPT])

    async def test_what_a_lost_lease_reports_is_forgotten(self, store: TaskStore, other: TaskStore) -> None:
        old, taken = await lose(store, other)
        await other.report(taken, TaskProgress("deleting", 5, 10))

        await store.report(old, TaskProgress("deleting", 9, 10))

        assert await store.progress(id_of("a")) == TaskProgress("deleting", 5, 10)

    async def test_progress_is_what_was_said_last(self, store: TaskStore, other: TaskStore) -> None:
        await store.insert(new("a"))
        assert await store.progress(id_of("a")) is None
        leased = await lease(store, at=1)
        for done in (1, 2):
            await store.report(leased, TaskProgress("deleting", done, None, "batches"))

        assert await other.progress(id_of("a")) == TaskProgress("deleting", 2, None, "batches")

    async def test_keeping_a_lease_races_with_taking_it_and_one_of_them_wins(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        for number in range(6):
            name = f"task {number}"
            await store.insert(new(name, at=200 * number))
            leased = await lease(store, at=200 * number)
            late = leased.lease_until_us

            # The clocks of the two disagree by a second.
            kept, taken = await asyncio.gather(
                store.keep(leased, now_us=late - 1_000_000, lease_us=LEASE),
                other.lease("worker-2", now_us=late, lease_us=LEASE),
            )

            assert (kept is None) != (taken is None)
            holder = kept or taken
            assert holder is not None
            gone = failed(holder.record, now_us=late, code="X", summary="x")
            assert await store.swap(holder.record, gone) is not None
