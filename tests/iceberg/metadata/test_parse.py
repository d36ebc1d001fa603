"""Metadata documents of our own making, valid and not; published ones are in `test_fixtures.py`."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.iceberg.limits import SizeLimits
from cynosure.iceberg.metadata import encode_metadata, parse_metadata
from tests.iceberg.samples import COLUMNS, NOW_MS, UUID, to_json

MISSING = object()

V1: dict[str, Any] = {
    "format-version": 1,
    "location": "file:///warehouse/old/",
    "last-updated-ms": NOW_MS,
    "last-column-id": 3,
    "schema": {"type": "struct", "fields": COLUMNS},
    "partition-spec": [
        {"source-id": 1, "transform": "bucket[8]", "name": "shard"},
        {"source-id": 2, "transform": "day", "name": "day"},
    ],
    "properties": {"owner": "ann"},
    "current-snapshot-id": 4,
    "snapshots": [
        {"snapshot-id": 3, "timestamp-ms": NOW_MS - 2, "manifests": ["a.avro"], "later": 1},
        {"snapshot-id": 4, "timestamp-ms": NOW_MS - 1, "manifest-list": "b.avro"},
    ],
}

V2: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": UUID,
    "location": "s3://bucket/table",
    "last-sequence-number": 7,
    "last-updated-ms": NOW_MS,
    "last-column-id": 9,
    "current-schema-id": 1,
    "schemas": [
        {"type": "struct", "schema-id": 0, "fields": COLUMNS[:1]},
        {"type": "struct", "schema-id": 1, "fields": COLUMNS, "later": {"x": [1, {"y": None}]}},
    ],
    "default-spec-id": 3,
    "partition-specs": [
        {"spec-id": 0, "fields": []},
        {
            "spec-id": 3,
            "later": 1,
            "fields": [
                {"source-id": 2, "field-id": 1004, "transform": "day", "name": "day", "later": "kept"}
            ],
        },
    ],
    "last-partition-id": 1004,
    "default-sort-order-id": 2,
    "sort-orders": [
        {"order-id": 0, "fields": []},
        {
            "order-id": 2,
            "fields": [
                {
                    "source-id": 1,
                    "transform": "identity",
                    "direction": "desc",
                    "null-order": "nulls-last",
                    "later": 0,
                }
            ],
        },
    ],
    "properties": {"a": "ü"},
    "current-snapshot-id": 11,
    "refs": {
        "main": {"type": "branch", "snapshot-id": 11, "later": "kept"},
        "v1": {"type": "tag", "snapshot-id": 10, "max-ref-age-ms": 5},
    },
    "snapshots": [
        {
            "snapshot-id": 10,
            "sequence-number": 6,
            "timestamp-ms": NOW_MS - 100,
            "manifest-list": "s3://bucket/1.avro",
            "summary": {"operation": "append", "later": "x"},
        },
        {
            "snapshot-id": 11,
            "parent-snapshot-id": 10,
            "sequence-number": 7,
            "timestamp-ms": NOW_MS - 50,
            "manifest-list": "s3://bucket/2.avro",
            "summary": {"operation": "delete"},
            "schema-id": 1,
            "later": [1.50],
        },
    ],
    "statistics": [
        {
            "snapshot-id": 11,
            "statistics-path": "s3://bucket/s.puffin",
            "file-size-in-bytes": 9,
            "file-footer-size-in-bytes": 3,
            "blob-metadata": [
                {"type": "t", "snapshot-id": 11, "sequence-number": 7, "fields": [1], "later": 1}
            ],
        }
    ],
    "partition-statistics": [
        {"snapshot-id": 11, "statistics-path": "s3://bucket/p", "file-size-in-bytes": 4, "later": 1}
    ],
    "snapshot-log": [
        {"snapshot-id": 10, "timestamp-ms": NOW_MS - 100},
        {"snapshot-id": 11, "timestamp-ms": NOW_MS - 50, "later": 1},
    ],
    "metadata-log": [{"timestamp-ms": NOW_MS - 100, "metadata-file": "s3://bucket/0.json", "later": 1}],
    "later": {"new": ["things", 1.10]},
}

V3: dict[str, Any] = {
    **V2,
    "format-version": 3,
    "next-row-id": 70,
    "encryption-keys": [
        {"key-id": "k1", "encrypted-key-metadata": "AAAA", "encrypted-by-id": "kms", "later": 1}
    ],
}


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with one value replaced or, with MISSING, taken out."""
    copy = json.loads(json.dumps(document))
    *outer, last = [int(part) if part.isdecimal() else part for part in path.split("/")]
    inside = copy
    for part in outer:
        inside = inside[part]
    if value is MISSING:
        del inside[last]
    else:
        inside[last] = value
    return copy


