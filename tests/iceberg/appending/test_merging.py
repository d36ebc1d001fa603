"""Which manifests are merged, and what a merged manifest says."""

from typing import Any

import pytest
from msgspec.structs import replace
from pyiceberg.manifest import read_manifest_list as read_list_by_pyiceberg

from cynosure.iceberg.appending.merging import choose_merges, merged_entries
from cynosure.iceberg.appending.snapshot import make_snapshot
from cynosure.iceberg.manifests.content_file import Status
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.metadata import TableMetadata
from tests.iceberg.appending.samples import LOCATION, entry, read, table, write
from tests.iceberg.manifests.samples import MemoryFiles
from tests.iceberg.samples import update

OWN = 9


def line(name: str, length: int = 10, **changes: Any) -> ManifestFile:
    fields: dict[str, Any] = {"path": name, "length": length, "spec_id": 0, "added_snapshot_id": 1}
    return ManifestFile(**fields | changes)


def settings(**changes: Any) -> TableMetadata:
    names = {
        "enabled": "commit.manifest-merge.enabled",
        "count": "commit.manifest.min-count-to-merge",
        "size": "commit.manifest.target-size-bytes",
    }
    return table(properties={names[key]: str(value) for key, value in changes.items()})


def arrange(metadata: TableMetadata, new: list[ManifestFile], kept: list[ManifestFile]) -> list[str]:
    """Each group as the names of its manifests."""
    return ["+".join(one.path for one in group) for group in choose_merges(metadata, new, kept)]


def test_newest_are_merged_once_there_are_enough() -> None:
    kept = [line("b"), line("c")]
    assert arrange(settings(count=4), [line("a")], kept) == ["a", "b", "c"]
    assert arrange(settings(count=3), [line("a")], kept) == ["a+b+c"]


def test_default_is_a_hundred() -> None:
    kept = [line(f"k{at}") for at in range(98)]
    assert len(arrange(table(), [line("a")], kept)) == 99
    assert len(arrange(table(), [line("a")], [*kept, line("z")])) == 1


def test_merging_can_be_switched_off() -> None:
    kept = [line("b"), line("c")]
    assert arrange(settings(count=2, enabled="false"), [line("a")], kept) == ["a", "b", "c"]


def test_groups_are_filled_from_the_oldest() -> None:
    kept = [line("b", 40), line("c", 40), line("d", 40), line("e", 60)]
    # The group that is not full is the newest one, and it is below the least count.
    assert arrange(settings(count=9, size=100), [line("a")], kept) == ["a", "b", "c", "d+e"]
    assert arrange(settings(count=3, size=100), [line("a")], kept) == ["a+b+c", "d+e"]


def test_large_manifest_stays_alone() -> None:
    kept = [line("b", 500), line("c", 10)]
    assert arrange(settings(count=2, size=100), [line("a")], kept) == ["a", "b", "c"]
    assert arrange(settings(count=2, size=100), [line("a")], kept[::-1]) == ["a+c", "b"]


def test_specs_and_deletes_are_kept_apart() -> None:
    metadata = settings(count=2)
    spec = {"spec-id": 1, "fields": [{"name": "x", "transform": "identity", "source-id": 3}]}
    metadata = update(metadata, {"action": "add-spec", "spec": spec})
    deletes = line("d", content=ManifestContent.DELETES)
    kept = [line("b", spec_id=1), deletes, line("c"), line("e", spec_id=1), line("f")]
    assert arrange(metadata, [line("a")], kept) == ["b+e", "a+c+f", "d"]


def test_spec_whose_column_nobody_knows_is_left_alone() -> None:
    kept = [line("b", spec_id=7), line("c", spec_id=7)]
    assert arrange(settings(count=2), [line("a")], kept) == ["b", "c", "a"]


def test_encrypted_manifest_is_left_alone() -> None:
    kept = [line("b", key_metadata=b"k")]
    assert arrange(settings(count=2), [line("a")], kept) == ["a", "b"]


def test_nothing_new_merges_nothing() -> None:
    assert arrange(settings(count=2), [], [line("b"), line("c")]) == ["b", "c"]


