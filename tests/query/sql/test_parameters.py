"""Parameters become literals of a type, and nothing of their values is read as SQL."""

from typing import Any

import pytest

from cynosure.query.errors import SqlError
from cynosure.query.sql.parse import parse_statement
from cynosure.query.sql.statements import Query


def write(text: str, parameters: Any) -> str:
    statement = parse_statement(text, parameters=parameters)
    assert isinstance(statement, Query)
    return str(statement.tree.sql(dialect="spark"))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (1, "1"),
        (-1, "(-1)"),
        (True, "TRUE"),
        (None, "NULL"),
        ("a", "'a'"),
        ("' OR 1 = 1 --", "'\\' OR 1 = 1 --'"),
        ("\\", "'\\\\'"),
        ("a\nb", "'a\\nb'"),
        (1.5, "CAST('1.5' AS DOUBLE)"),
        ({"type": "DATE", "value": "2026-01-31"}, "CAST('2026-01-31' AS DATE)"),
        ({"type": "timestamp", "value": "2026-01-31 10:00:00"}, "CAST('2026-01-31 10:00:00' AS TIMESTAMP)"),
        ({"type": "DECIMAL", "value": "-12.50"}, "CAST('-12.50' AS DECIMAL(4, 2))"),
        ({"type": "BIGINT", "value": 5}, "CAST('5' AS BIGINT)"),
        ({"type": "STRING", "value": "x"}, "'x'"),
        ({"type": "BOOLEAN", "value": False}, "FALSE"),
        ({"type": "INT", "value": None}, "CAST(NULL AS INT)"),
    ],
)
def test_values_become_literals(value: Any, written: str) -> None:
    assert write("SELECT :p", {"p": value}) == f"SELECT {written}"
    assert write("SELECT ?", [value]) == f"SELECT {written}"


def test_unnamed_parameters_are_taken_in_the_order_of_the_text() -> None:
    text = "SELECT ?, (SELECT max(x + ?) FROM u WHERE y = ?) FROM t WHERE a = ? AND b IN (?, ?) LIMIT ?"
    written = "SELECT 1, (SELECT MAX(x + 2) FROM u WHERE y = 3) FROM t WHERE a = 4 AND b IN (5, 6) LIMIT 7"
    assert write(text, [1, 2, 3, 4, 5, 6, 7]) == written


def test_there_may_be_many() -> None:
    text = "SELECT id FROM t WHERE k IN (" + ", ".join("?" * 10_000) + ")"
    assert write(text, list(range(10_000))).endswith(", 9999)")


def test_a_named_parameter_may_stand_twice() -> None:
    assert write("SELECT :a + :b + :a", {"a": 1, "b": 2}) == "SELECT 1 + 2 + 1"


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("SELECT ?", []),
        ("SELECT :a", {}),
        ("SELECT ?", [1, 2]),
        ("SELECT :a", {"a": 1, "b": 2}),
        ("SELECT 1", [1]),
        ("SELECT :a", {"a": [1]}),
        ("SELECT :a", {"a": {"x": 1}}),
        ("SELECT :a", {"a": {"type": "DATE", "value": "2026-01-31') --"}}),
        ("SELECT :a", {"a": {"type": "ARRAY<INT>", "value": "1"}}),
        ("SELECT :a", {"a": {"type": "INT", "value": "1; DROP"}}),
        ("SELECT :a", {"a": 2**64}),
        ("SELECT :a", {"a": float("nan")}),
        ("SELECT :a", {"a": "${env:HOME}"}),
        ("SELECT * FROM :a", {"a": "t"}),
        ("SELECT id AS :a FROM t", {"a": "x"}),
        ("SHOW TABLES", [1]),
    ],
)
def test_other_values_are_refused(text: str, parameters: Any) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement(text, parameters=parameters)
    assert caught.value.fix
