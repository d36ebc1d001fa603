"""Tasks that the kit works with."""

from cynosure.common.delegated.payload import TableIdentity, TaskOrder, make_task_id
from cynosure.common.delegated.record import ExecutionResult
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.store.port import Leased, TaskStore
from cynosure.delegation.task_record import TaskRecord
from cynosure.delegation.transitions import failed, running, submitted, succeeded

SECOND = 1_000_000
START = 1_750_000_000 * SECOND + 123_457
"""No whole second: a store that rounds times is found."""
LEASE = 60 * SECOND


def order(name: str, *, task_type: TaskType = TaskType.TABLE_PURGE, catalog: str = "lake") -> TaskOrder:
    """An order with this correlation id."""
    table = TableIdentity("17", catalog, ("sales", "eu"), f"orders {name}")
    return TaskOrder(task_type, "default", name, table, properties={"dryRun": "false"})


def new(
    name: str,
    *,
    at: int = 0,
    parent: str | None = None,
    first_run: int = 0,
    task_type: TaskType = TaskType.TABLE_PURGE,
    catalog: str = "lake",
) -> TaskRecord:
    """A task that was submitted `at` seconds after the start."""
    parent_id = None if parent is None else id_of(parent)
    made = order(name, task_type=task_type, catalog=catalog)
    return submitted(made, now_us=after(at), parent_id=parent_id, first_run_us=first_run)


def id_of(name: str) -> str:
    """Id of the task with this correlation id."""
    return make_task_id("default", name)


def after(seconds: float) -> int:
    """A time, from the start of the test on."""
    return START + int(seconds * SECOND)


async def lease(store: TaskStore, *, at: float, worker: str = "worker-1", lease_us: int = LEASE) -> Leased:
    """A lease that must be had."""
    leased = await store.lease(worker, now_us=after(at), lease_us=lease_us)
    assert leased is not None
    return leased


async def swap(store: TaskStore, expected: TaskRecord, record: TaskRecord) -> TaskRecord:
    """A change that must succeed."""
    swapped = await store.swap(expected, record)
    assert swapped is not None
    return swapped


async def run(store: TaskStore, leased: Leased, *, at: float) -> TaskRecord:
    """From leased to RUNNING."""
    return await swap(store, leased.record, running(leased.record, now_us=after(at)))


async def finish(store: TaskStore, name: str, *, at: float, is_success: bool = True) -> TaskRecord:
    """A task that was just submitted, from its lease to its end. No other must be ready before it."""
    leased = await lease(store, at=at)
    assert leased.record.correlation_id == name
    record = await run(store, leased, at=at)
    if is_success:
        ended = succeeded(record, now_us=after(at), result=ExecutionResult(3, 30, {"phases": ["a", "b"]}))
    else:
        ended = failed(record, now_us=after(at), code="BROKEN", summary="It broke", extended="a\nb")
    return await swap(store, record, ended)
