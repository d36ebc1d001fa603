"""The snapshot of an append: where it stands, what it says, and that others can read its list."""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from pyiceberg.manifest import read_manifest_list as read_list_by_pyiceberg

from cynosure.iceberg.appending.own_manifests import carried
from cynosure.iceberg.appending.snapshot import NewSnapshot, find_head, make_snapshot
from cynosure.iceberg.manifests.content_file import Status
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.updates import apply_updates
from tests.iceberg.appending.samples import LOCATION, entry, read, table, write
from tests.iceberg.manifests.samples import MemoryFiles
from tests.iceberg.samples import NOW_MS, add, set_ref, snapshot, to_json, update

OWN = 9
LIST = f"{LOCATION}/metadata/snap-9-1.avro"
TOTALS = {
    "total-data-files": "4",
    "total-records": "40",
    "total-files-size": "400",
    "total-delete-files": "2",
    "total-position-deletes": "3",
    "total-equality-deletes": "1",
}


def make(metadata: TableMetadata, own: list[ManifestFile], **changes: Any) -> NewSnapshot:
    arguments: dict[str, Any] = {
        "branch": "main",
        "snapshot_id": OWN,
        "own": own,
        "kept": (),
        "list_path": LIST,
        "summary": {},
        "added_size_bytes": 200,
        "now_ms": metadata.last_updated_ms + 5,
    }
    return make_snapshot(metadata, **arguments | changes)


def new_manifest(
    metadata: TableMetadata, name: str = "a", snapshot_id: int = OWN
) -> tuple[bytes, ManifestFile]:
    return write(
        metadata, name, [entry(f"{name}1", snapshot_id), entry(f"{name}2", snapshot_id)], snapshot_id
    )


