"""Snapshots, branches, tags, logs and statistics."""

import pytest

from cynosure.common.errors import BadInput, Conflict
from cynosure.iceberg.errors import StaleSnapshot
from cynosure.iceberg.limits import SizeLimits
from cynosure.iceberg.metadata import parse_metadata
from tests.iceberg.samples import (
    NOW_MS,
    add,
    append,
    encoded,
    new_table,
    set_ref,
    snapshot,
    to_json,
    update,
    with_history,
)


def remove(*ids):
    return {"action": "remove-snapshots", "snapshot-ids": [*ids]}


def log_ids(table):
    return [entry["snapshot-id"] for entry in encoded(table)["snapshot-log"]]


def statistics(id_, **more):
    return {
        "snapshot-id": id_,
        "statistics-path": "s3://bucket/s.puffin",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
        **more,
    }


def partition_statistics(id_):
    return {"snapshot-id": id_, "statistics-path": "s3://bucket/p", "file-size-in-bytes": 1, "later": 1}


def test_a_write_adds_a_snapshot_moves_main_and_is_logged():
    table = new_table()
    document = snapshot(table, 5, later={"x": 1.5})

    table = update(table, add(document), set_ref("main", 5))

    result = encoded(table)
    assert result["snapshots"] == [document]
    assert result["current-snapshot-id"] == 5
    assert result["refs"] == {"main": {"snapshot-id": 5, "type": "branch"}}
    assert result["snapshot-log"] == [{"timestamp-ms": document["timestamp-ms"], "snapshot-id": 5}]
    assert result["last-sequence-number"] == 1
    assert result["last-updated-ms"] == document["timestamp-ms"]


def test_a_staged_snapshot_moves_no_branch():
    table = with_history(1)

    staged = update(table, add(snapshot(table, 9)))

    assert staged.current_snapshot_id == 1
    assert log_ids(staged) == [1]
    assert staged.find_snapshot(9).parent_snapshot_id == 1


def test_a_snapshot_id_is_used_once():
    table = with_history(2)

    with pytest.raises(BadInput) as refused:
        update(table, add(snapshot(table, 2)))

    assert refused.value.field == "updates[0].snapshot.snapshot-id"


def test_a_snapshot_that_another_commit_overtook_is_a_conflict():
    table = with_history(2)

    with pytest.raises(StaleSnapshot, match="sequence number 2 older than last sequence number 2") as stale:
        update(table, add(snapshot(table, 9, **{"sequence-number": 2})))

    assert isinstance(stale.value, Conflict)


def test_a_snapshot_without_parent_may_come_with_an_older_number():
    table = with_history(2)
    document = snapshot(table, 9, **{"sequence-number": 1})
    del document["parent-snapshot-id"]

    table = update(table, add(document))

    assert table.last_sequence_number == 2


def test_version_1_has_no_sequence_numbers():
    table = new_table(format_version=1)

    assert append(table, 1).last_sequence_number == 0
    with pytest.raises(BadInput, match="Format version 1"):
        append(table, 1, **{"sequence-number": 1})


@pytest.mark.parametrize("id_", [-1, -5])
def test_a_snapshot_id_is_not_negative(id_):
    with pytest.raises(BadInput) as refused:
        append(new_table(), id_)

    assert refused.value.field == "updates[0].snapshot.snapshot-id"


def test_a_snapshot_added_and_removed_in_one_request_is_gone():
    table = with_history(1)

    with pytest.raises(BadInput, match="The snapshot does not exist"):
        update(table, add(snapshot(table, 9)), remove(9), set_ref("dev", 9))


@pytest.mark.parametrize(
    "changes",
    [
        {"first-row-id": None},
        {"added-rows": None},
        {"added-rows": -1},
        {"added-rows": 2**63 - 1, "first-row-id": 1},
    ],
)
def test_version_3_needs_row_ids(changes):
    with pytest.raises(BadInput) as refused:
        append(new_table(format_version=3), 1, **changes)

    assert refused.value.field == "updates[0].snapshot.first-row-id"


