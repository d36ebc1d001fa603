"""Bound queries: which columns each mention needs, how views are put in, what names mean."""

import pytest

from cynosure.iceberg.expressions.nodes import TRUE
from cynosure.query.errors import SqlError
from cynosure.query.sql import bind_names, bind_relations
from cynosure.query.sql.binding import bind_query
from cynosure.query.sql.bound import BoundTable, BoundView
from cynosure.query.sql.dialect import WRITTEN
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.parse import parse_view
from cynosure.query.sql.scope import Out, Scope, Source
from tests.query.sql.world import SESSION, T, Tables, U, W, bind, names_of

SCHEMAS = {"t": T, "u": U, "w": W}


def needs(text: str) -> dict[str, list[str]]:
    """By view: names of columns."""
    return {
        each.view: names_of(SCHEMAS[each.mention.parts[-1].lower()], each.columns)
        for each in bind(text).needs
    }


def written(text: str) -> str:
    return str(bind(text).tree.sql(dialect=WRITTEN))


SUPPORTED = [each.name for each in T.fields if each.name != "moment"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM t", [["id"]]),
        ("SELECT count(*) FROM t", [[]]),
        ("SELECT 1 FROM t", [[]]),
        ("SELECT * FROM t", [SUPPORTED]),
        ("SELECT s.a FROM t", [["s"]]),
        ("SELECT s.* FROM t", [["s"]]),
        ("SELECT struct(*) FROM t", [SUPPORTED]),
        ("SELECT id FROM t WHERE k = 1 ORDER BY price", [["id", "price", "k"]]),
        ("SELECT sum(k) FROM t GROUP BY name HAVING max(day) > DATE '2020-01-01'", [["name", "day", "k"]]),
        ("SELECT sum(k) OVER (PARTITION BY name ORDER BY id) FROM t", [["id", "name", "k"]]),
        ("SELECT sum(k) OVER w FROM t WINDOW w AS (ORDER BY id)", [["id", "k"]]),
        ("SELECT transform(arr, x -> x + k) FROM t", [["arr", "k"]]),
        ("SELECT id FROM (SELECT * FROM t)", [["id"]]),
        ("SELECT q.id FROM (SELECT * FROM (SELECT * FROM t)) q WHERE q.k = 1", [["id", "k"]]),
        ("SELECT count(*) FROM (SELECT * FROM t)", [["id"]]),
        ("WITH q AS (SELECT * FROM t) SELECT a.id FROM q a JOIN q b ON a.k = b.k", [["id", "k"]]),
        # What counts columns by their position, or all of them, needs all.
        ("SELECT id FROM (SELECT DISTINCT * FROM t)", [SUPPORTED]),
        ("SELECT id FROM (SELECT * FROM t ORDER BY 2 LIMIT 1)", [SUPPORTED]),
        ("SELECT id FROM (SELECT * FROM t ORDER BY ALL LIMIT 1)", [SUPPORTED]),
        ("SELECT id FROM (SELECT * FROM u UNION ALL SELECT * FROM u)", [["id", "uname", "k"]] * 2),
        ("SELECT a FROM u AS x(a, b, c)", [["id", "uname", "k"]]),
        ("WITH q(a, b, c) AS (SELECT * FROM u) SELECT a FROM q", [["id", "uname", "k"]]),
        ("SELECT * FROM u PIVOT (max(uname) FOR k IN (1, 2))", [["id", "uname", "k"]]),
        ("SELECT wname FROM u NATURAL JOIN w", [["id", "uname", "k"], ["id", "wname"]]),
        ("SELECT wname FROM u JOIN w USING (id)", [["id"], ["id", "wname"]]),
        ("SELECT id FROM t WHERE (id, k) IN (SELECT id, k FROM u)", [["id", "k"], ["id", "k"]]),
        ("SELECT id FROM t WHERE EXISTS (SELECT * FROM u WHERE u.id = t.k)", [["id", "k"], ["id"]]),
        ("SELECT id FROM t WHERE EXISTS (SELECT * FROM u)", [["id"], ["id"]]),
        (
            "SELECT id FROM t WHERE k IN (SELECT k FROM u WHERE u.uname = t.name)",
            [["id", "name", "k"], ["uname", "k"]],
        ),
        ("SELECT l.z FROM u, LATERAL (SELECT u.k AS z) l", [["k"]]),
        ("SELECT x FROM t LATERAL VIEW explode(arr) e AS x", [["arr"]]),
        ("SELECT u.id FROM u LEFT SEMI JOIN w ON u.id = w.id", [["id"], ["id"]]),
        ("SELECT * EXCEPT (uname) FROM u", [["id", "uname", "k"]]),
        ("SELECT a.id, b.uname FROM u a, u b", [["id"], ["uname"]]),
        # A name that is a column and an alias: Spark decides by the place, so the column must be there.
        ("SELECT uname AS k FROM u GROUP BY uname HAVING max(k) > 1", [["uname", "k"]]),
        ("SELECT uname AS k FROM u ORDER BY k", [["uname", "k"]]),
    ],
)
def test_each_mention_needs_what_the_query_names(text: str, expected: list[list[str]]) -> None:
    assert sorted(needs(text).values()) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT id FROM t", "SELECT id FROM cyn_0 AS `t`"),
        ("SELECT x.id FROM a.b.t x", "SELECT x.id FROM cyn_0 AS x"),
        ("SELECT a.b.u.id FROM a.b.u", "SELECT `u`.id FROM cyn_0 AS `u`"),
        ("SELECT b.u.* FROM a.b.u", "SELECT `u`.* FROM cyn_0 AS `u`"),
        ("SELECT a.u.id, b.u.k FROM a.u, b.u", "SELECT `u`.id, `cyn_1`.k FROM cyn_0 AS `u` CROSS JOIN cyn_1"),
        ("SELECT id FROM u VERSION AS OF 5 x", "SELECT id FROM cyn_0 AS x"),
        ("SELECT uname FROM v2", "SELECT uname FROM (SELECT * FROM cyn_1000 AS `u`) AS `v2`"),
        (
            "SELECT x.a FROM v1 x",
            "SELECT x.a FROM (SELECT id, name AS other FROM cyn_1000 AS `t` WHERE price > 3) "
            "AS `x`(`a`, `b`)",
        ),
        (
            "SELECT id FROM renamed",
            "SELECT id FROM (SELECT k, id FROM cyn_1000 AS `u`) AS `renamed`(`id`, `k`)",
        ),
        (
            "SELECT id FROM narrow",
            "SELECT id FROM (SELECT `id`, `k` FROM (SELECT * FROM cyn_1000 AS `t`) AS `v`) AS `narrow`",
        ),
    ],
)
def test_mentions_and_views_are_replaced_and_nothing_else(text: str, expected: str) -> None:
    assert written(text) == expected


