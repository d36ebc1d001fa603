"""Workers are killed and frozen at random while they lease: every task ends once, with all that it did."""

import asyncio
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.store.port import TaskFilter, TaskStore
from cynosure.delegation.transitions import TRANSITIONS, submitted
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.task_store_kit.samples import id_of, order

from .worker_process import BATCHES

pytestmark = pytest.mark.anyio
SCRIPT = Path(__file__).with_name("worker_process.py")
TASKS_AT_ONCE = 10
KILLS = 3
TASKS = TASKS_AT_ONCE * (KILLS + 1)


async def storm(
    processes: Processes, store: TaskStore, url: str, rng: Random, *, freezes: bool
) -> list[ManagedProcess]:
    """Kill or freeze whoever begins to work, again and again, and start another one."""
    clock = SystemClock()
    ran: list[ManagedProcess] = []

    async def start() -> ManagedProcess:
        name = f"worker-{len(ran)}"
        ran.append(await processes.start(name, [sys.executable, str(SCRIPT), url, name]))
        return ran[-1]

    async def submit(count: int, first: int) -> None:
        for number in range(first, first + count):
            await store.insert(submitted(order(f"task {number}"), now_us=clock.now_us()))

    async def find_busy(alive: list[ManagedProcess], leased: list[int]) -> ManagedProcess:
        while True:
            for process, before in zip(alive, leased, strict=True):
                if process.log().count("leased") > before:
                    return process
            await asyncio.sleep(0.01)

    async def wait_for(successes: int) -> None:
        while True:
            ended, _ = await store.list(TaskFilter(status=TaskStatus.SUCCESS), limit=TASKS)
            if len(ended) >= successes:
                return
            await asyncio.sleep(0.05)

    alive = [await start(), await start()]
    frozen: list[ManagedProcess] = []
    async with asyncio.timeout(90):
        for number in range(KILLS):
            leased = [process.log().count("leased") for process in alive]
            await submit(TASKS_AT_ONCE, number * TASKS_AT_ONCE)
            victim = await find_busy(alive, leased)
            await asyncio.sleep(rng.uniform(0.0, 0.03))
            if freezes and number % 2:
                victim.sigstop()
                frozen.append(victim)
            else:
                victim.kill9()
            alive.remove(victim)
            alive.append(await start())
        await wait_for(TASKS - TASKS_AT_ONCE)
        # Those that were frozen come back, to tasks that others have finished, and go on with the last ones.
        await submit(TASKS_AT_ONCE, TASKS - TASKS_AT_ONCE)
        for process in frozen:
            process.sigcont()
        await wait_for(TASKS)
    return ran


async def check(store: TaskStore, ran: list[ManagedProcess]) -> None:
    told = Counter(name for process in ran for name in re.findall(r"finished (task \d+)\n", process.log()))
    for number in range(TASKS):
        name = f"task {number}"
        history = list(await store.history(id_of(name)))
        states = [each.status for each in history]
        assert [each.version for each in history] == list(range(1, len(history) + 1))
        assert states[0] is TaskStatus.SUBMITTED
        assert states.count(TaskStatus.SUCCESS) == 1
        assert states[-1] is TaskStatus.SUCCESS
        assert all(after in TRANSITIONS[before] for before, after in pairwise(states))
        # A version that follows another under the same lease is of the same worker.
        for before, after in pairwise(history):
            if after.lease_token == before.lease_token:
                assert after.worker == before.worker
        receipts = await store.receipts(id_of(name))
        assert len(receipts.by_batch) == BATCHES
        assert history[-1].execution_result.files_deleted == receipts.files
        # Told by whoever did it, or by nobody, when it was killed before it could.
        assert told[name] <= 1


@pytest.mark.parametrize("seed", [1])
async def test_on_postgres(postgres_schema_url: str, processes: Processes, seed: int) -> None:
    """I94, I95, I96. Asked for in this order: what runs ends before its tables do."""
    async with open_task_store(postgres_schema_url, "default") as store:
        ran = await storm(processes, store, postgres_schema_url, Random(seed), freezes=True)
        await check(store, ran)


@pytest.mark.parametrize("seed", [2])
async def test_on_sqlite(processes: Processes, tmp_path: Path, seed: int) -> None:
    """I94, I95, I96."""
    url = f"sqlite:{tmp_path / 'tasks.db'}"
    async with open_task_store(url, "default") as store:
        # Not frozen: a process that stands still within a transaction keeps the file locked.
        await check(store, await storm(processes, store, url, Random(seed), freezes=False))
