"""Tables with manifests in a directory, written as engines do, and plans of them."""

import struct
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.fetch_scan_tasks import fetch_scan_tasks
from cynosure.catalog.operations.plan_scan import plan_scan
from cynosure.catalog.planning.opening import PLAINLY, Asking, Planned, Tasks
from cynosure.catalog.planning.request import ScanRequest
from cynosure.iceberg.manifests.content_file import Content, ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.write_manifest import (
    ManifestKind,
    spec_fields_json,
    write_manifest,
    write_manifest_list,
)
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec, partition_types
from cynosure.iceberg.schema import decode_schema
from cynosure.storage.location import Location
from cynosure.testing.small_access import People
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.tables import T, change, decoded

BY_DATA = (PartitionField("data", "identity", source_id=2, field_id=1000),)
BY_ID = (PartitionField("id_bucket", "truncate[100]", source_id=1, field_id=1000),)


def long_bound(number: int) -> bytes:
    return struct.pack("<q", number)


class Scanned:
    """A table, and what was written to it."""

    def __init__(self, catalog: OpenCatalog, table: Identifier, location: str, spec: PartitionSpec) -> None:
        self.catalog = catalog
        self.table = table
        self.location = location
        self.spec = spec
        self.snapshots = 0
        self.manifests: list[ManifestFile] = []
        self._types = partition_types(spec, decode_schema(bytes(SCHEMA)))

    def path(self, name: str) -> str:
        return f"{self.location}/data/{name}"

    def file(self, name: str, low: int = 0, high: int = 9, **more: Any) -> ContentFile:
        """A data file whose ids are between these."""
        given: dict[str, Any] = {
            "path": self.path(name),
            "format": "parquet",
            "spec_id": self.spec.spec_id,
            "partition": (),
            "record_count": high - low + 1,
            "file_size_bytes": 1_000,
            "content": Content.DATA,
            "value_counts": {1: 10, 2: 10},
            "lower_bounds": {1: long_bound(low), 2: b"aa-secret"},
            "upper_bounds": {1: long_bound(high), 2: b"zz-secret"},
        }
        return ContentFile(**{**given, **more})

    def delete_file(self, name: str, **more: Any) -> ContentFile:
        """A position delete file."""
        given = {"content": Content.POSITION_DELETES, "record_count": 3}
        cleared = {"value_counts": None, "lower_bounds": None, "upper_bounds": None}
        return self.file(name, **{**given, **cleared, **more})

    async def commit(
        self,
        *manifests: list[ContentFile],
        deletes: list[ContentFile] | None = None,
        operation: str = "append",
        is_replacing: bool = False,
    ) -> int:
        """Add a snapshot with these manifests to those before; its id."""
        parent = self.snapshots or None
        self.snapshots = number = self.snapshots + 1
        if is_replacing:
            self.manifests = []
        for at, files in enumerate([*manifests, *([deletes] if deletes else [])]):
            is_deletes = files is deletes
            kind = ManifestKind(
                format_version=2,
                spec=self.spec,
                partition_types=self._types,
                spec_json=spec_fields_json(self.spec),
                schema_json=bytes(SCHEMA),
                schema_id=0,
                content=ManifestContent.DELETES if is_deletes else ManifestContent.DATA,
            )
            path = f"{self.location}/metadata/m-{number}-{at}.avro"
            entries = [Entry(Status.ADDED, None, None, None, file) for file in files]
            data, listed = write_manifest(kind, entries, path=path, snapshot_id=number)
            await self.catalog.files.write(Location.parse(path), data)
            self.manifests.append(listed)
        listing = f"{self.location}/metadata/snap-{number}.avro"
        data, listed_all, _ = write_manifest_list(
            self.manifests,
            format_version=2,
            snapshot_id=number,
            parent_snapshot_id=parent,
            sequence_number=number,
        )
        self.manifests = list(listed_all)
        await self.catalog.files.write(Location.parse(listing), data)
        snapshot: dict[str, Any] = {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": 1_900_000_000_000 + number,
            "manifest-list": listing,
            "summary": {"operation": operation},
            "schema-id": 0,
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": number}
        await change(self.catalog, {"action": "add-snapshot", "snapshot": snapshot}, ref, table=self.table)
        return number

    def local(self, path: str) -> Path:
        return Path(path.removeprefix("file://"))


async def make_scanned(
    catalog: OpenCatalog, table: Identifier = T, fields: tuple[PartitionField, ...] = ()
) -> Scanned:
    """A table that is partitioned by these."""
    spec = PartitionSpec(fields, spec_id=0)
    json = msgspec.Raw(b'{"spec-id":0,"fields":%b}' % spec_fields_json(spec))
    wanted = CreateTable(table.namespace, table.name, SCHEMA, partition_spec=json)
    answer = (await create_table(catalog, ROOT, wanted)).answer
    return Scanned(catalog, table, decoded(answer)["location"], spec)


def wanting(**members: Any) -> ScanRequest:
    """A request; `filter` as plain JSON values."""
    if "filter" in members:
        members["filter"] = msgspec.Raw(msgspec.json.encode(members["filter"]))
    return ScanRequest(**members)


async def plan(
    scanned: Scanned,
    caller: Caller = ROOT,
    asking: Asking = PLAINLY,
    **members: Any,
) -> Planned:
    return await plan_scan(scanned.catalog, caller, scanned.table, wanting(**members), asking)


async def read_all(scanned: Scanned, planned: Planned, caller: Caller = ROOT) -> list[dict[str, Any]]:
    """All file scan tasks of a plan, with delete files in place of the references to them."""
    assert planned.tasks is not None
    found = read_tasks(planned.tasks)
    pending = list(planned.tasks.plan_tasks)
    while pending:
        tasks = await fetch_scan_tasks(scanned.catalog, caller, scanned.table, pending.pop(0))
        found += read_tasks(tasks)
        pending += tasks.plan_tasks
    return found


def read_tasks(tasks: Tasks) -> list[dict[str, Any]]:
    delete_files = [msgspec.json.decode(each) for each in tasks.delete_files]
    found = [msgspec.json.decode(each) for each in tasks.files]
    for each in found:
        if "delete-file-references" in each:
            each["deletes"] = [delete_files[at] for at in each.pop("delete-file-references")]
    used = {one["file-path"] for each in found for one in each.get("deletes", ())}
    assert used == {one["file-path"] for one in delete_files}
    assert len(delete_files) == len(used)
    return found


async def make_engine(people: People, caller: Caller) -> Caller:
    """A trusted engine that acts for somebody."""
    engine = await people.add("engine")
    await set_trusted_service(people.identities, ROOT, "engine", is_trusted=True)
    assert caller.identity is not None
    assert engine.identity is not None
    identity = replace(
        caller.identity,
        actor_id=engine.identity.principal_id,
        actor_credential=engine.identity.credential,
    )
    return replace(caller, identity=identity)


def names(tasks: list[dict[str, Any]]) -> list[str]:
    return [each["data-file"]["file-path"].rpartition("/data/")[2] for each in tasks]


async def plan_names(scanned: Scanned, caller: Caller = ROOT, **members: Any) -> list[str]:
    return names(await read_all(scanned, await plan(scanned, caller, **members), caller))
