"""Binding: ids for names, exact values for constants, refusals that name the column."""

import struct
from contextlib import suppress
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions import bind, negate, parse_expression
from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundMembership,
    BoundReference,
    BoundTermComparison,
    BoundTransform,
    BoundUnary,
)
from cynosure.iceberg.expressions.nodes import FALSE, TRUE, And, Comparison, Constant, NamedReference, Not
from cynosure.iceberg.types import DATE, INT, LONG, STRING, NestedField, StructType, parse_type

ID = BoundReference(1, "id", LONG, True)
SMALL = BoundReference(2, "small", INT, False)


def compare(column: str, value: object, op: str = "eq") -> object:
    return parse_expression({"type": op, "term": column, "value": value})


def typed(value: object, type_: str) -> dict:
    return {"type": "literal", "value": value, "data-type": type_}


@pytest.mark.parametrize(
    ("column", "json", "value"),
    [
        ("id", 5, 5),
        ("id", 5.0, 5),
        ("id", typed(5, "int"), 5),
        ("small", typed(5, "long"), 5),
        ("name", "a", "a"),
        ("price", "1.5", Decimal("1.50")),
        ("price", "1.500", Decimal("1.50")),
        ("price", 3, Decimal("3.00")),
        ("price", typed("1.5", "decimal(2, 1)"), Decimal("1.50")),
        ("day", "1970-01-11", 10),
        ("day", typed("1970-01-11", "date"), 10),
        ("at", "1970-01-01T00:00:01+00:00", 1_000_000),
        ("ratio", 0.1, struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("ratio", 7, 7.0),
        ("ratio", typed(0.5, "double"), 0.5),
        ("mass", 0.1, 0.1),
        ("mass", typed(0.1, "float"), struct.unpack("<f", struct.pack("<f", 0.1))[0]),
        ("mass", typed(7, "long"), 7.0),
        ("key", "00000000-0000-0000-0000-000000000005", UUID(int=5)),
        ("raw", "00ff", b"\x00\xff"),
        ("flag", True, True),
        ("place.city", "x", "x"),
        ("place.zip.code", 8, 8),
    ],
)
def test_a_constant_becomes_an_exact_value_of_the_columns_type(column, json, value, schema) -> None:
    bound = bind(compare(column, json), schema)

    assert isinstance(bound, BoundComparison)
    assert bound.value == value
    assert type(bound.value) is type(value)
    assert bound.term.name == column


@pytest.mark.parametrize(
    ("column", "json"),
    [
        ("id", "5"),
        ("id", 5.5),
        ("id", True),
        ("id", typed("5", "string")),
        ("name", 5),
        ("name", typed(5, "int")),
        ("price", 1.5),
        ("price", "1.505"),
        ("price", "abc"),
        ("price", typed("1.5", "string")),
        ("day", 10),
        ("day", "yesterday"),
        ("at", "1970-01-01T00:00:01"),
        ("at", typed("1970-01-01T00:00:01", "timestamp")),
        ("ratio", 16777217),
        ("ratio", 1e39),
        ("ratio", typed(0.1, "double")),
        ("ratio", "0.1"),
        ("mass", 2**53 + 1),
        ("mass", True),
        ("key", "5"),
        ("raw", "xyz"),
        ("flag", "true"),
        ("flag", 1),
    ],
)
def test_a_constant_that_is_no_value_of_the_columns_type_is_refused_naming_the_column(
    column, json, schema
) -> None:
    for expression in (
        compare(column, json),
        parse_expression({"type": "in", "term": column, "values": [json]}),
    ):
        with pytest.raises(BadInput) as refusal:
            bind(expression, schema)

        assert refusal.value.field == "filter"
        assert refusal.value.details["column"] == column
        secret = json["value"] if isinstance(json, dict) else json
        assert repr(secret) not in map(repr, refusal.value.details.values())


@pytest.mark.parametrize(
    ("column", "above", "below"), [("small", 2**31, -(2**31) - 1), ("price", "1e7", "-1e7")]
)
def test_a_number_beyond_the_type_decides_the_comparison_for_every_value(
    column, above, below, schema
) -> None:
    not_null = BoundUnary(
        "not-null", bind(parse_expression({"type": "is-null", "term": column}), schema).term
    )
    answers = {
        op: (bind(compare(column, above, op), schema), bind(compare(column, below, op), schema))
        for op in ("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq")
    }

    assert answers == {
        "lt": (not_null, FALSE),
        "lt-eq": (not_null, FALSE),
        "gt": (FALSE, not_null),
        "gt-eq": (FALSE, not_null),
        "eq": (FALSE, FALSE),
        "not-eq": (TRUE, TRUE),
    }


def test_all_digits_of_a_wide_decimal_count() -> None:
    schema = StructType((NestedField(1, "d", parse_type("decimal(38, 0)"), False),))

    assert bind(compare("d", "9" * 38), schema).value == 10**38 - 1
    assert bind(compare("d", "1" + "0" * 38), schema) == FALSE


def test_a_set_loses_duplicates_and_numbers_that_no_value_reaches(schema) -> None:
    def members(op: str, values: list) -> object:
        return bind(parse_expression({"type": op, "term": "small", "values": values}), schema)

    assert members("in", [3, 1, 3, 2**40]) == BoundMembership("in", SMALL, (3, 1))
    assert members("not-in", [3]) == BoundMembership("not-in", SMALL, (3,))
    assert members("in", [2**40]) == FALSE
    assert members("not-in", [2**40]) == TRUE
    assert members("in", []) == FALSE


def test_columns_are_found_by_name_by_id_and_through_structs(schema) -> None:
    def find(child: dict, **options: bool) -> BoundReference:
        return bind(parse_expression({"type": "is-null", "child": child}), schema, **options).term

    def named(name: str, **options: bool) -> BoundReference:
        return find({"type": "reference", "name": name}, **options)

    assert named("id") == find({"type": "reference", "id": 1}) == ID
    assert named("place.city") == find({"type": "reference", "id": 16})
    assert named("place.city") == BoundReference(16, "place.city", STRING, True)
    assert named("PLACE.ZIP.Code", is_case_sensitive=False).id == 17
    assert named("Twin").id == 21
    assert named("twin").id == 22


@pytest.mark.parametrize(
    ("child", "is_case_sensitive"),
    [
        ({"type": "reference", "name": "nope"}, True),
        ({"type": "reference", "name": "ID"}, True),
        ({"type": "reference", "name": ""}, True),
        ({"type": "reference", "name": "place."}, True),
        ({"type": "reference", "name": "placecity"}, True),
        ({"type": "reference", "name": "tags.element.tag"}, True),
        ({"type": "reference", "id": 20}, True),
        ({"type": "reference", "id": 99}, True),
        ({"type": "reference", "name": "TWIN"}, False),
    ],
)
def test_a_column_that_is_not_there_or_not_only_there_is_refused(child, is_case_sensitive, schema) -> None:
    expression = parse_expression({"type": "is-null", "child": child})

    with pytest.raises(BadInput) as refusal:
        bind(expression, schema, is_case_sensitive=is_case_sensitive)

    assert refusal.value.details["column"] in child.values()


def test_a_constant_on_the_left_turns_the_comparison_round(schema) -> None:
    flipped = bind(Comparison("lt", Constant(5), NamedReference("id")), schema)

    assert flipped == BoundComparison("gt", ID, 5)
    with pytest.raises(BadInput, match="prefix"):
        bind(Comparison("starts-with", Constant("a"), NamedReference("name")), schema)
    with pytest.raises(BadInput, match="without a column"):
        bind(Comparison("eq", Constant(1), Constant(1)), schema)


def test_two_columns_are_compared_when_one_type_can_become_the_other(schema) -> None:
    bound = bind(Comparison("lt", NamedReference("small"), NamedReference("id")), schema)

    assert bound == BoundTermComparison("lt", SMALL, ID)
    with pytest.raises(BadInput, match="different types"):
        bind(Comparison("eq", NamedReference("id"), NamedReference("name")), schema)


@pytest.mark.parametrize(
    "json",
    [
        {"type": "is-nan", "term": "id"},
        {"type": "starts-with", "term": "id", "value": "1"},
        {"type": "starts-with", "term": "raw", "value": "00"},
        {"type": "eq", "term": "shape", "value": "POINT(1 1)"},
        {"type": "in", "term": "blob", "values": ["x"]},
        {"type": "eq", "term": "place", "value": "x"},
        {"type": "eq", "term": {"type": "transform", "transform": "year", "term": "id"}, "value": 1},
        {"type": "eq", "term": {"type": "transform", "transform": "bucket[4]", "term": "mass"}, "value": 1},
        {"type": "is-null", "child": {"type": "apply", "function": "lower", "arguments": []}},
        {"type": "is-null", "child": {"type": "apply", "function": "bucket", "arguments": [True, "id"]}},
    ],
)
def test_a_question_that_the_columns_type_has_no_answer_to_is_refused(json, schema) -> None:
    with pytest.raises(BadInput) as refusal:
        bind(parse_expression(json), schema)

    assert refusal.value.field == "filter"


def test_shapes_and_variants_can_still_be_tested_for_null(schema) -> None:
    for column in ("shape", "blob", "place", "tags"):
        assert isinstance(bind(parse_expression({"type": "not-null", "term": column}), schema), BoundUnary)


def test_transforms_give_their_own_types(schema) -> None:
    def transform(text: str, column: str, value: object) -> BoundComparison:
        term = {"type": "transform", "transform": text, "term": column}
        return bind(parse_expression({"type": "eq", "term": term, "value": value}), schema)

    assert transform("bucket[16]", "name", 3).term == BoundTransform(
        "bucket", 16, BoundReference(3, "name", STRING, False), INT
    )
    assert transform("day", "at", "1970-01-02").value == 1
    assert transform("day", "at", "1970-01-02").term.type == DATE
    assert transform("truncate[2]", "name", "ab").term.type == STRING
    assert transform("identity", "id", 5) == BoundComparison("eq", ID, 5)


def test_bound_filters_can_be_negated_too(schema) -> None:
    bound = bind(
        And(Not(parse_expression({"type": "is-null", "term": "id"})), compare("small", 5, "lt")), schema
    )

    assert negate(negate(bound)) == And(BoundUnary("not-null", ID), BoundComparison("lt", SMALL, 5))


columns = st.sampled_from(
    [
        "id",
        "small",
        "name",
        "price",
        "day",
        "at",
        "ratio",
        "mass",
        "key",
        "raw",
        "flag",
        "shape",
        "blob",
        "place",
    ]
)
constants = (
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["1.5", "1970-01-01", "1e7", "00"])
)


@given(columns, st.sampled_from(["eq", "lt", "not-eq", "starts-with"]), constants)
def test_whatever_the_constant_only_bad_input_comes_out(
    schema, column: str, op: str, constant: object
) -> None:
    expression = compare(column, constant, op)

    with suppress(BadInput):
        bound = bind(expression, schema)
        assert bound in (TRUE, FALSE) or bound.term.name == column
