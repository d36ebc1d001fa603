"""I95. Who gets which task: new, due and lost ones, the one that has waited longest first, each once."""

import asyncio

from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.delegation.store.port import TaskStore
from cynosure.delegation.transitions import leased as make_leased
from cynosure.delegation.transitions import retry_scheduled
from cynosure.testing.task_store_kit.fixtures import KitFixtures
from cynosure.testing.task_store_kit.samples import LEASE, after, finish, id_of, lease, new, run, swap

WORKERS = 8


class LeasingTests(KitFixtures):
    async def test_there_is_nothing_to_lease_in_an_empty_store(self, store: TaskStore) -> None:
        assert await store.lease("worker-1", now_us=after(0), lease_us=LEASE) is None

    async def test_a_leased_task_says_who_has_it(self, store: TaskStore, other: TaskStore) -> None:
        record = await store.insert(new("a"))

        leased = await lease(other, at=7, worker="worker-7")

        token = leased.record.lease_token
        assert len(token) >= 16
        assert leased.record == make_leased(record, worker="worker-7", token=token, now_us=after(7))
        assert leased.record.status is TaskStatus.ACQUIRING_RESOURCES
        assert (leased.found, leased.lease_until_us) == ("new", after(7) + LEASE)
        assert await store.find(record.task_id) == leased.record
        assert list(await store.history(record.task_id)) == [record, leased.record]

    async def test_new_due_and_lost_tasks_come_in_the_order_in_which_they_got_ready(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        await store.insert(new("lost", at=0))
        await lease(store, at=1, lease_us=29 * 1_000_000)
        await store.insert(new("retry", at=2))
        tried = await lease(store, at=3)
        await swap(
            store,
            tried.record,
            retry_scheduled(tried.record, now_us=after(4), due_us=after(20), code="X", summary="x"),
        )
        await store.insert(new("early", at=10))
        await store.insert(new("late", at=40))
        await store.insert(new("scheduled", at=5, first_run=after(25)))
        await store.insert(new("future", at=5, first_run=after(500)))

        got = [await lease(other, at=100, worker="worker-2") for _ in range(5)]

        assert [(each.record.correlation_id, each.found) for each in got] == [
            ("early", "new"),
            ("retry", "retry"),
            ("scheduled", "new"),
            ("lost", "lost"),
            ("late", "new"),
        ]
        assert [each.record.attempt_count for each in got] == [1, 2, 1, 2, 1]
        assert await store.lease("worker-2", now_us=after(100), lease_us=1) is None

    async def test_a_running_task_is_lost_when_its_lease_is_over_and_not_before(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        await run(store, leased, at=2)

        assert await other.lease("worker-2", now_us=leased.lease_until_us - 1, lease_us=LEASE) is None
        taken = await other.lease("worker-2", now_us=leased.lease_until_us, lease_us=LEASE)

        assert taken is not None
        assert taken.found == "lost"
        assert (taken.record.worker, taken.record.attempt_count) == ("worker-2", 2)
        assert taken.record.lease_token != leased.record.lease_token

    async def test_what_has_ended_is_not_leased(self, store: TaskStore) -> None:
        for at, is_success in ((1, True), (2, False)):
            await store.insert(new(f"task {at}", at=at))
            await finish(store, f"task {at}", at=at, is_success=is_success)

        assert await store.lease("worker-1", now_us=after(99_999), lease_us=LEASE) is None

    async def test_of_many_who_lease_at_once_each_gets_another_task(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        count = 3 * WORKERS
        for number in range(count):
            await store.insert(new(f"task {number}", at=number))
        got: list[str] = []

        async def work(number: int) -> None:
            handle = other if number % 2 else store
            misses = 0
            while misses < 2:
                leased = await handle.lease(f"worker-{number}", now_us=after(1_000), lease_us=LEASE)
                if leased is None:
                    misses += 1
                else:
                    got.append(leased.record.task_id)

        await asyncio.gather(*(work(number) for number in range(WORKERS)))

        assert sorted(got) == sorted(id_of(f"task {number}") for number in range(count))
        for task_id in got:
            assert len(await store.history(task_id)) == 2

    async def test_a_lease_that_is_kept_is_not_lost(self, store: TaskStore, other: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)

        kept = await store.keep(leased, now_us=after(30), lease_us=LEASE)

        assert kept is not None
        assert kept.lease_until_us == after(30) + LEASE
        assert kept.record == leased.record
        assert len(await store.history(id_of("a"))) == 2
        assert await other.lease("worker-2", now_us=after(89), lease_us=LEASE) is None
        assert (await lease(other, at=90)).found == "lost"

    async def test_a_lease_is_kept_over_changes_of_the_task(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        await run(store, leased, at=2)

        kept = await store.keep(leased, now_us=after(50), lease_us=LEASE)

        assert kept is not None
        assert await store.lease("worker-2", now_us=after(100), lease_us=LEASE) is None

    async def test_the_tasks_of_a_dead_worker_are_lost_at_once(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        for name in ("a", "b", "c"):
            await store.insert(new(name))
        mine = [await lease(store, at=1, worker="dead") for _ in range(2)]
        await run(store, mine[0], at=1)
        await lease(store, at=1, worker="alive")

        assert await other.release("dead") == 2
        assert await other.release("dead") == 0
        assert await other.release("nobody") == 0

        again = [await lease(store, at=2, worker="worker-2") for _ in range(2)]
        assert {each.record.task_id for each in again} == {each.record.task_id for each in mine}
        assert {each.found for each in again} == {"lost"}
        assert await store.lease("worker-2", now_us=after(2), lease_us=LEASE) is None

    async def test_one_task_after_the_other_is_found_by_when_it_is_due(self, store: TaskStore) -> None:
        assert await store.next_due_us() is None
        await store.insert(new("later", at=1, first_run=after(700)))
        assert await store.next_due_us() == after(700)
        await store.insert(new("now", at=2))
        assert await store.next_due_us() == after(2)
        leased = await lease(store, at=3)
        # What a worker has does not wait.
        assert await store.next_due_us() == after(700)
        trouble = retry_scheduled(leased.record, now_us=after(4), due_us=after(64), code="X", summary="x")
        await swap(store, leased.record, trouble)
        assert await store.next_due_us() == after(64)