@pytest.mark.parametrize("document", [V2, V3], ids=["v2", "v3"])
def test_every_field_known_or_not_comes_back(document):
    again = json.loads(encode_metadata(parse_metadata(to_json(document))))

    assert again == document


@pytest.mark.parametrize("document", [V1, V2, V3], ids=["v1", "v2", "v3"])
def test_encoding_and_parsing_again_changes_nothing(document):
    metadata = parse_metadata(to_json(document))

    assert parse_metadata(encode_metadata(metadata)) == metadata


def test_unknown_numbers_keep_their_text_and_white_space_goes():
    metadata = parse_metadata(json.dumps(V2, indent=4).encode().replace(b"1.5", b"1.500"))

    assert b'"later":[1.500]' in encode_metadata(metadata)
    assert b"\n" not in encode_metadata(metadata)


JSON_VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(st.text(min_size=1).map("x-{}".format), JSON_VALUES, max_size=3)


@given(UNKNOWN, st.sampled_from([V2, V3]), st.data())
def test_unknown_fields_survive_in_every_object(unknown, document, data):
    copy = json.loads(json.dumps(document))
    objects: list[dict[str, Any]] = []

    def collect(value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            # These map names to text or objects; what is unknown there is not a field.
            if key not in ("properties", "summary", "refs"):
                objects.append(value)
            for name, one in value.items():
                collect(one, name)
        elif isinstance(value, list):
            for one in value:
                collect(one)

    collect(copy)
    data.draw(st.sampled_from(objects)).update(unknown)

    assert json.loads(encode_metadata(parse_metadata(to_json(copy)))) == copy


def test_an_old_v1_file_gets_what_it_lacks():
    metadata = parse_metadata(to_json(V1))

    assert metadata.location == "file:///warehouse/old"
    assert metadata.current_schema().schema_id == 0
    assert [field.field_id for field in metadata.default_spec().fields] == [1000, 1001]
    assert metadata.last_partition_id == 1001
    assert metadata.default_sort_order().order_id == 0
    assert metadata.default_sort_order().fields == ()
    assert metadata.last_sequence_number == 0
    assert metadata.next_row_id is None
    assert {name: ref.value.snapshot_id for name, ref in metadata.refs.items()} == {"main": 4}
    assert metadata.table_uuid == parse_metadata(to_json(V1)).table_uuid


def test_a_v1_document_repeats_schema_and_spec_for_old_readers():
    again = json.loads(encode_metadata(parse_metadata(to_json(V1))))

    assert again["schema"] == again["schemas"][0]
    assert again["partition-spec"] == again["partition-specs"][0]["fields"]
    assert "last-sequence-number" not in again
    assert again["snapshots"] == V1["snapshots"]


@pytest.mark.parametrize("none", [-1, None, MISSING])
def test_no_current_snapshot_is_read_in_every_spelling(none):
    document = {**V2, "refs": {}, "snapshots": [], "snapshot-log": []}

    metadata = parse_metadata(to_json(changed(document, "current-snapshot-id", none)))

    assert metadata.current_snapshot_id is None
    assert metadata.find_current_snapshot() is None
    assert json.loads(encode_metadata(metadata))["current-snapshot-id"] == -1


def test_version_3_writes_null_for_no_current_snapshot():
    document = {**V3, "refs": {}, "snapshots": [], "snapshot-log": [], "current-snapshot-id": None}

    assert json.loads(encode_metadata(parse_metadata(to_json(document))))["current-snapshot-id"] is None


@pytest.mark.parametrize(
    ("document", "path", "value", "field"),
    [
        (V2, "format-version", MISSING, "format-version"),
        (V2, "format-version", 4, "format-version"),
        (V2, "format-version", 0, "format-version"),
        (V2, "format-version", "2", "format-version"),
        (V2, "table-uuid", MISSING, "table-uuid"),
        (V2, "table-uuid", 5, "table-uuid"),
        (V2, "location", MISSING, "location"),
        (V2, "location", "", "location"),
        (V2, "last-sequence-number", MISSING, "last-sequence-number"),
        (V2, "last-updated-ms", MISSING, "last-updated-ms"),
        (V2, "last-updated-ms", NOW_MS - 1_000_000, "last-updated-ms"),
        (V2, "last-column-id", MISSING, "last-column-id"),
        (V2, "last-column-id", 2**31, "last-column-id"),
        (V2, "schemas", MISSING, "schemas"),
        (V2, "schemas", {}, "schemas"),
        (V2, "schemas/1/type", MISSING, "schemas[1].type"),
        (V2, "schemas/1/fields/0/type", "lon", "schemas[1].fields[0].type"),
        (V2, "schemas/0/schema-id", 1, "current-schema-id"),
        (V2, "current-schema-id", MISSING, "current-schema-id"),
        (V2, "current-schema-id", 2, "current-schema-id"),
        (V2, "partition-specs", MISSING, "partition-specs"),
        (V2, "partition-specs/1/fields/0/name", MISSING, "partition-specs[1].fields[0]"),
        (V2, "default-spec-id", 1, "default-spec-id"),
        (V2, "last-partition-id", MISSING, "last-partition-id"),
        (V2, "sort-orders", MISSING, "sort-orders"),
        (V2, "default-sort-order-id", 1, "default-sort-order-id"),
        (V2, "properties/a", 1, "properties[...]"),
        (V2, "current-snapshot-id", 12, "current-snapshot-id"),
        (V2, "current-snapshot-id", 10, "refs.main.snapshot-id"),
        (V2, "current-snapshot-id", -1, "current-snapshot-id"),
        (V2, "refs/v1/snapshot-id", 12, "refs.v1.snapshot-id"),
        (V2, "refs/v1/type", "twig", "refs.v1.type"),
        (V2, "snapshots/1/snapshot-id", 10, "snapshots[1].snapshot-id"),
        (V2, "snapshots/1/sequence-number", 8, "snapshots[1].sequence-number"),
        (V2, "snapshots/1/timestamp-ms", MISSING, "snapshots[1]"),
        (V2, "statistics/0/blob-metadata", MISSING, "statistics[0]"),
        (V2, "partition-statistics/0/statistics-path", 1, "partition-statistics[0].statistics-path"),
        (V2, "snapshot-log/1/timestamp-ms", NOW_MS - 1_000_000, "snapshot-log[1].timestamp-ms"),
        (V2, "metadata-log/0/metadata-file", MISSING, "metadata-log[0]"),
        (V2, "metadata-log/0/timestamp-ms", NOW_MS + 1_000_000, "last-updated-ms"),
        (V3, "next-row-id", MISSING, "next-row-id"),
        (V3, "encryption-keys/0/key-id", MISSING, "encryption-keys[0]"),
        (V1, "schema", MISSING, "schema"),
        (V1, "schema/type", MISSING, "schema.type"),
        (V1, "partition-spec", MISSING, "partition-spec"),
        (V1, "partition-spec/0/source-id", 77, "partition-specs.fields[0].source-id"),
    ],
)
def test_an_invalid_document_is_refused_with_the_field(document, path, value, field):
    with pytest.raises(BadInput) as refused:
        parse_metadata(to_json(changed(document, path, value)))

    assert refused.value.field == field
    assert refused.value.fix


@pytest.mark.parametrize("text", [b"", b"[]", b"7", b'{"format-version":2', b'{"a":"\xfe"}'])
def test_what_is_not_a_json_object_is_refused(text):
    with pytest.raises(BadInput):
        parse_metadata(text)


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        (SizeLimits(max_columns=2), "schemas[1].fields"),
        (SizeLimits(max_snapshots=1), "snapshots"),
        (SizeLimits(max_properties_bytes=2), "properties"),
    ],
)
def test_a_document_above_a_limit_is_refused_with_the_field(limits, field):
    with pytest.raises(BadInput) as refused:
        parse_metadata(to_json(V2), limits=limits)

    assert refused.value.field == field


