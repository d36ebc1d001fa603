"""Pushed predicates: which conditions are pushed, and that they never change the answer of a query."""

import datetime
from collections import Counter
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.iceberg.expressions.bind import bind as bind_expression
from cynosure.iceberg.expressions.encode import encode_expression
from cynosure.iceberg.expressions.nodes import (
    TRUE,
    Always,
    And,
    Comparison,
    Expression,
    Membership,
    Or,
    Unary,
)
from cynosure.iceberg.expressions.parse import parse_expression
from cynosure.query.arrow_types import to_arrow
from cynosure.query.sql.bound import BoundQuery
from tests.query.sql.world import T, U, bind

NAMES = {each.id: each.name for each in T.fields}
OTHER_NAMES = {each.id: each.name for each in U.fields}


def show(predicate: Expression, names: dict[int, str]) -> str:
    match predicate:
        case Always(answer):
            return str(answer)
        case And(left, right):
            return f"({show(left, names)} and {show(right, names)})"
        case Or(left, right):
            return f"({show(left, names)} or {show(right, names)})"
        case Comparison(op, left, right):
            return f"{names[left.id]} {op} {right.value}"  # type: ignore[union-attr]
        case Membership(op, child, values):
            return f"{names[child.id]} {op} {[each.value for each in values]}"  # type: ignore[union-attr]
        case Unary(op, child):
            return f"{names[child.id]} {op}"  # type: ignore[union-attr]
    raise AssertionError(predicate)


def pushed(text: str) -> list[str]:
    return [
        show(
            each.predicates,
            NAMES if each.mention.parts[-1] in ("t", "masked") else {1: "id", 2: "uname", 3: "k"},
        )
        for each in bind(text).needs
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("k = 1", "k eq 1"),
        ("1 < k", "k gt 1"),
        ("k <> 1", "k not-eq 1"),
        ("NOT (k >= 1)", "k lt 1"),
        ("k <=> 1", "k eq 1"),
        ("id = 5000000000", "id eq 5000000000"),
        ("k = -1", "k eq -1"),
        ("k IN (1, 2)", "k in [1, 2]"),
        ("k IN (1, NULL)", "k in [1]"),
        ("k NOT IN (1, 2)", "k not-in [1, 2]"),
        ("k BETWEEN 1 AND 5", "(k gt-eq 1 and k lt-eq 5)"),
        ("k IS NULL", "k is-null"),
        ("k IS NOT NULL", "k not-null"),
        ("flag", "flag eq True"),
        ("NOT flag", "flag eq False"),
        ("flag = FALSE", "flag eq False"),
        ("name = 'a'", "name eq a"),
        ("name >= 'a'", "name gt-eq a"),
        ("name LIKE 'ab%'", "name starts-with ab"),
        ("startswith(name, 'ab')", "name starts-with ab"),
        ("price < 24", "price lt 24.00"),
        ("price = 0.05", "price eq 0.05"),
        ("price BETWEEN 0.05 AND 0.1", "(price gt-eq 0.05 and price lt-eq 0.10)"),
        ("day = DATE '2020-01-31'", "day eq 2020-01-31"),
        ("day < DATE '2020-01-31' + INTERVAL '1' MONTH", "day lt 2020-02-29"),
        ("day < DATE '2020-03-01' - INTERVAL 90 DAYS", "day lt 2019-12-02"),
        ("day < DATE '2020-01-31' - INTERVAL '1' YEAR", "day lt 2019-01-31"),
        ("ts > TIMESTAMP '2020-01-31 10:00:00'", "ts gt 2020-01-31T10:00:00.000000+00:00"),
        ("ts > TIMESTAMP '2020-01-31 10:00:00+02:00'", "ts gt 2020-01-31T08:00:00.000000+00:00"),
        ("ts_ntz > TIMESTAMP_NTZ '2020-01-31 10:00:00'", "ts_ntz gt 2020-01-31T10:00:00.000000"),
        ("k = 1 AND upper(name) = 'A'", "k eq 1"),
        ("(k = 1 AND upper(name) = 'A') OR k = 2", "(k eq 1 or k eq 2)"),
        ("(k = 1 OR id = 2) AND flag", "((k eq 1 or id eq 2) and flag eq True)"),
        ("k IN (NULL)", "False"),
    ],
)
def test_comparisons_with_exact_constants_are_pushed(condition: str, expected: str) -> None:
    assert pushed(f"SELECT id FROM t WHERE {condition}") == [expected]


