"""Which statements are allowed, from two lists, and what the others are told (I104)."""

from pathlib import Path

import pytest

from cynosure.query.errors import NotAllowed, SqlError
from cynosure.query.sql.dialect import WRITTEN
from cynosure.query.sql.nodes import PARTS
from cynosure.query.sql.parse import parse_statement
from cynosure.query.sql.statements import Describe, Explain, Query, Show
from tests.query.sql.world import bind

HERE = Path(__file__).parent


def read_lines(name: str, comment: str) -> list[str]:
    lines = (HERE / name).read_text().splitlines()
    return [each for each in lines if each and not each.startswith(comment)]


ACCEPTED = read_lines("accepted.sql", "--")
REFUSED = [tuple(each.rsplit(" => ", 1)) for each in read_lines("refused.txt", "#")]


def take(text: str) -> None:
    if isinstance(parse_statement(text), Query):
        bind(text)


@pytest.mark.parametrize("text", ACCEPTED)
def test_allowed_statements_are_bound_and_written_as_they_can_be_read_again(text: str) -> None:
    bound = bind(text)

    written = bound.tree.sql(dialect=WRITTEN)
    again = parse_statement(written)
    assert isinstance(again, Query)
    assert again.tree.sql(dialect=WRITTEN) == written
    assert {type(node).__name__ for node in bound.tree.walk()} <= PARTS.keys()


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_everything_else_is_refused_with_a_reason(text: str, said: str) -> None:
    with pytest.raises(SqlError) as caught:
        take(text)
    assert said in str(caught.value)
    assert caught.value.fix
    assert caught.value.field == "sql"
    assert caught.value.line or text == ";"


def test_there_are_enough_of_both() -> None:
    assert len(ACCEPTED) + len(REFUSED) > 400


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT id FROM t WHERE", 1, 18),
        ("SELECT id\nFROM t\nWHERE k = = 1", 3, 11),
        ("SELECT a,\n  reflect('x')", 2, 3),
        ("SELECT id\n  FROM t\n TABLESAMPLE (1 ROWS)", 2, 8),
        ("SELECT 1\n;\nSELECT 2", 2, 1),
        ("SELECT id FROM t\nORDER BY\n   nope", 3, 4),
        ("EXPLAIN\nSELECT nope() FROM t", 2, 8),
        ("SELECT 'a\x00b'", 1, 10),
        ("SELECT id,\n  CAST(k AS VARIANT) FROM t", 2, 8),
        ("SELECT id\nFROM t WHERE k = :k", 2, 18),
        ("SELECT *\n  EXCEPT (id, nope) FROM t", 2, 15),
        ("SELECT DISTINCT name\nFROM t ORDER BY id", 2, 17),
        ("SELECT id AS x, k AS x FROM t\nORDER BY x", 2, 10),
        ("  SHOW GRANTS", 1, 8),
        ("SELEC 1", 1, 1),
        ("SELECT 1\n  FRM t", 2, 3),
        ("SHOW", 1, 1),
    ],
)
def test_errors_say_where(text: str, line: int, column: int) -> None:
    with pytest.raises(SqlError) as caught:
        bind(text)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t WHERE name = 'secret' AND nope('secret') = 1",
        "SELECT id FROM t WHERE name = 'secret' AND",
        "SELECT id FROM t WHERE name = = 'secret'",
        "SELECT 'secret' 'secret' FROM t t t",
        "INSERT INTO t VALUES ('secret')",
        "SELECT id FROM t TIMESTAMP AS OF 'secret'",
        "SELECT id FROM t VERSION AS OF 5 WHERE nope = 'secret'",
        "SHOW TABLES LIKE 'secret' 'secret'",
        "SELECT CAST('secret' AS nosuch)",
        "SELECT raise_error('secret') FROM t WHERE x = 1",
    ],
)
def test_errors_hold_no_constant_of_the_statement(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        bind(text)
    assert "secret" not in str(caught.value)
    assert "secret" not in str(caught.value.details)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW CATALOGS", Show("catalogs")),
        ("show catalogs like 'a*'", Show("catalogs", (), "a*")),
        ("SHOW NAMESPACES", Show("namespaces")),
        ("SHOW SCHEMAS IN cat.a LIKE 'x|y'", Show("namespaces", ("cat", "a"), "x|y")),
        ("SHOW DATABASES FROM `odd name`", Show("namespaces", ("odd name",))),
        ("SHOW TABLES", Show("tables")),
        ("SHOW TABLES IN a.b", Show("tables", ("a", "b"))),
        ("SHOW TABLES FROM a.b 'x*'", Show("tables", ("a", "b"), "x*")),
        ("SHOW TABLES LIKE 'x';", Show("tables", (), "x")),
        ("SHOW VIEWS IN a", Show("views", ("a",))),
        ("SHOW COLUMNS IN a.t", Show("columns", ("a", "t"))),
        ("SHOW COLUMNS FROM t FROM a.b", Show("columns", ("a", "b", "t"))),
        ("SHOW FUNCTIONS", Show("functions")),
        ("SHOW SYSTEM FUNCTIONS LIKE 'a*'", Show("functions", (), "a*")),
        ("SHOW CREATE TABLE a.t", Show("create-table", ("a", "t"))),
        ("SHOW TBLPROPERTIES a.t", Show("tblproperties", ("a", "t"))),
        ("SHOW TBLPROPERTIES t ('a-b.c')", Show("tblproperties", ("t",), key="a-b.c")),
        ("SHOW TBLPROPERTIES t (a.b)", Show("tblproperties", ("t",), key="a.b")),
        ("SHOW CURRENT NAMESPACE", Show("current-namespace")),
        ("/* x */ SHOW -- y\n TABLES", Show("tables")),
        ("DESCRIBE t", Describe("table", ("t",))),
        ("DESC a.b.t", Describe("table", ("a", "b", "t"))),
        ("DESCRIBE TABLE EXTENDED a.t", Describe("table", ("a", "t"), is_extended=True)),
        ("DESCRIBE FORMATTED t", Describe("table", ("t",), is_extended=True)),
        ("DESCRIBE NAMESPACE a.b", Describe("namespace", ("a", "b"))),
        ("DESCRIBE SCHEMA EXTENDED a", Describe("namespace", ("a",), is_extended=True)),
    ],
)
def test_commands_are_read_word_by_word(text: str, expected: Show | Describe) -> None:
    assert parse_statement(text) == expected


