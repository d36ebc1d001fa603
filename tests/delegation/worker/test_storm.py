"""Random histories: instances are killed, stopped and replaced, answers of the store get lost, jobs stumble.

Each seed is one history, the same every time. Judged by what must hold in any (I94, I95, I96).
"""

import asyncio
import os
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest

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
from cynosure.delegation.store.port import Receipt
from cynosure.delegation.transitions import TRANSITIONS
from cynosure.delegation.worker.worker import Worker
from cynosure.testing.memory_task_store import Luck
from cynosure.testing.small_delegation import ScriptedJob, SmallDelegation, make_order

from .stoppable_clock import StoppableClock

pytestmark = pytest.mark.anyio
SEEDS = 200 if os.environ.get("CYNOSURE_SOAK") else 4
TASKS = 8
BATCHES = 8
INSTANCES = ("one", "two", "three")
SETTINGS = DelegationSettings(
    service=ServiceSettings(workers=2),
    task=TaskSettings(lease=LeaseSettings(timedelta(minutes=1))),
    retry=RetriesSettings(table_purge=RetrySettings(1_000, timedelta(seconds=5), 1.0)),
)


class Storm:
    """One history."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)
        self.small = SmallDelegation(SETTINGS)
        self.living: dict[str, tuple[Worker, StoppableClock]] = {}
        self.wrong: list[str] = []
        self.lost_answers = 0.15

    async def work(self, context: JobContext) -> ExecutionResult:
        """Batches that take their time, each begun with a look at the lease."""
        await context.begin()
        await context.mark_begun()
        done = await context.receipts()
        for number in range(BATCHES):
            if f"{number}" in done.by_batch:
                continue
            await context.clock.sleep(self.rng.uniform(0, 25))
            if self.rng.random() < 0.1:
                raise Unavailable("The storage is away")
            context.lease.check(needs_s=1)
            newest = self.small.memory.versions[context.task_id][-1]
            if newest.lease_token != context.lease.token or not newest.status.is_leased:
                self.wrong.append(f"{context.task_id} batch {number} was begun by who had lost it")
            await context.put_receipts([Receipt(f"{number}", 1, 10, context.clock.now_us())])
        receipts = await context.receipts()
        return ExecutionResult(receipts.files, receipts.bytes)

    def luck(self, name: str) -> Luck:
        if self.rng.random() >= self.lost_answers:
            return "answered"
        return self.rng.choice(("unavailable", "applied, answer lost", "not applied, answer lost"))

    async def start(self, instance: str) -> None:
        clock, job = StoppableClock(self.small.clock), ScriptedJob()
        job.script = [self.work]
        service = self.small.make_service(clock, job)
        worker = Worker(service, catalog=self.small.catalog, instance=instance, rng=Random(instance))
        starting = asyncio.ensure_future(worker.start(is_predecessor_dead=True))
        for _ in range(60):
            if starting.done():
                break
            await self.small.advance(1)
        if starting.exception() is None:
            self.living[instance] = (worker, clock)

    async def kill(self, instance: str) -> None:
        worker, _ = self.living.pop(instance)
        ending = [*worker._loops, *worker._attempts]
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def strike(self) -> None:
        """Something happens to one of the instances."""
        instance = self.rng.choice(INSTANCES)
        if instance not in self.living:
            await self.start(instance)
            return
        _, clock = self.living[instance]
        match self.rng.randrange(4):
            case 0:
                await self.kill(instance)
            case 1 | 2:
                clock.stop()
            case 3:
                clock.go_on()


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_every_history_ends_well(seed: int) -> None:
    storm = Storm(seed)
    small = storm.small
    ids = [(await small.service.submit(make_order(f"t{number}"))).task_id for number in range(TASKS)]
    small.memory.rule = storm.luck
    for instance in INSTANCES:
        await storm.start(instance)
    for _ in range(30):
        await storm.strike()
        await small.advance(storm.rng.uniform(1, 30))

    # The weather clears: what is left is finished.
    storm.lost_answers = 0
    for _, clock in storm.living.values():
        clock.go_on()
    for instance in INSTANCES:
        if instance not in storm.living:
            await storm.start(instance)
    await small.advance(1_800)
    for instance in list(storm.living):
        await storm.kill(instance)

    assert storm.wrong == []
    for task_id in ids:
        versions = small.memory.versions[task_id]
        assert versions[-1].status is TaskStatus.SUCCESS, [each.status for each in versions]
        assert versions[-1].execution_result == ExecutionResult(BATCHES, 10 * BATCHES)
        assert [each.status for each in versions].count(TaskStatus.SUCCESS) == 1
        assert set((await small.store.receipts(task_id)).by_batch) == {f"{n}" for n in range(BATCHES)}
        for before, after in pairwise(versions):
            assert after.status in TRANSITIONS[before.status]
