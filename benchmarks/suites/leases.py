"""Workers that lease tasks and finish them, beside commits of independent rows on the same PostgreSQL.

*leases*: one operation is one lease, by one of 8 workers that all want the task which has waited longest.
*to the end*: one operation is one change that a task goes through: leased, RUNNING, SUCCESS.
*independent rows*: one operation is one durable update of a row that nobody else wants, by the same number of
workers: what the database can do at all. On SQLite tasks are objects, and changes share commits.

    ./dev bench leases --set tasks=2000 --set workers=8

A maintainer must not break: after every round each task has been leased exactly once.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count

from benchmarks.loaded_store import fresh_url
from benchmarks.measure import Meter, Options, Round
from benchmarks.promises import Promise, has, rate, ratio
from benchmarks.results_file import Result
from cynosure.common.delegated.payload import TableIdentity, TaskOrder
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.store.open import open_task_store
from cynosure.delegation.store.port import TaskStore
from cynosure.delegation.transitions import running, submitted, succeeded
from cynosure.persistence.backends.postgres.address import read_address
from cynosure.persistence.backends.postgres.sessions import Sessions

_START_US = 1_750_000_000_000_000
_LEASE_US = 3_600_000_000
_numbers = count(1)


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    """The stores of tasks, and rows of PostgreSQL."""
    databases = options.get("databases", "postgres,sqlite").split(",")
    workers, tasks = options.get("workers", 8), options.get("tasks", 800)
    candidates: dict[str, Round] = {}
    async with AsyncExitStack() as stack:
        for database in databases:
            url = await stack.enter_async_context(fresh_url(database))
            store = await stack.enter_async_context(open_task_store(url, "default"))
            candidates[f"{database}, leases"] = _leasing(store, workers, tasks, is_to_the_end=False)
            candidates[f"{database}, to the end"] = _leasing(store, workers, tasks, is_to_the_end=True)
        if "postgres" in databases:
            url = await stack.enter_async_context(fresh_url("postgres"))
            rows = await stack.enter_async_context(_open_rows(url, workers))
            candidates["postgres, independent rows"] = _updating(rows, workers, tasks)
        yield candidates


def _leasing(store: TaskStore, workers: int, tasks: int, *, is_to_the_end: bool) -> Round:
    async def work(meter: Meter) -> None:
        batch = next(_numbers)
        now_us = _START_US + batch * _LEASE_US * 2
        orders = [_order(f"{batch}-{number}") for number in range(tasks)]
        for at in range(0, tasks, 100):
            submits = (store.insert(submitted(order, now_us=now_us)) for order in orders[at : at + 100])
            await asyncio.gather(*submits)
        leased: list[str] = []

        async def serve(worker: str) -> None:
            while taken := await store.lease(worker, now_us=now_us, lease_us=_LEASE_US):
                record = taken.record
                leased.append(record.task_id)
                if is_to_the_end:
                    begun = await store.swap(record, running(record, now_us=now_us))
                    assert begun is not None
                    done = succeeded(begun, now_us=now_us, result=ExecutionResult(1, 1))
                    assert await store.swap(begun, done) is not None

        with meter.measuring():
            await asyncio.gather(*(serve(f"worker-{number}") for number in range(workers)))
        meter.count(operations=len(leased) * (3 if is_to_the_end else 1))
        if sorted(leased) != sorted(order.task_id for order in orders):
            raise SystemExit("bench: a task was leased twice, or not at all")
        await _clear(store, leased, now_us)

    return work


async def _clear(store: TaskStore, leased: list[str], now_us: int) -> None:
    """End what is leased and forget it all, so that no round works on what an earlier one left."""
    for task_id in leased:
        record = await store.find(task_id)
        assert record is not None
        if not record.status.is_terminal:
            begun = await store.swap(record, running(record, now_us=now_us))
            assert begun is not None
            await store.swap(begun, succeeded(begun, now_us=now_us, result=ExecutionResult()))
    await store.forget(now_us + 1)


def _order(name: str) -> TaskOrder:
    table = TableIdentity("4711", "lake", ("sales", "eu"), f"orders_{name}")
    return TaskOrder(TaskType.TABLE_PURGE, "default", name, table, properties={"skipTrash": "true"})


class _Rows:
    """A table of numbers."""

    version = 1

    def __init__(self, schema: str) -> None:
        rows = f'"{schema}".rows'
        self.layout = (
            f"CREATE TABLE {rows} (id integer PRIMARY KEY, n bigint NOT NULL, text text NOT NULL)",
            f'CREATE TABLE "{schema}".store_format (version integer NOT NULL)',
            f'INSERT INTO "{schema}".store_format VALUES (1)',
        )
        self.greet = f'SELECT version FROM "{schema}".store_format'
        self.fill = f"INSERT INTO {rows} SELECT each, 0, repeat('x', 500) FROM generate_series(1, 10000) each"
        self.update = f"UPDATE {rows} SET n = n + 1 WHERE id = $1 RETURNING n"


@asynccontextmanager
async def _open_rows(url: str, workers: int) -> AsyncIterator[tuple[Sessions, _Rows]]:
    address = read_address(url, {"connections": str(max(workers, 2))})
    rows = _Rows(address.schema)
    sessions = Sessions(address, rows)
    await sessions.setup()
    await sessions.write_many(rows.fill, [()])
    try:
        yield sessions, rows
    finally:
        await sessions.close()


def _updating(opened: tuple[Sessions, _Rows], workers: int, total: int) -> Round:
    sessions, rows = opened

    async def work(meter: Meter) -> None:
        async def update(worker: int) -> None:
            for number in range(total // workers):
                # Another row each time, and never one of another worker: no row is waited for.
                assert await sessions.write(rows.update, 1 + worker + workers * (number % 1_000))

        with meter.measuring():
            await asyncio.gather(*(update(worker) for worker in range(workers)))
        meter.count(operations=total // workers * workers)

    return work


def promises(result: Result) -> list[Promise]:
    """The rate of leases and of all changes beside that of independent rows."""
    rows = "postgres, independent rows"
    return [
        Promise(f"{each} over {rows}, rate", "≥", 0.5, ratio(result, each, rows, rate))
        for each in ("postgres, leases", "postgres, to the end")
        if has(result, each, rows)
    ]
