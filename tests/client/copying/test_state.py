"""Metadata of a copy, from those of the table."""

from typing import Any

import pytest

from cynosure.catalog import locations, properties
from cynosure.client.copying import state
from cynosure.client.copying.paths import Paths
from cynosure.client.copying.state import check_copyable, describe, describe_copy, list_statistics, make_state
from cynosure.common.errors import BadInput

METADATA: dict[str, Any] = {
    "format-version": 3,
    "table-uuid": "0f2e8f6e-0000-4000-8000-000000000001",
    "location": "s3://theirs/t",
    "last-updated-ms": 1_760_000_000_000,
    "next-row-id": 14,
    "current-snapshot-id": 8,
    "refs": {"main": {"type": "branch", "snapshot-id": 8}, "old": {"type": "tag", "snapshot-id": 7}},
    "snapshots": [
        {"snapshot-id": 7, "manifest-list": "s3://theirs/t/metadata/snap-7.avro", "first-row-id": 0},
        {
            "snapshot-id": 8,
            "manifest-list": "s3://theirs/elsewhere/snap-8.avro",
            "summary": {"operation": "append", "total-data-files": "3", "total-files-size": "2048"},
        },
    ],
    "metadata-log": [{"metadata-file": "s3://theirs/t/metadata/1.json", "timestamp-ms": 1}],
    "properties": {
        "owner": "somebody",
        "write.data.path": "s3://theirs/data",
        "write.metadata.path": "s3://theirs/metadata",
        "write.object-storage.path": "s3://theirs/objects",
        "write.folder-storage.path": "s3://theirs/folders",
        "their.own": "in s3://theirs/t/somewhere",
        "copied-from.table-uuid": "another",
        "copied-from.snapshot-id": "3",
        "cynosure.retention.enabled": "true",
        "cynosure.something": "that nobody may set",
    },
    "statistics": [
        {"snapshot-id": 8, "statistics-path": "s3://theirs/t/metadata/8.stats", "file-size-in-bytes": 9}
    ],
    "partition-statistics": [
        {"snapshot-id": 8, "statistics-path": "s3://theirs/t/metadata/8.parquet", "file-size-in-bytes": 7}
    ],
    "somebody-elses": {"field": 1},
}
LOCATION = "s3://ours/copy"


def test_a_copy_keeps_all_but_what_leads_back() -> None:
    made = make_state(METADATA, Paths("s3://theirs/t", LOCATION), table_uuid="new", location=LOCATION)

    assert (made["table-uuid"], made["location"], made["metadata-log"]) == ("new", LOCATION, [])
    for same in ("format-version", "refs", "next-row-id", "current-snapshot-id", "somebody-elses"):
        assert made[same] == METADATA[same]
    assert made["snapshots"][0] == {
        **METADATA["snapshots"][0],
        "manifest-list": f"{LOCATION}/metadata/snap-7.avro",
    }
    assert made["snapshots"][1]["manifest-list"].startswith(f"{LOCATION}/copied/")
    assert made["statistics"][0]["statistics-path"] == f"{LOCATION}/metadata/8.stats"
    assert made["partition-statistics"][0]["statistics-path"] == f"{LOCATION}/metadata/8.parquet"
    assert made["properties"] == {
        "owner": "somebody",
        "cynosure.retention.enabled": "true",
        "copied-from.table-uuid": METADATA["table-uuid"],
        "copied-from.snapshot-id": "8",
        "copied-from.last-updated-ms": "1760000000000",
    }
    assert "s3://theirs" not in str(made)
    assert [size for _, size in list_statistics(METADATA)] == [9, 7]


def test_what_users_may_set_is_what_the_catalog_says() -> None:
    assert state.SETTABLE == properties.SETTABLE
    assert set(state.PATHS) == set(locations.PATHS)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"table-uuid": None}, "no uuid"),
        ({"encryption-keys": [{"key-id": "k"}]}, "encrypted"),
        ({"properties": {"encryption.key-id": "k"}}, "encrypted"),
        ({"snapshots": [{"snapshot-id": 1, "manifest-list": "m", "key-id": "k"}]}, "encrypted"),
        ({"statistics": [{"statistics-path": "s", "key-metadata": "k"}]}, "encrypted"),
        ({"snapshots": [{"snapshot-id": 1, "manifests": ["m"]}]}, "lists its manifests"),
    ],
)
def test_what_cannot_be_copied_is_told(changed: dict[str, Any], told: str) -> None:
    check_copyable(METADATA)
    with pytest.raises(BadInput, match=told):
        check_copyable({**METADATA, **changed})


def test_a_copy_says_of_what_it_is_and_whether_that_went_on() -> None:
    made = make_state(METADATA, Paths("s3://theirs/t", LOCATION), table_uuid="new", location=LOCATION)
    copied = made["properties"]

    assert describe(METADATA) == "2 snapshots, 3 data files, 2 KiB"
    assert describe_copy(copied, METADATA) == "a copy of snapshot 8 of 2025-10-09 08:53:20 UTC"
    later = {**METADATA, "last-updated-ms": 1_760_000_000_001}
    assert describe_copy(copied, later).endswith("; the table has gone on since")
    empty = {"snapshots": [], "current-snapshot-id": -1, "last-updated-ms": 1}
    assert describe(empty) == "0 snapshots, 0 data files"


@pytest.mark.parametrize("text", ["9" * 20, "9" * 5_000, "²", "soon", ""])
def test_what_writers_say_of_times_and_sizes_is_left_out_where_it_is_none(text: str) -> None:
    summary = {"total-data-files": "3", "total-files-size": text}
    metadata = {"snapshots": [{"snapshot-id": 8, "summary": summary}], "current-snapshot-id": 8}

    assert describe_copy({state.UPDATED: text}, METADATA) == "a copy; the table has gone on since"
    assert describe(metadata).startswith("1 snapshots, 3 data files")