def test_version_3_counts_row_ids_beyond_gaps():
    table = append(new_table(format_version=3), 1)
    assert table.next_row_id == 7

    table = append(table, 2, **{"first-row-id": 100, "added-rows": 5})

    assert table.next_row_id == 105
    with pytest.raises(StaleSnapshot, match="first-row-id is behind table next-row-id: 104 < 105"):
        append(table, 3, **{"first-row-id": 104})


def test_clocks_may_differ_by_a_minute():
    table = with_history(1)

    append(table, 2, **{"timestamp-ms": table.last_updated_ms - 60_000})
    with pytest.raises(BadInput) as refused:
        append(table, 2, **{"timestamp-ms": table.last_updated_ms - 60_001})

    assert refused.value.field == "updates[0].snapshot.timestamp-ms"


def test_a_snapshot_needs_manifests():
    table = new_table()

    with pytest.raises(BadInput) as refused:
        append(table, 1, **{"manifest-list": None})

    assert refused.value.field == "updates[0].snapshot.manifest-list"


def test_too_many_snapshots_are_refused():
    table = with_history(3)

    update(table, add(snapshot(table, 9)), limits=SizeLimits(max_snapshots=4))
    with pytest.raises(BadInput, match="too many snapshots"):
        update(table, add(snapshot(table, 9)), limits=SizeLimits(max_snapshots=3))


def test_a_rollback_is_logged_with_the_time_of_the_request():
    table = with_history(3)

    table = update(table, set_ref("main", 1), now_ms=NOW_MS + 5000)

    assert table.current_snapshot_id == 1
    assert encoded(table)["snapshot-log"][-1] == {"timestamp-ms": NOW_MS + 5000, "snapshot-id": 1}
    assert table.last_updated_ms == NOW_MS + 5000


def test_a_clock_behind_the_last_writer_does_not_turn_time_back():
    table = with_history(3)

    rolled_back = update(table, set_ref("main", 1), now_ms=NOW_MS - 10_000_000)

    assert rolled_back.last_updated_ms == table.last_updated_ms


def test_heads_that_the_same_request_replaced_are_not_history():
    table = with_history(1)
    first = snapshot(table, 2)
    second = snapshot(table, 3, **{"parent-snapshot-id": 2, "sequence-number": 3})

    table = update(table, add(first), set_ref("main", 2), add(second), set_ref("main", 3))

    assert log_ids(table) == [1, 3]
    assert table.find_snapshot(2) is not None


def test_setting_a_ref_to_what_it_is_changes_nothing():
    table = with_history(2)

    assert update(table, set_ref("main", 2)) is table


def test_branches_and_tags_carry_their_settings():
    settings = {"min_snapshots_to_keep": 3, "max_snapshot_age_ms": 7, "max_ref_age_ms": 9}

    table = update(with_history(2), set_ref("dev", 1, **settings), set_ref("v1", 2, "tag", max_ref_age_ms=4))

    refs = encoded(table)["refs"]
    assert refs["dev"] == {
        "snapshot-id": 1,
        "type": "branch",
        "min-snapshots-to-keep": 3,
        "max-snapshot-age-ms": 7,
        "max-ref-age-ms": 9,
    }
    assert refs["v1"] == {"snapshot-id": 2, "type": "tag", "max-ref-age-ms": 4}
    moved = update(table, set_ref("dev", 2))
    assert encoded(moved)["refs"]["dev"] == {"snapshot-id": 2, "type": "branch"}


def test_moving_a_branch_keeps_what_a_newer_client_noted_on_it():

    document = encoded(with_history(2))
    document["refs"]["main"]["later"] = {"x": 1}
    table = parse_metadata(to_json(document))

    table = append(table, 3)

    assert encoded(table)["refs"]["main"] == {"snapshot-id": 3, "type": "branch", "later": {"x": 1}}


