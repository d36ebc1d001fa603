"""Statements grow when they are written for DuckDB, and texts when it runs them: both are bounded."""

import pyarrow as pa
import pytest

from cynosure.query.local.lower import lower_query
from cynosure.query.local.typed import MAX_SQL, OutsideSubset
from tests.query.local.world import make_query

TABLES = {
    "v": pa.table(
        {
            "id": pa.array([1], pa.int32()),
            "i": pa.array([1], pa.int32()),
            "d": pa.array([1.5]),
            "s": pa.array(["a"]),
        }
    )
}


def written(sql: str) -> str:
    return lower_query(make_query(sql, TABLES)).sql


def chain(word: str, count: int) -> str:
    return f" {word} ".join(f"i + {at} > 0" for at in range(count))


DEEP = "(" * 16 + "i + 1 > 0" + "".join(f" {('or', 'and')[at % 2]} i - {at} > 0)" for at in range(16))


@pytest.mark.parametrize(
    "sql",
    [
        "select id from v where " + chain("and", 100),
        "select id from v where " + chain("or", 100),
        "select " + chain("and", 60) + " from v",
        "select " + chain("or", 60) + " from v",
        "select " + " / ".join(["d"] * 100) + " from v",
        "select " + " % ".join(["i"] * 100) + " from v",
        "select " + "upper(" * 30 + "s" + ")" * 30 + " from v",
        "select " + "nullif(" * 30 + "i" + ", 1)" * 30 + " from v",
    ],
    ids=["and", "or", "and value", "or value", "division", "rest", "letters", "nullif"],
)
def test_long_expressions_stay_short_enough(sql: str) -> None:
    """Each operator once doubled what was before it: 25 conditions were more than a machine's memory."""
    assert len(written(sql)) < 120 * len(sql) < MAX_SQL


@pytest.mark.parametrize(
    "sql",
    [
        "select " + ", ".join([DEEP] * 350) + " from v",
        "select case " + DEEP + " when true then 1" * 7_000 + " end from v",
        "select lpad(s, 400000000, 'x') from v",
        "select lpad(s, id, 'x') from v",
        "select rpad(s, 20000, 'x') from v",
        "select replace(s, 'a', s) from v",
        f"select replace('{'a' * 20_000}', 'a', '{'b' * 20_000}') from v",
        "with c0 as (select s a from v)"
        + "".join(f", c{at + 1} as (select concat(a, a) a from c{at})" for at in range(20))
        + " select length(a) from c20",
        "select round(d, 400) from v",
        "select round(d, 2147483648) from v",
        "select left(s, 3000000000) from v",
        "select id from v limit 2147483648",
        "select lag(i, 3000000000) over (order by id) from v",
        "select sum(i) over (order by id rows between 2 following and 1 following) from v",
    ],
)
def test_what_grows_beyond_that_is_not_local(sql: str) -> None:
    with pytest.raises(OutsideSubset):
        written(sql)