def apply(metadata: TableMetadata, made: NewSnapshot, branch: str = "main") -> TableMetadata:
    return apply_updates(metadata, made.as_updates(metadata, branch), now_ms=metadata.last_updated_ms + 5)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_first_snapshot(version: int) -> None:
    metadata = table(version)
    data, listed = new_manifest(metadata)
    made = make(metadata, [listed])
    document = json.loads(made.json)
    assert document.pop("summary") == {
        "operation": "append",
        "added-data-files": "2",
        "added-records": "20",
        "added-files-size": "200",
        "total-data-files": "2",
        "total-records": "20",
        "total-files-size": "200",
        "total-delete-files": "0",
        "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }
    expected: dict[str, Any] = {
        "snapshot-id": OWN,
        "timestamp-ms": NOW_MS + 5,
        "manifest-list": LIST,
        "schema-id": 0,
    }
    if version > 1:
        expected["sequence-number"] = 1
    if version > 2:
        expected |= {"first-row-id": 0, "added-rows": 20}
    assert document == expected
    assert (made.added_files, made.added_rows, made.sequence_number) == (2, 20, int(version > 1))
    after = apply(metadata, made)
    assert after.current_snapshot_id == OWN
    assert after.next_row_id == (20 if version > 2 else None)
    assert [*read(after, data, made.listed[0]).paths] == [
        f"{LOCATION}/data/a1.parquet",
        f"{LOCATION}/data/a2.parquet",
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_list_is_what_others_read(version: int) -> None:
    metadata = table(version)
    first = make(metadata, [new_manifest(metadata, "p", 3)[1]], snapshot_id=3)
    metadata = apply(metadata, first)
    made = make(metadata, [new_manifest(metadata)[1]], kept=first.listed)
    assert read_manifest_list(made.list_data, path=LIST).manifests == made.listed
    files = MemoryFiles({LIST: made.list_data})
    seen = [*read_list_by_pyiceberg(files.new_input(LIST))]
    assert [(one.manifest_path, one.added_snapshot_id, one.sequence_number) for one in seen] == [
        (f"{LOCATION}/metadata/a.avro", OWN, made.sequence_number),
        (f"{LOCATION}/metadata/p.avro", 3, first.sequence_number),
    ]
    assert [one.min_sequence_number for one in seen] == [made.sequence_number, first.sequence_number]
    assert [one.added_rows_count for one in seen] == [20, 20]


def test_own_manifest_gets_the_numbers_of_the_new_state() -> None:
    metadata = table(3, heads=[1, 2])
    data, listed = new_manifest(metadata)
    # The client wrote its list when the table had nothing.
    made = make(metadata, [carried(listed)])
    document = json.loads(made.json)
    assert document["parent-snapshot-id"] == 2
    assert document["sequence-number"] == made.sequence_number == 3
    assert (document["first-row-id"], document["added-rows"]) == (14, 20)
    manifest = read(metadata, data, made.listed[0])
    assert [*manifest.sequence_numbers] == [3, 3]
    assert [*manifest.first_row_ids] == [14, 24]
    assert apply(metadata, made).next_row_id == 34


def test_rows_of_manifests_that_nobody_numbered_are_counted() -> None:
    """After an upgrade to version 3, the first snapshot numbers what is there."""
    metadata = table(2)
    old_data, old = new_manifest(metadata, "p", 3)
    first = make(metadata, [old], snapshot_id=3)
    metadata = update(apply(metadata, first), {"action": "upgrade-format-version", "format-version": 3})
    made = make(metadata, [new_manifest(metadata)[1]], kept=first.listed)
    assert [one.first_row_id for one in made.listed] == [0, 20]
    assert json.loads(made.json)["added-rows"] == 40
    assert apply(metadata, made).next_row_id == 40
    assert [*read(metadata, old_data, made.listed[1]).first_row_ids] == [20, 30]


def test_totals_go_on_from_the_parent() -> None:
    metadata = table()
    parent = snapshot(metadata, 1, summary={"operation": "overwrite", **TOTALS})
    metadata = update(metadata, add(parent), set_ref("main", 1))
    summary = json.loads(make(metadata, [new_manifest(metadata)[1]]).json)["summary"]
    assert {name: summary[name] for name in TOTALS} == TOTALS | {
        "total-data-files": "6",
        "total-records": "60",
        "total-files-size": "600",
    }


@pytest.mark.parametrize("before", [{}, {"total-records": "many"}, {"total-records": "-3"}])
def test_total_that_the_parent_lacks_is_left_out(before: dict[str, str]) -> None:
    metadata = table()
    parent = snapshot(metadata, 1, summary={"operation": "append", **before})
    metadata = update(metadata, add(parent), set_ref("main", 1))
    client = {"operation": "append", "total-records": "99999"}
    made = make(metadata, [new_manifest(metadata)[1]], summary=client)
    assert not {name for name in json.loads(made.json)["summary"] if name.startswith("total-")}


def test_total_size_needs_the_size_that_is_added() -> None:
    metadata = table()
    made = make(metadata, [new_manifest(metadata)[1]], added_size_bytes=None)
    summary = json.loads(made.json)["summary"]
    assert "total-files-size" not in summary
    assert summary["total-records"] == "20"
    told = make(
        metadata, [new_manifest(metadata)[1]], added_size_bytes=None, summary={"added-files-size": "7"}
    )
    assert json.loads(told.json)["summary"]["total-files-size"] == "7"


def test_what_the_client_said_stays() -> None:
    base = table(3, heads=[1])
    summary = {
        "operation": "append",
        "added-data-files": "2",
        "added-files-size": "77",
        "total-records": "27",
        "changed-partition-count": "1",
        "engine-name": "spark",
        "manifests-created": "1",
        "manifests-kept": "1",
        "manifests-replaced": "3",
    }
    client = snapshot(base, OWN, summary=summary, **{"x-new": {"a": [1]}, "key-id": "k"})
    moved = update(base, add(snapshot(base, 2)), set_ref("main", 2))
    kept = [
        replace(new_manifest(moved, name, 2)[1], sequence_number=2, min_sequence_number=2) for name in "pq"
    ]
    made = make(
        moved,
        [new_manifest(moved)[1]],
        kept=kept,
        template=to_json(client),
        added_size_bytes=None,
        summary={"cynosure.rebased": "true"},
    )
    document = json.loads(made.json)
    assert document["x-new"] == {"a": [1]}
    assert document["manifest-list"] == LIST
    assert document["parent-snapshot-id"] == 2
    assert document["first-row-id"] == moved.next_row_id
    assert "key-id" not in document
    found = document["summary"]
    assert found["engine-name"] == "spark"
    assert found["cynosure.rebased"] == "true"
    assert found["changed-partition-count"] == "1"
    assert found["added-files-size"] == "77"
    assert found["added-records"] == "20"
    assert "total-records" not in found
    assert [found[f"manifests-{name}"] for name in ("created", "kept", "replaced")] == ["1", "2", "0"]
    assert apply(moved, made).current_snapshot_id == OWN


def test_time_never_goes_back() -> None:
    base = table(heads=[1])
    own = [new_manifest(base)[1]]
    for time, expected in (
        (base.last_updated_ms - 90_000, base.last_updated_ms),
        (base.last_updated_ms + 9,) * 2,
    ):
        client = to_json(snapshot(base, OWN, **{"timestamp-ms": time}))
        made = make(base, own, template=client)
        assert json.loads(made.json)["timestamp-ms"] == expected
    assert json.loads(make(base, own, now_ms=5).json)["timestamp-ms"] == base.last_updated_ms


def test_branch_of_its_own_parent_and_settings() -> None:
    base = table(heads=[1])
    base = update(base, set_ref("audit", 1, min_snapshots_to_keep=5, max_ref_age_ms=7))
    base = update(base, add(snapshot(base, 2)), set_ref("main", 2))
    made = make(base, [new_manifest(base)[1]], branch="audit")
    assert json.loads(made.json)["parent-snapshot-id"] == 1
    after = apply(base, made, "audit")
    ref = after.find_ref("audit")
    assert ref is not None
    assert (ref.snapshot_id, ref.min_snapshots_to_keep, ref.max_ref_age_ms) == (OWN, 5, 7)
    assert after.current_snapshot_id == 2
    head = find_head(after, "audit")
    assert head is not None
    assert head.snapshot_id == OWN
    assert find_head(after, "nowhere") is None


def test_merged_manifest_counts_only_what_it_adds() -> None:
    metadata = table(heads=[1])
    entries = [entry("old", 1, Status.EXISTING, 1), entry("new", OWN)]
    _, listed = write(metadata, "m", entries, OWN)
    made = make(metadata, [listed])
    assert (made.added_files, made.added_rows) == (1, 10)
    assert (made.listed[0].sequence_number, made.listed[0].min_sequence_number) == (2, 1)


@pytest.mark.parametrize(
    ("codec", "stored"),
    [
        (None, b"deflate"),
        ("gzip", b"deflate"),
        ("ZSTD", b"zstandard"),
        ("uncompressed", b"null"),
        ("lzo", b"deflate"),
    ],
)
def test_list_is_compressed_as_the_table_says(codec: str | None, stored: bytes) -> None:
    properties = {} if codec is None else {"write.manifest.compression-codec": codec}
    metadata = table(properties=properties)
    made = make(metadata, [new_manifest(metadata)[1]])
    assert b"avro.codec" + bytes([2 * len(stored)]) + stored in made.list_data
    assert read_manifest_list(made.list_data, path=LIST).manifests == made.listed


def test_nothing_added_is_a_snapshot_too() -> None:
    metadata = table(heads=[1])
    made = make(metadata, [], added_size_bytes=0)
    assert json.loads(made.json)["summary"]["added-records"] == "0"
    assert apply(metadata, made).current_snapshot_id == OWN
