"""Statements mean what they mean to Spark: which operator takes what, and what is joined (I109).

What each text is with all of its parentheses is what Spark's own parser (4.1) makes of it.
"""

import pytest
from sqlglot import exp

from cynosure.query.errors import SqlError
from cynosure.query.sql.dialect import WRITTEN
from cynosure.query.sql.parse import parse_statement
from cynosure.query.sql.statements import Query


def parse(text: str) -> exp.Expression:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    return statement.tree


def bare(text: str) -> str:
    """What an expression is, without its parentheses."""
    where = parse(f"SELECT 1 FROM t WHERE {text}").args["where"]
    for each in reversed(list(where.find_all(exp.Paren))):
        each.replace(each.this)
    for each in where.walk():
        each._meta = None
    return repr(where)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        # Comparisons are all alike, from left to right.
        ("flag = k < id", "(flag = k) < id"),
        ("flag < k = id", "(flag < k) = id"),
        ("a <> b >= c <=> d", "((a <> b) >= c) <=> d"),
        ("a <=> b = c", "(a <=> b) = c"),
        # BETWEEN, IN, LIKE and IS are about all that stands before them.
        ("flag = k BETWEEN 1 AND 5", "(flag = k) BETWEEN 1 AND 5"),
        ("flag = k NOT BETWEEN 1 AND 5", "NOT ((flag = k) BETWEEN 1 AND 5)"),
        ("flag = name LIKE 'a%'", "(flag = name) LIKE 'a%'"),
        ("flag <> name NOT LIKE 'a%' ESCAPE '!'", "(flag <> name) NOT LIKE 'a%' ESCAPE '!'"),
        ("flag = name RLIKE 'a'", "(flag = name) RLIKE 'a'"),
        ("flag = k IN (1, 2)", "(flag = k) IN (1, 2)"),
        ("flag = k NOT IN (1, 2)", "NOT ((flag = k) IN (1, 2))"),
        ("flag = k IS NULL", "(flag = k) IS NULL"),
        ("a < b IS NOT TRUE", "NOT ((a < b) IS TRUE)"),
        ("a <=> b IN (TRUE)", "(a <=> b) IN (TRUE)"),
        ("a = b IS DISTINCT FROM c", "(a = b) IS DISTINCT FROM c"),
        ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
        ("a IS NOT DISTINCT FROM b = c", "a <=> (b = c)"),
        ("NOT a = b IN (TRUE)", "NOT ((a = b) IN (TRUE))"),
        ("! a = b", "NOT (a = b)"),
        ("NOT a = b AND c OR d", "((NOT (a = b)) AND c) OR d"),
        # || is what + and - are.
        ("'1' || id + 8 > 0", "(('1' || id) + 8) > 0"),
        ("name || id - 1 = k", "((name || id) - 1) = k"),
        ("id + 1 || name = k", "((id + 1) || name) = k"),
        ("name || id * 2 = k", "(name || (id * 2)) = k"),
        ("a || b IN ('x')", "(a || b) IN ('x')"),
        # Shifts, then &, then ^, then |.
        ("a | b & c = 1", "(a | (b & c)) = 1"),
        ("a & b | c ^ d = 1", "((a & b) | (c ^ d)) = 1"),
        ("a ^ b & c << 2 + 1 = 1", "(a ^ (b & (c << (2 + 1)))) = 1"),
        ("a << 1 >> 2 & b = 1", "(((a << 1) >> 2) & b) = 1"),
        ("a | b = c & d", "(a | b) = (c & d)"),
        ("- a * b = c", "((- a) * b) = c"),
        ("~ a + b = c", "((~ a) + b) = c"),
        ("- a::INT = c", "(- (a::INT)) = c"),
        ("-1::STRING || a = c", "(CAST(-1 AS STRING) || a) = c"),
        ("-1.5::STRING = c", "CAST(-1.5 AS STRING) = c"),
        ("-1L = c", "(- CAST(1 AS BIGINT)) = c"),
        ("2 - 1::STRING = c", "(2 - (1::STRING)) = c"),
        ("- -1::INT = c", "(- CAST(-1 AS INT)) = c"),
        ("- m[0].x = c", "(- (m[0].x)) = c"),
    ],
)
def test_operators_take_what_they_take_in_spark(text: str, meant: str) -> None:
    assert bare(text) == bare(meant)
    tree = parse(f"SELECT 1 FROM t WHERE {text}")
    again = parse(tree.sql(dialect=WRITTEN))
    assert again.sql(dialect=WRITTEN) == tree.sql(dialect=WRITTEN)
    # Spark has shifts as functions, too: that is what they are written as.
    if "<<" not in text:
        assert bare(again.args["where"].this.sql(dialect=WRITTEN)) == bare(meant)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        # To Spark the comparison is part of what is behind LIKE, or of what is behind AND.
        ("name LIKE 'a%' = flag", "Expected parentheses"),
        ("k BETWEEN 1 AND 2 = flag", "Expected parentheses"),
        ("k BETWEEN 1 = 1 AND 2", "Expected AND"),
        ("k BETWEEN 1 2", "Expected AND"),
        # These are none of its statements.
        ("k IN (1) = flag", "Expected parentheses"),
        ("k IS NULL = flag", "Expected parentheses"),
        ("k IS NULL IS NULL", "Expected parentheses"),
        ("k IN (1) NOT IN (TRUE)", "Expected parentheses"),
        ("k IS 5", "Expected NULL"),
        ("flag = NOT flag", ""),
        ("-1L::STRING = '-1'", "Expected parentheses"),
        ("-.5::STRING = '-0.5'", "Expected parentheses"),
        ("k ?? 1 = 1", ""),
    ],
)
def test_what_spark_would_read_otherwise_is_refused(text: str, fix: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse(f"SELECT id FROM t WHERE {text}")
    assert caught.value.message == "The statement cannot be parsed"
    assert caught.value.line == 1
    assert caught.value.column > len("SELECT id FROM t WHERE ")
    assert (caught.value.fix or "").startswith(fix or "Look")


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "join",
    [",", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "ANTI JOIN", "CROSS JOIN", "NATURAL JOIN"],
)
def test_joins_without_conditions_are_read_one_by_one(join: str) -> None:
    tree = parse(f"SELECT 1 FROM {f' {join} '.join(['t'] * 100)}")
    assert len(tree.args["joins"]) == 99
    assert not any(each.this.args.get("joins") for each in tree.args["joins"])