@pytest.mark.parametrize(
    "condition",
    [
        "name > 5",  # the text would be cast: its error would tell the value
        "k = '1'",
        "k = 9999999999",
        "k = 1.0",
        "id = 99999999999999999999",
        "price = 0.001",
        "price = 1e2",
        "price = '5'",
        "dbl > 1",
        "dbl = 1.0D",
        "day = '2020-01-31'",
        "day = TIMESTAMP '2020-01-31 00:00:00'",
        "day = DATE '2020-02-30'",
        "day = TRY_CAST('2020-01-31' AS DATE)",
        "day = DATE '2020-01-31' + INTERVAL '1' HOUR",
        "day = current_date()",
        "ts = TIMESTAMP_NTZ '2020-01-31 00:00:00'",
        "ts_ntz = TIMESTAMP '2020-01-31 00:00:00'",
        "ts = '2020-01-31'",
        "raw = X'00'",
        "s.a = 1",
        "k = id",
        "k + 1 = 2",
        "upper(name) = 'A'",
        "k = 1 OR upper(name) = 'A'",
        "NOT (k = 1 AND id = 2)",
        "NOT (k BETWEEN 1 AND 2)",
        "NOT (k <=> 1)",
        "k NOT IN (1, NULL)",
        "k IN (1, id)",
        "k IN (SELECT k FROM u)",
        "name LIKE '%a'",
        "name LIKE 'a_b%'",
        "name LIKE 'abc'",
        "name LIKE 'a\\\\%%'",
        "name LIKE '%'",
        "name NOT LIKE 'a%'",
        "name LIKE 'a!%' ESCAPE '!'",
        "name ILIKE 'a%'",
        "k IS TRUE",
        "flag IS TRUE",
        "CASE WHEN k = 1 THEN TRUE END",
        "coalesce(k, 0) = 1",
        "CAST(k AS BIGINT) = 1",
    ],
)
def test_everything_else_stays_with_the_engine(condition: str) -> None:
    first = pushed(f"SELECT id FROM t WHERE {condition}")[0]
    assert first == "True"


