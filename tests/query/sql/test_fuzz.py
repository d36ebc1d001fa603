"""Whatever is sent: an error that says so, or a tree of known nodes. Never anything else."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.query.errors import SqlError
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.nodes import PARTS
from cynosure.query.sql.parse import parse_statement
from cynosure.query.sql.redact import redact
from cynosure.query.sql.statements import Query
from tests.query.sql.test_statements import ACCEPTED, REFUSED
from tests.query.sql.world import bind

DEEP = 10_000


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * DEEP + "1" + ")" * DEEP,
        "SELECT " + "(" * DEEP,
        "SELECT " + "NOT " * DEEP + "TRUE",
        "SELECT " + "- " * DEEP + "1",
        "SELECT " + "+ " * DEEP + "1",
        "SELECT " + "~" * DEEP + "1",
        "SELECT " + "INTERVAL " * DEEP + "1",
        "SELECT " + "CASE WHEN a THEN " * DEEP + "1" + " END" * DEEP,
        "SELECT " + "f(" * DEEP + "1" + ")" * DEEP,
        "SELECT " + "abs(" * DEEP + "1" + ")" * DEEP,
        "SELECT " + "date(" * 40 + "1" + ")" * 40,
        "SELECT " + "struct(" * 30 + "1" + ")" * 30,
        "SELECT " + "map(" * 30 + "1" + ")" * 30,
        "SELECT " + "CAST(" * DEEP + "1" + " AS INT)" * DEEP,
        "SELECT CAST(1 AS " + "ARRAY<" * DEEP + "INT" + ">" * DEEP + ")",
        "SELECT CAST(1 AS " + "STRUCT<a: " * 50 + "INT" + ">" * 50 + ")",
        "SELECT a" + "[0]" * DEEP,
        "SELECT a" + ".b" * DEEP,
        "SELECT a" + "::int" * DEEP,
        "SELECT a" + "[" * DEEP,
        "SELECT transform(a, " + "x -> " * DEEP + "1)",
        "SELECT 1" + " + 1" * DEEP,
        "SELECT 'a'" + " || 'a'" * DEEP,
        "SELECT 1 WHERE TRUE" + " AND TRUE" * DEEP,
        "SELECT 1 WHERE TRUE" + " OR TRUE" * DEEP,
        "SELECT 1 WHERE a" + " = a" * DEEP,
        "SELECT 1 WHERE a" + " LIKE a" * DEEP,
        "SELECT 1 WHERE a" + " IN (1)" * DEEP,
        "SELECT 1 WHERE a" + " BETWEEN 1 AND 2" * DEEP,
        "SELECT 1 WHERE a" + " IS NULL" * DEEP,
        "SELECT f()" + " OVER (ORDER BY a)" * DEEP,
        "SELECT 1" + " UNION ALL SELECT 1" * DEEP,
        "SELECT 1" + " INTERSECT SELECT 1" * DEEP,
        "SELECT * FROM " + "(SELECT * FROM " * DEEP + "t" + ")" * DEEP,
        "SELECT * FROM " + "(" * DEEP + "t" + ")" * DEEP,
        "SELECT * FROM t" + " JOIN t ON TRUE" * DEEP,
        "SELECT * FROM t" + ", t" * DEEP,
        "SELECT " + "EXISTS (SELECT " * DEEP + "1" + ")" * DEEP,
        "WITH a AS (" * DEEP + "SELECT 1" + ") SELECT 1" * DEEP,
        "EXPLAIN " * DEEP + "SELECT 1",
        "SELECT " + "/* " * DEEP + "1",
        "SELECT '" + "\\" * DEEP,
        "SELECT " + "a b " * DEEP,
        "SELECT " + "," * DEEP,
        "SHOW TABLES IN " + "a." * DEEP + "b x",
        "DESCRIBE " + "(" * DEEP,
    ],
)
def test_deep_nesting_is_refused_and_nothing_else_happens(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement(text)
    assert caught.value.fix


def test_long_but_flat_statements_are_taken() -> None:
    statement = parse_statement("SELECT id FROM t WHERE k IN (" + ", ".join(map(str, range(10_000))) + ")")
    assert isinstance(statement, Query)
    assert isinstance(parse_statement("SELECT 1" + " UNION ALL SELECT 1" * 200), Query)
    assert isinstance(parse_statement("SELECT 1 WHERE TRUE" + " AND TRUE" * 400), Query)
    assert isinstance(parse_statement("SELECT " + "abs(" * 25 + "1" + ")" * 25), Query)


def check(text: str) -> None:
    try:
        statement = parse_statement(text)
    except SqlError:
        return
    if not isinstance(statement, Query):
        return
    assert {type(node).__name__ for node in statement.tree.walk()} <= PARTS.keys()
    redact(statement.tree)
    try:
        mentions = mentions_of(statement.tree)
    except SqlError:
        return
    if all(each.parts[-1].lower() in ("t", "u", "w", "v1", "v2", "v3") for each in mentions):
        try:
            bound = bind(text)
        except SqlError:
            return
        assert {type(node).__name__ for node in bound.tree.walk()} <= PARTS.keys()
        written = bound.tree.sql(dialect="spark")
        again = parse_statement(written)
        assert isinstance(again, Query)
        assert again.tree.sql(dialect="spark") == written


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    check(text)
    check(f"SELECT {text}")
    check(f"SELECT id FROM t WHERE {text}")


WORDS = sorted({word for text in [*ACCEPTED, *(each[0] for each in REFUSED)] for word in text.split()})


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_words_in_any_order(words: list[str]) -> None:
    check("SELECT " + " ".join(words))


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(ACCEPTED), st.randoms(use_true_random=False), st.integers(1, 3))
def test_statements_with_parts_removed_doubled_and_exchanged(
    text: str, chance: random.Random, times: int
) -> None:
    words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    for _ in range(times):
        at, other = chance.randrange(len(words)), chance.randrange(len(words))
        match chance.randrange(4):
            case 0:
                del words[at]
            case 1:
                words.insert(at, words[other])
            case 2:
                words[at], words[other] = words[other], words[at]
            case _:
                words[at] = chance.choice(WORDS)
        if not words:
            break
    check(" ".join(words))