def test_names_of_a_query_do_not_get_into_a_view() -> None:
    text = "WITH u AS (SELECT 1 AS id, 'hidden' AS uname, 2 AS k), q AS (SELECT 1 AS z) SELECT * FROM v3"
    assert "FROM cyn_" in written(text)
    assert needs(text) == {"cyn_1100": ["id", "uname", "k"]}


def test_a_view_does_not_see_columns_around_it() -> None:
    tree = parse_view("SELECT (SELECT max(x) FROM v) FROM t")
    inner = parse_view("SELECT k AS x FROM u WHERE u.id = t.id")
    mentions = mentions_of(tree)
    tables = {
        each.number: BoundView(inner, ("x",), "c", ("n",), "c.n.v") if each.parts == ("v",) else BoundTable(T)
        for each in mentions
    }
    tables |= {each.number: BoundTable(U) for each in mentions_of(inner, 100)}

    with pytest.raises(SqlError, match="There is no such column"):
        bind_query(tree, tables)


def test_views_that_name_themselves_are_refused() -> None:
    tree = parse_view("SELECT * FROM loop")
    body = parse_view("SELECT * FROM loop a JOIN loop b ON a.id = b.id")
    view = BoundView(body, ("id", "id"), "c", ("n",), "c.n.loop")
    tables = dict.fromkeys((each.number for each in (*mentions_of(tree), *mentions_of(body, 100))), view)

    with pytest.raises(SqlError, match="Views are nested too deeply"):
        bind_query(tree, tables)


def test_a_mention_that_stands_twice_is_filtered_by_neither_place() -> None:
    tree = parse_view("SELECT a.id FROM v a JOIN v b ON a.id = b.id WHERE a.k = 1 AND b.k = 2")
    body = parse_view("SELECT * FROM u")
    view = BoundView(body, ("id", "uname", "k"), "c", ("n",), "c.n.v")
    tables = {each.number: view for each in mentions_of(tree)}
    tables |= {each.number: BoundTable(U) for each in mentions_of(body, 100)}

    [need] = bind_query(tree, tables).needs
    assert need.predicates == TRUE
    assert names_of(U, need.columns) == ["id", "k"]


def test_the_tree_that_was_given_stays_as_it_is() -> None:
    tree = parse_view("SELECT id, current_user() FROM v1 x JOIN t ON x.a = t.id")
    before = tree.sql(dialect="spark")
    bind_query(tree, Tables(mentions_of(tree)), SESSION)
    assert tree.sql(dialect="spark") == before