def test_masked_columns_are_never_pushed() -> None:
    assert pushed("SELECT id FROM masked WHERE name = 'a' AND k = 1 AND name LIKE 'a%' AND name IS NULL") == [
        "k eq 1"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Outer joins: neither the side that becomes null, nor through it.
        ("SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE t.k = 1 AND u.k = 2", ["k eq 1", "True"]),
        ("SELECT t.id FROM t RIGHT JOIN u ON t.id = u.id WHERE t.k = 1 AND u.k = 2", ["True", "k eq 2"]),
        ("SELECT t.id FROM t FULL JOIN u ON t.id = u.id WHERE t.k = 1 AND u.k = 2", ["True", "True"]),
        ("SELECT t.id FROM t LEFT JOIN u ON t.id = u.id AND t.k = 1 AND u.k = 2", ["True", "k eq 2"]),
        ("SELECT t.id FROM t RIGHT JOIN u ON t.id = u.id AND t.k = 1 AND u.k = 2", ["True", "True"]),
        ("SELECT t.id FROM t FULL JOIN u ON t.k = 1 AND u.k = 2", ["True", "True"]),
        ("SELECT t.id FROM t JOIN u ON t.id = u.id AND t.k = 1 AND u.k = 2", ["k eq 1", "k eq 2"]),
        ("SELECT t.id FROM t LEFT ANTI JOIN u ON t.id = u.id AND u.k = 2 AND t.k = 1", ["True", "k eq 2"]),
        ("SELECT id FROM t JOIN u USING (id) WHERE id = 1", ["True", "True"]),
        (
            "SELECT a.id FROM t a JOIN (t b LEFT JOIN u ON b.id = u.id) ON a.id = b.id AND u.k IS NULL "
            "AND b.k = 1",
            ["True", "k eq 1", "True"],
        ),
        (
            "SELECT a.id FROM t a LEFT JOIN (t b LEFT JOIN u ON b.id = u.id) ON a.id = b.id AND u.k = 2",
            ["True", "True", "True"],
        ),
        (
            "SELECT a.id FROM t a JOIN (t b RIGHT JOIN u ON b.id = u.id) ON a.id = u.id AND b.k IS NULL "
            "AND u.k = 2",
            ["True", "True", "k eq 2"],
        ),
        # Subqueries: through those that pass rows on one by one only.
        ("SELECT id FROM ((SELECT * FROM t) ORDER BY id LIMIT 1) q WHERE q.k = 1", ["True"]),
        ("SELECT id FROM ((SELECT * FROM t) OFFSET 1) q WHERE q.k = 1", ["True"]),
        ("SELECT id FROM (((SELECT * FROM t)) LIMIT 3) WHERE k = 1", ["True"]),
        ("SELECT id FROM ((SELECT * FROM t)) q WHERE q.k = 1", ["k eq 1"]),
        ("SELECT id FROM (SELECT * FROM t) WHERE k = 1", ["k eq 1"]),
        ("SELECT x FROM (SELECT k AS x FROM t WHERE flag) WHERE x = 1", ["(flag eq True and k eq 1)"]),
        ("SELECT id FROM (SELECT * FROM t LIMIT 5) WHERE k = 1", ["True"]),
        ("SELECT id FROM (SELECT DISTINCT id, k FROM t) WHERE k = 1", ["True"]),
        ("SELECT k FROM (SELECT k, count(*) AS n FROM t GROUP BY k) WHERE k = 1", ["True"]),
        ("SELECT k FROM (SELECT k, row_number() OVER (ORDER BY id) AS r FROM t) WHERE k = 1", ["True"]),
        ("SELECT k FROM (SELECT * FROM u UNION ALL SELECT * FROM u) WHERE k = 1", ["True", "True"]),
        ("WITH q AS (SELECT * FROM t) SELECT * FROM q a JOIN q b ON a.id = b.id WHERE a.k = 1", ["True"]),
        ("SELECT y FROM (SELECT u.k AS y FROM t LEFT JOIN u ON t.id = u.id) WHERE y = 1", ["True", "True"]),
        ("SELECT id FROM v2 WHERE k = 1", ["k eq 1"]),
        ("SELECT id FROM v3 WHERE id = 1", ["k gt 1"]),
        # Columns of a view are called as the view says, by position, whatever its query calls them.
        ("SELECT id FROM turned WHERE k = 'n' AND ID > 2", ["(uname eq n and k gt 2)"]),
        ("SELECT id FROM turned WHERE k = 1 AND uname = 'n'", ["True"]),
        ("SELECT k FROM turned AS x WHERE uname = 7 AND x.id IS NULL", ["(id eq 7 and k is-null)"]),
        ("SELECT k FROM (SELECT * FROM turned) AS x WHERE x.ID IN (1, 2)", ["k in [1, 2]"]),
        ("SELECT k FROM (SELECT k AS id, id AS k FROM turned) AS x WHERE k = 1", ["k eq 1"]),
        ("SELECT k FROM renamed WHERE id = 1 AND k > 2", ["(k eq 1 and id gt 2)"]),
        # A mask is on the column, whatever it is called.
        ("SELECT k FROM covered WHERE k = 'a'", ["True"]),
        ("SELECT k FROM covered WHERE name = 1 AND k = 'a'", ["k eq 1"]),
        ("SELECT k FROM narrow WHERE k = 1", ["k eq 1"]),
        ("SELECT k FROM t GROUP BY k HAVING k = 1", ["True"]),
        ("SELECT * FROM u PIVOT (max(uname) FOR k IN (1, 2)) WHERE id = 1", ["True"]),
        ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = 1 AND t.k = 2)", ["True", "k eq 1"]),
        ("SELECT x FROM t LATERAL VIEW explode(arr) e AS x WHERE k = 1 AND x = 2", ["k eq 1"]),
        ("SELECT x FROM t LATERAL VIEW explode(arr) e AS k WHERE e.k = 1", None),
    ],
)
def test_conditions_reach_only_scans_whose_rows_they_decide(text: str, expected: list[str] | None) -> None:
    if expected is None:
        text, expected = text.replace("SELECT x", "SELECT e.k"), ["True"]
    assert pushed(text) == expected


