"""A worker that leases tasks, leaves receipts and finishes them, for tests that kill it.

worker_process.py URL NAME
"""

import asyncio
import sys

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.record import ExecutionResult
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.store.port import Receipt, TaskStore
from cynosure.delegation.transitions import begun, running, succeeded

LEASE_US = 400_000
BATCHES = 3


async def work(store: TaskStore, worker: str) -> None:
    clock = SystemClock()
    while True:
        leased = await store.lease(worker, now_us=clock.now_us(), lease_us=LEASE_US)
        if leased is None:
            await asyncio.sleep(0.02)
            continue
        record = leased.record
        print(f"leased {record.correlation_id} {leased.found}", flush=True)
        for make in (lambda each: running(each, now_us=clock.now_us()), begun):
            after = await store.swap(record, make(record))
            if after is None:
                break
            record = after
        else:
            for number in range(BATCHES):
                # What it counted differs from attempt to attempt: the first receipt of a batch holds.
                receipt = Receipt(f"batch {number}", record.attempt_count, 1, clock.now_us())
                if not await store.put_receipts(leased, [receipt]):
                    break
                await asyncio.sleep(0.005)
            else:
                files = (await store.receipts(record.task_id)).files
                done = succeeded(record, now_us=clock.now_us(), result=ExecutionResult(files))
                if await store.swap(record, done) is not None:
                    print(f"finished {record.correlation_id}", flush=True)


async def main(url: str, worker: str) -> None:
    async with open_task_store(url, "default") as store:
        await asyncio.gather(*(work(store, f"{worker} {number}") for number in range(2)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