def test_manifests_of_removed_files_only_are_left_out() -> None:
    gone = {"added_files": 0, "existing_files": 0, "deleted_files": 3}
    kept = [line("b", **gone), line("c"), line("d", content=ManifestContent.DELETES, **gone)]
    for count in (2, 100):
        assert arrange(settings(count=count), [line("a")], kept) == (["a+c"] if count == 2 else ["a", "c"])
    assert arrange(settings(enabled="false"), [line("a")], kept) == ["a", "c"]
    # A snapshot lists what it adds, whatever it is.
    assert arrange(settings(), [line("a", **gone)], []) == ["a"]


def test_bad_numbers_are_the_defaults() -> None:
    kept = [line("b"), line("c")]
    assert arrange(settings(count="few", size="big"), [line("a")], kept) == ["a", "b", "c"]
    assert arrange(settings(count=2, size=-5), [line("a")], kept) == ["a", "b", "c"]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_merged_manifest_says_the_same_of_every_file(version: int) -> None:
    metadata = table(version)
    is_v1 = version == 1
    old = [
        entry("x", 1, Status.EXISTING, None if is_v1 else 1, first_row_id=700 if version == 3 else None),
        entry("y", 2),
        entry("z", 2, Status.DELETED, None if is_v1 else 1),
    ]
    old_data, old_line = write(metadata, "old", old, 2)
    old_line = replace(
        old_line,
        sequence_number=0 if is_v1 else 2,
        min_sequence_number=0 if is_v1 else 1,
        first_row_id=100 if version == 3 else None,
    )
    new_data, new_line = write(metadata, "new", [entry("n", OWN)], OWN)
    before = read(metadata, old_data, old_line)
    entries = [*merged_entries([read(metadata, new_data, new_line), before], OWN)]
    data, merged = write(metadata, "merged", entries, OWN)
    assert (merged.added_files, merged.existing_files, merged.deleted_files) == (1, 2, 0)
    made = make_snapshot(
        metadata,
        branch="main",
        snapshot_id=OWN,
        own=[merged],
        kept=(),
        list_path=f"{LOCATION}/list.avro",
        summary={},
        added_size_bytes=0,
        now_ms=metadata.last_updated_ms,
    )
    after = read(metadata, data, made.listed[0])
    number = made.sequence_number
    seen = [(one.file.path[-9], one.status, one.snapshot_id, one.sequence_number) for one in after.entries()]
    assert seen == [
        ("n", Status.ADDED, OWN, number),
        ("x", Status.EXISTING, 1, 0 if is_v1 else 1),
        ("y", Status.EXISTING, 2, 0 if is_v1 else 2),
    ]
    assert [*after.file_sequence_numbers] == [number, 0 if is_v1 else 1, 0 if is_v1 else 2]
    assert [*after.first_row_ids] == ([0, 700, 100] if version == 3 else [None] * 3)
    # The others keep what they had.
    assert [after.file(row) for row in (1, 2)] == [before.file(row) for row in (0, 1)]

    files = MemoryFiles({made.list_path: made.list_data, merged.path: data})
    (listed,) = read_list_by_pyiceberg(files.new_input(made.list_path))
    by_pyiceberg = [
        (one.data_file.file_path[-9], int(one.status), one.snapshot_id, one.sequence_number)
        for one in listed.fetch_manifest_entry(files)
    ]
    assert by_pyiceberg == seen


def test_values_of_a_column_that_is_gone_stay() -> None:
    metadata = table(2)
    data, listed = write(metadata, "old", [entry("x", 1, number=1, partition=(42,))], 1)
    dropped = update(
        metadata,
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {
            "action": "add-schema",
            "schema": {
                "type": "struct",
                "schema-id": 1,
                "fields": [{"id": 3, "name": "name", "required": False, "type": "string"}],
            },
        },
        {"action": "set-current-schema", "schema-id": -1},
    )
    assert dropped.current_schema().find_type(1) is None
    other_data, other = write(dropped, "new", [entry("y", OWN, partition=(43,))], OWN)
    manifests = [read(dropped, other_data, other), read(dropped, data, replace(listed, sequence_number=1))]
    merged_data, merged = write(dropped, "merged", [*merged_entries(manifests, OWN)], OWN)
    again = read(dropped, merged_data, replace(merged, sequence_number=2))
    assert [again.file(row).partition for row in range(2)] == [(43,), (42,)]
