"""What is hidden of TPC-H, twice: as policies for the catalog, and in plain Python, row by row.

A maintainer must not break: the Python side shares no code with the product. It is slow and simple, so that
one can see that it is right.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]
READER = "ann"
PRIORITIES = {READER: ["1-URGENT", "3-MEDIUM", "5-LOW", None], "bob": ["2-HIGH"]}
"""The mapping table: who sees orders of which priority."""


def see_all(_: Row) -> bool:
    return True


@dataclass(frozen=True)
class Rule:
    """What somebody sees of a table."""

    filter: str = ""
    shows: Callable[[Row], bool] = see_all
    masks: Mapping[str, str] = field(default_factory=dict)


def shows_line(row: Row) -> bool:
    if row["l_shipdate"] is None or row["l_shipdate"] < date(1992, 6, 1):
        return False
    is_kept = row["l_returnflag"] is not None and row["l_returnflag"] != "A"
    return is_kept or row["l_quantity"] < 20


def shows_order(row: Row) -> bool:
    priority = row["o_orderpriority"]
    return (priority is not None and priority in PRIORITIES[READER]) or row["o_orderstatus"] == "P"


def shows_customer(row: Row) -> bool:
    if row["c_phone"] is None or row["c_phone"].startswith("11"):
        return False
    if row["c_nationkey"] in (5, 24):
        return False
    return row["c_mktsegment"] is not None or row["c_custkey"] < 700


def shows_thing(row: Row) -> bool:
    is_low = row["t_twice"] is not None and row["t_twice"] < 50  # NaN is not: it is above all numbers.
    is_late = row["t_seen"] is not None and row["t_seen"] >= datetime.fromisoformat("2000-01-01")
    return is_low or row["t_flag"] is True or is_late


RULES: dict[str, Rule] = {
    "things": Rule(
        "t_twice < 50 OR t_flag OR t_seen >= TIMESTAMP '2000-01-01 00:00:00'",
        shows_thing,
        {"t_zoned": "truncate-to-year", "t_text": "mask-alphanum", "t_raw": "mask-to-fixed-value"},
    ),
    "lineitem": Rule(
        "l_shipdate >= DATE '1992-06-01' AND (l_returnflag <> 'A' OR l_quantity < 20)",
        shows_line,
        {
            "l_comment": "replace-with-null",
            "l_receiptdate": "truncate-to-month",
            "l_tax": "mask-to-fixed-value",
        },
    ),
    "orders": Rule(
        "o_orderpriority IN (SELECT m.priority FROM gov.priorities m WHERE m.user = current_user())"
        " OR o_orderstatus = 'P'",
        shows_order,
        {"o_clerk": "show-last-4", "o_comment": "mask-alphanum", "o_orderdate": "truncate-to-month"},
    ),
    "customer": Rule(
        "NOT c_phone LIKE '11%' AND NOT c_nationkey IN (5, 24)"
        " AND (c_mktsegment IS NOT NULL OR c_custkey < 700)",
        shows_customer,
        {"c_name": "show-first-4", "c_address": "sha-256-global", "c_phone": "show-first-4"},
    ),
    "supplier": Rule(
        masks={
            "s_acctbal": "mask-to-fixed-value",
            "s_address": "sha-256-global",
            "s_comment": "mask-alphanum",
        }
    ),
    "partsupp": Rule("ps_availqty > 500", lambda row: row["ps_availqty"] > 500),
    "part": Rule(masks={"p_retailprice": "mask-to-fixed-value", "p_comment": "replace-with-null"}),
    "nation": Rule(),
    "region": Rule(),
}


def apply_rule(table: pa.Table, rule: Rule) -> pa.Table:
    """The copy: rows that are shown, as they are shown."""
    rows = [row for row in table.to_pylist() if rule.shows(row)]
    for row in rows:
        for column, action in rule.masks.items():
            row[column] = mask(row[column], action, table.schema.field(column).type)
    return pa.Table.from_pylist(rows, schema=table.schema)


def mask(value: Any, action: str, type_: pa.DataType) -> Any:
    """One value, as it is shown."""
    if action == "mask-to-fixed-value":
        return _fixed(type_)
    if value is None or action == "replace-with-null":
        return None
    match action:
        case "mask-alphanum":
            return _redact(value)
        case "show-first-4":
            return value[:4] + _redact(value[4:])
        case "show-last-4":
            return _redact(value[:-4]) + value[-4:]
        case "sha-256-global":
            return hashlib.sha256(value.encode()).hexdigest()
        case "truncate-to-month":
            return _midnight(value.replace(day=1))
        case "truncate-to-year":
            return _midnight(value.replace(day=1, month=1))
    raise AssertionError(action)


def _midnight(value: Any) -> Any:
    return value.replace(hour=0, minute=0, second=0, microsecond=0) if isinstance(value, datetime) else value


def _fixed(type_: pa.DataType) -> Any:
    for test, value in (
        (pa.types.is_boolean, False),
        (pa.types.is_integer, 0),
        (pa.types.is_floating, 0.0),
        (pa.types.is_decimal, Decimal(0)),
        (pa.types.is_binary, b""),
        (pa.types.is_date, date(1970, 1, 1)),
        (pa.types.is_timestamp, datetime(1970, 1, 1)),  # noqa: DTZ001 - Arrow gives it the column's zone
    ):
        if test(type_):
            return value
    return "XXXXXXXX"


def _redact(text: str) -> str:
    return "".join("n" if "0" <= each <= "9" else each if each in "(),.-@" else "x" for each in text)
