"""What holds for every filter: round trips in both forms, double negation, agreement with pyiceberg."""

import math

import msgspec
import pyiceberg.expressions as theirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions import (
    bind,
    describe,
    encode_expression,
    expression_to_json,
    negate,
    parse_expression,
    rewrite_not,
)
from cynosure.iceberg.expressions.nodes import (
    FALSE,
    ICEBERG_FUNCTIONS,
    TRUE,
    And,
    Apply,
    Comparison,
    Constant,
    Function,
    IdReference,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.expressions.parse import MAX_DEPTH
from cynosure.iceberg.types import parse_type

names = st.text(min_size=1, max_size=8)
columns = st.builds(NamedReference, names)
scalars = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
untyped = st.builds(Constant, scalars)
typed = st.sampled_from(
    [
        Constant(5, parse_type("int")),
        Constant("1.20", parse_type("decimal(9, 2)")),
        Constant("2024-05-01", parse_type("date")),
        Constant("00FF", parse_type("fixed[2]")),
    ]
)
plain_transforms = st.builds(
    lambda name, column: Apply(Function((name,), ICEBERG_FUNCTIONS), (column,)),
    st.sampled_from(["identity", "year", "month", "day", "hour"]),
    columns,
)
wide_transforms = st.builds(
    lambda name, width, column: Apply(Function((name,), ICEBERG_FUNCTIONS), (Constant(width), column)),
    st.sampled_from(["bucket", "truncate"]),
    st.integers(1, 2**31 - 1),
    columns,
)
terms = columns | plain_transforms | wide_transforms

TESTS = ["is-null", "not-null", "is-nan", "not-nan"]
COMPARISONS = ["lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq", "starts-with", "not-starts-with"]


def leaves(
    terms: st.SearchStrategy, rights: st.SearchStrategy, constants: st.SearchStrategy
) -> st.SearchStrategy:
    return (
        st.just(TRUE)
        | st.just(FALSE)
        | st.builds(Unary, st.sampled_from(TESTS), terms)
        | st.builds(Comparison, st.sampled_from(COMPARISONS), terms, rights)
        | st.builds(
            Membership, st.sampled_from(["in", "not-in"]), terms, st.lists(constants, max_size=4).map(tuple)
        )
    )


def trees(leaves: st.SearchStrategy) -> st.SearchStrategy:
    return st.recursive(
        leaves,
        lambda inner: st.builds(And, inner, inner) | st.builds(Or, inner, inner) | st.builds(Not, inner),
        max_leaves=12,
    )


legacy = trees(leaves(terms, untyped, untyped))

functions = st.builds(Function, st.lists(names, min_size=1, max_size=3).map(tuple), st.none() | names)
values = st.recursive(
    columns | st.builds(IdReference, st.integers(0, 2**31 - 1)) | untyped | typed,
    lambda inner: st.builds(
        Apply, functions, st.lists(inner | st.builds(Unary, st.just("is-null"), inner), max_size=3).map(tuple)
    ),
    max_leaves=4,
)
current = trees(leaves(values, values, untyped | typed))


def same(one: object, other: object) -> bool:
    # 1, 1.0 and true are equal in Python and different constants in JSON.
    return one == other and repr(one) == repr(other)


@given(current | legacy)
def test_the_current_form_is_read_back_as_the_same_filter(expression) -> None:
    assert same(parse_expression(encode_expression(expression)), expression)


@given(legacy)
def test_the_older_form_is_read_back_as_the_same_filter(expression) -> None:
    json = encode_expression(expression, is_legacy=True)

    assert same(parse_expression(json), expression)
    assert same(parse_expression(msgspec.json.decode(json)), expression)


@given(legacy)
def test_both_forms_of_a_filter_are_equal_and_encode_alike(expression) -> None:
    older, newer = (expression_to_json(expression, is_legacy=form) for form in (True, False))

    assert parse_expression(older) == parse_expression(newer)
    assert encode_expression(parse_expression(older)) == encode_expression(parse_expression(newer))


@given(current)
def test_double_negation_is_the_filter_itself_with_not_pushed_down(expression) -> None:
    pushed = rewrite_not(expression)

    assert negate(negate(expression)) == pushed
    assert negate(negate(pushed)) == pushed
    assert rewrite_not(pushed) == pushed
    assert rewrite_not(Not(expression)) == negate(expression)
    assert negate(pushed) != pushed


ROWS = [None, -1.0, 0.0, 5.0, math.nan]


def holds(expression, row: float | None) -> bool:
    """The specification's two-valued, null-safe logic on the only column `x`."""
    match expression:
        case And(left, right):
            return holds(left, row) and holds(right, row)
        case Or(left, right):
            return holds(left, row) or holds(right, row)
        case Not(child):
            return not holds(child, row)
        case Unary(op, _):
            answer = row is None if op.endswith("null") else row is not None and math.isnan(row)
            return answer == op.startswith("is")
        case Membership(op, _, values):
            return (row in [one.value for one in values]) == (op == "in")
        case Comparison(op, _, Constant(value)):
            if op in ("eq", "not-eq"):
                return (row == value) == (op == "eq")
            if row is None:
                return False
            return {"lt": row < value, "lt-eq": row <= value, "gt": row > value, "gt-eq": row >= value}[op]
    return expression.answer


x = st.just(NamedReference("x"))
numbers = st.builds(Constant, st.sampled_from([-1.0, 0.0, 2.0, 5.0]))
evaluable = trees(
    st.just(TRUE)
    | st.builds(Unary, st.sampled_from(TESTS), x)
    | st.builds(Comparison, st.sampled_from(COMPARISONS[:6]), x, numbers)
    | st.builds(Membership, st.sampled_from(["in", "not-in"]), x, st.lists(numbers, max_size=3).map(tuple))
)


@given(evaluable)
def test_negation_holds_for_exactly_the_other_rows_nulls_and_nan_included(expression) -> None:
    for row in ROWS:
        assert holds(rewrite_not(expression), row) == holds(expression, row)
        assert holds(negate(expression), row) != holds(expression, row)


# pyiceberg knows the older form, bare constants, and named columns.
names_of_both = st.from_regex(r"[a-z]{1,6}", fullmatch=True)
constants_of_both = st.integers(-(2**62), 2**62) | st.text(max_size=5) | st.booleans()
leaves_of_both = (
    st.builds(Unary, st.sampled_from(TESTS), st.builds(NamedReference, names_of_both))
    | st.builds(
        Comparison,
        st.sampled_from(COMPARISONS[:6]),
        st.builds(NamedReference, names_of_both),
        st.builds(Constant, constants_of_both),
    )
    | st.builds(
        Membership,
        st.sampled_from(["in", "not-in"]),
        st.builds(NamedReference, names_of_both),
        # A set of less than two is simplified by pyiceberg.
        st.lists(st.integers(0, 99), min_size=2, max_size=5, unique=True).map(
            lambda some: tuple(Constant(one) for one in some)
        ),
    )
)


@given(trees(leaves_of_both))
def test_pyiceberg_reads_what_is_written_and_writes_what_is_read(expression) -> None:
    read = theirs.BooleanExpression.model_validate_json(encode_expression(expression, is_legacy=True))
    again = theirs.BooleanExpression.model_validate_json(
        encode_expression(parse_expression(read.model_dump_json().encode()), is_legacy=True)
    )

    assert again == read
    if not isinstance(read, theirs.AlwaysTrue | theirs.AlwaysFalse):
        assert count_leaves(parse_expression(read.model_dump_json().encode())) <= count_leaves(expression)


def count_leaves(expression) -> int:
    match expression:
        case And(left, right) | Or(left, right):
            return count_leaves(left) + count_leaves(right)
        case Not(child):
            return count_leaves(child)
    return 1


def test_pyicebergs_own_filters_are_understood() -> None:
    filter_ = theirs.And(
        theirs.Or(theirs.EqualTo("a.b", 5), theirs.IsNaN("f")),
        theirs.Not(theirs.And(theirs.StartsWith("s", "x"), theirs.NotEqualTo("k", "p"))),
    )

    parsed = parse_expression(filter_.model_dump_json().encode())

    assert (
        describe(parsed) == "((a.b = (int) or f is-nan) and not (s starts-with (string) and k != (string)))"
    )


secrets = st.just(Constant("SECRET")) | st.just(Constant("SECRET", parse_type("string")))
calls = st.builds(Apply, functions, st.lists(columns | secrets, max_size=3).map(tuple))


@given(trees(leaves(columns | calls, secrets | calls, secrets)))
def test_a_description_holds_no_constant(expression) -> None:
    assert "SECRET" not in describe(expression)


def test_a_filter_as_deep_as_allowed_passes_every_walk(schema) -> None:
    leaf = Comparison("lt", NamedReference("id"), Constant(5))
    deep = leaf
    for _ in range(MAX_DEPTH - 1):
        deep = Or(deep, leaf)
    deeper = deep
    for _ in range(2 * MAX_DEPTH + 1):
        deeper = Not(deeper)

    parsed = parse_expression(encode_expression(deep))

    assert parsed == deep
    assert parse_expression(encode_expression(deep, is_legacy=True)) == deep
    assert negate(negate(deep)) == deep
    assert describe(deep).count(" or ") == MAX_DEPTH - 1
    assert isinstance(bind(deep, schema), Or)
    assert rewrite_not(deeper) == negate(deep)


@pytest.mark.parametrize(
    "expression",
    [
        Unary("is-null", IdReference(5)),
        Unary("is-null", Constant(5)),
        Comparison("eq", NamedReference("a"), NamedReference("b")),
        Comparison("starts-with", Constant("a"), NamedReference("b")),
        Unary("is-null", Apply(Function(("year",), "other"), (NamedReference("a"),))),
        Unary("is-null", Apply(Function(("ns", "year")), (NamedReference("a"),))),
        Unary("is-null", Apply(Function(("bucket",)), (Constant(5), Constant(6)))),
        Membership("in", Constant(5), ()),
    ],
)
def test_what_the_older_form_has_no_words_for_is_refused_by_it(expression) -> None:
    assert parse_expression(encode_expression(expression)) == expression
    with pytest.raises(BadInput, match="older form"):
        encode_expression(expression, is_legacy=True)


def test_a_constant_on_the_left_changes_places_in_the_older_form() -> None:
    expression = Comparison("lt", Constant(5), NamedReference("a"))

    assert expression_to_json(expression, is_legacy=True) == {"type": "gt", "term": "a", "value": 5}


def test_the_canonical_forms_are_exactly_those_of_the_protocol() -> None:
    expression = parse_expression(
        {
            "type": "and",
            "left": {
                "type": "in",
                "term": "a",
                "values": {"type": "literals", "values": [1], "data-type": "int"},
            },
            "right": {
                "type": "eq",
                "term": {
                    "type": "transform",
                    "transform": "bucket[16]",
                    "term": {"type": "reference", "term": "b"},
                },
                "value": {"type": "literal", "value": 3, "data-type": "int"},
            },
        }
    )

    assert encode_expression(expression) == (
        b'{"type":"and","left":{"type":"in","child":{"type":"reference","name":"a"},"values":'
        b'{"type":"literals","values":[1],"data-type":"int"}},"right":{"type":"eq","left":{"type":"apply",'
        b'"function":{"catalog":"iceberg_functions","identifier":["bucket"]},"arguments":[16,'
        b'{"type":"reference","name":"b"}]},"right":{"type":"literal","value":3,"data-type":"int"}}}'
    )
    assert encode_expression(expression, is_legacy=True) == (
        b'{"type":"and","left":{"type":"in","term":"a","values":[1]},"right":{"type":"eq","term":'
        b'{"type":"transform","transform":"bucket[16]","term":"b"},"value":3}}'
    )
