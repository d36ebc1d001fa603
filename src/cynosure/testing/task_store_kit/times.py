"""Times are kept to the microsecond, and a store is as it was when it is opened again."""

from cynosure.delegation.store.port import TaskStore
from cynosure.delegation.transitions import retry_scheduled
from cynosure.testing.task_store_kit.fixtures import KitFixtures, OpenStore
from cynosure.testing.task_store_kit.samples import LEASE, after, id_of, lease, new, swap


class TimeTests(KitFixtures):
    async def test_times_are_exact(self, store: TaskStore, other: TaskStore) -> None:
        record = await store.insert(new("a"))
        odd = after(1) + 1
        leased = await store.lease("worker-1", now_us=odd, lease_us=LEASE)
        assert leased is not None
        trouble = retry_scheduled(leased.record, now_us=odd + 1, due_us=odd + 3, code="X", summary="x")

        await swap(store, leased.record, trouble)

        found = await other.find(record.task_id)
        assert found is not None
        assert found.received_us == found.created_us == after(0)
        assert found.lease_acquired_us == odd
        assert found.last_status_change_us == odd + 1
        assert found.next_scheduled_run_us == odd + 3
        assert await store.lease("worker-1", now_us=odd + 2, lease_us=LEASE) is None
        assert await store.lease("worker-1", now_us=odd + 3, lease_us=LEASE) is not None

    async def test_what_is_never_due_waits_for_ever(self, store: TaskStore) -> None:
        record = await store.insert(new("a", first_run=2**62))

        assert await store.find(record.task_id) == record
        assert await store.lease("worker-1", now_us=after(10**9), lease_us=LEASE) is None
        assert await store.next_due_us() == record.next_scheduled_run_us

    async def test_what_was_acknowledged_is_there_when_the_store_is_opened_again(
        self, open_store: OpenStore
    ) -> None:
        if not self.is_shared:
            return
        async with open_store() as store:
            await store.insert(new("a"))
            leased = await lease(store, at=1)

        async with open_store() as store:
            assert await store.find(id_of("a")) == leased.record
            assert await store.keep(leased, now_us=after(2), lease_us=LEASE) is not None
