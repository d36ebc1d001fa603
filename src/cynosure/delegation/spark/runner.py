"""Jobs on Spark: one driver for all of them, started when it is needed, ended when nobody needs it.

A maintainer must not break: a driver that died costs the jobs that ran there one attempt, and nothing else;
the next job gets a new one.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from cynosure.client.tokens import ClientCredentials
from cynosure.common.clock import Clock
from cynosure.common.delegated.payload import TaskOrder
from cynosure.common.delegated.record import TaskProgress
from cynosure.common.delegated.settings import DelegationSettings, SparkSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import Misconfigured
from cynosure.delegation.catalog_access import CatalogAccess, TableAccess
from cynosure.delegation.spark.driver_jobs import JOBS
from cynosure.delegation.spark.kind import PLACE
from cynosure.delegation.spark.link import CatalogReach
from cynosure.delegation.store.port import Receipt
from cynosure.spark.keeper import DriverKeeper
from cynosure.spark.trust import make_trust

_WATCH_S: Final = 1.0


class Lease(Protocol):
    """What is asked of a job's lease (`jobs.port.JobLease`)."""

    @property
    def until_us(self) -> int: ...  # noqa: D102
    def check(self, *, needs_s: float = 5.0) -> None: ...  # noqa: D102


class Context(Protocol):
    """What answers a driver job's questions: what a job has (`jobs.port.JobContext`)."""

    @property
    def task_id(self) -> str: ...  # noqa: D102
    @property
    def order(self) -> TaskOrder: ...  # noqa: D102
    @property
    def lease(self) -> Lease: ...  # noqa: D102
    @property
    def catalog(self) -> CatalogAccess: ...  # noqa: D102
    async def report(self, progress: TaskProgress) -> None: ...  # noqa: D102
    async def put_receipts(self, receipts: Sequence[Receipt]) -> None: ...  # noqa: D102


class ChildSparkRunner:
    """Runs driver jobs in a child process (`SparkRunner`)."""

    def __init__(
        self,
        settings: SparkSettings,
        clock: Clock,
        *,
        reach: Callable[[TaskOrder], CatalogReach],
        jobs: Mapping[str, str] = JOBS,
        java_options: Callable[[Path], tuple[str, ...]] = lambda _: (),
    ) -> None:
        self._clock = clock
        self._reach = reach
        self._drivers = DriverKeeper(settings, clock, kind=PLACE, jobs=jobs, java_options=java_options)

    @property
    def driver_pid(self) -> int | None:
        """Of the driver that runs now."""
        driver = self._drivers.running
        return driver.pid if driver is not None else None

    async def run(self, job: str, parameters: dict[str, Any], context: Context) -> dict[str, Any]:
        """Run the registered driver job of this name; what it returns."""
        async with self._drivers.use() as driver:
            running = asyncio.create_task(
                driver.run(
                    job,
                    parameters,
                    task_id=context.task_id,
                    description=_describe(context.order),
                    questions=_Questions(context, self._reach, self._clock).answer,
                )
            )
            return await self._watch(running, context)

    async def close(self) -> None:
        """End the driver."""
        await self._drivers.close()

    async def _watch(self, running: asyncio.Task[dict[str, Any]], context: Context) -> dict[str, Any]:
        """Wait for a job as long as its task is ours."""
        try:
            while True:
                await asyncio.wait({running}, timeout=_WATCH_S)
                if running.done():
                    return running.result()
                context.lease.check(needs_s=0.0)
        finally:
            if not running.done():
                running.cancel()
                await asyncio.wait({running})


class _Questions:
    """Answers what one run of a job asks."""

    def __init__(self, context: Context, reach: Callable[[TaskOrder], CatalogReach], clock: Clock) -> None:
        self._context = context
        self._reach = reach
        self._clock = clock
        self._access: TableAccess | None = None
        self._opening = asyncio.Lock()

    async def answer(self, what: str, value: Any) -> Any:
        context = self._context
        match what:
            case "lease":
                context.lease.check(needs_s=float(value))
                return context.lease.until_us
            case "progress":
                await context.report(msgspec.convert(value, TaskProgress))
            case "receipts":
                await context.put_receipts(msgspec.convert(value, list[Receipt]))
            case "credentials":
                return msgspec.to_builtins(await (await self._open()).client_files())
            case "catalog":
                return msgspec.to_builtins(self._reach(context.order))
            case "now":
                return self._clock.now_us()
            case _:
                raise Misconfigured("A driver asks what nobody can answer", what=what)
        return None

    async def _open(self) -> TableAccess:
        async with self._opening:
            if self._access is None:
                catalog, order = self._context.catalog, self._context.order
                is_purge = order.task_type is TaskType.TABLE_PURGE
                self._access = await (
                    catalog.open_tombstone(order) if is_purge else catalog.open_table(order)
                )
            return self._access


def make_spark_runner(
    settings: DelegationSettings, clock: Clock, credentials: ClientCredentials | None
) -> ChildSparkRunner:
    """The runner of a service, whose own principal has these credentials. Starts nothing yet."""
    service = settings.service
    tls = service.catalog_tls

    def reach(order: TaskOrder) -> CatalogReach:
        if credentials is None:
            raise Misconfigured(
                "The service has no principal to reach the catalog with",
                fix="Run `cynosure delegation init`, or set delegation.service.client_id and client_secret.",
            )
        return CatalogReach(
            url=service.catalog_url,
            warehouse=order.table.catalog_name,
            client_id=credentials.client_id,
            client_secret=credentials.client_secret.reveal(),
            scope=credentials.scope,
            realm=order.realm,
            ca=str(tls.ca) if tls.ca else None,
            certificate=str(tls.certificate) if tls.certificate else None,
            key=str(tls.key) if tls.key else None,
        )

    return ChildSparkRunner(
        service.spark, clock, reach=reach, java_options=lambda scratch: make_trust(tls, scratch)
    )


def _describe(order: TaskOrder) -> str:
    table = ".".join((order.table.catalog_name, *order.table.path))
    trace = (order.traceparent or "").split("-")
    return f"{order.task_type} {table}" + (f" trace={trace[1]}" if len(trace) == 4 else "")
