"""Standard appends of clients that did not see each other (opt-in): all are committed as meant (I82)."""

import asyncio
import time
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import StaticTable

from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.load_table import load_table
from cynosure.iceberg.appending.merging import merged_entries
from cynosure.iceberg.appending.writing import manifest_kind
from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.manifests.content_file import ContentFile, Entry, Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import write_manifest, write_manifest_list
from cynosure.iceberg.metadata import TableMetadata, parse_metadata
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, change, decoded, make

pytestmark = pytest.mark.anyio
_numbers = count(1)
REBASE = {"cynosure.commit.rebase-appends": "true"}


class Client:
    """Writes manifests and a list as Iceberg's writers do, on the state that it has seen."""

    def __init__(self, seen: TableAnswer) -> None:
        self.json = decoded(seen)
        self.metadata: TableMetadata = parse_metadata(seen.metadata)
        self.folder = Path(self.json["location"].removeprefix("file://")) / "metadata"

    def write(self, name: str, data: bytes) -> str:
        (self.folder / name).write_bytes(data)
        return f"file://{self.folder / name}"

    def parent_manifests(self) -> list[ManifestFile]:
        head = self.metadata.find_current_snapshot()
        if head is None or head.manifest_list is None:
            return []
        data = Path(head.manifest_list.removeprefix("file://")).read_bytes()
        return list(read_manifest_list(data, path=head.manifest_list).manifests)

    def count_files(self) -> int:
        head = self.metadata.find_current_snapshot()
        return 0 if head is None else int((head.summary or {})["total-data-files"])

    def append(self, *names: str, merges: bool = False, **summary: str) -> dict[str, Any]:
        """The body of a commit that adds files; `merges`: all older entries are copied into its manifest."""
        id_ = next(_numbers) + 1000
        parent = self.metadata.current_snapshot_id
        files = [
            ContentFile(
                path=f"{self.json['location']}/data/{name}.parquet",
                format="parquet",
                spec_id=0,
                partition=(),
                record_count=10,
                file_size_bytes=100,
            )
            for name in names
        ]
        entries = [Entry(Status.ADDED, id_, None, None, file) for file in files]
        kept = self.parent_manifests()
        if merges:
            older = [read_manifest(Path(one.path.removeprefix("file://")).read_bytes(), one) for one in kept]
            entries += merged_entries(older, id_)
            kept = []
        path = f"file://{self.folder}/{id_}-m0.avro"
        kind = manifest_kind(self.metadata, 0)
        data, listed = write_manifest(kind, entries, path=path, snapshot_id=id_)
        self.write(f"{id_}-m0.avro", data)
        sequence = self.metadata.last_sequence_number + 1
        version = self.metadata.format_version
        list_data, _, next_row = write_manifest_list(
            [listed, *kept],
            format_version=version,
            snapshot_id=id_,
            parent_snapshot_id=parent,
            sequence_number=sequence,
            next_row_id=self.metadata.next_row_id,
        )
        snapshot: dict[str, Any] = {
            "snapshot-id": id_,
            "sequence-number": sequence,
            "timestamp-ms": int(time.time() * 1000),
            "manifest-list": self.write(f"snap-{id_}.avro", list_data),
            "summary": {
                "operation": "append",
                "added-files-size": str(100 * len(names)),
                "total-data-files": str(self.count_files() + len(names)),
                **summary,
            },
            "schema-id": 0,
        }
        if parent is not None:
            snapshot["parent-snapshot-id"] = parent
        if version > 2:
            snapshot["first-row-id"] = self.metadata.next_row_id
            snapshot["added-rows"] = (next_row or 0) - (self.metadata.next_row_id or 0)
        return {
            "updates": (
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": id_},
            ),
            "requires": (
                {"type": "assert-table-uuid", "uuid": self.json["table-uuid"]},
                {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
            ),
            "id": id_,
        }


async def see(catalog: OpenCatalog) -> Client:
    return Client(await load_table(catalog, ROOT, T))


async def commit(catalog: OpenCatalog, body: dict[str, Any]) -> TableAnswer:
    return await change(catalog, *body["updates"], requires=body["requires"])


async def read(catalog: OpenCatalog) -> tuple[list[str], dict[str, Any], StaticTable]:
    answer = await load_table(catalog, ROOT, T)
    table = StaticTable.from_metadata(str(answer.metadata_location))
    files = sorted(Path(task.file.file_path).stem for task in table.scan().plan_files())
    return files, decoded(answer), table


def check_history(metadata: dict[str, Any]) -> None:
    """Linear: each snapshot follows the one before, with higher numbers."""
    snapshots = metadata["snapshots"]
    for earlier, later in pairwise(snapshots):
        assert later["parent-snapshot-id"] == earlier["snapshot-id"]
        assert later["sequence-number"] == earlier["sequence-number"] + 1
        assert later["timestamp-ms"] >= earlier["timestamp-ms"]
        if "first-row-id" in later:
            assert later["first-row-id"] == earlier["first-row-id"] + earlier["added-rows"]
    assert metadata["current-snapshot-id"] == snapshots[-1]["snapshot-id"]


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("merges", [False, True])
async def test_a_late_append_is_placed_behind_the_others(catalog: OpenCatalog, version: str, merges: bool):
    await make(catalog, properties={**REBASE, "format-version": version})
    first = await see(catalog)
    await commit(catalog, first.append("a"))
    late = await see(catalog)
    await commit(catalog, late.append("b"))
    body = late.append("c", merges=merges)

    await commit(catalog, body)

    files, metadata, table = await read(catalog)
    assert files == ["a", "b", "c"]
    check_history(metadata)
    assert metadata["snapshots"][-1]["snapshot-id"] == body["id"]
    sent = body["updates"][0]["snapshot"]["manifest-list"]
    assert metadata["snapshots"][-1]["manifest-list"] != sent
    snapshot = table.current_snapshot()
    assert snapshot is not None
    entries = [one for each in snapshot.manifests(table.io) for one in each.fetch_manifest_entry(table.io)]
    added = [
        one for one in entries if one.status == ManifestEntryStatus.ADDED and one.snapshot_id == body["id"]
    ]
    assert [Path(one.data_file.file_path).stem for one in added] == ["c"]
    assert added[0].sequence_number == 3
    assert metadata["snapshots"][-1]["summary"]["total-data-files"] == "3"


async def test_many_clients_at_once(catalog: OpenCatalog):
    await make(catalog, properties={**REBASE, "commit.manifest.min-count-to-merge": "5"})
    client = await see(catalog)
    await commit(catalog, client.append("start"))
    seen = await see(catalog)
    bodies = [seen.append(f"f{number:02d}", merges=number % 3 == 0) for number in range(30)]

    await asyncio.gather(*(commit(catalog, body) for body in bodies))

    files, metadata, _ = await read(catalog)
    assert files == [*(f"f{number:02d}" for number in range(30)), "start"]
    check_history(metadata)
    assert {each["snapshot-id"] for each in metadata["snapshots"]} >= {body["id"] for body in bodies}
    # A file of its own for few of the versions: they shared commits.
    assert len(metadata["metadata-log"]) < 15


async def test_without_the_property_there_is_a_conflict(catalog: OpenCatalog):
    await make(catalog)
    client = await see(catalog)
    await commit(catalog, client.append("a"))

    with pytest.raises(RequirementFailed):
        await commit(catalog, client.append("b"))

    assert (await read(catalog))[0] == ["a"]


@pytest.mark.parametrize(
    "summary",
    [{"kafka.connect.offsets": "7"}, {"flink.max-committed-checkpoint-id": "7"}, {"operation": "overwrite"}],
)
async def test_what_is_not_a_plain_append_is_not_moved(catalog: OpenCatalog, summary: dict[str, str]):
    await make(catalog, properties=REBASE)
    client = await see(catalog)
    await commit(catalog, client.append("a"))

    with pytest.raises(RequirementFailed):
        await commit(catalog, client.append("b", **summary))

    assert (await read(catalog))[0] == ["a"]


async def test_the_same_snapshot_is_not_added_twice(catalog: OpenCatalog):
    await make(catalog, properties=REBASE)
    client = await see(catalog)
    body = client.append("a")
    await commit(catalog, body)

    with pytest.raises(RequirementFailed):
        await commit(catalog, body)

    assert (await read(catalog))[0] == ["a"]


async def test_the_catalog_can_ask_for_it(catalog: OpenCatalog):
    await make(catalog)
    catalog.entity.properties["cynosure.commit.rebase-appends"] = "true"
    client = await see(catalog)
    await commit(catalog, client.append("a"))
    await commit(catalog, client.append("b"))

    assert (await read(catalog))[0] == ["a", "b"]


async def test_removing_snapshots_does_not_conflict_with_an_append(catalog: OpenCatalog):
    await make(catalog)
    for name in "abc":
        await commit(catalog, (await see(catalog)).append(name))
    seen = await see(catalog)
    first = seen.json["snapshots"][0]["snapshot-id"]
    head = seen.json["current-snapshot-id"]
    await commit(catalog, (await see(catalog)).append("d"))
    require = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": head}

    await change(catalog, {"action": "remove-snapshots", "snapshot-ids": [first]}, requires=(require,))
    files, metadata, _ = await read(catalog)
    assert files == ["a", "b", "c", "d"]
    assert first not in [each["snapshot-id"] for each in metadata["snapshots"]]

    current = metadata["current-snapshot-id"]
    with pytest.raises(RequirementFailed, match="main needs it"):
        await change(catalog, {"action": "remove-snapshots", "snapshot-ids": [current]}, requires=(require,))
    with pytest.raises(RequirementFailed):
        await change(catalog, {"action": "remove-snapshot-ref", "ref-name": "main"}, requires=(require,))
