"""What is recorded of a statement has no constants."""

import pytest

from cynosure.query.sql.parse import parse_view
from cynosure.query.sql.redact import redact


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "SELECT ?"),
        ("SELECT name FROM t WHERE ssn = 'secret'", "SELECT name FROM t WHERE ssn = ?"),
        ("SELECT 'a' /* secret */ -- secret\n", "SELECT ?"),
        (
            "SELECT id FROM t WHERE d > DATE '2020-01-01' LIMIT 5",
            "SELECT id FROM t WHERE d > CAST(? AS DATE) LIMIT ?",
        ),
        ("SELECT id FROM t WHERE x IN (1, 2, 3)", "SELECT id FROM t WHERE x IN (?, ?, ?)"),
        (
            "SELECT X'AA', 10L, CAST(a AS DECIMAL(5, 2))",
            "SELECT ?, CAST(? AS BIGINT), CAST(a AS DECIMAL(5, 2))",
        ),
        ("SELECT * FROM t VERSION AS OF 'secret'", "SELECT * FROM t VERSION AS OF ?"),
        ("VALUES ('secret')", "VALUES (?)"),
        ("SELECT m['secret'] FROM t", "SELECT m[?] FROM t"),
    ],
)
def test_constants_are_left_out(text: str, expected: str) -> None:
    assert redact(parse_view(text)) == expected


def test_the_tree_stays_as_it_is() -> None:
    tree = parse_view("SELECT 'a'")
    redact(tree)
    assert tree.sql(dialect="spark") == "SELECT 'a'"


def test_many_constants_are_no_trouble() -> None:
    tree = parse_view("SELECT id FROM t WHERE k IN (" + ", ".join(map(str, range(10_000))) + ")")
    assert redact(tree).count("?") == 10_000
