"""A filter shows the rows that SQL shows, to every reader, whatever it makes of null, NaN and zeros."""

import datetime
from decimal import Decimal

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cynosure.iceberg.restrictions.binding import bind_filter
from cynosure.iceberg.restrictions.filter_sql import parse_sql
from cynosure.iceberg.restrictions.language import canonical
from cynosure.iceberg.restrictions.readers import Reader
from cynosure.iceberg.restrictions.resolving import resolve
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import BOOLEAN, DATE, DOUBLE, INT, STRING, DecimalType, NestedField
from tests.iceberg.restrictions.evaluating import is_shown_like_java, is_shown_like_sql

SCHEMA = Schema(
    0,
    tuple(
        NestedField(id_, name, type_, False)
        for id_, (name, type_) in enumerate(
            {
                "i": INT,
                "s": STRING,
                "f": DOUBLE,
                "b": BOOLEAN,
                "d": DATE,
                "m": DecimalType(5, 2),
            }.items(),
            start=1,
        )
    ),
)
EPOCH = datetime.date(1970, 1, 1)
INTS = [-1, 0, 1, 2, 2**31 - 1]
TEXTS = ["", "a", "ab", "b", "alice"]
FLOATS = [-1.5, -0.0, 0.0, 1.5, float("nan")]
DAYS = [EPOCH, datetime.date(2026, 2, 28)]
CENTS = ["-1.50", "0.00", "1.25"]

rows = st.lists(
    st.tuples(
        st.sampled_from([None, *INTS]),
        st.sampled_from([None, *TEXTS]),
        st.sampled_from([None, *FLOATS]),
        st.sampled_from([None, True, False]),
        st.sampled_from([None, *DAYS]),
        st.sampled_from([None, *CENTS]),
    ),
    min_size=1,
    max_size=8,
)


def literals(column: str) -> st.SearchStrategy[str]:
    return {
        "i": st.sampled_from(["-1", "0", "1", "99999999999"]),
        "s": st.sampled_from([f"'{each}'" for each in TEXTS]),
        "f": st.sampled_from(["-1.5", "0.0", "0", "1.5", "1.5e0"]),
        "d": st.sampled_from([f"DATE '{each}'" for each in DAYS]),
        "m": st.sampled_from(["-1.5", "0", "1.25", "12345.0"]),
    }[column]


@st.composite
def leaves(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from("isfdm"))
    one, other = draw(literals(column)), draw(literals(column))
    return draw(
        st.sampled_from(
            [
                *(f"{column} {op} {one}" for op in ("=", "<>", "<", "<=", ">", ">=")),
                f"{one} < {column}",
                f"{column} IN ({one}, {other})",
                f"{column} NOT IN ({one}, {other})",
                f"{column} BETWEEN {one} AND {other}",
                f"{column} NOT BETWEEN {one} AND {other}",
                f"{column} IS NULL",
                f"{column} IS NOT NULL",
                "s LIKE 'a%'",
                "s NOT LIKE 'a%'",
                "b",
                "NOT b",
                "b <> true",
                "s = current_user()",
                "s <> current_user()",
                "s NOT IN ('b', current_user())",
            ]
        )
    )


filters = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)

EVERY = (
    [None, -1, 0, 1, 2, 3],
    [None, "", "a", "ab", "b", "c"],
    [None, -0.0, 0.0, -1.5, 1.5, float("nan")],
    [None, "-1.50", "0.00", "1.25", "1.00", "0.01"],
)
"""Values of four columns, row by row."""

_duck = duckdb.connect()


@given(filters, rows)
@example("NOT (f < 0.0)", [(None, None, each, None, None, None) for each in (None, *FLOATS)])
@example("i <> 99999999999", [(None,) * 6, (1, *(None,) * 5)])
def test_every_reader_shows_the_rows_that_sql_shows(sql: str, given_rows: list[tuple[object, ...]]) -> None:
    _check(sql, given_rows)


def _check(sql: str, given_rows: list[tuple[object, ...]]) -> None:
    parsed = canonical(parse_sql(sql, field="content.filter"), field="content.filter")
    resolved = resolve(parsed, Reader("alice"))
    sent = bind_filter(resolved, SCHEMA, field="content.filter").expression

    expected = _shown_by_duckdb(sql.replace("current_user()", "'alice'"), given_rows)

    stored = [_stored(row) for row in given_rows]
    assert [at for at, row in enumerate(stored) if is_shown_like_java(sent, row)] == expected
    assert [at for at, row in enumerate(stored) if is_shown_like_sql(sent, row)] == expected


@pytest.mark.parametrize(
    "sql", [*(f"{{}} {op} {{}}" for op in ("=", "<>", "<", "<=", ">", ">=")), "{} IN ({})", "s LIKE 'a%'"]
)
@pytest.mark.parametrize("is_negated", [False, True])
@pytest.mark.parametrize(
    ("column", "constant"), [("i", "1"), ("s", "'a'"), ("f", "0.0"), ("f", "1.5"), ("m", "0")]
)
def test_no_comparison_shows_a_null_nor_another_zero_or_nan_than_sql(
    sql: str, is_negated: bool, column: str, constant: str
) -> None:
    condition = sql.format(column, constant)
    every = [(i, s, f, None, None, m) for i, s, f, m in zip(*EVERY, strict=True)]

    _check(f"NOT ({condition})" if is_negated else condition, every)


def _shown_by_duckdb(sql: str, given_rows: list[tuple[object, ...]]) -> list[int]:
    _duck.execute(
        "CREATE OR REPLACE TEMP TABLE t"
        " (n INT, i INT, s VARCHAR, f DOUBLE, b BOOLEAN, d DATE, m DECIMAL(5,2))"
    )
    for at, row in enumerate(given_rows):
        _duck.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?)", [at, *row])
    return [at for (at,) in _duck.execute(f"SELECT n FROM t WHERE {sql} ORDER BY n").fetchall()]


def _stored(row: tuple[object, ...]) -> dict[int, object]:
    i, s, f, b, d, m = row
    days = None if d is None else (d - EPOCH).days  # type: ignore[operator]
    return {1: i, 2: s, 3: f, 4: b, 5: days, 6: None if m is None else Decimal(str(m))}
