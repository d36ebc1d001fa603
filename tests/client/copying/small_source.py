"""A table of a few files in memory, and a store that fails when it is told to."""

import io
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from cynosure.client.appending.signed_files import gone
from cynosure.client.copying.paths import Paths
from cynosure.client.copying.table_files import TableFiles
from cynosure.client.copying.transfers import Transfers
from cynosure.common.errors import Unavailable
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.repath import PATH_COLUMN
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from cynosure.iceberg.partitioning import PartitionSpec

HERE, THERE = "s3://theirs/t", "s3://ours/copy"


class MemoryFiles:
    """A store."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = dict(files or {})
        self.order: list[str] = []
        """What was written, in order."""
        self.reads: list[str] = []
        self.writes_left = 1_000

    async def has(self, location: str, size_bytes: int) -> bool:
        return len(self.files.get(location, b"")) == size_bytes and location in self.files

    async def read(self, location: str, into: IO[bytes]) -> int:
        if location not in self.files:
            raise gone(location)
        self.reads.append(location)
        return into.write(self.files[location])

    async def write(self, location: str, content: IO[bytes]) -> None:
        if self.writes_left == 0:
            raise Unavailable("The store is away", fix="Wait.")
        self.writes_left -= 1
        self.files[location] = content.read()
        self.order.append(location)

    async def delete(self, locations: Any) -> None:
        raise AssertionError("nothing is deleted")


class SmallSource:
    """Commits, one after the other."""

    def __init__(self) -> None:
        self.store = MemoryFiles()
        self.snapshots: list[dict[str, Any]] = []
        self.manifests: list[ManifestFile] = []
        self._number = 0

    @property
    def metadata(self) -> dict[str, Any]:
        return {"location": HERE, "snapshots": self.snapshots}

    def data(self, name: str, content: bytes = b"rows") -> ContentFile:
        return self._add(name, content)

    def positions(self, name: str, *deleted: tuple[str, int]) -> ContentFile:
        file = io.BytesIO()
        columns = {"file_path": [each[0] for each in deleted], "pos": [each[1] for each in deleted]}
        pq.write_table(pa.table(columns), file, store_schema=False)
        bounds = {PATH_COLUMN: deleted[0][0].encode()}
        more = {"lower_bounds": bounds, "upper_bounds": bounds}
        return self._add(name, file.getvalue(), content=Content.POSITION_DELETES, **more)

    def _add(self, name: str, data: bytes, **more: Any) -> ContentFile:
        path = f"{HERE}/data/{name}"
        self.store.files[path] = data
        return ContentFile(
            path=path,
            format=name.rpartition(".")[2],
            spec_id=0,
            partition=(),
            record_count=1,
            file_size_bytes=len(data),
            **more,
        )

    def commit(self, *manifests: list[tuple[Status, ContentFile]], key: bytes | None = None) -> None:
        """A snapshot with these manifests more."""
        self._number += 1
        snapshot = 100 + self._number
        added = []
        for at, files in enumerate(manifests):
            content = ManifestContent(min(1, files[0][1].content))
            path = f"{HERE}/metadata/{snapshot}-m{at}.avro"
            kind = ManifestKind(2, PartitionSpec((), 0), (), b"[]", b"{}", 0, content)
            entries = [
                Entry(status, snapshot, None if status is Status.ADDED else 1, None, file)
                for status, file in files
            ]
            self.store.files[path], listed = write_manifest(kind, entries, path=path, snapshot_id=snapshot)
            added.append(listed)
        data, listing, _ = write_manifest_list(
            [*self.manifests, *added],
            format_version=2,
            snapshot_id=snapshot,
            parent_snapshot_id=None,
            sequence_number=self._number,
        )
        self.manifests = list(listing)
        path = f"{HERE}/metadata/snap-{snapshot}.avro"
        self.store.files[path] = data
        self.snapshots.append({"snapshot-id": snapshot, "manifest-list": path})

    async def copy(self, into: MemoryFiles) -> Transfers:
        transfers = Transfers(self.store, into, lambda _size: None)  # type: ignore[arg-type]
        await TableFiles(transfers, Paths(HERE, THERE)).copy(self.metadata)
        return transfers