@pytest.mark.parametrize(
    ("text", "is_extended"),
    [("EXPLAIN SELECT 1", False), ("explain extended SELECT 1", True), ("EXPLAIN FORMATTED\nSELECT 1", True)],
)
def test_queries_are_explained(text: str, is_extended: bool) -> None:
    statement = parse_statement(text)

    assert isinstance(statement, Explain)
    assert statement.is_extended is is_extended
    assert statement.query.tree.sql(dialect="spark") == "SELECT 1"


@pytest.mark.parametrize(
    "text", ["DESCRIBE QUERY SELECT 1", "DESC SELECT 1", "DESCRIBE WITH x AS (SELECT 1) SELECT 1"]
)
def test_queries_are_described(text: str) -> None:
    statement = parse_statement(text)

    assert isinstance(statement, Describe)
    assert statement.what == "query"
    assert statement.query is not None


def test_a_statement_is_refused_when_it_is_too_long() -> None:
    with pytest.raises(SqlError, match="too long"):
        parse_statement("SELECT '" + "x" * 2**20 + "'")
    with pytest.raises(SqlError, match="too long"):
        parse_statement("SELECT 'éééé'", max_bytes=14)


def test_what_is_not_allowed_is_of_its_own_kind() -> None:
    with pytest.raises(NotAllowed):
        parse_statement("DROP TABLE t")
    with pytest.raises(SqlError) as caught:
        parse_statement("SELECT FROM")
    assert not isinstance(caught.value, NotAllowed)


def test_patterns_are_short() -> None:
    assert parse_statement(f"SHOW TABLES LIKE '{'*' * 1_000}'")
    with pytest.raises(SqlError, match="The pattern is too long"):
        parse_statement(f"SHOW TABLES LIKE '{'*' * 1_001}'")
