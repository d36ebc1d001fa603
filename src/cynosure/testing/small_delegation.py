"""A small delegation service for tests: tasks in memory, time in the hands of the test, jobs by script.

small = SmallDelegation()
small.job.script = [small.succeed(files=3)]
worker = await small.start_worker()
…
await small.close()
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from random import Random

from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import Expected, TableIdentity, TaskOrder
from cynosure.common.delegated.record import ExecutionResult, TaskDetails
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskStatus, TaskType
from cynosure.common.errors import BadInput, NotFound
from cynosure.delegation.catalog_access import TableAccess
from cynosure.delegation.jobs.port import JobContext
from cynosure.delegation.service.service import TaskService
from cynosure.delegation.store.port import TaskStore
from cynosure.delegation.worker.worker import Worker
from cynosure.storage.location import Location
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.memory_task_store import MemoryTaskStore

REALM = "default"
Step = Callable[[JobContext], Awaitable[ExecutionResult]]
_TURNS = 60
"""How often other tasks get a turn before nothing more can happen without the clock."""


_STEPS = 10


def make_order(
    name: str = "t", *, task_type: TaskType = TaskType.TABLE_PURGE, **changes: object
) -> TaskOrder:
    """An order for a table of this name; its correlation id follows from the name."""
    given: dict[str, object] = {
        "task_type": task_type,
        "realm": REALM,
        "correlation_id": f"order-{name}",
        "table": TableIdentity("7001", "lake", ("ns",), name),
        "expected": Expected(location=f"s3://bucket/lake/ns/{name}"),
        **changes,
    }
    return TaskOrder(**given)  # type: ignore[arg-type]


class ScriptedJob:
    """A job that does what a test says: one step for each attempt, the last one again and again."""

    def __init__(self, task_type: TaskType = TaskType.TABLE_PURGE) -> None:
        self._task_type = task_type
        self.script: list[Step] = []
        self.attempts: list[JobContext] = []
        """What each attempt had."""
        self.stopped: list[int] = []
        """Attempts that were stopped from outside."""

    @property
    def task_type(self) -> TaskType:
        return self._task_type

    def check(self, order: TaskOrder) -> None:
        if "bad" in order.properties:
            raise BadInput(
                "An instruction is not known",
                field="operation_parameters.properties.bad",
                fix="Leave it out.",
            )

    async def run(self, context: JobContext) -> ExecutionResult:
        self.attempts.append(context)
        step = self.script[min(len(self.attempts), len(self.script)) - 1] if self.script else succeed()
        try:
            return await step(context)
        except asyncio.CancelledError:
            self.stopped.append(context.attempt)
            raise


def succeed(*, files: int = 0, size: int = 0) -> Step:
    """Begin, and be done."""

    async def step(context: JobContext) -> ExecutionResult:
        await context.begin()
        return ExecutionResult(files, size)

    return step


def stumble(error: Exception, *, is_begun: bool = True) -> Step:
    """Raise this, once the task runs; or before, while it waits for what it needs."""

    async def step(context: JobContext) -> ExecutionResult:
        if is_begun:
            await context.begin()
        raise error

    return step


class Gate:
    """A step that waits until the test opens it; `entered` is set when the job is there."""

    def __init__(self, then: Step | None = None) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        self._then = then or succeed()

    async def __call__(self, context: JobContext) -> ExecutionResult:
        await context.begin()
        self.entered.set()
        await self.opened.wait()
        return await self._then(context)


class SmallCatalogAccess:
    """A catalog that knows no tables and remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.refusal: Exception | None = None

    async def open_tombstone(self, order: TaskOrder) -> TableAccess:
        raise NotFound("There is no such tombstone", table=order.table.table_name)

    async def begin_purging(self, order: TaskOrder) -> None:
        raise NotFound("There is no such tombstone", table=order.table.table_name)

    async def open_table(self, order: TaskOrder) -> TableAccess:
        raise NotFound("There is no such table", table=order.table.table_name)

    async def list_overlapping_dropped(
        self, order: TaskOrder, places: Sequence[Location]
    ) -> list[TableAccess]:
        return []

    async def tell(self, order: TaskOrder, task_id: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.told.append(task_id)


class SmallDelegation:
    """One store, and as many instances of the service on it as a test wants."""

    def __init__(self, settings: DelegationSettings | None = None, *, store: TaskStore | None = None) -> None:
        self.clock = ManualClock()
        self.memory = MemoryTaskStore()
        self.store: TaskStore = store or self.memory
        self.settings = settings or DelegationSettings()
        self.job = ScriptedJob()
        self.catalog = SmallCatalogAccess()
        self.service = self.make_service()
        self._workers: list[Worker] = []

    def make_service(self, clock: Clock | None = None, job: ScriptedJob | None = None) -> TaskService:
        """Another instance: nobody there is told of what happens here."""
        job = job or self.job
        return TaskService(
            self.store,
            realm=REALM,
            clock=clock or self.clock,
            jobs={job.task_type: job},
            settings=self.settings,
        )

    async def start_worker(
        self,
        instance: str = "one",
        *,
        service: TaskService | None = None,
        is_predecessor_dead: bool = False,
        slots: int | None = None,
    ) -> Worker:
        """A worker; in this instance unless another service is given."""
        worker = Worker(
            service or self.service, catalog=self.catalog, instance=instance, rng=Random(1), slots=slots
        )
        self._workers.append(worker)
        await worker.start(is_predecessor_dead=is_predecessor_dead)
        return worker

    async def settle(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Let time pass, and everything happen by then."""
        await self.settle()
        # In steps: what is woken in one may take many turns, and must not find that it is much later.
        for _ in range(_STEPS):
            await self.clock.advance(seconds / _STEPS)
            await self.settle()

    async def status(self, task_id: str) -> TaskStatus:
        """The state of a task."""
        return (await self.details(task_id)).status

    async def details(self, task_id: str) -> TaskDetails:
        """A task that is there."""
        details = await self.service.find(task_id)
        assert details is not None
        return details

    async def statuses(self, task_id: str) -> list[TaskStatus]:
        """All states that a task has been in, in order."""
        return [each.status for each in await self.service.history(task_id)]

    async def close(self) -> None:
        """Stop all workers, at once."""
        for worker in self._workers:
            closing = asyncio.ensure_future(worker.close())
            while not closing.done():
                await self.clock.advance(1)
            await closing
