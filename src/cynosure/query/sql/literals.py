"""Constants of a statement as values of a column's exact type, or nothing.

A maintainer must not break: a value is returned only if Spark compares the column with this constant without
a cast of the column, and as exact values. Everything else is None, and stays with the engine.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from sqlglot import exp

from cynosure.iceberg.expressions.nodes import Constant
from cynosure.iceberg.types import BOOLEAN, DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, DecimalType, Type

_INTEGER: Final = re.compile(r"\d{1,19}", re.ASCII)
_DECIMAL: Final = re.compile(r"\d{1,38}(\.\d{0,38})?|\.\d{1,38}", re.ASCII)
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,6})?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_MAX_DIGITS: Final = 38
_DIGITS_OF_INT: Final = 10
_DIGITS_OF_LONG: Final = 20
"""Of the decimals that Spark compares whole numbers in."""
_UNITS: Final = {"DAY": (0, 1), "DAYS": (0, 1), "WEEK": (0, 7), "WEEKS": (0, 7)} | {
    "MONTH": (1, 0),
    "MONTHS": (1, 0),
    "YEAR": (12, 0),
    "YEARS": (12, 0),
}
"""Months and days."""


def constant_of(node: exp.Expr, type_: Type) -> Constant | None:
    """The value of a node for a column of this type."""
    node = node.unnest()
    if type_ in (INT, LONG):
        return _integer(node, type_)
    if isinstance(type_, DecimalType):
        return _decimal(node, type_)
    if type_ == STRING:
        if isinstance(node, exp.Literal) and node.is_string and "\x00" not in node.name:
            return Constant(node.name, STRING)
        return None
    if type_ == BOOLEAN:
        return Constant(bool(node.this), BOOLEAN) if isinstance(node, exp.Boolean) else None
    if type_ == DATE:
        day = _date(node)
        return Constant(day.isoformat(), DATE) if day is not None else None
    if type_ in (TIMESTAMP, TIMESTAMPTZ):
        return _timestamp(node, type_)
    return None


def _signed(node: exp.Expr) -> tuple[str, str] | None:
    sign = ""
    if isinstance(node, exp.Neg):
        sign, node = "-", node.this.unnest()
    if isinstance(node, exp.Literal) and not node.is_string:
        return sign, node.name
    return None


def _integer(node: exp.Expr, type_: Type) -> Constant | None:
    signed = _signed(node)
    if signed is None or not _INTEGER.fullmatch(signed[1]):
        return None
    value = int("".join(signed))
    # A literal beyond 32 bits is a BIGINT in Spark: an INT column would be cast.
    bits = 31 if type_ == INT else 63
    return Constant(value, type_) if abs(value) < 2**bits else None


def _decimal(node: exp.Expr, type_: DecimalType) -> Constant | None:
    signed = _signed(node)
    if signed is None or not _DECIMAL.fullmatch(signed[1]):
        return None
    whole, _, fraction = signed[1].partition(".")
    digits = len(whole.lstrip("0"))
    if len(fraction) > type_.scale or digits > type_.precision - type_.scale:
        return None
    # Spark compares in a decimal that holds both. Up to 38 digits that is exact.
    whole_digits = digits if fraction else _DIGITS_OF_INT if digits < _DIGITS_OF_INT else _DIGITS_OF_LONG
    integral = max(type_.precision - type_.scale, whole_digits)
    if integral + type_.scale > _MAX_DIGITS:
        return None
    value = Decimal("".join(signed)).quantize(Decimal(1).scaleb(-type_.scale))
    return Constant(f"{value:f}", type_)


def _date(node: exp.Expr) -> date | None:
    node = node.unnest()
    if isinstance(node, exp.Add | exp.Sub):
        day, interval = _date(node.this), node.expression.unnest()
        if day is None or not isinstance(interval, exp.Interval):
            return None
        return _shift(day, interval, -1 if isinstance(node, exp.Sub) else 1)
    if not _is_cast(node, exp.DType.DATE):
        return None
    text = node.this.name
    if not _DATE.fullmatch(text):
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year >= 1 else None


def _shift(day: date, interval: exp.Interval, sign: int) -> date | None:
    unit, amount = interval.args.get("unit"), interval.this
    known = _UNITS.get(unit.name.upper()) if isinstance(unit, exp.Var) else None
    if (
        known is None
        or not isinstance(amount, exp.Literal)
        or not re.fullmatch(r"-?\d{1,5}", amount.name, re.ASCII)
    ):
        return None
    months, days = (sign * int(amount.name) * each for each in known)
    try:
        if months:
            # The last day of the month where the day does not exist, as Spark has it.
            at = day.year * 12 + day.month - 1 + months
            year, month = divmod(at, 12)
            return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
        return day + timedelta(days=days)
    except (ValueError, OverflowError):
        return None


def _timestamp(node: exp.Expr, type_: Type) -> Constant | None:
    kinds = (
        (exp.DType.TIMESTAMPNTZ,) if type_ == TIMESTAMP else (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
    )
    if not any(_is_cast(node, kind) for kind in kinds):
        return None
    match = _TIME.fullmatch(node.this.name)
    if match is None or (type_ == TIMESTAMP and match[1]):
        return None
    try:
        moment = datetime.fromisoformat(node.this.name.replace("Z", "+00:00"))
        if type_ == TIMESTAMP:
            return Constant(moment.isoformat(timespec="microseconds"), TIMESTAMP)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return Constant(moment.isoformat(timespec="microseconds"), TIMESTAMPTZ)


def _is_cast(node: exp.Expr, kind: exp.DType) -> bool:
    """`DATE '…'` or `CAST('…' AS DATE)`, not TRY_CAST."""
    return (
        isinstance(node, exp.Cast)
        and not node.args.get("safe")
        and node.to.this is kind
        and isinstance(node.this, exp.Literal)
        and bool(node.this.is_string)
    )
