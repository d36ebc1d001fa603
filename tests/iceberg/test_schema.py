import json

import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.limits import DEFAULT_LIMITS, SizeLimits
from cynosure.iceberg.schema import assign_fresh_ids, check_schema, read_schema, same_schema
from tests.iceberg.samples import COLUMNS, SCHEMA, to_json

NESTED = {
    "type": "struct",
    "schema-id": 9,
    "identifier-field-ids": [10, 13],
    "fields": [
        {"id": 10, "name": "id", "required": True, "type": "long"},
        {
            "id": 11,
            "name": "who",
            "required": True,
            "type": {
                "type": "struct",
                "fields": [{"id": 13, "name": "email", "required": True, "type": "string", "later": 1}],
            },
        },
        {
            "id": 12,
            "name": "tags",
            "required": False,
            "type": {
                "type": "map",
                "key-id": 14,
                "key": "string",
                "value-id": 15,
                "value": {"type": "list", "element-id": 16, "element": "int", "element-required": True},
                "value-required": False,
            },
        },
        {"id": 17, "name": "last", "required": False, "type": "date"},
    ],
}


def with_columns(*columns, **changes):
    return {"type": "struct", "fields": [*columns], **changes}


def column(id_, name, type_="long", *, required=True, **more):
    return {"id": id_, "name": name, "required": required, "type": type_, **more}


def test_fields_are_found_by_id_and_by_path():
    schema = read_schema(to_json(NESTED)).value

    assert schema.schema_id == 9
    assert schema.ids_by_path["who.email"] == 13
    assert schema.ids_by_path["tags.value.element"] == 16
    assert [outer.name for outer in schema.places[16].around] == ["tags", "value"]
    assert schema.highest_field_id == 17


def test_fresh_ids_are_given_level_by_level_and_unknown_fields_stay():
    fresh, renumbered = assign_fresh_ids(read_schema(to_json(NESTED)))

    assert renumbered == {10: 1, 11: 2, 12: 3, 17: 4, 13: 5, 14: 6, 15: 7, 16: 8}
    assert fresh.value.identifier_field_ids == (1, 5)
    assert fresh.value.schema_id == 0
    assert json.loads(fresh.json)["fields"][1]["type"]["fields"][0]["later"] == 1


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ({"fields": COLUMNS}, "schema.type"),
        ([], "schema.type"),
        ({"type": "struct"}, "schema.fields"),
        ({**SCHEMA, "schema-id": "0"}, "schema.schema-id"),
        ({**SCHEMA, "identifier-field-ids": 1}, "schema.identifier-field-ids"),
        ({**SCHEMA, "identifier-field-ids": [True]}, "schema.identifier-field-ids[0]"),
        (with_columns(column(1, "a"), column(1, "b")), "schema.fields"),
        (with_columns(column(1, "a"), column(2, "a")), "schema.fields"),
        (
            with_columns(
                column(1, "a.b"), column(2, "a", {"type": "struct", "fields": [column(3, "b", "int")]})
            ),
            "schema.fields",
        ),
        (with_columns(column(1, "a", "no-such-type")), "schema.fields[0].type"),
    ],
)
def test_a_broken_schema_is_refused_with_the_field(schema, field):
    with pytest.raises(BadInput) as refused:
        read_schema(to_json(schema))

    assert refused.value.field == field


@pytest.mark.parametrize(
    ("columns", "identifier"),
    [
        ([column(1, "a")], 2),
        ([column(1, "a", required=False)], 1),
        ([column(1, "a", "double")], 1),
        ([column(1, "a", "float")], 1),
        ([column(1, "a", {"type": "struct", "fields": []})], 1),
        (
            [column(1, "a", {"type": "list", "element-id": 2, "element": "int", "element-required": True})],
            2,
        ),
        ([column(1, "a", {"type": "struct", "fields": [column(2, "b")]}, required=False)], 2),
    ],
)
def test_only_columns_that_identify_rows_are_identifier_fields(columns, identifier):
    with pytest.raises(BadInput) as refused:
        read_schema(to_json(with_columns(*columns, **{"identifier-field-ids": [identifier]})))

    assert refused.value.field == "schema.identifier-field-ids"


@pytest.mark.parametrize(
    "type_", ["timestamp_ns", "timestamptz_ns", "variant", "geometry", "geography(srid:4326)"]
)
@pytest.mark.parametrize("is_nested", [True, False])
def test_new_types_need_version_3(type_, is_nested):
    nested = {"type": "list", "element-id": 2, "element": type_, "element-required": False}
    schema = read_schema(to_json(with_columns(column(1, "a", nested if is_nested else type_)))).value

    check_schema(schema, format_version=3, limits=DEFAULT_LIMITS)
    for version in (1, 2):
        with pytest.raises(BadInput, match="newer format version"):
            check_schema(schema, format_version=version, limits=DEFAULT_LIMITS)


@pytest.mark.parametrize("default", ["initial-default", "write-default"])
def test_defaults_need_version_3(default):
    schema = read_schema(to_json(with_columns(column(1, "a", **{default: 5})))).value

    check_schema(schema, format_version=3, limits=DEFAULT_LIMITS)
    with pytest.raises(BadInput, match="newer format version"):
        check_schema(schema, format_version=2, limits=DEFAULT_LIMITS)


def test_a_default_of_another_type_is_refused():
    schema = read_schema(to_json(with_columns(column(1, "a", **{"write-default": "five"})))).value

    with pytest.raises(BadInput) as refused:
        check_schema(schema, format_version=3, limits=DEFAULT_LIMITS)

    assert refused.value.field == "schema.a.write-default"


def test_a_required_column_of_unknown_type_is_refused():
    schema = read_schema(to_json(with_columns(column(1, "a", "unknown")))).value

    with pytest.raises(BadInput, match="always optional"):
        check_schema(schema, format_version=3, limits=DEFAULT_LIMITS)


def test_too_many_columns_are_refused_counting_nested_ones():
    schema = read_schema(to_json(NESTED)).value

    check_schema(schema, format_version=2, limits=SizeLimits(max_columns=8))
    with pytest.raises(BadInput, match="too many columns"):
        check_schema(schema, format_version=2, limits=SizeLimits(max_columns=7))


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"schema-id": 77}, True),
        ({"identifier-field-ids": [13, 10]}, True),
        ({"identifier-field-ids": []}, False),
        ({"later": True}, False),
        ({"later": None}, True),
        ({"fields": NESTED["fields"][:-1]}, False),
    ],
)
def test_schemas_are_the_same_when_nothing_but_their_ids_differ(change, is_same):
    one, other = read_schema(to_json(NESTED)), read_schema(to_json({**NESTED, **change}))

    assert same_schema(one, other) is is_same
