"""Thin committers: what a client does to append a file that is written already, and nothing else.

`StandardCommitter` commits as Iceberg's clients do: a manifest, a manifest list on top of the snapshot that
it knows, a commit that asserts this snapshot; after a conflict it loads the table and makes a new list.
`EndpointCommitter` sends the file to the catalog, which does the rest.

A maintainer must not break: both kinds take the same files, and a committer goes on from the answer to its
last commit, as PyIceberg and Java do; it does not load the table before each append.
"""

import asyncio
import random
import time
import uuid
from typing import Any, Final, Protocol

import msgspec
import obstore
from msgspec import Struct

from benchmarks.http_client import Answer, Catalog
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.write_manifest import ManifestKind, write_manifest, write_manifest_list
from cynosure.iceberg.partitioning import PartitionSpec
from cynosure.testing.s3_servers import S3Server

NAMESPACE: Final = "bench"
COLUMNS: Final = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "data", "required": False, "type": "string"},
]
SCHEMA: Final = {"type": "struct", "schema-id": 0, "fields": COLUMNS}
KIND: Final = ManifestKind(
    format_version=2,
    spec=PartitionSpec(()),
    partition_types=(),
    spec_json=b"[]",
    schema_json=msgspec.json.encode(SCHEMA),
    schema_id=0,
)
CONFLICT: Final = 409
MOST_WAIT_MS: Final = 60_000
WAIT_MS: Final = 100
"""After a first conflict, then doubled each time, up to the most, and a tenth more at random: the defaults of
`commit.retry.min-wait-ms` and `max-wait-ms` in Java and PyIceberg. Both would give up after four retries."""

_LONG_MS: Final = 1000


class Tally:
    """What clients did."""

    def __init__(self) -> None:
        self.appends = 0
        self.conflicts = 0
        self.store_requests = 0
        """Sent to the object store by the clients themselves."""
        self.latencies_s: list[float] = []


class SnapshotOf(Struct, rename="kebab"):
    """What a client needs of a snapshot."""

    snapshot_id: int
    manifest_list: str


class MetadataOf(Struct, rename="kebab"):
    """What a client needs of a table."""

    table_uuid: str
    location: str
    last_sequence_number: int
    current_snapshot_id: int | None = None
    snapshots: list[SnapshotOf] = []

    def head(self) -> SnapshotOf | None:
        """The current snapshot; from the end, where it nearly always is."""
        for snapshot in reversed(self.snapshots):
            if snapshot.snapshot_id == self.current_snapshot_id:
                return snapshot
        return None


class Loaded(Struct):
    """An answer with a table."""

    metadata: MetadataOf


_LOADED: Final = msgspec.json.Decoder(Loaded)


class Committer(Protocol):
    """Appends files to one table, one after another."""

    async def append(self, file: ContentFile, tally: Tally) -> None: ...

    def close(self) -> None: ...


class Files:
    """A client's own way to the object store, counted."""

    def __init__(self, server: S3Server) -> None:
        self._store = server.open_bucket()
        self._root = f"s3://{server.bucket}/"

    async def write(self, path: str, data: bytes) -> None:
        await obstore.put_async(self._store, path.removeprefix(self._root), data, use_multipart=False)

    async def read(self, path: str) -> bytes:
        found = await obstore.get_async(self._store, path.removeprefix(self._root))
        return bytes(await found.bytes_async())


class StandardCommitter:
    """Commits a snapshot of its own, again and again until nobody was faster."""

    def __init__(
        self, catalog: Catalog, table: str, files: Files, loaded: MetadataOf, wait_ms: int = WAIT_MS
    ) -> None:
        self._wait_ms = wait_ms
        self._connection = catalog.connect()
        self._path = table_path(catalog, table)
        self._files = files
        self._metadata = loaded

    def close(self) -> None:
        self._connection.close()

    async def append(self, file: ContentFile, tally: Tally) -> None:
        snapshot_id = random.getrandbits(62)
        folder = f"{self._metadata.location}/metadata"
        manifest_path = f"{folder}/{uuid.uuid4()}-m0.avro"
        entry = Entry(Status.ADDED, snapshot_id, None, None, file)
        data, manifest = write_manifest(KIND, [entry], path=manifest_path, snapshot_id=snapshot_id)
        await self._files.write(manifest_path, data)
        tally.store_requests += 1
        attempt = 0
        while True:
            commit = await self._build(manifest, snapshot_id, attempt, file, tally)
            answer = await self._connection.request("POST", self._path, commit)
            if answer.status == 200:
                break
            if answer.status != CONFLICT:
                raise SystemExit(f"bench: {self._path}: {answer.status} {answer.body[:300]!r}")
            tally.conflicts += 1
            wait_ms = min(MOST_WAIT_MS, self._wait_ms * 2**attempt)
            await asyncio.sleep(wait_ms * random.uniform(1, 1.1) / 1000)
            attempt += 1
            if wait_ms > _LONG_MS:
                # The server may have closed it meanwhile.
                self._connection.close()
            answer = check(await self._connection.request("GET", self._path), self._path)
            self._metadata = _LOADED.decode(answer.body).metadata
        self._metadata = _LOADED.decode(answer.body).metadata

    async def _build(
        self, manifest: ManifestFile, snapshot_id: int, attempt: int, file: ContentFile, tally: Tally
    ) -> dict[str, Any]:
        """A list on top of the snapshot that is known, and the commit that names it."""
        metadata, head = self._metadata, self._metadata.head()
        kept: tuple[ManifestFile, ...] = ()
        if head is not None:
            data = await self._files.read(head.manifest_list)
            tally.store_requests += 1
            kept = read_manifest_list(data, path=head.manifest_list).manifests
        parent = None if head is None else head.snapshot_id
        number = metadata.last_sequence_number + 1
        list_path = f"{metadata.location}/metadata/snap-{snapshot_id}-{attempt}-{uuid.uuid4()}.avro"
        data, _, _ = write_manifest_list(
            [manifest, *kept],
            format_version=2,
            snapshot_id=snapshot_id,
            parent_snapshot_id=parent,
            sequence_number=number,
        )
        await self._files.write(list_path, data)
        tally.store_requests += 1
        snapshot = {
            "snapshot-id": snapshot_id,
            "sequence-number": number,
            "timestamp-ms": time.time_ns() // 1_000_000,
            "manifest-list": list_path,
            "summary": summary(file),
            "schema-id": 0,
            **({} if parent is None else {"parent-snapshot-id": parent}),
        }
        ref = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
        return {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": metadata.table_uuid},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
            ],
            "updates": [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", **ref},
            ],
        }


