"""Times that are written as expressions of constants: `TIMESTAMP AS OF now() - INTERVAL 1 DAY`.

A table is opened at its time before any engine knows of the statement, so this is worked out here, as Spark
would, in the session's time zone. What is listed:

    '2026-01-31 10:00:00', 1700000000 (seconds), DATE '…', TIMESTAMP '…', CAST(… AS TIMESTAMP | DATE | …)
    now(), current_timestamp, current_date, localtimestamp, unix_timestamp(): of the statement
    INTERVAL …, + and - of times, intervals, days and numbers, * of intervals and numbers
    the functions of `_FUNCTIONS`

A maintainer must not break: all of it follows from the text and the statement's own time. A statement that is
bound again, or names a time twice, means the same moment.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any, Final

from sqlglot import exp

from cynosure.query.engine import SessionValues
from cynosure.query.errors import SqlError
from cynosure.query.sql.places import place_of_node
from cynosure.query.sql.time_values import (
    Interval,
    NotATime,
    cut_off,
    cut_off_date,
    end_of_month,
    from_seconds,
    move,
    place_in,
    read_date,
    read_interval,
    read_local,
    read_span,
    read_unit,
    read_zone,
)

Value = date | datetime | Interval | int | Decimal | str

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_NODES: Final = 100
_MOST: Final = 2**63
_WHOLE: Final = re.compile(r"[+-]?\d{1,19}", re.ASCII)


def read_moment(node: exp.Expr, session: SessionValues) -> int:
    """Microseconds since 1970; `SqlError` for what is not listed, or no time."""
    try:
        since = _Reader(session).read_whole(node) - _EPOCH
    except (NotATime, OverflowError, ValueError) as error:
        raise SqlError(
            "A time is not understood",
            fix="Write '2026-01-31 10:00:00', or constants and functions of dates: now() - INTERVAL 1 DAY, "
            "date_sub(current_date(), 7).",
            **place_of_node(node),
        ) from error
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


class _Reader:
    """Works out expressions of one statement."""

    def __init__(self, session: SessionValues) -> None:
        self._now = from_seconds(Decimal(session.now_us) / 1_000_000)
        self.zone: tzinfo = read_zone(session.time_zone)

    def read_whole(self, node: exp.Expr) -> datetime:
        """The moment that an expression is; recursion is bounded by its size."""
        if sum(1 for _ in node.walk()) > _MOST_NODES:
            raise NotATime
        return self.to_moment(self.read(node))

    def read(self, node: exp.Expr) -> Value:
        """What a part of it is."""
        match node:
            case exp.Paren():
                return self.read(node.this)
            case exp.Literal():
                return _read_literal(node)
            case exp.Neg():
                return _negate(self.read(node.this))
            case exp.Cast():
                return self._cast(node)
            case exp.Interval():
                return _read_interval(node)
            case exp.Add() | exp.Sub():
                sign = -1 if isinstance(node, exp.Sub) else 1
                return self._add(self.read(node.this), self.read(node.expression), sign)
            case exp.Mul():
                return _multiply(self.read(node.this), self.read(node.expression))
            case exp.CurrentTimestamp() | exp.CurrentDate() if not node.args.get("this"):
                return self._now if isinstance(node, exp.CurrentTimestamp) else self.to_date(self._now)
            case exp.Column() if not node.args.get("table") and node.name.lower() == "localtimestamp":
                return self.to_local(self._now)
            case exp.Anonymous():
                return self._call(str(node.this).lower(), node.expressions)
        raise NotATime

    def to_moment(self, value: Value) -> datetime:
        """As `CAST(… AS TIMESTAMP)`."""
        match value:
            case datetime(tzinfo=None):
                return place_in(value, self.zone)
            case datetime():
                return value
            case date():
                return place_in(datetime.combine(value, datetime.min.time()), self.zone)
            case str():
                local, zone = read_local(value)
                return place_in(local, zone or self.zone)
            case int() | Decimal():
                return from_seconds(value)
        raise NotATime

    def to_local(self, value: Value) -> datetime:
        """As `CAST(… AS TIMESTAMP_NTZ)`."""
        if isinstance(value, str):
            return read_local(value)[0]
        if isinstance(value, int | Decimal):
            raise NotATime
        return self.to_moment(value).astimezone(self.zone).replace(tzinfo=None)

    def to_date(self, value: Value) -> date:
        """As `CAST(… AS DATE)`."""
        if isinstance(value, str):
            return read_date(value)
        if isinstance(value, datetime):
            return self.to_local(value).date()
        if isinstance(value, date):
            return value
        raise NotATime

    def _cast(self, node: exp.Cast) -> Value:
        value = self.read(node.this)
        match node.to.this:
            case exp.DType.TIMESTAMP | exp.DType.TIMESTAMPTZ | exp.DType.TIMESTAMPLTZ:
                return self.to_moment(value)
            case exp.DType.TIMESTAMPNTZ:
                return self.to_local(value)
            case exp.DType.DATE:
                return self.to_date(value)
            case exp.DType.BIGINT | exp.DType.INT:
                # `1700000000L`, and parameters of these types.
                if isinstance(value, str) and _WHOLE.fullmatch(value):
                    return _bounded(int(value))
                return _whole(value)
        raise NotATime

    def _add(self, left: Value, right: Value, sign: int) -> Value:
        if isinstance(left, int | Interval) and isinstance(right, date) and sign > 0:
            left, right = right, left
        match left, right:
            case Interval(), Interval():
                return left.plus(right, sign)
            case int(), int():
                return _bounded(left + sign * right)
            case date(), Interval():
                return move(left, right.times(sign), self.zone)
            case str(), Interval():
                return move(self.to_moment(left), right.times(sign), self.zone)
            case date(), int() if not isinstance(left, datetime):
                return move(left, read_unit("DAY").times(sign * right), self.zone)
        raise NotATime

    def _call(self, name: str, arguments: list[exp.Expr]) -> Value:
        if name in _WITH_UNIT and len(arguments) == 3:
            unit, number, time = arguments[0].name, _whole(self.read(arguments[1])), self.read(arguments[2])
            return move(self.to_moment(time), read_unit(unit).times(number), self.zone)
        known = _FUNCTIONS.get((name, len(arguments)))
        if known is None:
            raise NotATime
        return known(self, *map(self.read, arguments))

    def now(self) -> datetime:
        """The statement's time."""
        return self._now

    def move_days(self, start: Value, days: Value, sign: int = 1) -> Value:
        """`date_add` and its like."""
        return move(self.to_date(start), read_unit("DAY").times(sign * _whole(days)), self.zone)

    def make_moment(self, *parts: Value) -> datetime:
        """`make_timestamp`, of whole seconds."""
        year, month, day, hour, minute, second = map(_whole, parts)
        return place_in(datetime(year, month, day, hour, minute, second), self.zone)  # noqa: DTZ001 - local


