"""Queries over TPC-H made by chance: joins, subqueries, set operations, windows, aggregates, CASE, NULLs.

Constants are values of all rows, hidden ones and what is behind masks too: a predicate that meets an
original value finds other rows than on the copy. What is ordered is ordered by all of its columns, so that
there is one right answer.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

SEED = 20_261_116
JOINS = {
    ("lineitem", "orders"): "l_orderkey = o_orderkey",
    ("lineitem", "part"): "l_partkey = p_partkey",
    ("lineitem", "supplier"): "l_suppkey = s_suppkey",
    ("orders", "customer"): "o_custkey = c_custkey",
    ("customer", "nation"): "c_nationkey = n_nationkey",
    ("supplier", "nation"): "s_nationkey = n_nationkey",
    ("partsupp", "part"): "ps_partkey = p_partkey",
    ("partsupp", "supplier"): "ps_suppkey = s_suppkey",
    ("nation", "region"): "n_regionkey = r_regionkey",
}
KEYS = {
    "lineitem": "l_orderkey, l_linenumber",
    "orders": "o_orderkey",
    "customer": "c_custkey",
    "supplier": "s_suppkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "part": "p_partkey",
    "nation": "n_nationkey",
    "things": "t_id",
}
GROUPED = {
    "lineitem": ("l_returnflag", "l_linestatus", "l_shipmode", "l_tax", "l_note", "year(l_receiptdate)"),
    "orders": ("o_orderstatus", "o_orderpriority", "o_shippriority", "o_orderdate", "substring(o_clerk, -4)"),
    "customer": ("c_mktsegment", "c_nationkey", "c_name", "substring(c_phone, 1, 2)"),
    "supplier": ("s_nationkey", "s_acctbal", "length(s_comment)"),
    "partsupp": ("ps_suppkey", "ps_availqty % 7", "ps_supplycost > 500"),
    "part": ("p_brand", "p_mfgr", "p_size", "p_retailprice", "p_comment"),
    "nation": ("n_regionkey", "n_name"),
    "things": ("t_flag", "t_real", "t_twice", "t_text", "t_raw", "t_zoned", "t_small", "year(t_seen)"),
}
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
MOST = 40
"""Rows of what is not grouped."""


def make_queries(data: dict[str, pa.Table], count: int, seed: int = SEED) -> list[str]:
    """So many, always the same for a seed."""
    maker = Maker(random.Random(seed), data)
    return [maker.make(number) for number in range(count)]


@dataclass
class Maker:
    """Makes queries from what is in the tables."""

    chance: random.Random
    data: dict[str, pa.Table]

    def make(self, number: int) -> str:
        """One query; kinds take turns."""
        kinds: list[Callable[[], str]] = [
            self.rows, self.groups, self.joined, self.outer, self.inside, self.correlated, self.united,
            self.windows, self.cases, self.twice, self.derived, self.totals,
        ]  # fmt: skip
        return kinds[number % len(kinds)]()

    # --- kinds of queries ------------------------------------------------------------------------------

    def rows(self) -> str:
        table = self.table()
        columns = self.some(self.columns(table), 4)
        return self.ordered(
            f"SELECT {', '.join(columns)} FROM {table} WHERE {self.condition(table)}", len(columns)
        )

    def groups(self) -> str:
        table = self.table()
        key = self.chance.choice(GROUPED[table])
        having = self.chance.choice(["", f" HAVING count(*) > {self.chance.choice((1, 3, 20))}"])
        return (
            f"SELECT {key} AS k, {self.aggregates(table)} FROM {table} WHERE {self.condition(table)}"
            f" GROUP BY {key}{having}"
        )

    def joined(self) -> str:
        (one, other), on = self.chance.choice(list(JOINS.items()))
        key = self.chance.choice(GROUPED.get(other, ("r_name",)))
        return (
            f"SELECT {key} AS k, {self.aggregates(one)} FROM {one} JOIN {other} ON {on}"
            f" WHERE {self.condition(one)} AND {self.leaf(other)} GROUP BY {key}"
        )

    def outer(self) -> str:
        (one, other), on = self.chance.choice(list(JOINS.items()))
        kind = self.chance.choice(("LEFT", "RIGHT", "FULL"))
        first, second = self.chance.choice(self.columns(one)), self.chance.choice(self.columns(other))
        condition = self.leaf(other)
        return self.ordered(
            f"SELECT DISTINCT {first} AS a, {second} AS b"
            f" FROM {one} {kind} JOIN {other} ON {on} AND {condition}"
            f" WHERE {first} IS NULL OR {second} IS NULL OR {self.leaf(one)}",
            2,
        )

    def inside(self) -> str:
        (one, other), on = self.chance.choice(list(JOINS.items()))
        left, right = on.split(" = ")
        kind = self.chance.choice(("IN", "NOT IN", "EXISTS", "NOT EXISTS", "SEMI", "ANTI"))
        columns = self.some(self.columns(one), 3)
        start = f"SELECT {', '.join(columns)} FROM {one}"
        condition = self.condition(other)
        if kind in ("IN", "NOT IN"):
            where = f"WHERE {left} {kind} (SELECT {right} FROM {other} WHERE {condition})"
        elif kind in ("EXISTS", "NOT EXISTS"):
            where = f"WHERE {kind} (SELECT 1 FROM {other} WHERE {on} AND {condition})"
        else:
            where = f"LEFT {kind} JOIN {other} ON {on} AND {condition} WHERE {self.leaf(one)}"
        return self.ordered(f"{start} {where}", len(columns))

    def correlated(self) -> str:
        (one, other), on = self.chance.choice([item for item in JOINS.items() if item[0][1] != "region"])
        number = self.number(one)
        inner = f"SELECT {self.chance.choice(('count(*)', f'max({number})', f'sum({number})'))} FROM {one}"
        return self.ordered(
            f"SELECT {KEYS[other]}, ({inner} WHERE {on} AND {self.leaf(one)}) AS x FROM {other}"
            f" WHERE {self.number(other)} >= (SELECT avg({self.number(other)}) FROM {other})",
            len(KEYS[other].split(", ")) + 1,
        )

    def united(self) -> str:
        kind = self.chance.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"))
        one = self.table()
        other = self.chance.choice([one, self.table()])
        of = self.chance.choice(("text", "date", "whole"))
        first, second = self.of_kind(one, of), self.of_kind(other, of)
        if not first or not second:
            return self.united()
        return self.ordered(
            f"SELECT {self.chance.choice(first)} AS v FROM {one} WHERE {self.condition(one)}"
            f" {kind} SELECT {self.chance.choice(second)} FROM {other} WHERE {self.condition(other)}",
            1,
        )

    def windows(self) -> str:
        table = self.table()
        key, number = self.chance.choice(GROUPED[table]), self.number(table)
        order = self.chance.choice((KEYS[table], f"{number} DESC, {KEYS[table]}"))
        over = f"PARTITION BY {key} ORDER BY {order}"
        some = self.some(
            [
                f"row_number() OVER ({over})", f"sum({number}) OVER ({over})",
                f"rank() OVER (PARTITION BY {key} ORDER BY {number})", f"count(*) OVER (PARTITION BY {key})",
                f"max({number}) OVER ({over} ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
                f"lag({number}) OVER ({over})", f"lead({number}, 2) OVER ({over})",
                f"dense_rank() OVER (PARTITION BY {key} ORDER BY {number} DESC)",
                f"first_value({number}) OVER ({over})",
            ],
            2,
        )  # fmt: skip
        named = ", ".join(f"{each} AS w{at}" for at, each in enumerate(some))
        return self.ordered(
            f"SELECT {KEYS[table]}, {named} FROM {table} WHERE {self.leaf(table)}",
            len(KEYS[table].split(", ")) + len(some),
        )

    def cases(self) -> str:
        table = self.table()
        made = f"CASE WHEN {self.leaf(table)} THEN 'a' WHEN {self.leaf(table)} THEN 'b' ELSE NULL END"
        text = self.chance.choice(self.of_kind(table, "text"))
        return (
            f"SELECT {made} AS c, count(*) AS n, min(coalesce({text}, 'none')) AS least,"
            f" max(nullif({text}, {self.constant(table, text)})) AS most,"
            f" sum(CASE WHEN {self.leaf(table)} THEN {self.number(table)} ELSE 0 END) AS s,"
            f" count(if({self.leaf(table)}, 1, NULL)) AS m FROM {table} GROUP BY 1"
        )

    def twice(self) -> str:
        table = self.table()
        key, number = self.chance.choice(GROUPED[table]), self.number(table)
        return self.ordered(
            f"WITH g AS (SELECT {key} AS k, count(*) AS n, max({number}) AS m FROM {table}"
            f" WHERE {self.condition(table)} GROUP BY {key})"
            f" SELECT a.k, a.n, b.m FROM g a {self.chance.choice(('JOIN', 'LEFT JOIN'))} g b"
            f" ON a.k <=> b.k AND b.n > {self.chance.choice((0, 2, 10))}"
            " WHERE a.n >= (SELECT avg(n) FROM g) / 2",
            3,
        )

    def derived(self) -> str:
        (one, other), on = self.chance.choice([item for item in JOINS.items() if item[0][1] in KEYS])
        right = on.split(" = ")[1]
        left = on.split(" = ")[0]
        key = self.chance.choice(GROUPED[other])
        return (
            f"SELECT {key} AS k, sum(d.n) AS n, max(d.m) AS m FROM {other} JOIN"
            f" (SELECT {left} AS j, count(*) AS n, min({self.number(one)}) AS m FROM {one}"
            f" WHERE {self.condition(one)} GROUP BY {left}) d ON d.j = {right} GROUP BY {key}"
        )

    def totals(self) -> str:
        table = self.table()
        return (
            f"SELECT {self.aggregates(table)}, count(*) AS rows_, count(DISTINCT"
            f" {self.chance.choice(self.columns(table))}) AS d FROM {table} WHERE {self.condition(table)}"
        )

    # --- parts -----------------------------------------------------------------------------------------

    def condition(self, table: str) -> str:
        kind = self.chance.randrange(6)
        if kind == 0:
            return f"({self.leaf(table)} OR {self.leaf(table)})"
        if kind == 1:
            return f"NOT ({self.leaf(table)} AND {self.leaf(table)})"
        if kind == 2:
            return f"{self.leaf(table)} AND {self.leaf(table)}"
        return self.leaf(table)

    def leaf(self, table: str) -> str:
        column = self.chance.choice(self.columns(table))
        value = self.constant(table, column)
        choices = [
            f"{column} {self.chance.choice(OPERATORS)} {value}",
            f"{column} {self.chance.choice(OPERATORS)} {value}",
            f"{column} BETWEEN {value} AND {self.constant(table, column)}",
            f"{column} {self.chance.choice(('', 'NOT '))}IN ({value}, {self.constant(table, column)})",
            f"{column} IS {self.chance.choice(('', 'NOT '))}NULL",
        ]
        if column in self.of_kind(table, "text"):
            start = self.chance.choice((value[:5] + "%'", "'%" + value[-4:])) if len(value) > 6 else "'%a%'"
            choices += [f"{column} LIKE {start}", f"length({column}) > {self.chance.randrange(3, 30)}"]
        elif column in self.of_kind(table, "date"):
            choices += [f"year({column}) = {self.chance.randrange(1992, 1999)}", f"day({column}) = 1"]
        else:
            numbers = self.of_kind(table, "number")
            if column in numbers:
                choices += [f"{column} % 3 = 1", f"{column} > {self.number(table)}"]
        return self.chance.choice(choices)

    def aggregates(self, table: str) -> str:
        found = []
        for at in range(3):
            number = self.number(table)
            anything = self.chance.choice(self.columns(table))
            made = self.chance.choice(
                (f"sum({number})", f"avg({number})", f"min({anything})", f"max({anything})",
                 f"count({anything})", f"count(DISTINCT {anything})", f"sum({number} * 2 + 1)",
                 f"count(*) FILTER (WHERE {self.leaf(table)})")
            )  # fmt: skip
            found.append(f"{made} AS a{at}")
        return ", ".join(found)

    def ordered(self, sql: str, columns: int) -> str:
        order = ", ".join(
            f"{at} {self.chance.choice(('ASC', 'DESC', 'ASC NULLS LAST', 'DESC NULLS FIRST'))}"
            for at in range(1, columns + 1)
        )
        offset = self.chance.choice(("", "", f" OFFSET {self.chance.randrange(1, 9)}"))
        return f"{sql} ORDER BY {order} LIMIT {self.chance.randrange(5, MOST)}{offset}"

    def table(self) -> str:
        return self.chance.choice(("lineitem", "orders", "customer", "things", *KEYS))

    def columns(self, table: str) -> list[str]:
        return self.data[table].column_names

    def of_kind(self, table: str, kind: str) -> list[str]:
        tests: dict[str, Callable[[pa.DataType], bool]] = {
            "text": pa.types.is_string,
            "date": pa.types.is_date,
            "whole": pa.types.is_int64,
            "number": lambda type_: pa.types.is_integer(type_) or pa.types.is_decimal(type_),
        }
        return [each.name for each in self.data[table].schema if tests[kind](each.type)]

    def number(self, table: str) -> str:
        return self.chance.choice(self.of_kind(table, "number"))

    def some(self, of: list[str], count: int) -> list[str]:
        return self.chance.sample(of, min(count, len(of)))

    def constant(self, table: str, column: str) -> str:
        values = self.data[table].column(column)
        return write_constant(values[self.chance.randrange(len(values))].as_py(), values.type)


def write_constant(value: Any, type_: pa.DataType) -> str:
    """As Spark reads it, of exactly this type."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float):
        name = "FLOAT" if pa.types.is_float32(type_) else "DOUBLE"
        return f"{value!r}D" if value in (0.5, 3.25, 49.5, 50.0) else f"CAST('{value}' AS {name})"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value}'" if type_.tz else f"TIMESTAMP_NTZ '{value}'"
    if isinstance(value, date):
        return f"DATE '{value}'"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    return str(value)
