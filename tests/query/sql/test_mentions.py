"""Which names are tables, where they stand, and what is relative to what."""

import pytest

from cynosure.query.errors import SqlError
from cynosure.query.sql.bound import TimeTravel
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.names import resolve
from cynosure.query.sql.parse import parse_view
from tests.query.sql.world import SESSION


def mentioned(text: str) -> list[str]:
    return [".".join(each.parts) for each in mentions_of(parse_view(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM t", ["t"]),
        ("SELECT * FROM a.b.c.d.t x", ["a.b.c.d.t"]),
        ("SELECT * FROM t, a.t, t", ["t", "a.t", "t"]),
        ("SELECT * FROM a JOIN b ON TRUE LEFT JOIN c USING (id)", ["a", "b", "c"]),
        ("SELECT * FROM (a JOIN (b JOIN c ON TRUE) ON TRUE)", ["a", "b", "c"]),
        (
            "SELECT (SELECT 1 FROM a) FROM b WHERE x IN (SELECT 1 FROM c) AND EXISTS (SELECT 1 FROM d)",
            list("abcd"),
        ),
        ("SELECT * FROM a UNION SELECT * FROM b EXCEPT (SELECT * FROM c)", ["a", "b", "c"]),
        # A common table expression hides a table only where it can be seen.
        ("WITH t AS (SELECT 1) SELECT * FROM t", []),
        ("WITH t AS (SELECT 1) SELECT * FROM T", []),
        ("WITH t AS (SELECT 1) SELECT * FROM a.t", ["a.t"]),
        ("WITH t AS (SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b", ["b"]),
        ("WITH t AS (SELECT 1) SELECT * FROM (SELECT * FROM t)", []),
        (
            "WITH a AS (SELECT * FROM a), q AS (WITH b AS (SELECT * FROM a, b, c) SELECT * FROM a, b, q), "
            "c AS (SELECT * FROM a, q, c) SELECT * FROM a, b, c, q",
            ["b", "c", "q", "b", "c", "a"],
        ),
        ("SELECT * FROM (WITH t AS (SELECT 1) SELECT * FROM t) x JOIN t ON TRUE", ["t"]),
        ("WITH x AS (WITH t AS (SELECT 1) SELECT * FROM t) SELECT * FROM t", ["t"]),
        ("WITH t AS (SELECT 1) SELECT * FROM u WHERE id IN (SELECT * FROM t)", ["u"]),
        ("WITH t AS (SELECT 1) SELECT * FROM t UNION ALL SELECT * FROM t", []),
        ("(WITH t AS (SELECT 1) SELECT * FROM t) UNION ALL SELECT * FROM t", ["t"]),
        ("WITH t AS (SELECT 1) SELECT * FROM t VERSION AS OF 5", ["t"]),
        # Aliases and generated rows are none.
        ("SELECT * FROM a x, LATERAL (SELECT x.id) y", ["a"]),
        ("SELECT * FROM a LATERAL VIEW explode(a.arr) b AS c", ["a"]),
        ("SELECT * FROM range(5) r, VALUES (1) AS v(a), explode(array(1)) e", []),
        ("SELECT * FROM a PIVOT (sum(x) FOR y IN (1))", ["a"]),
        ("SELECT `a`.`b c`.* FROM `a`.`b c`", ["a.b c"]),
    ],
)
def test_tables_are_names_that_the_query_does_not_give(text: str, expected: list[str]) -> None:
    assert sorted(mentioned(text)) == sorted(expected)


def test_mentions_are_numbered_and_know_their_place() -> None:
    mentions = mentions_of(parse_view("SELECT *\nFROM a.b.t x\n  JOIN u ON TRUE"), 7)

    assert [(each.number, each.parts, each.line, each.column) for each in mentions] == [
        (7, ("a", "b", "t"), 2, 6),
        (8, ("u",), 3, 8),
    ]


@pytest.mark.parametrize(
    ("clause", "travel"),
    [
        ("", None),
        ("VERSION AS OF 5", TimeTravel(version=5)),
        ("VERSION AS OF '5'", TimeTravel(version="5")),
        ("FOR VERSION AS OF 'main'", TimeTravel(version="main")),
        ("SYSTEM_VERSION AS OF 'main'", TimeTravel(version="main")),
        ("FOR SYSTEM_VERSION AS OF 5", TimeTravel(version=5)),
        ("SYSTEM_TIME AS OF '1970-01-02'", TimeTravel(timestamp_us=86_400_000_000)),
        ("FOR TIMESTAMP AS OF '1970-01-02'", TimeTravel(timestamp_us=86_400_000_000)),
        ("TIMESTAMP AS OF '1970-01-02'", TimeTravel(timestamp_us=86_400_000_000)),
        ("TIMESTAMP AS OF '1970-01-01 00:00:01.5'", TimeTravel(timestamp_us=1_500_000)),
        ("FOR SYSTEM_TIME AS OF '1970-01-01T01:00:00+01:00'", TimeTravel(timestamp_us=0)),
        ("TIMESTAMP AS OF 5", TimeTravel(timestamp_us=5_000_000)),
        ("TIMESTAMP AS OF TIMESTAMP '1970-01-01 00:00:02'", TimeTravel(timestamp_us=2_000_000)),
        ("TIMESTAMP AS OF DATE '1969-12-31'", TimeTravel(timestamp_us=-86_400_000_000)),
    ],
)
def test_time_travel_is_part_of_a_mention(clause: str, travel: TimeTravel | None) -> None:
    [mention] = mentions_of(parse_view(f"SELECT * FROM t {clause} AS x"), session=SESSION)

    assert mention.travel == travel


@pytest.mark.parametrize(
    "clause", ["FOR VERSION 5", "VERSION AS OF main", "VERSION AS OF -5", "FOR TIMESTAMP now()"]
)
def test_a_version_is_written_as_spark_has_it(clause: str) -> None:
    with pytest.raises(SqlError) as caught:
        mentions_of(parse_view(f"SELECT * FROM t {clause}"), session=SESSION)
    assert caught.value.fix


def test_a_table_may_be_called_version() -> None:
    [mention] = mentions_of(parse_view("SELECT version.id FROM t version"), session=SESSION)

    assert mention.travel is None


@pytest.mark.parametrize(
    ("parts", "full"),
    [
        (("t",), ("cat", ("a", "b"), "t")),
        (("x", "t"), ("cat", ("x",), "t")),
        (("cat", "x", "t"), ("cat", ("x",), "t")),
        (("other", "x", "y", "t"), ("other", ("x", "y"), "t")),
        (("x", "y", "t"), ("cat", ("x", "y"), "t")),
    ],
)
def test_names_are_relative_to_the_session(
    parts: tuple[str, ...], full: tuple[str, tuple[str, ...], str]
) -> None:
    assert resolve(parts, "cat", ("a", "b"), catalogs={"cat", "other"}) == full


@pytest.mark.parametrize(
    ("parts", "catalog", "namespace"),
    [(("t",), "", ()), (("t",), "cat", ()), (("a", "t"), "", ()), ((), "cat", ("a",))],
)
def test_a_name_without_a_place_is_refused(
    parts: tuple[str, ...], catalog: str, namespace: tuple[str, ...]
) -> None:
    with pytest.raises(SqlError) as caught:
        resolve(parts, catalog, namespace)
    assert caught.value.fix


def test_without_a_session_the_first_part_is_the_catalog() -> None:
    assert resolve(("c", "n", "t"), "", ()) == ("c", ("n",), "t")
