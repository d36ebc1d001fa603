"""Functions of dates and times. Times are in UTC, so parts of them need no zone.

A maintainer must not break: texts are dates only where they are written as dates usually are; everything that
would have to be parsed is outside of the subset.
"""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from cynosure.query.local import operators
from cynosure.query.local import spark_types as t
from cynosure.query.local.arguments import any_query, name_of, only
from cynosure.query.local.context import Place
from cynosure.query.local.typed import OutsideSubset, Typed

Lower = Callable[[exp.Expression, Place], Typed]


def _day(node: exp.Expression | None, place: Place, what: str) -> Typed:
    """A date, or the date of a time."""
    if isinstance(node, exp.TsOrDsToDate):
        only(node, "this", "safe")
        node = node.this
    value = _time(node, place, what)
    return value if value.type == t.DATE else value.cast(t.DATE)


def _time(node: exp.Expression | None, place: Place, what: str) -> Typed:
    """A date or a time."""
    if isinstance(node, exp.TsOrDsToDate):
        return _day(node, place, what)
    value = place.lower(node) if node is not None else Typed("NULL", t.NULL)
    if isinstance(value.constant, str):
        value = operators.literal_date(value.constant) or value
    if value.type.kind not in {"date", "timestamp", "timestamp_ntz"}:
        raise OutsideSubset(f"{what} of {value.type.kind}")
    return value


def _to_date(node: exp.Expression, place: Place) -> Typed:
    return _day(node, place, "TO_DATE")


def _part(name: str, plus: int = 0) -> Lower:
    """A part of a date: an INT."""

    def lower(node: exp.Expression, place: Place) -> Typed:
        only(node, "this")
        value = _day(node.this, place, name_of(node))
        sql = f"{name}({value.sql})" + (f" + {plus}" if plus else "")
        return Typed(f"CAST({sql} AS INTEGER)", t.INT, has_query=value.has_query)

    return lower


def _clock_part(name: str) -> Lower:
    def lower(node: exp.Expression, place: Place) -> Typed:
        only(node, "this")
        value = _time(node.this, place, name_of(node))
        if value.type == t.DATE:
            raise OutsideSubset(f"{name_of(node)} of date")
        return Typed(f"CAST({name}({value.sql}) AS INTEGER)", t.INT, has_query=value.has_query)

    return lower


_EXTRACTED: Final = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "DAY": "day",
    "WEEK": "weekofyear",
    "DOY": "dayofyear",
}


def _extract(node: exp.Expression, place: Place) -> Typed:
    part = str(node.this.this if isinstance(node.this, exp.Var) else "").upper()
    value = _time(node.expression, place, "EXTRACT")
    if part in {"HOUR", "MINUTE"} and value.type != t.DATE:
        return Typed(f"CAST({part.lower()}({value.sql}) AS INTEGER)", t.INT, has_query=value.has_query)
    if part not in _EXTRACTED:
        raise OutsideSubset("EXTRACT")
    sql = f"CAST({_EXTRACTED[part]}({value.cast(t.DATE).sql}) AS INTEGER)"
    return Typed(sql, t.INT, has_query=value.has_query)


def _add_days(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "expression", "unit")
    if str(node.args.get("unit") or "DAY").upper() != "DAY":
        raise OutsideSubset("DATE_ADD")
    value = _day(node.this, place, "DATE_ADD")
    days = place.lower(node.expression)
    if days.type != t.INT:
        raise OutsideSubset(f"DATE_ADD of {days.type.kind}")
    return Typed(f"({value.sql} + {days.sql})", t.DATE, has_query=any_query(value, days))


def _days_between(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "expression")
    end, start = _day(node.this, place, "DATEDIFF"), _day(node.expression, place, "DATEDIFF")
    sql = f"CAST(({end.sql} - {start.sql}) AS INTEGER)"
    return Typed(sql, t.INT, has_query=any_query(end, start))


def _add_months(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "expression")
    value = _day(node.this, place, "ADD_MONTHS")
    months = place.lower(node.expression)
    if months.type != t.INT:
        raise OutsideSubset(f"ADD_MONTHS of {months.type.kind}")
    sql = f"CAST(({value.sql} + to_months({months.sql})) AS DATE)"
    return Typed(sql, t.DATE, has_query=any_query(value, months))


def _last_day(node: exp.Expression, place: Place) -> Typed:
    only(node, "this")
    value = _day(node.this, place, "LAST_DAY")
    return Typed(f"CAST(last_day({value.sql}) AS DATE)", t.DATE, has_query=value.has_query)


_UNITS: Final = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "WEEK": "week",
}
_TIME_UNITS: Final = {
    **_UNITS,
    **dict.fromkeys(("DAY", "DD"), "day"),
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}


def _truncate(*, is_time: bool) -> Lower:
    def lower(node: exp.Expression, place: Place) -> Typed:
        only(node, "this", "unit")
        unit = (_TIME_UNITS if is_time else _UNITS).get(str(node.args["unit"].this).upper())
        if unit is None:
            raise OutsideSubset("TRUNC")
        if is_time:
            value = _time(node.this, place, "DATE_TRUNC")
            # Of Spark's types only this one: a time without a zone becomes one of the session's.
            value = value.cast(t.TIMESTAMP)
        else:
            value = _day(node.this, place, "TRUNC")
        sql = f"CAST(date_trunc('{unit}', {value.sql}) AS {value.type.duck})"
        return Typed(sql, value.type, has_query=value.has_query)

    return lower


DATES: Final[dict[type[exp.Expression], Lower]] = {
    exp.TsOrDsToDate: _to_date,
    exp.Year: _part("year"),
    exp.Quarter: _part("quarter"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfWeek: _part("dayofweek", 1),
    exp.DayOfYear: _part("dayofyear"),
    exp.WeekOfYear: _part("weekofyear"),
    exp.Hour: _clock_part("hour"),
    exp.Minute: _clock_part("minute"),
    exp.Second: _clock_part("second"),
    exp.Extract: _extract,
    exp.TsOrDsAdd: _add_days,
    exp.DateDiff: _days_between,
    exp.AddMonths: _add_months,
    exp.LastDay: _last_day,
    exp.DateTrunc: _truncate(is_time=False),
    exp.TimestampTrunc: _truncate(is_time=True),
}
