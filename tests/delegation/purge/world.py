"""A table with a random history, in any storage, and all that a job needs to work on it, in memory.

Must not break: the context is as strict as the real one. What a job does without a lease, or before the
catalog agreed, fails.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

import msgspec

from cynosure.catalog.purge_errors import LocationShared
from cynosure.common.clock import Clock, SystemClock
from cynosure.common.delegated.payload import Expected, TableIdentity, TaskOrder
from cynosure.common.delegated.record import ExecutionResult, TaskProgress
from cynosure.common.delegated.settings import DelegationSettings, ServiceSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.common.errors import Conflict, LeaseLost, NotFound
from cynosure.delegation.catalog_access import ClientFiles, TableFacts
from cynosure.delegation.jobs.port import Job, SparkRunner
from cynosure.delegation.store.port import Receipt, Receipts
from cynosure.storage.fileio import READ_LIMIT_BYTES, FileInfo, FileIO
from cynosure.storage.location import Location
from cynosure.testing.fileio_kit import collect
from tests.planning_oracle.history import RandomTable
from tests.planning_oracle.metadata import metadata_of

REALM = "default"


class Killed(BaseException):
    """The process ends here, as far as this test goes."""


class Steps:
    """Counts what is done; dies at one of them, before or after it was done."""

    def __init__(self) -> None:
        self.count = 0
        self.dies_at: int | None = None
        self.dies_after = False
        self.log: list[str] = []

    async def do(self, name: str, work: Callable[[], Awaitable[Any]]) -> Any:
        number, self.count = self.count, self.count + 1
        self.log.append(name)
        if number == self.dies_at and not self.dies_after:
            raise Killed(name)
        result = await work()
        if number == self.dies_at:
            raise Killed(name)
        return result


class SteppedFiles:
    """Files whose changes are steps."""

    def __init__(self, files: FileIO, steps: Steps) -> None:
        self.inner = files
        self._steps = steps
        self.on_delete: list[Callable[[Sequence[Location]], Awaitable[None]]] = []
        """Asked before each deletion; may do or raise something."""

    async def read(self, location: Location, *, limit_bytes: int = READ_LIMIT_BYTES) -> bytes:
        return await self.inner.read(location, limit_bytes=limit_bytes)

    async def write(self, location: Location, data: bytes, *, overwrite: bool = False) -> None:
        await self._steps.do("write", lambda: self.inner.write(location, data, overwrite=overwrite))

    async def delete(self, location: Location) -> None:
        await self.delete_many([location])

    async def delete_many(self, locations: Iterable[Location]) -> None:
        chosen = list(locations)
        for each in self.on_delete:
            await each(chosen)
        await self._steps.do("delete", lambda: self.inner.delete_many(chosen))

    def list(self, prefix: Location) -> AsyncIterator[FileInfo]:
        return self.inner.list(prefix)

    async def exists(self, location: Location) -> bool:
        return await self.inner.exists(location)


class FakeTable:
    """A table that is open."""

    def __init__(self, facts: TableFacts, files: FileIO, properties: dict[str, str]) -> None:
        self.facts = facts
        self.files = files
        self._properties = properties

    async def client_files(self) -> ClientFiles:
        return ClientFiles(self._properties, 0)


class FakeCatalog:
    """A catalog with one table."""

    def __init__(self, table: FakeTable, steps: Steps) -> None:
        self.table = table
        self.state = "restorable"
        self.dropped: list[FakeTable] = []
        self.on_open: Callable[[], None] = lambda: None
        self._steps = steps

    async def open_tombstone(self, order: TaskOrder) -> FakeTable:
        if self.state == "restored":
            raise NotFound("There is no such tombstone")
        return self.table

    async def open_table(self, order: TaskOrder) -> FakeTable:
        self.on_open()
        return self.table

    async def begin_purging(self, order: TaskOrder) -> None:
        if self.state == "shared":
            raise LocationShared("A place of the table is not its own", fix="Leave it.")
        if self.state == "restored":
            # As it comes over HTTP.
            raise Conflict("The table must not be purged", fix="Leave it.", status=409, type="Conflict")

        async def swap() -> None:
            self.state = "purging"

        await self._steps.do("purging", swap)

    async def list_overlapping_dropped(self, order: TaskOrder, places: Sequence[Location]) -> list[FakeTable]:
        return [
            each
            for each in self.dropped
            if any(ours.overlaps(theirs) for ours in each.facts.places for theirs in places)
        ]

    async def tell(self, order: TaskOrder, task_id: str) -> None:
        pass


class FakeLease:
    def __init__(self, number: int) -> None:
        self.token = f"lease-{number}"
        self.until_us = 2**62
        self.checks = 0
        self.is_lost = False

    def check(self, *, needs_s: float = 5.0) -> None:
        self.checks += 1
        if self.is_lost:
            raise LeaseLost("Another one has it")


class FakeContext:
    """One attempt."""

    def __init__(self, world: "World", attempt: int, spark: SparkRunner | None = None) -> None:
        self._world = world
        self.task_id = world.order.task_id
        self.order = world.order
        self.attempt = attempt
        self.lease = FakeLease(attempt)
        self.catalog = world.catalog
        self.spark = spark
        self.settings = world.settings
        self.clock: Clock = world.clock
        self.reports: list[TaskProgress] = []
        self.is_running = False

    async def begin(self) -> None:
        assert not self.is_running
        self.is_running = True

    async def mark_begun(self) -> None:
        assert self._world.catalog.state == "purging" or not self._world.is_tombstone

        async def mark() -> None:
            self._world.is_begun = True

        await self._world.steps.do("begun", mark)

    async def report(self, progress: TaskProgress) -> None:
        self.reports.append(progress)

    async def put_receipts(self, receipts: Sequence[Receipt]) -> None:
        self.lease.check()

        async def keep() -> None:
            for each in receipts:
                self._world.kept.setdefault(each.batch, each)

        await self._world.steps.do("receipt", keep)

    async def receipts(self) -> Receipts:
        return Receipts(dict(self._world.kept))


class FastClock(SystemClock):
    """Does not wait for anything."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(0)


