"""Workers on the stores that services use, in real time: several instances, some of which die (I94, I96)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from random import Random

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.settings import (
    DelegationSettings,
    LeaseSettings,
    RetriesSettings,
    RetrySettings,
    ServiceSettings,
    TaskSettings,
)
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Unavailable
from cynosure.delegation.jobs.port import JobContext
from cynosure.delegation.service.service import TaskService
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.store.port import Receipt, TaskStore
from cynosure.delegation.worker.worker import Worker
from cynosure.testing.small_delegation import REALM, ScriptedJob, SmallCatalogAccess, make_order

pytestmark = pytest.mark.anyio
OpenStore = Callable[[], AbstractAsyncContextManager[TaskStore]]
QUICK = DelegationSettings(
    service=ServiceSettings(workers=3, polling=timedelta(milliseconds=50)),
    task=TaskSettings(lease=LeaseSettings(timedelta(seconds=1))),
    retry=RetriesSettings(table_purge=RetrySettings(10, timedelta(milliseconds=10))),
)


@pytest.fixture(params=["memory", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    is_memory = request.param == "memory"
    return "memory:" if is_memory else request.getfixturevalue("postgres_schema_url")


@pytest.fixture
async def open_store(store_url: str) -> AsyncIterator[OpenStore]:
    """Gives each instance a store of its own on one database; of memory there is only one."""
    async with AsyncExitStack() as stack:
        shared = await stack.enter_async_context(open_task_store("memory:", REALM))

        @asynccontextmanager
        async def opened() -> AsyncIterator[TaskStore]:
            if store_url == "memory:":
                yield shared
                return
            async with open_task_store(store_url, REALM) as store:
                yield store

        yield opened


def make_instance(store: TaskStore, job: ScriptedJob, name: str) -> tuple[TaskService, Worker]:
    service = TaskService(store, realm=REALM, clock=SystemClock(), jobs={job.task_type: job}, settings=QUICK)
    return service, Worker(service, catalog=SmallCatalogAccess(), instance=name, rng=Random(name))


async def test_all_tasks_end_though_an_instance_dies(open_store: OpenStore) -> None:
    """Each batch of each task has one receipt, whoever did it; nothing is recorded by who has lost it."""
    rng = Random(11)
    hanging = 0
    all_hang = asyncio.Event()

    async def work(context: JobContext) -> ExecutionResult:
        await context.begin()
        await context.mark_begun()
        done = await context.receipts()
        for number in range(3):
            if f"{number}" not in done.by_batch:
                context.lease.check()
                await context.put_receipts([Receipt(f"{number}", 10, 100, 1)])
            if rng.random() < 0.1:
                raise Unavailable("The storage is away")
        receipts = await context.receipts()
        return ExecutionResult(receipts.files, receipts.bytes)

    async def hang(context: JobContext) -> ExecutionResult:
        nonlocal hanging
        await context.begin()
        hanging += 1
        if hanging == QUICK.service.workers:
            all_hang.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with open_store() as first, open_store() as second:
        dying, living = ScriptedJob(), ScriptedJob()
        dying.script, living.script = [hang], [work]
        service, doomed = make_instance(first, dying, "doomed")
        other, survivor = make_instance(second, living, "survivor")
        ids = [(await service.submit(make_order(f"t{number}"))).task_id for number in range(12)]
        await doomed.start()
        await asyncio.wait_for(all_hang.wait(), 30)
        # As if killed: nothing is given back, and no heartbeat follows.
        for each in (*doomed._loops, *doomed._attempts):
            each.cancel()
        await survivor.start()
        ended = [await other.wait(each, 60) for each in ids]
        histories = [await other.history(each) for each in ids]
        receipts = [await second.receipts(each) for each in ids]
        await survivor.close()

    assert [each and each.status for each in ended] == [TaskStatus.SUCCESS] * 12
    assert [each and each.execution_result for each in ended] == [ExecutionResult(30, 300)] * 12
    assert {each.files for each in receipts} == {30}
    taken = [each for each in histories if any(version.worker == "doomed" for version in each)]
    assert len(taken) == QUICK.service.workers
    for each in histories:
        assert [version.version for version in each] == list(range(1, len(each) + 1))
        assert [version.status for version in each].count(TaskStatus.SUCCESS) == 1


async def test_cancelling_in_one_instance_stops_the_job_in_another(open_store: OpenStore) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def work(context: JobContext) -> ExecutionResult:
        await context.begin()
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    async with open_store() as first, open_store() as second:
        job = ScriptedJob()
        job.script = [work]
        service, worker = make_instance(first, job, "one")
        other, _ = make_instance(second, job, "two")
        task_id = (await service.submit(make_order())).task_id
        await worker.start()
        await asyncio.wait_for(started.wait(), 30)

        cancelled = await other.cancel(task_id)
        await asyncio.wait_for(stopped.wait(), 30)
        await worker.close()

        assert await other.find(task_id) == cancelled
        assert (cancelled.status, cancelled.error_code) == (TaskStatus.FAILURE, "CANCELLED")


async def test_who_waits_is_told_by_another_instance(open_store: OpenStore) -> None:
    async with open_store() as first, open_store() as second:
        service, _ = make_instance(first, ScriptedJob(), "one")
        _, worker = make_instance(second, ScriptedJob(), "two")
        task_id = (await service.submit(make_order())).task_id
        waiting = asyncio.ensure_future(service.wait(task_id, 60))
        await worker.start()
        ended = await waiting
        await worker.close()

    assert ended is not None
    assert ended.status is TaskStatus.SUCCESS