def test_signs_of_numbers_with_types_are_kept() -> None:
    written = parse("SELECT -1.5BD, -2L, 3 - 4L, -.5D").sql(dialect=WRITTEN)
    expected = (
        "-CAST('1.5' AS DECIMAL(2, 1))",
        "-CAST(2 AS BIGINT)",
        "3 - CAST(4 AS BIGINT)",
        "-CAST(0.5 AS DOUBLE)",
    )
    assert written == f"SELECT {', '.join(expected)}"


def test_a_join_in_a_join_stands_in_parentheses() -> None:
    with pytest.raises(SqlError):
        parse("SELECT 1 FROM t JOIN u JOIN w ON u.id = w.id ON t.id = u.id")
    tree = parse("SELECT 1 FROM t JOIN (u JOIN w ON u.id = w.id) ON t.id = u.id")
    assert len(tree.args["joins"]) == 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("begin", ["int[", "[int[", "date [", "[1, date [", "struct[", "map(1, int["])
def test_words_that_could_be_types_are_read_in_time(begin: str) -> None:
    closing = "".join({"[": "]", "(": ")"}.get(each, "") for each in reversed(begin))
    with pytest.raises(SqlError) as caught:
        parse(f"SELECT {begin * 18}1{closing * 18}")
    assert caught.value.message == "The statement is nested too deeply"
    assert parse(f"SELECT arr[arr[arr[k]]], {'[' * 30}1{']' * 30} FROM t")


def test_there_are_only_so_many_names_in_one_with() -> None:
    def make(count: int) -> str:
        return f"WITH {', '.join(f'q{at} AS (SELECT 1)' for at in range(count))} SELECT * FROM q0"

    assert parse(make(1_000))
    with pytest.raises(SqlError, match="too many common table expressions"):
        parse(make(1_001))


@pytest.mark.parametrize("text", [r"'$\{env:HOME}'", r'"$\{x}"', r"'a\u0024{x}'"])
def test_no_text_is_written_as_a_substitution(text: str) -> None:
    with pytest.raises(SqlError, match="Substitutions are not allowed"):
        parse(f"SELECT {text}")


def test_two_texts_without_a_space_are_one_with_a_quote_or_refused() -> None:
    assert parse("SELECT 'it''s'").sql(dialect=WRITTEN) == r"SELECT 'it\'s'"
    with pytest.raises(SqlError, match="A quote is doubled in a text"):
        parse('SELECT "a""b"')
    assert parse('SELECT "a" "b"').sql(dialect=WRITTEN) == "SELECT CONCAT('a', 'b')"
    assert parse('SELECT "", "a\\"b"').sql(dialect=WRITTEN) == "SELECT '', 'a\"b'"
