import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.metadata import encode_metadata, parse_metadata
from cynosure.iceberg.updates import apply_updates, decode_updates
from tests.iceberg.samples import (
    NOW_MS,
    SCHEMA,
    UUID,
    add,
    new_table,
    set_ref,
    snapshot,
    to_json,
    update,
    with_history,
)

CREATE = [
    {"action": "assign-uuid", "uuid": UUID},
    {"action": "upgrade-format-version", "format-version": 2},
    {"action": "add-schema", "schema": SCHEMA},
    {"action": "set-current-schema", "schema-id": -1},
    {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    {"action": "set-default-spec", "spec-id": -1},
    {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
    {"action": "set-default-sort-order", "sort-order-id": -1},
    {"action": "set-location", "location": "s3://bucket/table"},
    {"action": "set-properties", "updates": {"write.parquet.compression-codec": "zstd"}},
]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_create_transaction_makes_the_table_that_create_makes(version):
    updates = [*CREATE]
    updates[1] = {"action": "upgrade-format-version", "format-version": version}

    table = update(None, *updates, now_ms=NOW_MS)

    assert table == new_table(format_version=version)


def test_a_create_transaction_may_bring_data():
    empty = update(None, *CREATE)

    table = update(None, *CREATE, add(snapshot(empty, 1)), set_ref("main", 1))

    assert table.current_snapshot_id == 1
    assert parse_metadata(encode_metadata(table)) == table


def test_without_an_upgrade_a_new_table_has_the_default_version():
    assert update(None, *(one for one in CREATE if "format-version" not in one)).format_version == 2


@pytest.mark.parametrize(
    "action",
    [
        "assign-uuid",
        "set-current-schema",
        "set-default-spec",
        "set-default-sort-order",
        "set-location",
        "add-schema",
        "add-spec",
        "add-sort-order",
    ],
)
def test_a_create_transaction_that_lacks_a_part_is_refused(action):
    with pytest.raises(BadInput):
        update(None, *(one for one in CREATE if one["action"] != action))


@pytest.mark.parametrize("text", ["", "x", "{1f6a3ae4-5f2b-4d0c-9e5f-0d7a0d9b7c11}", UUID.replace("-", "")])
def test_a_new_table_needs_a_proper_uuid(text):
    with pytest.raises(BadInput) as refused:
        update(None, {"action": "assign-uuid", "uuid": text}, *CREATE[1:])

    assert refused.value.field == "updates[0].uuid"


def test_data_before_a_schema_is_refused():
    document = snapshot(new_table(), 1)

    with pytest.raises(BadInput, match="A snapshot needs a schema"):
        update(None, CREATE[0], add(document))


def test_an_upgrade_twice_in_a_create_goes_up():
    table = update(None, *CREATE, {"action": "upgrade-format-version", "format-version": 3})

    assert table.format_version == 3


def test_a_failed_request_leaves_the_base_as_it_was():
    table = with_history(20)
    before = encode_metadata(table)

    with pytest.raises(BadInput):
        update(
            table,
            {"action": "set-properties", "updates": {"a": "b"}},
            add(snapshot(table, 99)),
            set_ref("main", 99),
            {"action": "remove-snapshots", "snapshot-ids": [3]},
            set_ref("dev", 12345),
        )

    assert encode_metadata(table) == before
    assert 99 not in table.snapshots


def test_a_request_can_be_applied_again_on_another_base():
    table = with_history(20)
    updates = decode_updates(to_json([add(snapshot(table, 99)), set_ref("dev", 99)]))

    first = apply_updates(table, updates, now_ms=NOW_MS)
    other = update(table, {"action": "set-properties", "updates": {"a": "b"}})
    second = apply_updates(other, updates, now_ms=NOW_MS)

    assert first.find_snapshot(99) == second.find_snapshot(99)
    assert second.properties["a"] == "b"
    assert "a" not in first.properties


def test_no_updates_change_nothing():
    table = new_table()

    assert apply_updates(table, [], now_ms=NOW_MS + 99) is table


def test_an_error_names_the_update_that_is_wrong():
    with pytest.raises(InvalidUpdate) as refused:
        update(new_table(), {"action": "set-location", "location": "s3://x"}, set_ref("main", 1))

    assert refused.value.field == "updates[1].snapshot-id"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([{"action": "set-location", "location": "x"}, {"action": "levitate"}], "updates[1].action"),
        ([{"location": "x"}], "updates[0]"),
        ([{"action": "set-location"}], "updates[0]"),
        ([{"action": "set-location", "location": 5}], "updates[0].location"),
        ([{"action": "set-properties", "updates": {"a": None}}], "updates[0].updates[...]"),
        ([{"action": "set-current-schema", "schema-id": 2**40}], "updates[0].schema-id"),
        ([7], "updates[0]"),
        ({}, "updates"),
        ([{"action": "add-view-version", "view-version": {}}], "updates[0].action"),
    ],
)
def test_an_update_that_cannot_be_read_is_refused_with_its_place(body, field):
    with pytest.raises(InvalidUpdate) as refused:
        decode_updates(to_json(body))

    assert refused.value.field == field


def test_an_unknown_action_is_named():
    with pytest.raises(InvalidUpdate, match="levitate"):
        decode_updates(to_json([{"action": "levitate"}]))


@pytest.mark.parametrize("body", [b"", b"[", b'[{"action":"set-location","location":"\xff"}]'])
def test_what_is_not_json_is_refused(body):
    with pytest.raises(BadInput):
        decode_updates(body)
