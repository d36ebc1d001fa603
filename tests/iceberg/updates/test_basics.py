import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.limits import SizeLimits
from tests.iceberg.samples import NOW_MS, UUID, encoded, new_table, update

KEY = {"key-id": "k", "encrypted-key-metadata": "AAAA", "later": {"x": 1}}


def test_assigning_the_same_uuid_changes_nothing():
    table = new_table()

    assert update(table, {"action": "assign-uuid", "uuid": UUID.upper()}) is table


def test_a_table_never_gets_another_uuid():
    with pytest.raises(BadInput) as refused:
        update(new_table(), {"action": "assign-uuid", "uuid": "0" * 32})

    assert refused.value.field == "updates[0].uuid"


def test_a_version_goes_up_and_brings_row_ids():
    table = update(new_table(), {"action": "upgrade-format-version", "format-version": 3})

    assert table.format_version == 3
    assert table.next_row_id == 0
    assert encoded(table)["next-row-id"] == 0


@pytest.mark.parametrize("version", [1, 4, 0, -1])
def test_a_version_never_goes_down_nor_beyond_what_is_supported(version):
    with pytest.raises(BadInput) as refused:
        update(new_table(), {"action": "upgrade-format-version", "format-version": version})

    assert refused.value.field == "updates[0].format-version"


def test_an_upgrade_to_the_same_version_changes_nothing():
    table = new_table()

    assert update(table, {"action": "upgrade-format-version", "format-version": 2}) is table


def test_a_location_loses_its_trailing_slash():
    table = update(new_table(), {"action": "set-location", "location": "s3://other/place//"})

    assert table.location == "s3://other/place"
    assert table.last_updated_ms == NOW_MS + 1000
    assert update(table, {"action": "set-location", "location": "s3://other/place/"}) is table


def test_properties_are_set_and_removed():
    table = update(
        new_table(properties={"a": "1", "b": "2"}),
        {"action": "set-properties", "updates": {"b": "3", "c": "4"}},
        {"action": "remove-properties", "removals": ["a", "never-set"]},
    )

    assert table.properties == {"write.parquet.compression-codec": "zstd", "b": "3", "c": "4"}


@pytest.mark.parametrize(
    "update_",
    [
        {"action": "set-properties", "updates": {}},
        {"action": "set-properties", "updates": {"a": "1"}},
        {"action": "remove-properties", "removals": ["never-set"]},
        {"action": "remove-encryption-key", "key-id": "never-set"},
        {"action": "remove-snapshot-ref", "ref-name": "never-set"},
        {"action": "remove-snapshots", "snapshot-ids": [404]},
        {"action": "remove-statistics", "snapshot-id": 404},
        {"action": "remove-partition-statistics", "snapshot-id": 404},
        {"action": "remove-schemas", "schema-ids": [404]},
        {"action": "remove-partition-specs", "spec-ids": [404]},
    ],
)
def test_updates_that_change_nothing_give_the_table_itself(update_):
    table = new_table(properties={"a": "1"})

    assert update(table, update_) is table


def test_reserved_properties_are_refused():
    with pytest.raises(BadInput) as refused:
        update(new_table(), {"action": "set-properties", "updates": {"format-version": "3"}})

    assert refused.value.field == "updates[0].updates"


def test_properties_are_limited_in_bytes_together():
    limits = SizeLimits(max_properties_bytes=100)
    table = new_table()

    update(table, {"action": "set-properties", "updates": {"a": "x" * 60}}, limits=limits)
    for large in ({"a": "x" * 90}, {"a": "ü" * 40}):
        with pytest.raises(BadInput) as refused:
            update(table, {"action": "set-properties", "updates": large}, limits=limits)
        assert refused.value.field == "updates[0].updates"


def test_keys_are_added_once_and_removed_with_unknown_fields_kept():
    table = new_table(format_version=3)

    added = update(table, {"action": "add-encryption-key", "encryption-key": KEY})
    assert encoded(added)["encryption-keys"] == [KEY]
    other = {**KEY, "encrypted-key-metadata": "BBBB"}
    assert update(added, {"action": "add-encryption-key", "encryption-key": other}) is added
    removed = update(added, {"action": "remove-encryption-key", "key-id": "k"})
    assert removed.encryption_keys == {}


def test_keys_need_version_3():
    with pytest.raises(BadInput, match="newer format version"):
        update(new_table(), {"action": "add-encryption-key", "encryption-key": KEY})
