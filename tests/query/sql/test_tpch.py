"""The 22 queries of TPC-H are bound, with the columns and predicates that a good scan has."""

from pathlib import Path

import pytest

from cynosure.iceberg.expressions.nodes import TRUE
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import DATE, INT, LONG, STRING, DecimalType, NestedField
from cynosure.query.sql.binding import bind_query
from cynosure.query.sql.bound import BoundQuery, BoundTable
from cynosure.query.sql.mentions import mentions_of
from cynosure.query.sql.parse import parse_view

QUERIES = sorted((Path(__file__).parent.parent / "tpch").glob("q*.sql"))
MONEY = DecimalType(15, 2)


def table(prefix: str, columns: str) -> Schema:
    """Columns by name; `!` money, `#` a whole number, `@` a date, `*` a key, else a text."""
    types = {"!": MONEY, "#": INT, "@": DATE, "*": LONG}
    return Schema(
        0,
        tuple(
            NestedField(at, f"{prefix}_{word.rstrip('!#@*')}", types.get(word[-1], STRING), is_required=True)
            for at, word in enumerate(columns.split(), start=1)
        ),
    )


TABLES = {
    "customer": table("c", "custkey* name address nationkey* phone acctbal! mktsegment comment"),
    "lineitem": table(
        "l",
        "orderkey* partkey* suppkey* linenumber# quantity! extendedprice! discount! tax! returnflag "
        "linestatus shipdate@ commitdate@ receiptdate@ shipinstruct shipmode comment",
    ),
    "nation": table("n", "nationkey* name regionkey* comment"),
    "orders": table(
        "o", "orderkey* custkey* orderstatus totalprice! orderdate@ orderpriority clerk shippriority# comment"
    ),
    "part": table("p", "partkey* name mfgr brand type size# container retailprice! comment"),
    "partsupp": table("ps", "partkey* suppkey* availqty# supplycost! comment"),
    "region": table("r", "regionkey* name comment"),
    "supplier": table("s", "suppkey* name address nationkey* phone acctbal! comment"),
}


def bind(path: Path) -> BoundQuery:
    tree = parse_view(path.read_text())
    return bind_query(tree, {each.number: BoundTable(TABLES[each.parts[-1]]) for each in mentions_of(tree)})


def test_there_are_22() -> None:
    assert [each.name for each in QUERIES] == [f"q{number:02}.sql" for number in range(1, 23)]


@pytest.mark.parametrize("path", QUERIES, ids=lambda path: path.stem)
def test_it_is_bound(path: Path) -> None:
    bound = bind(path)

    assert parse_view(bound.tree.sql(dialect="spark"))
    for need in bound.needs:
        named = {each.name for each in TABLES[need.mention.parts[-1]].fields if each.id in need.columns}
        assert named == {each for each in named if each in path.read_text()}


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("q01", {"lineitem"}),
        ("q02", {"part", "region"}),
        ("q03", {"customer", "orders", "lineitem"}),
        ("q05", {"region", "orders"}),
        ("q06", {"lineitem"}),
        ("q07", {"lineitem", "nation"}),
        ("q10", {"orders", "lineitem"}),
        ("q12", {"lineitem"}),
        ("q14", {"lineitem"}),
        ("q15", {"lineitem"}),
        ("q19", {"lineitem", "part"}),
        ("q20", {"lineitem", "nation", "part"}),
    ],
)
def test_its_conditions_reach_the_scans(name: str, tables: set[str]) -> None:
    bound = bind(next(each for each in QUERIES if each.stem == name))

    assert {each.mention.parts[-1] for each in bound.needs if each.predicates != TRUE} == tables
