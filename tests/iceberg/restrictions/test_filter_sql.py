"""A filter in SQL is understood exactly, or refused with the place."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.expressions.nodes import And, Comparison, Constant, NamedReference, Not, Unary
from cynosure.iceberg.restrictions.filter_sql import parse_sql
from cynosure.iceberg.restrictions.language import CURRENT_USER, canonical, is_member, mentioned
from cynosure.iceberg.restrictions.sql_text import MAX_CHARACTERS
from cynosure.iceberg.types import DATE, TIMESTAMP, TIMESTAMPTZ, DecimalType

FIELD = "content.filter"
A = NamedReference("a")

UNDERSTOOD = {
    "a = 1": Comparison("eq", A, Constant(1)),
    "1 > a": Comparison("lt", A, Constant(1)),
    "a == -1": Comparison("eq", A, Constant(-1)),
    "a != 'x'": Comparison("not-eq", A, Constant("x")),
    "a = 'it\\'s'": Comparison("eq", A, Constant("it's")),
    'a = "x"': Comparison("eq", A, Constant("x")),
    "a = 1.50": Comparison("eq", A, Constant("1.50", DecimalType(3, 2))),
    "a = -0.05": Comparison("eq", A, Constant("-0.05", DecimalType(2, 2))),
    "a = 1e3": Comparison("eq", A, Constant(1000.0)),
    "a >= DATE '2026-01-31'": Comparison("gt-eq", A, Constant("2026-01-31", DATE)),
    "a < TIMESTAMP '2026-01-31 10:00:00'": Comparison("lt", A, Constant("2026-01-31T10:00:00", TIMESTAMP)),
    "a < TIMESTAMP '2026-01-31 10:00:00+01:00'": Comparison(
        "lt", A, Constant("2026-01-31T10:00:00+01:00", TIMESTAMPTZ)
    ),
    "a LIKE 'x%'": Comparison("starts-with", A, Constant("x")),
    "a NOT LIKE 'x%'": Not(Comparison("starts-with", A, Constant("x"))),
    "startswith(a, 'x')": Comparison("starts-with", A, Constant("x")),
    "a IS NOT NULL": Not(Unary("is-null", A)),
    "a": Comparison("eq", A, Constant(value=True)),
    "`b c`.d.`e` = 1": Comparison("eq", NamedReference("b c.d.e"), Constant(1)),
    "a = current_user()": Comparison("eq", A, CURRENT_USER),
    "CURRENT_USER() <> a": Comparison("not-eq", A, CURRENT_USER),
    "is_member('x')": is_member("x"),
    "array_contains(current_roles(), 'x')": is_member("x"),
    "a = 1 /* why */ AND (a <> 2)": And(
        Comparison("eq", A, Constant(1)), Comparison("not-eq", A, Constant(2))
    ),
}


@pytest.mark.parametrize(("text", "expected"), UNDERSTOOD.items(), ids=UNDERSTOOD)
def test_what_is_understood(text: str, expected: object) -> None:
    assert canonical(parse_sql(text, field=FIELD), field=FIELD) == expected


REFUSED = [
    "",
    "a =",
    "a = 1; DROP TABLE t",
    "SELECT 1",
    "a = b",
    "a = NULL",
    "a <=> 1",
    "a IS TRUE",
    "a IN ()",
    "a NOT IN ()",
    "a IN (SELECT 1)",
    "EXISTS (SELECT 1)",
    "a = (SELECT 1)",
    "a LIKE '%x'",
    "a LIKE 'x_y%'",
    "a LIKE 'x\\\\%%'",
    "a LIKE 'x!%%' ESCAPE '!'",
    "a LIKE ANY ('x%', 'y%')",
    "a ILIKE 'x%'",
    "a RLIKE 'x'",
    "a = 'it''s'",
    "a = 10L",
    "CAST(a AS INT) = 1",
    "a = CAST('1' AS INT)",
    "a + 1 = 2",
    "-a = 1",
    "NOT NOT a",
    "a = - -1",
    "upper(a) = 'X'",
    "is_member(a)",
    "is_member('x', 'y')",
    "current_user() > 'a'",
    "current_user()",
    "a[0] = 1",
    "a.* = 1",
    "a = ?",
    "a = :x",
    "1 = 1",
    "CASE WHEN a THEN 1 END = 1",
    "a = " + "9" * 40,
    "a < TIMESTAMP '31.1.2026'",
    "a OR",
    "a = X'1F'",
    "a BETWEEN 1 AND b",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        canonical(parse_sql(text, field=FIELD), field=FIELD)

    assert refused.value.field == FIELD
    assert refused.value.fix


def test_a_refusal_says_where_and_never_quotes_a_constant() -> None:
    with pytest.raises(BadInput) as refused:
        parse_sql("a = 'secret' AND upper(b) = 'secret'", field=FIELD)

    assert refused.value.details["at_character"] == 18
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["(" * 500 + "a" + ")" * 500, " OR ".join(["a = 1"] * 300), "a" * (MAX_CHARACTERS + 1)],
    ids=["nested", "wide", "long"],
)
def test_what_is_too_large_is_refused_at_once(text: str) -> None:
    with pytest.raises(TooLarge):
        canonical(parse_sql(text, field=FIELD), field=FIELD)


@pytest.mark.parametrize("word", ["struct", "int", "date", "decimal", "f", "`f`", "cast"])
def test_calls_in_calls_never_reach_the_parser(word: str) -> None:
    """It takes twice as long for each of them: with twenty, minutes."""
    with pytest.raises(TooLarge):
        parse_sql(f"{word}(" * 19 + "a" + ")" * 19 + " = 1", field=FIELD)


@pytest.mark.parametrize("opened", ["array<", "map<int, ", "struct<a:", "a[", "{a:"])
def test_types_in_types_never_reach_the_parser(opened: str) -> None:
    with pytest.raises(BadInput, match="Lists, maps and structs"):
        parse_sql(f"CAST(a AS {opened * 400}int", field=FIELD)


def test_a_column_may_be_called_like_a_type() -> None:
    assert parse_sql("`map` < 1 AND (date) = '2026-01-01'", field=FIELD)


def test_names_are_found_each_once() -> None:
    parsed = parse_sql("is_member('r') OR NOT (a.b = 1 AND (c IN (1, 2) OR a.b IS NULL))", field=FIELD)

    found = mentioned(canonical(parsed, field=FIELD))

    assert found.columns == ("a.b", "c")
    assert found.roles == ("r",)


WORDS = st.sampled_from(
    [
        *("a", "b.c", "`x y`", "1", "-1.5", "'t'", "''", "NULL", "TRUE", "(", ")", "AND", "OR", "NOT", "="),
        *(
            "<>",
            "<",
            "IN",
            "BETWEEN",
            "LIKE",
            "'x%'",
            "IS",
            "DATE",
            "TIMESTAMP",
            "'2026-01-01'",
            ",",
            "[",
            "]",
        ),
        *("current_user()", "is_member", "CASE", "WHEN", "END", "::", "->", "SELECT", "FROM", "@", "?", "$$"),
        *(
            "{",
            "}",
            ";",
            "--",
            "/*",
            "*/",
            "\\",
            "e'",
            "x'1'",
            "*",
            ".",
            "INTERVAL",
            "CAST",
            "AS",
            "\x00",
            "🦆",
        ),
    ]
)


@settings(max_examples=400)
@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=14).map(" ".join)))
def test_whatever_the_text_it_is_a_filter_or_bad_input(text: str) -> None:
    with suppress(BadInput):
        canonical(parse_sql(text, field=FIELD), field=FIELD)