@pytest.mark.parametrize(
    ("update_", "field"),
    [
        (set_ref("main", 99), "snapshot-id"),
        (set_ref("dev", 99), "snapshot-id"),
        (set_ref("", 1), "ref-name"),
        (set_ref("main", 1, "tag"), "type"),
        (set_ref("v1", 1, "tag", min_snapshots_to_keep=1), "min-snapshots-to-keep"),
        (set_ref("v1", 1, "tag", max_snapshot_age_ms=1), "max-snapshot-age-ms"),
        (set_ref("dev", 1, max_ref_age_ms=0), "max-ref-age-ms"),
        (set_ref("dev", 1, min_snapshots_to_keep=-1), "min-snapshots-to-keep"),
    ],
)
def test_a_wrong_ref_is_refused_with_the_field(update_, field):
    with pytest.raises(BadInput) as refused:
        update(with_history(2), update_)

    assert refused.value.field == f"updates[0].{field}"


def test_without_main_there_is_no_current_snapshot():
    table = update(with_history(2), {"action": "remove-snapshot-ref", "ref-name": "main"})

    assert table.current_snapshot_id is None
    assert table.refs == {}
    assert len(table.snapshots) == 2
    assert log_ids(table) == [1, 2]


def test_removed_snapshots_take_refs_and_statistics_along():
    table = update(
        with_history(4),
        set_ref("v1", 2, "tag"),
        {"action": "set-statistics", "statistics": statistics(2)},
        {"action": "set-statistics", "statistics": statistics(4)},
        {"action": "set-partition-statistics", "partition-statistics": partition_statistics(2)},
    )

    table = update(table, remove(2, 99))

    result = encoded(table)
    assert [one["snapshot-id"] for one in result["snapshots"]] == [1, 3, 4]
    assert result["snapshots"][1]["parent-snapshot-id"] == 2
    assert [*result["refs"]] == ["main"]
    assert result["statistics"] == [statistics(4)]
    assert result["partition-statistics"] == []
    assert table.current_snapshot_id == 4


def test_history_before_a_removed_snapshot_goes():
    assert log_ids(update(with_history(5), remove(3))) == [4, 5]
    assert log_ids(update(with_history(5), remove(1))) == [2, 3, 4, 5]
    assert log_ids(update(with_history(5), remove(1, 4))) == [5]


def test_removing_the_current_snapshot_leaves_none():
    table = update(with_history(3), remove(3))

    assert table.current_snapshot_id is None
    assert table.refs == {}
    assert log_ids(table) == []


def test_a_snapshot_can_be_replaced_as_head_and_removed_in_one_request():
    table = with_history(2)
    document = snapshot(table, 9)

    table = update(table, add(document), set_ref("main", 9), remove(1))

    assert table.current_snapshot_id == 9
    assert log_ids(table) == [2, 9]


def test_statistics_are_replaced_and_removed():
    table = update(with_history(2), {"action": "set-statistics", "statistics": statistics(1)})
    newer = statistics(1, later={"x": 1})

    table = update(table, {"action": "set-statistics", "snapshot-id": 1, "statistics": newer})
    assert encoded(table)["statistics"] == [newer]
    table = update(table, {"action": "remove-statistics", "snapshot-id": 1})
    assert encoded(table)["statistics"] == []


def test_partition_statistics_are_replaced_and_removed():
    set_ = {"action": "set-partition-statistics", "partition-statistics": partition_statistics(1)}

    table = update(with_history(2), set_, set_)
    assert encoded(table)["partition-statistics"] == [partition_statistics(1)]
    table = update(table, {"action": "remove-partition-statistics", "snapshot-id": 1})
    assert encoded(table)["partition-statistics"] == []


def test_statistics_about_another_snapshot_are_refused():
    with pytest.raises(BadInput) as refused:
        update(
            with_history(2),
            {"action": "set-statistics", "snapshot-id": 2, "statistics": statistics(1)},
        )

    assert refused.value.field == "updates[0].snapshot-id"
