"""I94. Receipts: once for each batch, over all attempts, until the task is done anew or forgotten."""

import asyncio

from cynosure.common.delegated.record import ExecutionResult
from cynosure.delegation.store.port import Receipt, TaskStore
from cynosure.delegation.transitions import retry_scheduled, succeeded
from cynosure.testing.task_store_kit.fixtures import KitFixtures
from cynosure.testing.task_store_kit.samples import after, finish, id_of, lease, new, run, swap


def receipt(number: int, files: int = 1_000) -> Receipt:
    """Of a batch of data files."""
    return Receipt(f"data-{number:05d}", files, 2**33 + number, after(number))


class ReceiptTests(KitFixtures):
    async def test_receipts_are_kept_and_summed_up(self, store: TaskStore, other: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        receipts = [receipt(number) for number in range(5)]

        assert await store.put_receipts(leased, receipts[:3])
        assert await store.put_receipts(leased, receipts[3:])
        assert await store.put_receipts(leased, [])

        kept = await other.receipts(id_of("a"))
        assert kept.by_batch == {each.batch: each for each in receipts}
        assert (kept.files, kept.bytes) == (5_000, 5 * 2**33 + 10)

    async def test_a_batch_keeps_its_first_receipt(self, store: TaskStore, other: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)

        assert await store.put_receipts(leased, [receipt(1, files=7), receipt(1, files=8)])
        assert await store.put_receipts(leased, [receipt(1, files=9), receipt(2)])

        kept = await other.receipts(id_of("a"))
        assert {batch: each.files for batch, each in kept.by_batch.items()} == {
            "data-00001": 7,
            "data-00002": 1_000,
        }

    async def test_many_who_put_the_same_receipts_leave_one_of_each(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        receipts = [receipt(number) for number in range(20)]

        got = await asyncio.gather(*(store.put_receipts(leased, receipts) for _ in range(5)))

        assert got == [True] * 5
        assert (await store.receipts(id_of("a"))).files == 20_000

    async def test_receipts_of_one_task_are_not_those_of_another(self, store: TaskStore) -> None:
        for name in ("a", "b"):
            await store.insert(new(name))
            leased = await lease(store, at=1)
            await store.put_receipts(leased, [receipt(1)])

        assert (await store.receipts(id_of("a"))).files == 1_000

    async def test_a_later_attempt_finds_the_receipts_of_the_earlier_ones(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        await store.insert(new("a"))
        first = await lease(store, at=1)
        await store.put_receipts(first, [receipt(1)])
        trouble = retry_scheduled(first.record, now_us=after(2), due_us=after(3), code="X", summary="x")
        await swap(store, first.record, trouble)

        second = await lease(other, at=3)
        await other.put_receipts(second, [receipt(2)])

        assert (await store.receipts(id_of("a"))).files == 2_000

    async def test_a_scheduled_run_begins_without_receipts(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        await store.put_receipts(leased, [receipt(1)])
        record = await run(store, leased, at=2)
        ended = succeeded(record, now_us=after(3), result=ExecutionResult(1), next_run_us=after(9))

        await swap(store, record, ended)

        assert (await store.receipts(id_of("a"))).by_batch == {}

    async def test_receipts_go_with_the_task(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        await store.put_receipts(leased, [receipt(1)])
        record = await run(store, leased, at=2)
        await swap(store, record, succeeded(record, now_us=after(3), result=ExecutionResult(1)))
        assert (await store.receipts(id_of("a"))).files == 1_000

        assert await store.forget(after(4)) == 1

        await store.insert(new("a", at=5))
        assert (await store.receipts(id_of("a"))).by_batch == {}
        await finish(store, "a", at=6)
