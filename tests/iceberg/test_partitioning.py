import json

import pytest

from cynosure.common.errors import BadInput
from cynosure.iceberg.partitioning import check_spec, read_spec, same_spec, with_field_ids
from cynosure.iceberg.schema import read_schema
from tests.iceberg.samples import to_json

TABLE = read_schema(
    to_json(
        {
            "type": "struct",
            "fields": [
                {"id": 1, "name": "id", "required": True, "type": "long"},
                {"id": 2, "name": "at", "required": False, "type": "timestamp"},
                {"id": 3, "name": "price", "required": False, "type": "double"},
                {"id": 4, "name": "shape", "required": False, "type": "geometry"},
                {
                    "id": 5,
                    "name": "many",
                    "required": False,
                    "type": {"type": "list", "element-id": 6, "element": "int", "element-required": True},
                },
                {
                    "id": 7,
                    "name": "in",
                    "required": False,
                    "type": {
                        "type": "struct",
                        "fields": [{"id": 8, "name": "day", "required": False, "type": "date"}],
                    },
                },
            ],
        }
    )
).value


def field(source, transform="identity", name="p", **more):
    return {"source-id": source, "transform": transform, "name": name, **more}


def spec(*fields):
    return read_spec(to_json({"spec-id": 0, "fields": [*fields]}))


@pytest.mark.parametrize(
    ("source", "transform"),
    [
        (1, "identity"),
        (1, "bucket[16]"),
        (1, "truncate[10]"),
        (2, "year"),
        (2, "month"),
        (2, "day"),
        (2, "hour"),
        (8, "day"),
        (3, "identity"),
        (99, "void"),
        (1, "zorder"),
    ],
)
def test_a_transform_that_applies_is_accepted(source, transform):
    check_spec(spec(field(source, transform)).value, TABLE, format_version=2)


@pytest.mark.parametrize(
    ("source", "transform", "at"),
    [
        (99, "identity", "source-id"),
        (6, "identity", "source-id"),
        (3, "bucket[4]", "transform"),
        (1, "day", "transform"),
        (8, "hour", "transform"),
        (2, "truncate[3]", "transform"),
        (4, "identity", "transform"),
        (5, "identity", "transform"),
    ],
)
def test_a_field_that_does_not_fit_the_schema_is_refused(source, transform, at):
    with pytest.raises(BadInput) as refused:
        check_spec(spec(field(source, transform)).value, TABLE, format_version=2)

    assert refused.value.field == f"spec.fields[0].{at}"


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ([{"transform": "identity", "name": "p"}], "fields[0].source-id"),
        ([field(1, name="")], "fields[0].name"),
        ([field(1), field(2)], "fields[1].name"),
        ([field(1, name="a", **{"field-id": 5}), field(2, **{"field-id": 5})], "fields[1].field-id"),
        ([field(1, "bucket[0]")], "fields[0].transform"),
        ([field(1, "bucket")], "fields[0].transform"),
        ([field(1, "truncate[-1]")], "fields[0].transform"),
        ([field("1")], "fields[0].source-id"),
        (7, "fields"),
    ],
)
def test_a_broken_spec_is_refused_with_the_field(fields, at):
    with pytest.raises(BadInput) as refused:
        read_spec(to_json({"fields": fields}))

    assert refused.value.field == f"spec.{at}"


def test_only_a_copy_of_a_column_may_have_its_name():
    check_spec(spec(field(1, name="id")).value, TABLE, format_version=2)
    for clashing in (field(2, name="id"), field(1, "bucket[4]", name="id"), field(1, name="in.day")):
        with pytest.raises(BadInput) as refused:
            check_spec(spec(clashing).value, TABLE, format_version=2)
        assert refused.value.field == "spec.fields[0].name"


def test_version_1_numbers_fields_without_gaps():
    gap = spec(field(1, name="a", **{"field-id": 1000}), field(2, name="b", **{"field-id": 1002})).value

    check_spec(gap, TABLE, format_version=2)
    with pytest.raises(BadInput, match="Format version 1"):
        check_spec(gap, TABLE, format_version=1)


def test_missing_field_ids_are_reused_or_new():
    given = spec(field(1, name="a"), field(2, "day", name="b"), field(3, name="c", **{"field-id": 1007}))

    filled = with_field_ids(given, known={((2,), "day"): 1001}, last=1004)

    assert [one.field_id for one in filled.value.fields] == [1008, 1001, 1007]
    assert with_field_ids(filled) is filled


def test_several_sources_of_version_3_are_checked_and_kept():
    many = {"source-ids": [1, 2], "transform": "zorder", "name": "z", "field-id": 1000}

    check_spec(spec(many).value, TABLE, format_version=3)

    assert json.loads(spec(many).json)["fields"] == [many]
    with pytest.raises(BadInput):
        check_spec(spec({**many, "source-ids": [1, 99]}).value, TABLE, format_version=3)


def test_specs_are_the_same_whatever_their_field_ids():
    one = spec(field(1, name="a", **{"field-id": 1000})).value

    assert same_spec(one, spec(field(1, name="a", **{"field-id": 1009})).value)
    assert not same_spec(one, spec(field(1, name="b")).value)
    assert not same_spec(one, spec(field(1, "void", name="a")).value)
