"""I96. Tasks and their versions: insert once, compare and swap, transitions, history."""

import asyncio

import pytest
from msgspec.structs import replace

from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Conflict
from cynosure.delegation.store.port import TaskFilter, TaskStore
from cynosure.delegation.transitions import (
    begun,
    cancelled,
    given_back,
    resubmitted,
    retry_scheduled,
    running,
    succeeded,
)
from cynosure.testing.task_store_kit.fixtures import KitFixtures
from cynosure.testing.task_store_kit.samples import after, finish, id_of, lease, new, run, swap

RACERS = 8


class ChangeTests(KitFixtures):
    async def test_a_new_task_is_kept_as_it_was_given(self, store: TaskStore, other: TaskStore) -> None:
        record = new("a")

        assert await store.insert(record) == record

        assert await other.find(record.task_id) == record
        assert await other.history(record.task_id) == [record]

    async def test_a_task_that_nobody_submitted_is_not_found(self, store: TaskStore) -> None:
        for task_id in (id_of("a"), "no-uuid", "", "x" * 300, id_of("a").upper()):
            assert await store.find(task_id) is None
            assert list(await store.history(task_id)) == []
            assert list(await store.children(task_id)) == []
            assert await store.progress(task_id) is None
            assert (await store.receipts(task_id)).files == 0

    async def test_a_task_that_is_there_is_answered_as_it_is_now(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)

        again = await other.insert(new("a", at=5))

        assert again == leased.record
        assert len(await store.history(id_of("a"))) == 2

    async def test_of_many_who_submit_at_once_all_get_the_same_task(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        records = [new("a", at=number) for number in range(RACERS)]

        got = await asyncio.gather(
            *((other if number % 2 else store).insert(record) for number, record in enumerate(records))
        )

        assert len({record.created_us for record in got}) == 1
        assert len(await store.history(id_of("a"))) == 1

    async def test_a_change_is_the_next_version(self, store: TaskStore, other: TaskStore) -> None:
        record = await store.insert(new("a"))
        gone = cancelled(record, now_us=after(3))

        swapped = await other.swap(record, replace(gone, version=77))

        assert swapped == gone
        assert gone.version == 2
        assert await store.find(record.task_id) == gone

    async def test_whoever_names_an_older_version_loses(self, store: TaskStore, other: TaskStore) -> None:
        record = await store.insert(new("a"))
        gone = await swap(store, record, cancelled(record, now_us=after(3)))

        assert await other.swap(record, cancelled(record, now_us=after(4))) is None

        assert await other.find(record.task_id) == gone
        assert len(await store.history(record.task_id)) == 2

    async def test_a_change_of_a_task_that_is_not_there_is_lost(self, store: TaskStore) -> None:
        record = new("a")

        assert await store.swap(record, cancelled(record, now_us=after(1))) is None
        assert await store.find(record.task_id) is None

    async def test_of_many_who_change_one_version_exactly_one_wins(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        record = await store.insert(new("a"))

        got = await asyncio.gather(
            *(
                (other if number % 2 else store).swap(record, cancelled(record, now_us=after(number)))
                for number in range(RACERS)
            )
        )

        (won,) = [each for each in got if each is not None]
        assert await store.find(record.task_id) == won
        assert [each.version for each in await store.history(record.task_id)] == [1, 2]

    async def test_a_state_that_cannot_follow_is_refused(self, store: TaskStore) -> None:
        record = await store.insert(new("a"))

        with pytest.raises(Conflict):
            await store.swap(record, replace(record, status=TaskStatus.SUCCESS))
        # Allowed for a worker that leases it; without a lease nobody would have it.
        with pytest.raises(Conflict):
            await store.swap(record, replace(record, status=TaskStatus.RUNNING))

        assert await store.history(record.task_id) == [record]

    async def test_history_tells_all_that_happened(self, store: TaskStore, other: TaskStore) -> None:
        first = await store.insert(new("a"))
        leased = await lease(store, at=1)
        is_running = await run(store, leased, at=2)
        is_begun = await swap(store, is_running, begun(is_running))
        trouble = retry_scheduled(
            is_begun,
            now_us=after(4),
            due_us=after(9),
            code="SLOW_DOWN",
            summary="é\0!",
            extended="x" * 99_999,
        )
        waits = await swap(store, is_begun, trouble)
        again = await lease(store, at=10, worker="worker-2")
        anew = await run(store, again, at=11)
        result = ExecutionResult(3, 2**40, {"ratio": 0.5, "names": ["a"], "is_all": True, "text": "ü"})
        done = await swap(store, anew, succeeded(anew, now_us=after(12), result=result, summary="All gone"))

        expected = [first, leased.record, is_running, is_begun, waits, again.record, anew, done]
        assert await other.history(first.task_id) == expected
        assert await other.find(first.task_id) == done
        assert [each.version for each in expected] == list(range(1, 9))
        assert done.attempt_count == 2
        assert done.is_begun
        assert done.execution_result == result
        assert (done.error_code, done.lease_token) == (None, "")
        assert waits.result_summary == "é!"
        assert len(waits.result_extended or "") < 99_999

    async def test_a_scheduled_task_is_submitted_again_in_the_same_change(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        record = await run(store, leased, at=2)
        ended = succeeded(record, now_us=after(3), result=ExecutionResult(1), next_run_us=after(100))

        newest = await swap(store, record, ended)

        assert newest.status is TaskStatus.SUBMITTED
        assert (newest.attempt_count, newest.is_begun) == (0, False)
        assert newest.execution_result == ExecutionResult(1)
        states = [each.status for each in await other.history(newest.task_id)]
        assert states[-2:] == [TaskStatus.SUCCESS, TaskStatus.SUBMITTED]
        assert await other.find(newest.task_id) == newest
        assert await store.lease("worker-1", now_us=after(99), lease_us=1) is None
        assert (await lease(store, at=100)).found == "new"

    async def test_an_operator_has_a_task_tried_again(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        ended = await finish(store, "a", at=1, is_success=False)

        again = await swap(store, ended, resubmitted(ended, now_us=after(50)))

        assert again.attempt_count == 0
        leased = await lease(store, at=50)
        assert (leased.record.task_id, leased.found) == (again.task_id, "new")

    async def test_an_operator_gives_a_task_up_that_a_worker_has(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)
        found = await other.find(leased.record.task_id)
        assert found is not None

        gone = await swap(other, found, cancelled(found, now_us=after(2)))

        assert gone.status is TaskStatus.FAILURE
        assert await store.swap(leased.record, running(leased.record, now_us=after(3))) is None
        assert await store.keep(leased, now_us=after(3), lease_us=1) is None
        assert await store.lease("worker-2", now_us=after(9_999), lease_us=1) is None

    async def test_what_a_worker_gives_back_is_ready_at_once(self, store: TaskStore) -> None:
        await store.insert(new("a"))
        leased = await lease(store, at=1)

        back = await swap(store, leased.record, given_back(leased.record, now_us=after(2), summary="Stopped"))

        assert back.attempt_count == 0
        again = await lease(store, at=2, worker="worker-2")
        assert (again.found, again.record.attempt_count) == ("retry", 1)

    async def test_what_ended_long_ago_is_forgotten_with_all_that_belongs_to_it(
        self, store: TaskStore, other: TaskStore
    ) -> None:
        await store.insert(new("old"))
        await finish(store, "old", at=1)
        await store.insert(new("young", at=2))
        await finish(store, "young", at=50, is_success=False)
        waiting = await store.insert(new("waiting", at=3, parent="old"))

        assert await other.forget(after(50)) == 1

        assert await store.find(id_of("old")) is None
        assert list(await store.history(id_of("old"))) == []
        assert await store.find(id_of("young")) is not None
        assert await store.find(waiting.task_id) == waiting
        assert len((await store.list(TaskFilter(), limit=10))[0]) == 2
        assert await store.forget(after(50)) == 0
        # The same order again is a new task.
        assert (await store.insert(new("old", at=60))).version == 1
        assert len(await store.history(id_of("old"))) == 1