class EndpointCommitter:
    """Sends files to the catalog's append endpoint."""

    def __init__(self, catalog: Catalog, table: str) -> None:
        self._connection = catalog.connect()
        self._path = f"{table_path(catalog, table).replace('/v1/', '/cynosure/v1/', 1)}/append"

    def close(self) -> None:
        self._connection.close()

    async def append(self, file: ContentFile, tally: Tally) -> None:
        answer = await self._connection.request("POST", self._path, {"data-files": [file_json(file)]})
        check(answer, self._path)


def table_path(catalog: Catalog, table: str) -> str:
    """Where a table of the benchmark's is."""
    return f"{catalog.namespace(NAMESPACE)}/tables/{table}"


def summary(file: ContentFile) -> dict[str, str]:
    """What Iceberg's clients say of an append."""
    return {
        "operation": "append",
        "added-data-files": "1",
        "added-records": str(file.record_count),
        "added-files-size": str(file.file_size_bytes),
        "changed-partition-count": "1",
    }


def make_file(path: str, size_bytes: int) -> ContentFile:
    """A file as Iceberg's writers describe it."""
    low, high = (1).to_bytes(8, "little"), (1000).to_bytes(8, "little")
    return ContentFile(
        path=path,
        format="parquet",
        spec_id=0,
        partition=(),
        record_count=1000,
        file_size_bytes=size_bytes,
        column_sizes={1: 600, 2: 1200},
        value_counts={1: 1000, 2: 1000},
        null_value_counts={1: 0, 2: 0},
        lower_bounds={1: low, 2: b"a"},
        upper_bounds={1: high, 2: b"z"},
        split_offsets=(4,),
        sort_order_id=0,
    )


def file_json(file: ContentFile) -> dict[str, Any]:
    """The same in the protocol's JSON."""
    return {
        "content": "data",
        "file-path": file.path,
        "file-format": "parquet",
        "spec-id": 0,
        "partition": [],
        "record-count": file.record_count,
        "file-size-in-bytes": file.file_size_bytes,
        "column-sizes": {"keys": [1, 2], "values": [600, 1200]},
        "value-counts": {"keys": [1, 2], "values": [1000, 1000]},
        "null-value-counts": {"keys": [1, 2], "values": [0, 0]},
        "lower-bounds": {"keys": [1, 2], "values": [1, "a"]},
        "upper-bounds": {"keys": [1, 2], "values": [1000, "z"]},
        "split-offsets": [4],
        "sort-order-id": 0,
    }


def check(answer: Answer, path: str) -> Answer:
    """An answer that is a success; anything else ends the run."""
    if answer.status != 200:
        raise SystemExit(f"bench: {path} answered {answer.status}: {answer.body[:300]!r}")
    return answer


async def load(catalog: Catalog, table: str) -> MetadataOf:
    """A table as the server has it."""
    connection, path = catalog.connect(), table_path(catalog, table)
    try:
        return _LOADED.decode(check(await connection.request("GET", path), path).body).metadata
    finally:
        connection.close()


async def create_table(catalog: Catalog, table: str, properties: dict[str, str]) -> MetadataOf:
    """An empty table."""
    connection, path = catalog.connect(), f"{catalog.namespace(NAMESPACE)}/tables"
    wanted = {"name": table, "schema": SCHEMA, "stage-create": False, "properties": properties}
    try:
        return _LOADED.decode(check(await connection.request("POST", path, wanted), path).body).metadata
    finally:
        connection.close()