def test_functions_about_the_session_become_literals() -> None:
    text = (
        "SELECT current_user(), user, session_user, current_catalog(), current_schema(), current_date, "
        "now(), localtimestamp(), current_timezone(), unix_timestamp(), upper(current_user()) AS u"
    )
    assert written(text) == (
        "SELECT 'alice' AS `current_user()`, 'alice' AS `user()`, 'alice' AS `session_user()`, "
        "'cat' AS `current_catalog()`, 'a.b' AS `current_schema()`, "
        "CAST('2023-11-14' AS DATE) AS `current_date()`, "
        "CAST('2023-11-14 22:13:20.123456Z' AS TIMESTAMP) AS `now()`, "
        "CAST('2023-11-14 22:13:20.123456' AS TIMESTAMP_NTZ) AS `localtimestamp()`, "
        "'UTC' AS `current_timezone()`, CAST(1700000000 AS BIGINT) AS `unix_timestamp()`, UPPER('alice') AS u"
    )


def test_a_column_wins_over_a_function_of_the_same_name() -> None:
    assert written("SELECT user FROM (SELECT uname AS user FROM u)") == (
        "SELECT user FROM (SELECT uname AS user FROM cyn_0 AS `u`)"
    )


def test_names_of_the_result_are_known_where_they_are_written() -> None:
    assert bind("SELECT id, k AS x, s.a, t.name FROM t").columns == ("id", "x", "a", "name")
    assert bind("SELECT * FROM u JOIN w USING (id)").columns == ("id", "uname", "k", "wname")
    assert bind("SELECT id, k FROM u UNION SELECT 1, 2").columns == ("id", "k")
    assert bind("SELECT count(*), id + 1, id FROM u").columns == ("", "", "id")
    assert bind("SELECT s.*, id FROM t").columns == ("a", "b", "id")
    assert bind("SELECT s.* EXCEPT (b), k FROM t").columns == ("a", "k")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM (SELECT name, k, id FROM t) a NATURAL JOIN u", "k id name uname"),
        ("SELECT * FROM (SELECT name, k, id FROM t) a JOIN u USING (id, k)", "id k name uname"),
        (
            "SELECT * FROM u JOIN w USING (id) JOIN (SELECT k, name FROM t) a USING (k)",
            "k id uname wname name",
        ),
        ("SELECT * FROM (SELECT wname, id FROM w) a RIGHT JOIN u USING (id)", "id wname uname k"),
        ("SELECT a.* FROM u JOIN (SELECT wname, id FROM w) a USING (id)", "id wname"),
        ("SELECT u.*, a.* FROM u FULL JOIN (SELECT wname, id FROM w) a USING (id)", "id uname k id wname"),
        ("SELECT * FROM (SELECT wname, id FROM w) a LEFT SEMI JOIN u USING (id)", "id wname"),
        (
            "SELECT * FROM (SELECT k, name FROM t) a CROSS JOIN (u JOIN w USING (id))",
            "k name id uname k wname",
        ),
        ("SELECT z.* FROM ((SELECT uname, id FROM u) x JOIN w USING (id)) z", "id uname wname"),
    ],
)
def test_columns_of_joins_are_in_the_order_of_spark(text: str, expected: str) -> None:
    assert " ".join(bind(text).columns) == expected


def test_each_with_stays_where_it_was() -> None:
    text = written("SELECT x.uname FROM v3 x JOIN v3 y ON x.id = y.id")
    assert text.count("WITH q AS (SELECT * FROM (SELECT * FROM cyn_") == 2
    assert not text.startswith("WITH")


def test_errors_inside_of_views_do_not_point_into_the_statement() -> None:
    tree = parse_view("SELECT *\n\n\nFROM v")
    body = parse_view("SELECT\n nope FROM u")
    tables = {each.number: BoundView(body, ("x",), "c", ("n",), "c.n.v") for each in mentions_of(tree)}
    tables |= {each.number: BoundTable(U) for each in mentions_of(body, 100)}

    with pytest.raises(SqlError) as caught:
        bind_query(tree, tables)
    assert caught.value.line == 0


def test_columns_of_a_view_are_not_counted_where_some_are_left_out() -> None:
    # `*` is without `moment`, so that positions are not those that the view had.
    with pytest.raises(SqlError, match="The columns of a view are not those"):
        bind("SELECT x FROM wide")


def test_where_a_name_stands_is_looked_for_only_when_it_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    # In a view nothing has a place, and looking for one takes as long as the view is.
    def fail(node: object) -> None:
        raise AssertionError(node)

    for module in (bind_names, bind_relations):
        monkeypatch.setattr(module, "place_of_node", fail)
    assert bind("SELECT x.uname, v1.* FROM v3 x JOIN v1 ON x.id = v1.a JOIN v2 USING (id) ORDER BY x.id")


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    looks = 0

    def lower(self) -> str:
        Counted.looks += 1
        return str(self).lower()


def test_names_of_wide_sources_are_not_compared_one_by_one() -> None:
    scope = Scope(None)
    for source in range(20):
        scope.add(Source([(f"q{source}",)], [Out(Counted(f"C{at}")) for at in range(100)]))
    for at in range(100):
        assert scope.resolve([f"q{at % 20}", f"c{at}"]).out is not None
        assert scope.find_column([f"Q{at % 20}", f"c{at}"]) is not None
    assert Counted.looks <= 20 * 100