class World:
    """One table, one task, as many attempts as it takes."""

    def __init__(
        self,
        files: FileIO,
        location: str,
        *,
        seed: int = 1,
        properties: dict[str, str] | None = None,
        threshold: int = 10_000,
        task_type: TaskType = TaskType.TABLE_PURGE,
        client: dict[str, str] | None = None,
    ) -> None:
        self.clock = FastClock()
        self.steps = Steps()
        self.base = files
        self.files = SteppedFiles(files, self.steps)
        self.random = RandomTable(seed, location, is_plain=False, steps=6)
        self.location = Location.parse(location)
        self.metadata: dict[str, Any] = msgspec.json.decode(metadata_of(self.random))
        self.metadata |= {
            "statistics": [_statistics(f"{location}/metadata/stats.puffin")],
            "partition-statistics": [_statistics(f"{location}/metadata/parts.parquet")],
            "metadata-log": [
                {"timestamp-ms": 1, "metadata-file": f"{location}/metadata/00000.metadata.json"}
            ],
        }
        self.metadata_location = f"{location}/metadata/00001.metadata.json"
        self.places: tuple[Location, ...] = (self.location,)
        self.settings = DelegationSettings(service=ServiceSettings(spark_threshold_files=threshold))
        self.kept: dict[str, Receipt] = {}
        self.is_begun = False
        self.is_tombstone = task_type is TaskType.TABLE_PURGE
        self.attempts = 0
        self.order = TaskOrder(
            task_type,
            REALM,
            f"purge-{location}",
            TableIdentity("77", "lake", ("ns",), "t"),
            expected=Expected(location=location, table_uuid=self.metadata["table-uuid"]),
            properties=properties or {},
        )
        self._client = client or {}
        self.catalog = FakeCatalog(self.make_table(), self.steps)

    def make_table(self) -> FakeTable:
        facts = TableFacts(
            entity_id="77",
            table_uuid=self.metadata["table-uuid"],
            location=self.location.text,
            places=self.places,
            metadata_location=self.metadata_location,
            metadata=self.metadata,
        )
        return FakeTable(facts, self.files, self._client)

    def refresh(self) -> None:
        """Metadata or places have been changed by the test."""
        self.catalog.table = self.make_table()

    @property
    def named(self) -> dict[str, bytes]:
        """Every file that the table names, and what is in it."""
        found = dict.fromkeys((*self.random.rows, *self.random.deletes), b"x" * 10)
        found |= {each["statistics-path"]: b"stats" for each in self.metadata["statistics"]}
        found |= {each["statistics-path"]: b"parts" for each in self.metadata["partition-statistics"]}
        found |= {each["metadata-file"]: b"{}" for each in self.metadata["metadata-log"]}
        found[self.metadata_location] = msgspec.json.encode(self.metadata)
        return found | self.random.files

    async def write(self, more: dict[str, bytes] | None = None) -> dict[str, int]:
        """Write all files of the table, and more; what there is, with sizes."""
        found = self.named | (more or {})
        for path, data in found.items():
            await self.base.write(Location.parse(path), data)
        return {path: len(data) for path, data in found.items()}

    async def list(self) -> dict[str, int]:
        """What lies in the places, plans of ours included."""
        found: dict[str, int] = {}
        for place in self.places:
            found |= {each.location.text: each.size_bytes for each in await collect(self.base, place)}
        return found

    async def run(self, job: Job, *, spark: SparkRunner | None = None) -> ExecutionResult:
        """One attempt."""
        self.attempts += 1
        self.context = FakeContext(self, self.attempts, spark)
        return await job.run(self.context)


def _statistics(path: str) -> dict[str, Any]:
    return {"snapshot-id": 1000, "statistics-path": path, "file-size-in-bytes": 5}