def test_pushed_predicates_are_what_the_protocol_takes() -> None:
    text = (
        "SELECT id FROM t WHERE k = 1 AND name LIKE 'a%' AND price < 24.5 AND day >= DATE '2020-01-31' "
        "AND ts < TIMESTAMP '2020-01-31 10:00:00.123456' AND ts_ntz > TIMESTAMP_NTZ '2020-01-31 10:00:00' "
        "AND flag AND id IN (1, 2) AND name IS NOT NULL"
    )
    [need] = bind(text).needs

    json = encode_expression(need.predicates)
    # It binds: every constant is of its column's type.
    assert bind_expression(parse_expression(json), T)


# Whether an answer is the same with and without them.

DAYS = [datetime.date(2020, 1, day) for day in (1, 15, 31)]
ROWS = st.fixed_dictionaries(
    {
        "id": st.one_of(st.none(), st.integers(0, 4)),
        "name": st.one_of(st.none(), st.sampled_from(["a", "ab", "b", ""])),
        "price": st.one_of(st.none(), st.sampled_from([Decimal("0.05"), Decimal("1.00"), Decimal("24.00")])),
        "day": st.one_of(st.none(), st.sampled_from(DAYS)),
        "flag": st.one_of(st.none(), st.booleans()),
        "k": st.one_of(st.none(), st.integers(0, 3)),
    }
)
OTHER_ROWS = st.fixed_dictionaries(
    {
        "id": st.one_of(st.none(), st.integers(0, 4)),
        "uname": st.one_of(st.none(), st.sampled_from(["a", "b"])),
        "k": st.one_of(st.none(), st.integers(0, 3)),
    }
)


def _leaves(alias: str, *, is_t: bool) -> st.SearchStrategy[str]:
    number = st.sampled_from([f"{alias}.id", f"{alias}.k"])
    text = f"{alias}.name" if is_t else f"{alias}.uname"
    op = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
    value = st.integers(-1, 4)
    leaves = [
        st.builds("{} {} {}".format, number, op, value),
        st.builds("{1} {2} {0}".format, number, value, op),
        st.builds("{} BETWEEN {} AND {}".format, number, value, value),
        st.builds("{} IN ({}, {})".format, number, value, value),
        st.builds("{} NOT IN ({}, {})".format, number, value, st.one_of(value, st.just("NULL"))),
        st.builds("{} IS {}NULL".format, number, st.sampled_from(["", "NOT "])),
        st.builds("{} {} {}".format, st.just(text), op, st.sampled_from(["'a'", "'ab'", "''"])),
        st.builds("{} LIKE {}".format, st.just(text), st.sampled_from(["'a%'", "'%b'", "'a_%'", "'%'"])),
        st.builds("{} + 1 {} {}".format, number, op, value),
    ]
    if is_t:
        leaves += [
            st.just(f"{alias}.flag"),
            st.builds("{}.price {} {}".format, st.just(alias), op, st.sampled_from(["1", "0.05", "1.000"])),
            st.builds("{}.day {} {}".format, st.just(alias), op, st.sampled_from(["DATE '2020-01-15'"])),
            st.builds(
                "{}.day {} {}".format, st.just(alias), op, st.just("DATE '2020-02-29' - INTERVAL '1' MONTH")
            ),
        ]
    return st.one_of(leaves)