_WITH_UNIT: Final = frozenset({"dateadd", "date_add", "timestampadd"})
_FUNCTIONS: Final[Mapping[tuple[str, int], Callable[..., Value]]] = {
    ("now", 0): _Reader.now,
    ("current_timestamp", 0): _Reader.now,
    ("current_date", 0): lambda reader: reader.to_date(reader.now()),
    ("curdate", 0): lambda reader: reader.to_date(reader.now()),
    ("localtimestamp", 0): lambda reader: reader.to_local(reader.now()),
    ("unix_timestamp", 0): lambda reader: int(reader.now().timestamp() // 1),
    ("date_add", 2): _Reader.move_days,
    ("dateadd", 2): _Reader.move_days,
    ("date_sub", 2): lambda reader, start, days: reader.move_days(start, days, -1),
    ("add_months", 2): lambda reader, start, months: move(
        reader.to_date(start), read_unit("MONTH").times(_whole(months)), reader.zone
    ),
    ("date_trunc", 2): lambda reader, unit, time: cut_off(reader.to_moment(time), _text(unit), reader.zone),
    ("trunc", 2): lambda reader, time, unit: cut_off_date(reader.to_date(time), _text(unit)),
    ("last_day", 1): lambda reader, time: end_of_month(reader.to_date(time)),
    ("date", 1): _Reader.to_date,
    ("to_date", 1): _Reader.to_date,
    ("timestamp", 1): _Reader.to_moment,
    ("to_timestamp", 1): _Reader.to_moment,
    ("to_timestamp_ltz", 1): _Reader.to_moment,
    ("to_timestamp_ntz", 1): _Reader.to_local,
    ("timestamp_seconds", 1): lambda _, number: from_seconds(_number(number)),
    ("timestamp_millis", 1): lambda _, number: from_seconds(Decimal(_whole(number)) / 1_000),
    ("timestamp_micros", 1): lambda _, number: from_seconds(Decimal(_whole(number)) / 1_000_000),
    ("make_date", 3): lambda _, *parts: date(*map(_whole, parts)),
    ("make_timestamp", 6): _Reader.make_moment,
}
"""By name and number of arguments."""


def _read_literal(node: exp.Literal) -> Value:
    if node.is_string:
        return str(node.this)
    if len(node.name) > 40 or "e" in node.name.lower():
        raise NotATime
    return _bounded(int(node.name)) if node.name.isdecimal() else Decimal(node.name)


def _read_interval(node: exp.Interval) -> Interval:
    amount, unit = node.this, node.args.get("unit")
    if isinstance(amount, exp.Neg):
        return _read_interval(exp.Interval(this=amount.this, unit=unit)).times(-1)
    if not isinstance(amount, exp.Literal):
        raise NotATime
    if isinstance(unit, exp.IntervalSpan):
        return read_span(amount.name, unit.this.name, unit.expression.name)
    return read_interval(amount.name, unit.name if unit is not None else "")


def _multiply(left: Value, right: Value) -> Value:
    match left, right:
        case (Interval() as interval, int() as factor) | (int() as factor, Interval() as interval):
            return interval.times(factor)
        case int(), int():
            return _bounded(left * right)
    raise NotATime


def _negate(value: Value) -> Value:
    if isinstance(value, Interval):
        return value.times(-1)
    return -_number(value)


def _bounded(value: int) -> int:
    if abs(value) >= _MOST:
        raise NotATime
    return value


def _whole(value: Any) -> int:
    if not isinstance(value, int):
        raise NotATime
    return value


def _number(value: Any) -> int | Decimal:
    if not isinstance(value, int | Decimal):
        raise NotATime
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise NotATime
    return value
