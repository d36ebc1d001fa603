"""Which commits are appends that may be moved, and on which states (I83)."""

from typing import Any

import pytest
from msgspec.structs import replace

from cynosure.iceberg.appending.request import AppendCommit, find_refusal, read_append
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.requirements import decode_requirements
from cynosure.iceberg.updates import decode_updates
from tests.iceberg.appending.samples import table
from tests.iceberg.samples import UUID, add, set_ref, snapshot, to_json, update

IS_TABLE = {"type": "assert-table-uuid", "uuid": UUID}


def at(id_: int | None, ref: str = "main") -> dict[str, Any]:
    return {"type": "assert-ref-snapshot-id", "ref": ref, "snapshot-id": id_}


def parse(requirements: list[dict[str, Any]], updates: list[dict[str, Any]]) -> AppendCommit | None:
    return read_append(decode_requirements(to_json(requirements)), decode_updates(to_json(updates)))


def commit(base: TableMetadata, id_: int = 9, branch: str = "main", **changes: Any) -> AppendCommit:
    head = base.find_ref(branch)
    found = parse(
        [IS_TABLE, at(head and head.snapshot_id, branch)],
        [add(snapshot(base, id_, **changes)), set_ref(branch, id_)],
    )
    assert found is not None
    return found


def test_append_is_known() -> None:
    base = table(heads=[1])
    found = commit(base)
    assert (found.branch, found.expected) == ("main", 1)
    assert found.snapshot.value.snapshot_id == 9
    # The table's own identity is still required.
    assert found.others == tuple(decode_requirements(to_json([IS_TABLE])))


def test_first_append_expects_no_branch() -> None:
    assert commit(table()).expected is None


def test_append_without_assertion_is_known() -> None:
    base = table(heads=[1])
    found = parse([IS_TABLE], [add(snapshot(base, 9)), set_ref("main", 9)])
    assert found is not None
    assert find_refusal(found, table(heads=[1, 2])) is None


@pytest.mark.parametrize(
    "summary",
    [
        {"operation": "overwrite"},
        {"operation": "delete"},
        {"operation": "replace"},
        {},
        {"operation": "append", "kafka.connect.offsets.control.group": "{}"},
        {"operation": "append", "flink.max-committed-checkpoint-id": "7"},
        {"operation": "append", "spark.sql.streaming.epochId": "7"},
        {"operation": "append", "source-snapshot-id": "7"},
        {"operation": "append", "published-wap-id": "nightly"},
        {"operation": "append", "wap.id": "nightly"},
        {"operation": "append", "deleted-data-files": "1"},
        {"operation": "append", "deleted-records": "many"},
        {"operation": "append", "removed-files-size": "12"},
        {"operation": "append", "added-delete-files": "1"},
        {"operation": "append", "added-position-deletes": "4"},
        {"operation": "append", "added-dvs": "4"},
    ],
)
def test_other_summaries_are_no_appends(summary: dict[str, str]) -> None:
    base = table(heads=[1])
    updates = [add(snapshot(base, 9, summary=summary)), set_ref("main", 9)]
    assert parse([IS_TABLE, at(1)], updates) is None


def test_counts_of_nothing_and_names_of_engines_do_not_matter() -> None:
    summary = {
        "operation": "append",
        "deleted-data-files": "0",
        "engine-name": "spark",
        "spark.app.id": "local-1",
        "added-records": "7",
    }
    assert commit(table(heads=[1]), summary=summary).branch == "main"


def test_snapshot_without_summary_is_no_append() -> None:
    base = table(heads=[1])
    document = snapshot(base, 9)
    del document["summary"]
    assert parse([at(1)], [add(document), set_ref("main", 9)]) is None


@pytest.mark.parametrize(
    "more",
    [
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
        {"type": "assert-create"},
        at(1, "audit"),
        at(1),
    ],
)
def test_more_requirements_are_the_clients_to_check(more: dict[str, Any]) -> None:
    base = table(heads=[1])
    assert parse([at(1), more], [add(snapshot(base, 9)), set_ref("main", 9)]) is None


def test_assertion_about_another_branch_is_no_append() -> None:
    base = table(heads=[1])
    assert parse([at(1, "audit")], [add(snapshot(base, 9)), set_ref("main", 9)]) is None