def _conditions(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        st.one_of(parts),
        lambda inner: st.one_of(
            st.builds("({} AND {})".format, inner, inner),
            st.builds("({} OR {})".format, inner, inner),
            st.builds("NOT ({})".format, inner),
        ),
        max_leaves=6,
    )


ON_T, ON_U, ON_Q = _leaves("t", is_t=True), _leaves("u", is_t=False), _leaves("q", is_t=True)
JOINS = st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
QUERIES = st.one_of(
    st.builds("SELECT t.id, t.k FROM t WHERE {}".format, _conditions(ON_T)),
    st.builds(
        "SELECT t.id, u.k FROM t {} u ON t.k = u.k AND {} WHERE {}".format,
        JOINS,
        _conditions(ON_T, ON_U),
        _conditions(ON_T, ON_U),
    ),
    st.builds(
        "SELECT t.id, u.k FROM u {} t ON t.id = u.id JOIN u AS z ON z.id = t.id AND {} WHERE {}".format,
        JOINS,
        _conditions(ON_T, ON_U),
        _conditions(ON_T, ON_U),
    ),
    st.builds(
        "SELECT t.id FROM t {} JOIN u ON t.k = u.k AND {} WHERE {}".format,
        st.sampled_from(["SEMI", "ANTI"]),
        _conditions(ON_T, ON_U),
        _conditions(ON_T),
    ),
    st.builds(
        "SELECT q.id FROM (SELECT * FROM t WHERE {}) q WHERE {}".format, _conditions(ON_T), _conditions(ON_Q)
    ),
    st.builds(
        "SELECT q.id FROM (SELECT t.*, count(*) OVER (PARTITION BY t.k) AS n FROM t WHERE {}) q "
        "WHERE q.n > 1 AND {}".format,
        _conditions(ON_T),
        _conditions(ON_Q),
    ),
    st.builds(
        "SELECT q.k, q.n FROM (SELECT t.k, count(*) AS n, max(t.id) AS id, max(t.name) AS name, "
        "max(t.price) AS price, max(t.day) AS day, bool_or(t.flag) AS flag FROM t WHERE {} GROUP BY t.k) q "
        "WHERE {}".format,
        _conditions(ON_T),
        _conditions(ON_Q),
    ),
    st.builds(
        "WITH c AS (SELECT * FROM t WHERE {}) SELECT q.id, r.id FROM c q, c r WHERE q.k = r.k AND {}".format,
        _conditions(ON_T),
        _conditions(ON_Q),
    ),
    st.builds(
        "SELECT t.id FROM t WHERE {} {}EXISTS (SELECT * FROM u WHERE u.id = t.id AND {})".format,
        _conditions(ON_T).map(lambda text: f"{text} AND"),
        st.sampled_from(["", "NOT "]),
        _conditions(ON_T, ON_U),
    ),
    st.builds(
        "SELECT q.id FROM (SELECT t.*, u.uname FROM t {} u ON t.id = u.id WHERE {}) q WHERE {}".format,
        JOINS,
        _conditions(ON_T, ON_U),
        _conditions(ON_Q),
    ),
    # Joins in parentheses have null sides of their own.
    st.builds(
        "SELECT q.id, t.k, u.k FROM t AS q {} (t {} u ON t.id = u.id AND {}) ON q.id = t.id AND {} "
        "WHERE {}".format,
        JOINS,
        JOINS,
        _conditions(ON_T, ON_U),
        _conditions(ON_T, ON_U, ON_Q),
        _conditions(ON_T, ON_U, ON_Q),
    ),
    # Sorted by all columns, so that which rows are left is the same each time.
    st.builds(
        "SELECT q.id, q.k FROM ((SELECT * FROM t WHERE {}) ORDER BY ALL LIMIT {} OFFSET {}) q "
        "WHERE {}".format,
        _conditions(ON_T),
        st.integers(1, 3),
        st.integers(0, 2),
        _conditions(ON_Q),
    ),
)


