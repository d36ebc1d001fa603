import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.limits import SizeLimits
from cynosure.iceberg.metadata import encode_metadata, parse_metadata
from tests.iceberg.samples import NOW_MS, UUID, encoded, new_table

GIVEN = {
    "type": "struct",
    "schema-id": 4,
    "later": 1,
    "fields": [
        {"id": 30, "name": "id", "required": True, "type": "long", "later": 2},
        {
            "id": 10,
            "name": "in",
            "required": True,
            "type": {
                "type": "struct",
                "fields": [{"id": 40, "name": "at", "required": False, "type": "timestamp"}],
            },
        },
        {"id": 20, "name": "name", "required": False, "type": "string"},
    ],
}
SPEC = {
    "spec-id": 9,
    "later": 3,
    "fields": [{"source-id": 40, "field-id": 7, "transform": "day", "name": "day", "later": 4}],
}
ORDER = {
    "order-id": 5,
    "later": 5,
    "fields": [
        {"source-id": 20, "transform": "identity", "direction": "asc", "null-order": "nulls-last", "later": 6}
    ],
}


def test_columns_are_numbered_afresh_and_sources_follow():
    document = encoded(new_table(schema=GIVEN, partition_spec=SPEC, sort_order=ORDER))

    (schema,) = document["schemas"]
    assert schema["schema-id"] == 0
    assert [column["id"] for column in schema["fields"]] == [1, 2, 3]
    assert schema["fields"][1]["type"]["fields"][0]["id"] == 4
    assert document["last-column-id"] == 4
    assert document["partition-specs"] == [
        {
            "spec-id": 0,
            "later": 3,
            "fields": [{"source-id": 4, "field-id": 1000, "transform": "day", "name": "day", "later": 4}],
        }
    ]
    assert document["last-partition-id"] == 1000
    assert document["sort-orders"][0]["order-id"] == 1
    assert document["sort-orders"][0]["fields"][0]["source-id"] == 3
    assert document["default-sort-order-id"] == 1
    assert (schema["later"], schema["fields"][0]["later"]) == (1, 2)
    assert document["sort-orders"][0]["later"] == 5


def test_a_plain_table_is_unpartitioned_and_unsorted():
    document = encoded(new_table())

    assert document["partition-specs"] == [{"spec-id": 0, "fields": []}]
    assert document["last-partition-id"] == 999
    assert document["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert document["table-uuid"] == UUID
    assert document["last-updated-ms"] == NOW_MS
    assert document["current-snapshot-id"] == -1
    assert document["last-sequence-number"] == 0


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_can_be_made_and_read_again(version):
    table = new_table(properties={"format-version": str(version)}, partition_spec=None, sort_order=None)

    assert table.format_version == version
    assert table.next_row_id == (0 if version == 3 else None)
    assert parse_metadata(encode_metadata(table)) == table


def test_the_format_version_property_chooses_and_is_not_stored():
    table = new_table(properties={"format-version": "1", "uuid": "x", "owner": "ann"})

    assert table.format_version == 1
    assert table.properties == {"write.parquet.compression-codec": "zstd", "owner": "ann"}


def test_a_chosen_codec_wins_over_the_default():
    table = new_table(properties={"write.parquet.compression-codec": "gzip"})

    assert table.properties == {"write.parquet.compression-codec": "gzip"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"properties": {"format-version": "4"}}, "properties.format-version"),
        ({"properties": {"format-version": "two"}}, "properties.format-version"),
        ({"properties": {"format-version": "-1"}}, "properties.format-version"),
        ({"location": ""}, "location"),
        ({"schema": {"type": "list"}}, "schema.type"),
        ({"partition_spec": {"fields": [{**SPEC["fields"][0], "source-id": 9}]}}, None),
        ({"partition_spec": {"fields": [{**SPEC["fields"][0], "source-id": 1}]}}, None),
        ({"sort_order": {"order-id": 1, "fields": [{**ORDER["fields"][0], "source-id": 9}]}}, None),
        ({"properties": {"commit.retry.num-retries": "-1"}}, "properties.commit.retry.num-retries"),
        ({"properties": {"commit.retry.num-retries": "x"}}, "properties.commit.retry.num-retries"),
        (
            {"properties": {"write.metadata.metrics.column.nope": "full"}},
            "properties.write.metadata.metrics.column.nope",
        ),
        ({"properties": {"a": "x" * 100}, "limits": SizeLimits(max_properties_bytes=99)}, "properties"),
        ({"limits": SizeLimits(max_columns=2)}, "schema.fields"),
    ],
)
def test_what_cannot_be_a_table_is_refused_with_the_field(changes, field):
    with pytest.raises(BadInput) as refused:
        new_table(**changes)

    assert field is None or refused.value.field == field


def test_sources_are_named_by_the_ids_of_the_request():
    with pytest.raises(BadInput) as refused:
        new_table(schema=GIVEN, partition_spec={"fields": [{**SPEC["fields"][0], "source-id": 4}]})

    assert refused.value.field == "partition-spec.fields[0].source-id"


def test_metrics_of_nested_columns_are_known():
    table = new_table(schema=GIVEN, properties={"write.metadata.metrics.column.in.at": "full"})

    assert "write.metadata.metrics.column.in.at" in table.properties
