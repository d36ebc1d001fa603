"""A catalog server, tables in it, and the Spark driver of the product: what tests here work with.

The context of a job is scripted, so that a test can take the lease away; catalog, storage and Spark are real.
"""

import asyncio
import re
import threading
import uuid
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import httpx
import uvloop

from cynosure.client.tokens import ClientCredentials
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.payload import Expected, TableIdentity, TaskOrder
from cynosure.common.delegated.record import ExecutionResult, TaskProgress
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import LeaseLost, NotFound
from cynosure.common.secrets import Secret
from cynosure.delegation.catalog_access import ClientFiles, TableFacts
from cynosure.delegation.jobs.port import Job
from cynosure.delegation.spark.driver_jobs import JOBS
from cynosure.delegation.spark.link import CATALOG, CatalogReach
from cynosure.delegation.spark.runner import ChildSparkRunner
from cynosure.delegation.store.port import Receipt, Receipts
from cynosure.testing.catalog_server import ServedCatalog
from cynosure.testing.s3_servers import S3Server
from tests.delegation.spark import driver_side

T = TypeVar("T")


class Loop:
    """An event loop in a thread of its own, which outlives single tests."""

    def __init__(self) -> None:
        # As the service's own.
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float = 160.0) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class ScriptedLease:
    """A lease that a test can end."""

    token = "token"

    def __init__(self) -> None:
        self.is_lost = False
        self.checks = 0
        self.losing_at: int | None = None

    @property
    def until_us(self) -> int:
        return SystemClock().now_us() + 60_000_000

    def check(self, *, needs_s: float = 5.0) -> None:
        if needs_s:
            self.checks += 1
            if self.losing_at is not None and self.checks >= self.losing_at:
                self.is_lost = True
        if self.is_lost:
            raise LeaseLost("The lease is over")


@dataclass
class Access:
    facts: TableFacts
    properties: dict[str, str]

    @property
    def files(self) -> Any:
        raise AssertionError("jobs here have no use for it")

    async def client_files(self) -> ClientFiles:
        return ClientFiles(self.properties, 0)


class CatalogAtServer:
    """What a worker may ask of the catalog, as far as jobs here do."""

    def __init__(self, lake: ServedCatalog) -> None:
        self._lake = lake

    async def open_table(self, order: TaskOrder) -> Access:
        loaded = load_table(self._lake, order.table.path)
        if loaded is None:
            raise NotFound("No such table")
        metadata = loaded["metadata"]
        given = loaded.get("storage-credentials") or [{"config": {}}]
        return Access(
            TableFacts("1", metadata["table-uuid"], metadata["location"], (), "", metadata),
            {**loaded.get("config", {}), **given[0]["config"]},
        )

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"jobs here have no use for {name}")


@dataclass
class Context:
    """What a job has."""

    order: TaskOrder
    catalog: Any
    spark: ChildSparkRunner | None
    lease: ScriptedLease = field(default_factory=ScriptedLease)
    task_id: str = ""
    attempt: int = 1
    settings: DelegationSettings = field(default_factory=DelegationSettings)
    clock: SystemClock = field(default_factory=SystemClock)
    reported: list[TaskProgress] = field(default_factory=list)
    kept: list[Receipt] = field(default_factory=list)
    is_begun: bool = False

    def __post_init__(self) -> None:
        self.task_id = self.task_id or self.order.task_id

    async def begin(self) -> None:
        pass

    async def mark_begun(self) -> None:
        self.is_begun = True

    async def report(self, progress: TaskProgress) -> None:
        self.reported.append(progress)

    async def put_receipts(self, receipts: Sequence[Receipt]) -> None:
        self.lease.check()
        self.kept += receipts

    async def receipts(self) -> Receipts:
        return Receipts({each.batch: each for each in self.kept})


class Lake:
    """One catalog, asked through the driver of the product."""

    def __init__(
        self, loop: Loop, lake: ServedCatalog, runner: ChildSparkRunner, store: S3Server | None
    ) -> None:
        self.loop = loop
        self.served = lake
        self.runner = runner
        self.store = store

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements one after the other, in which `c.` stands for the catalog; the rows of the last."""
        order = self.order(TaskType.DATA_COMPACTION, ("x", "y"))
        given = {"statements": [for_spark(each) for each in statements]}
        answer = self.loop.run(self.runner.run("test-sql", given, self.context(order)))
        return [tuple(row) for row in answer["rows"]]

    def order(
        self, task_type: TaskType, path: tuple[str, ...], expected: Expected | None = None, **properties: str
    ) -> TaskOrder:
        return make_order(self.served.name, task_type, path, expected, **properties)

    def context(self, order: TaskOrder) -> Context:
        return Context(order, CatalogAtServer(self.served), self.runner)

    def work(self, job: Job, path: tuple[str, ...], **properties: str) -> ExecutionResult:
        """Do a task."""
        order = self.order(job.task_type, path, **properties)
        job.check(order)
        return self.loop.run(job.run(self.context(order)))

    def load(self, path: tuple[str, ...]) -> dict[str, Any]:
        loaded = load_table(self.served, path)
        assert loaded
        return loaded

    def list_files(self, location: str) -> set[str]:
        """What really lies below a location, as the owner of the storage sees it."""
        if self.store is None:
            from pathlib import Path

            root = Path(unquote(urlsplit(location).path))
            return {
                f"{location.rstrip('/')}/{each.relative_to(root)}"
                for each in root.rglob("*")
                if each.is_file() and not each.name.endswith(".crc")
            }
        return {f"s3://{self.store.bucket}/{key}" for key in self.store.list_below(location)}


def for_spark(statement: str) -> str:
    """With the catalog's name in Spark in place of `c`."""
    return re.sub(r"(?<!\w)c\.", f"{CATALOG}.", statement)


def make_order(
    catalog: str,
    task_type: TaskType,
    path: tuple[str, ...],
    expected: Expected | None = None,
    **properties: str,
) -> TaskOrder:
    *levels, name = path
    return TaskOrder(
        task_type,
        "default",
        uuid.uuid4().hex,
        TableIdentity("1", catalog, tuple(levels), name),
        expected=expected or Expected(),
        properties=properties,
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )


def load_table(lake: ServedCatalog, path: tuple[str, ...]) -> dict[str, Any] | None:
    *levels, name = path
    url = f"{lake.url}/namespaces/{'%1F'.join(levels)}/tables/{name}"
    headers = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    answer = httpx.get(url, auth=lake.login, headers=headers, timeout=30, trust_env=False)
    if answer.status_code == 404:
        return None
    answer.raise_for_status()
    loaded: dict[str, Any] = answer.json()
    return loaded


def make_runner(settings: DelegationSettings, url: str, credential: Any) -> ChildSparkRunner:
    """As the service makes one, with jobs of tests besides."""
    given = ClientCredentials(credential.client_id, Secret(credential.secret))

    def reach(order: TaskOrder) -> CatalogReach:
        return CatalogReach(
            url=url,
            warehouse=order.table.catalog_name,
            client_id=given.client_id,
            client_secret=given.client_secret.reveal(),
            scope=given.scope,
            realm=order.realm,
        )

    return ChildSparkRunner(
        settings.service.spark, SystemClock(), reach=reach, jobs={**JOBS, **driver_side.JOBS}
    )