def test_other_updates_are_no_appends() -> None:
    base = table(heads=[1])
    added, moved = add(snapshot(base, 9)), set_ref("main", 9)
    properties = {"action": "set-properties", "updates": {"a": "b"}}
    for updates in (
        [added],
        [moved],
        [moved, added],
        [added, moved, properties],
        [added, properties],
        [added, set_ref("main", 1)],
        [added, set_ref("release", 9, "tag")],
        [added, added],
        [],
    ):
        assert parse([at(1)], updates) is None, updates


def test_state_that_moved_on_takes_the_append() -> None:
    base = table(heads=[1])
    append = commit(base)
    assert find_refusal(append, base) is None
    moved = update(base, add(snapshot(base, 2)), set_ref("main", 2))
    assert find_refusal(append, moved) is None


def test_first_append_goes_behind_another_first_one() -> None:
    append = commit(table())
    assert find_refusal(append, table(heads=[1])) is None


def test_snapshot_id_that_is_there_is_refused() -> None:
    append = commit(table(heads=[1]))
    assert "already" in (find_refusal(append, table(heads=[1, 9])) or "")


def test_branch_that_is_gone_is_refused() -> None:
    base = table(heads=[1])
    on_branch = update(base, set_ref("audit", 1))
    append = commit(on_branch, branch="audit")
    assert find_refusal(append, on_branch) is None
    assert "gone" in (find_refusal(append, base) or "")


def test_tag_of_the_same_name_is_refused() -> None:
    base = table(heads=[1])
    append = commit(update(base, set_ref("audit", 1)), branch="audit")
    assert "tag" in (find_refusal(append, update(base, set_ref("audit", 1, "tag"))) or "")


def test_new_branch_begins_where_the_client_said() -> None:
    base = table(heads=[1])
    append = commit(base, branch="audit")
    assert append.expected is None
    moved = update(base, add(snapshot(base, 2)), set_ref("main", 2))
    assert "begins" in (find_refusal(append, moved) or "")


def test_new_branch_from_nothing_is_taken_without_settings_only() -> None:
    base = table(heads=[1])
    append = commit(table(), branch="audit")
    assert find_refusal(append, base) is None
    with_settings = replace(append, ref=replace(append.ref, max_ref_age_ms=5))
    assert "settings" in (find_refusal(with_settings, base) or "")


def test_schema_that_is_gone_is_refused() -> None:
    append = commit(table(heads=[1]), **{"schema-id": 7})
    assert "schema" in (find_refusal(append, table(heads=[1])) or "")


@pytest.mark.parametrize(("made_for", "now"), [(1, 2), (2, 3), (1, 3), (2, 1)])
def test_snapshot_for_another_version_is_refused(made_for: int, now: int) -> None:
    append = commit(table(made_for, heads=[1]))
    assert "version" in (find_refusal(append, table(now, heads=[1])) or "")


def test_list_that_cannot_be_read_is_refused() -> None:
    base = table(heads=[1])
    assert "list" in (find_refusal(commit(base, **{"key-id": "k"}), base) or "")
    document = snapshot(base, 9, manifests=["s3://bucket/table/m.avro"])
    del document["manifest-list"]
    append = parse([at(1)], [add(document), set_ref("main", 9)])
    assert append is not None
    assert "list" in (find_refusal(append, base) or "")


def test_settings_of_a_branch_are_left_alone() -> None:
    base = update(table(heads=[1]), set_ref("main", 1, min_snapshots_to_keep=5))
    for given, is_taken in (({}, True), ({"min_snapshots_to_keep": 5}, True)):
        append = parse([at(1)], [add(snapshot(base, 9)), set_ref("main", 9, **given)])
        assert append is not None
        assert (find_refusal(append, base) is None) is is_taken
    for other in ({"min_snapshots_to_keep": 6}, {"max_ref_age_ms": 5}, {"max_snapshot_age_ms": 5}):
        append = parse([at(1)], [add(snapshot(base, 9)), set_ref("main", 9, **other)])
        assert append is not None
        assert "keeps" in (find_refusal(append, base) or "")
