"""A table of many small files on an S3 server, and what a purge needs to delete it, without a catalog.

A maintainer must not break: files are named by manifests as an engine names them, so a purge has to read and
join what it would have to in earnest.
"""

import asyncio
import uuid
from collections.abc import Iterator, Sequence
from itertools import islice

from cynosure.common.clock import SystemClock
from cynosure.common.delegated.payload import TableIdentity, TaskOrder
from cynosure.common.delegated.record import TaskProgress
from cynosure.common.delegated.settings import DelegationSettings, ServiceSettings, SparkSettings
from cynosure.common.delegated.vocabulary import TaskType
from cynosure.delegation.catalog_access import ClientFiles, TableAccess, TableFacts
from cynosure.delegation.jobs.port import SparkRunner
from cynosure.delegation.store.port import Receipt, Receipts
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.storage.location import Location
from cynosure.storage.open_vended import open_vended
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import S3Server

_WRITERS = 48
_PER_MANIFEST = 2_000
_KIND = ManifestKind(2, PartitionSpec((), 0), (), b"[]", b'{"type":"struct","fields":[]}', 0)


class PurgedTable:
    """A table that is to be purged."""

    def __init__(self, server: S3Server, files: int) -> None:
        self.server = server
        self.count = files
        self.location = Location.parse(server.fresh_location("bench-purge"))
        self.properties = {
            "s3.access-key-id": server.access_key_id,
            "s3.secret-access-key": server.secret_access_key,
            "s3.endpoint": server.endpoint,
            "s3.path-style-access": "true",
            "client.region": server.region,
        }
        self.files = open_vended(self.properties, [self.location], StorageSettings(), SystemClock())

    @property
    def data(self) -> list[Location]:
        """Its data files."""
        return [self.location.child("data", f"{number:07}.parquet") for number in range(self.count)]

    async def write(self) -> TableFacts:
        """Write all of it."""
        list_path = self.location.child("metadata", "snap-1.avro")
        lines: list[ManifestFile] = []
        names = iter(self.data)
        while some := list(islice(names, _PER_MANIFEST)):
            path = self.location.child("metadata", f"m-{len(lines):05}.avro")
            data, line = write_manifest(_KIND, _entries(some), path=path.text, snapshot_id=1)
            await self.files.write(path, data)
            lines.append(line)
        listed, _, _ = write_manifest_list(
            lines, format_version=2, snapshot_id=1, parent_snapshot_id=None, sequence_number=1
        )
        await self.files.write(list_path, listed)
        rest = iter(self.data)

        async def write() -> None:
            for location in rest:
                await self.files.write(location, b"row")

        await asyncio.gather(*(write() for _ in range(_WRITERS)))
        return TableFacts(
            entity_id="1",
            table_uuid=str(uuid.uuid4()),
            location=self.location.text,
            places=(self.location,),
            metadata_location=self.location.child("metadata", "v1.metadata.json").text,
            metadata={"snapshots": [{"snapshot-id": 1, "manifest-list": list_path.text}]},
        )


def _entries(some: Sequence[Location]) -> Iterator[Entry]:
    for each in some:
        file = ContentFile(
            path=each.text, format="parquet", spec_id=0, partition=(), record_count=1, file_size_bytes=3
        )
        yield Entry(Status.ADDED, 1, None, None, file)


class _Table:
    def __init__(self, table: PurgedTable, facts: TableFacts) -> None:
        self.facts = facts
        self.files = table.files
        self._properties = table.properties

    async def client_files(self) -> ClientFiles:
        return ClientFiles(self._properties, 0)


class _Catalog:
    """Says yes."""

    def __init__(self, table: _Table) -> None:
        self._table = table

    async def open_tombstone(self, order: TaskOrder) -> TableAccess:
        return self._table

    async def open_table(self, order: TaskOrder) -> TableAccess:
        return self._table

    async def begin_purging(self, order: TaskOrder) -> None:
        pass

    async def list_overlapping_dropped(
        self, order: TaskOrder, places: Sequence[Location]
    ) -> list[TableAccess]:
        return []

    async def tell(self, order: TaskOrder, task_id: str) -> None:
        pass


class _Lease:
    token = "bench"

    @property
    def until_us(self) -> int:
        return SystemClock().now_us() + 3_600_000_000

    def check(self, *, needs_s: float = 5.0) -> None:
        pass


class PurgeContext:
    """A `JobContext` whose lease never ends; receipts are kept in memory."""

    def __init__(
        self,
        table: PurgedTable,
        facts: TableFacts,
        *,
        spark: SparkRunner | None = None,
        settings: SparkSettings | None = None,
    ) -> None:
        self.order = TaskOrder(
            TaskType.TABLE_PURGE, "bench", table.location.text, TableIdentity("1", "lake", ("ns",), "t")
        )
        self.task_id = self.order.task_id
        self.attempt = 1
        self.lease = _Lease()
        self.catalog = _Catalog(_Table(table, facts))
        self.spark = spark
        # As many as a service would look at by itself before it asks Spark, or some of a smaller table.
        most = min(ServiceSettings().spark_threshold_files, table.count // 2)
        self.settings = DelegationSettings(
            service=ServiceSettings(spark_threshold_files=most, spark=settings or SparkSettings())
        )
        self.clock = SystemClock()
        self._kept: dict[str, Receipt] = {}

    async def begin(self) -> None:
        pass

    async def mark_begun(self) -> None:
        pass

    async def report(self, progress: TaskProgress) -> None:
        pass

    async def put_receipts(self, receipts: Sequence[Receipt]) -> None:
        self._kept |= {each.batch: each for each in receipts}

    async def receipts(self) -> Receipts:
        return Receipts(self._kept)
