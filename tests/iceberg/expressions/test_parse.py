"""Reading filters: forms of the protocol, and refusals that name the part."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.expressions import parse_expression
from cynosure.iceberg.expressions.nodes import (
    FALSE,
    TRUE,
    And,
    Apply,
    Comparison,
    Constant,
    Function,
    IdReference,
    NamedReference,
    Not,
    Unary,
)
from cynosure.iceberg.expressions.parse import MAX_CONSTANTS, MAX_DEPTH, MAX_NODES
from cynosure.iceberg.types import INT

A = NamedReference("a")


@pytest.mark.parametrize(
    ("json", "expression"),
    [
        (b"true", TRUE),
        (b"false", FALSE),
        (b'{"type":"true"}', TRUE),
        (b'{"type":"false"}', FALSE),
        (b'{"type":"literal","value":false}', FALSE),
        (b'{"type":"not","child":true}', Not(TRUE)),
        (b'{"type":"is-null","term":"a"}', Unary("is-null", A)),
        (b'{"type":"is-null","child":{"type":"reference","name":"a"}}', Unary("is-null", A)),
        (b'{"type":"is-null","term":{"type":"reference","term":"a"}}', Unary("is-null", A)),
        (b'{"type":"not-nan","child":{"type":"reference","id":7}}', Unary("not-nan", IdReference(7))),
        (
            b'{"type":"eq","left":"a","right":{"type":"reference","name":"a"}}',
            Comparison("eq", Constant("a"), A),
        ),
        (
            b'{"type":"eq","term":"a","value":{"type":"literal","value":"a"}}',
            Comparison("eq", A, Constant("a")),
        ),
        (
            b'{"type":"lt","left":{"type":"reference","name":"a"},'
            b'"right":{"type":"literal","value":5,"data-type":"int"}}',
            Comparison("lt", A, Constant(5, INT)),
        ),
        (
            b'{"type":"eq","term":{"type":"transform","transform":"truncate[4]","term":"a"},"value":"x"}',
            Comparison(
                "eq", Apply(Function(("truncate",), "iceberg_functions"), (Constant(4), A)), Constant("x")
            ),
        ),
        (
            b'{"type":"is-null","child":{"type":"apply","function":"now","arguments":[]}}',
            Unary("is-null", Apply(Function(("now",)), ())),
        ),
        (
            b'{"type":"is-null","child":{"type":"apply","function":["n","f"],"arguments":[{"type":"true"},true]}}',
            Unary("is-null", Apply(Function(("n", "f")), (TRUE, Constant(True)))),
        ),
        (
            b'{"type":"is-null","child":{"type":"apply","function":{"identifier":["f"]},"arguments":[1]}}',
            Unary("is-null", Apply(Function(("f",)), (Constant(1),))),
        ),
    ],
)
def test_every_form_of_the_protocol_is_read(json: bytes, expression: object) -> None:
    assert parse_expression(json) == expression


@pytest.mark.parametrize(
    ("json", "field"),
    [
        ("text", "filter"),
        (None, "filter"),
        ([], "filter"),
        (5, "filter"),
        ({}, "filter.type"),
        ({"type": 5}, "filter.type"),
        ({"type": "xor"}, "filter.type"),
        ({"type": "apply", "function": "f", "arguments": []}, "filter.type"),
        ({"type": "and", "left": True}, "filter.right"),
        ({"type": "and", "left": True, "right": 5}, "filter.right"),
        ({"type": "not", "child": {"type": "not", "child": None}}, "filter.child.child"),
        ({"type": "true", "extra": 1}, "filter.extra"),
        ({"type": "is-null"}, "filter.child"),
        ({"type": "is-null", "term": "a", "child": "a"}, "filter.child"),
        ({"type": "is-null", "term": 5}, "filter.term"),
        ({"type": "is-null", "term": {"type": "literal", "value": 1}}, "filter.term"),
        ({"type": "is-null", "child": None}, "filter.child"),
        (
            {"type": "is-null", "child": {"type": "transform", "transform": "year", "term": "a"}},
            "filter.child.type",
        ),
        (
            {"type": "is-null", "term": {"type": "transform", "transform": "zorder", "term": "a"}},
            "filter.term.transform",
        ),
        (
            {"type": "is-null", "term": {"type": "transform", "transform": 5, "term": "a"}},
            "filter.term.transform",
        ),
        ({"type": "is-null", "child": {"type": "reference"}}, "filter.child.term"),
        ({"type": "is-null", "child": {"type": "reference", "name": 5}}, "filter.child.name"),
        ({"type": "is-null", "child": {"type": "reference", "id": -1}}, "filter.child.id"),
        ({"type": "is-null", "child": {"type": "reference", "id": True}}, "filter.child.id"),
        ({"type": "is-null", "child": {"type": "reference", "id": 1, "name": "a"}}, "filter.child.name"),
        ({"type": "eq", "term": "a"}, "filter.value"),
        ({"type": "eq", "term": "a", "value": None}, "filter.value"),
        ({"type": "eq", "term": "a", "value": [1]}, "filter.value"),
        ({"type": "eq", "term": "a", "value": float("nan")}, "filter.value"),
        ({"type": "eq", "term": "a", "value": b"bytes"}, "filter.value"),
        ({"type": "eq", "term": "a", "value": 1, "unit": "m"}, "filter.unit"),
        ({"type": "eq", "term": "a", "value": {"type": "literal"}}, "filter.value"),
        (
            {"type": "eq", "term": "a", "value": {"type": "literal", "value": "x", "data-type": "int"}},
            "filter.value",
        ),
        (
            {"type": "eq", "term": "a", "value": {"type": "literal", "value": 1, "data-type": "integer"}},
            "filter.value.data-type",
        ),
        (
            {
                "type": "eq",
                "term": "a",
                "value": {"type": "literal", "value": {}, "data-type": {"type": "struct", "fields": []}},
            },
            "filter.value.data-type",
        ),
        ({"type": "in", "term": "a"}, "filter.values"),
        ({"type": "in", "term": "a", "values": 5}, "filter.values"),
        ({"type": "in", "term": "a", "values": [1, None]}, "filter.values[1]"),
        ({"type": "in", "values": [1]}, "filter.child"),
        ({"type": "in", "term": "a", "values": {"type": "literals", "values": [1]}}, "filter.values"),
        (
            {
                "type": "in",
                "term": "a",
                "values": {"type": "literals", "values": [1, "x"], "data-type": "int"},
            },
            "filter.values[1]",
        ),
        (
            {"type": "is-null", "child": {"type": "apply", "function": "", "arguments": []}},
            "filter.child.function",
        ),
        (
            {"type": "is-null", "child": {"type": "apply", "function": [], "arguments": []}},
            "filter.child.function",
        ),
        (
            {"type": "is-null", "child": {"type": "apply", "function": {"catalog": "c"}, "arguments": []}},
            "filter.child.function",
        ),
        (
            {"type": "is-null", "child": {"type": "apply", "function": "f", "arguments": {}}},
            "filter.child.arguments",
        ),
        (
            {"type": "is-null", "child": {"type": "apply", "function": "f", "arguments": [1, {"type": "x"}]}},
            "filter.child.arguments[1].type",
        ),
    ],
)
def test_a_damaged_filter_is_refused_naming_the_part(json: object, field: str) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_expression(json)

    assert refusal.value.field == field


@pytest.mark.parametrize(
    "json",
    [b"", b"{", b"\xff", b'{"type":"true"} x', b'"\xed\xa0\x80"', b"1e999", b"[" * 100_000, b'{"a":' * 5_000],
)
def test_bytes_that_are_not_json_are_refused(json: bytes) -> None:
    with pytest.raises(BadInput) as refusal:
        parse_expression(json, field="residual")

    assert refusal.value.field == "residual"


def test_a_filter_that_is_too_deep_is_refused_however_it_arrives() -> None:
    deep: object = True
    for _ in range(MAX_DEPTH + 1):
        deep = {"type": "not", "child": deep}
    call: object = {"type": "reference", "name": "a"}
    for _ in range(MAX_DEPTH + 1):
        call = {"type": "apply", "function": "f", "arguments": [call]}
    monster: object = True
    for _ in range(100_000):
        monster = {"type": "and", "left": monster, "right": True}

    for json in (deep, {"type": "is-null", "child": call}, monster, b'{"type":"not","child":' * 900):
        with pytest.raises(BadInput):
            parse_expression(json)


def test_a_filter_of_too_many_parts_is_refused() -> None:
    def grow(depth: int) -> object:
        # Shared parts: small in memory, exponential when walked.
        tree: object = True
        for _ in range(depth):
            tree = {"type": "or", "left": tree, "right": tree}
        return tree

    with pytest.raises(TooLarge, match="too large"):
        parse_expression(grow(60))
    with pytest.raises(TooLarge, match="too many constants"):
        parse_expression({"type": "in", "term": "a", "values": [1] * (MAX_CONSTANTS + 1)})
    assert parse_expression({"type": "in", "term": "a", "values": [1] * 10_000})
    assert isinstance(parse_expression(grow(10)), type(parse_expression(grow(2))))
    assert MAX_NODES > 2**11


def test_the_words_of_the_older_form_may_be_mixed_with_those_of_the_current_one() -> None:
    json = {
        "type": "and",
        "left": {"type": "is-null", "term": "a"},
        "right": {"type": "is-null", "child": {"type": "reference", "name": "a"}},
    }

    assert parse_expression(json) == And(Unary("is-null", A), Unary("is-null", A))


keys = st.sampled_from(
    [
        "type",
        "left",
        "right",
        "child",
        "term",
        "value",
        "values",
        "transform",
        "name",
        "id",
        "function",
        "arguments",
    ]
)
words = st.sampled_from(
    [
        *(
            "and",
            "or",
            "not",
            "true",
            "is-null",
            "eq",
            "starts-with",
            "in",
            "literal",
            "literals",
            "reference",
        ),
        *(
            "apply",
            "transform",
            "bucket[4]",
            "a",
            "int",
            "decimal(9, 2)",
            "data-type",
            "catalog",
            "identifier",
        ),
    ]
)
likely_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(keys, inner, max_size=4)
        | st.builds(lambda op, rest: {**rest, "type": op}, words, st.dictionaries(keys, inner, max_size=4))
    ),
    max_leaves=15,
)


@given(likely_json)
def test_whatever_the_json_only_bad_input_comes_out(json: object) -> None:
    with suppress(BadInput):
        parse_expression(json)


@given(st.binary(max_size=200))
def test_whatever_the_bytes_only_bad_input_comes_out(json: bytes) -> None:
    with suppress(BadInput):
        parse_expression(json)