def _keeps(predicate: Expression, row: dict[int, Any]) -> bool:
    """As hard as a scan may be: what is not TRUE in SQL is left out."""
    match predicate:
        case Always(answer):
            return answer
        case And(left, right):
            return _keeps(left, row) and _keeps(right, row)
        case Or(left, right):
            return _keeps(left, row) or _keeps(right, row)
        case Unary(op, child):
            return (row[child.id] is None) == (op == "is-null")  # type: ignore[union-attr]
        case Membership(op, child, values):
            value = row[child.id]  # type: ignore[union-attr]
            found = value in [_value(each.value, value) for each in values]
            return value is not None and found == (op == "in")
        case Comparison(op, left, right):
            value = row[left.id]  # type: ignore[union-attr]
            if value is None:
                return False
            other = _value(right.value, value)  # type: ignore[union-attr]
            return {
                "eq": lambda: value == other,
                "not-eq": lambda: value != other,
                "lt": lambda: value < other,
                "lt-eq": lambda: value <= other,
                "gt": lambda: value > other,
                "gt-eq": lambda: value >= other,
                "starts-with": lambda: value.startswith(other),
            }[op]()
    raise AssertionError(predicate)


def _value(constant: Any, like: Any) -> Any:
    if isinstance(like, Decimal):
        return Decimal(constant)
    return datetime.date.fromisoformat(constant) if isinstance(like, datetime.date) else constant


CONNECTION = duckdb.connect()
CONNECTION.execute("SET threads = 1")


def _answer(bound: BoundQuery, rows: dict[str, list[dict[str, Any]]], *, is_pushed: bool) -> Counter[Any]:
    for need in bound.needs:
        schema = T if need.mention.parts[-1] == "t" else U
        columns = [each for each in schema.fields if each.id in need.columns]
        kept = [
            row
            for row in rows[need.mention.parts[-1]]
            if not is_pushed
            or _keeps(need.predicates, {each.id: row.get(each.name) for each in schema.fields})
        ]
        arrays = {
            each.name: pa.array([row.get(each.name) for row in kept], to_arrow(each.type)) for each in columns
        }
        nothing = {"no_column": pa.array([None] * len(kept), pa.int32())}
        CONNECTION.register(need.view, pa.table(arrays or nothing))
    return Counter(CONNECTION.execute(bound.tree.sql(dialect="duckdb")).fetchall())


@settings(max_examples=100, deadline=None)
@given(text=QUERIES, rows=st.lists(ROWS, max_size=8), others=st.lists(OTHER_ROWS, max_size=6))
def test_answers_are_the_same_with_and_without_them(
    text: str, rows: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    bound = bind(text)
    data = {"t": rows, "u": others}

    assert _answer(bound, data, is_pushed=True) == _answer(bound, data, is_pushed=False)


def test_the_comparison_of_answers_can_fail() -> None:
    bound = bind("SELECT t.id FROM t WHERE t.k = 1")
    wrong = BoundQuery(bind("SELECT t.id FROM t").tree, bound.needs, bound.columns)
    data = {"t": [{"id": 1, "k": 1}, {"id": 2, "k": 2}]}

    assert bound.needs[0].predicates != TRUE
    assert _answer(wrong, data, is_pushed=True) != _answer(wrong, data, is_pushed=False)