@given(st.binary(max_size=60))
def test_any_bytes_are_refused_without_another_error(blob):
    with pytest.raises(BadInput):
        parse_metadata(blob)


@given(st.data())
def test_a_field_of_any_value_is_refused_or_read(data):
    name = data.draw(st.sampled_from(sorted(V3)))
    document = {**V3, name: data.draw(JSON_VALUES | st.none() | st.floats(allow_nan=False))}

    try:
        metadata = parse_metadata(to_json(document))
    except BadInput:
        return
    assert parse_metadata(encode_metadata(metadata)) == metadata


def test_accessors_find_by_id_and_name():
    metadata = parse_metadata(to_json(V2))

    current = metadata.find_current_snapshot()
    assert current is not None
    assert current.snapshot_id == 11
    assert metadata.find_snapshot(99) is None
    assert metadata.find_ref("v1").snapshot_id == 10
    assert metadata.find_ref("v2") is None
    assert metadata.find_schema(0).fields[0].name == "id"
    assert metadata.find_schema(5) is None
    assert metadata.default_spec().spec_id == 3
    assert metadata.default_sort_order().order_id == 2


def test_properties_that_cannot_fit_are_not_read():
    # The same one again and again: it would be small in the end.
    one, many = b'{"a":"b"}', b"{" + b",".join([b'"a":"b"'] * 10) + b"}"
    document = to_json(changed(V2, "properties", {"a": "b"})).replace(b" ", b"")
    assert document.count(one) == 1

    with pytest.raises(BadInput, match="too large together"):
        parse_metadata(document.replace(one, many), limits=SizeLimits(max_properties_bytes=5))
