"""Times and intervals as Spark has them: read from text, moved, cut off.

    date                 a day
    datetime, aware      TIMESTAMP, kept in UTC
    datetime, naive      TIMESTAMP_NTZ
    Interval             of months, or of microseconds; Spark does not mix them either

A maintainer must not break: what is not understood exactly is `NotATime`, never the nearest time to it.
"""

import re
from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Time = date | datetime

_DAY_US: Final = 86_400_000_000
_UNITS: Final[Mapping[str, tuple[int, int]]] = {
    "YEAR": (12, 0),
    "QUARTER": (3, 0),
    "MONTH": (1, 0),
    "WEEK": (0, 7 * _DAY_US),
    "DAY": (0, _DAY_US),
    "DAYOFYEAR": (0, _DAY_US),
    "HOUR": (0, 3_600_000_000),
    "MINUTE": (0, 60_000_000),
    "SECOND": (0, 1_000_000),
    "MILLISECOND": (0, 1_000),
    "MICROSECOND": (0, 1),
}
_NOT_IN_INTERVALS: Final = frozenset({"QUARTER", "DAYOFYEAR"})
"""Units of `dateadd` only."""
_PART: Final = re.compile(r"\s*([+-]?)(\d{1,18})(?:\.(\d{1,9}))?\s+([A-Za-z]+)\s*", re.ASCII)
_HOUR, _MINUTE = r"(?P<HOUR>[01]?\d|2[0-3])", r"(?P<MINUTE>[0-5]?\d)"
_SECOND: Final = r"(?P<SECOND>[0-5]?\d)(?:\.(?P<FRACTION>\d{1,9}))?"
_SPANS: Final[Mapping[tuple[str, str], re.Pattern[str]]] = {
    # The first part may be any number, those behind it not more than the one before holds.
    (first, last): re.compile(rf"\s*(?P<sign>[+-]?)(?P<{first}>\d{{1,9}}){rest}\s*", re.ASCII)
    for first, last, rest in (
        ("YEAR", "MONTH", r"-(?P<MONTH>0?\d|1[01])"),
        ("DAY", "HOUR", f" {_HOUR}"),
        ("DAY", "MINUTE", f" {_HOUR}:{_MINUTE}"),
        ("DAY", "SECOND", f" {_HOUR}:{_MINUTE}:{_SECOND}"),
        ("HOUR", "MINUTE", f":{_MINUTE}"),
        ("HOUR", "SECOND", f":{_MINUTE}:{_SECOND}"),
        ("MINUTE", "SECOND", f":{_SECOND}"),
    )
}
_TEXT: Final = re.compile(
    r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T](\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d{1,9}))?)?(?: ?(\S+))?)?)?)?",
    re.ASCII,
)
_DATE_ONLY: Final = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)(?:[ T].*)?)?)?", re.ASCII | re.DOTALL)
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?)(?::?(\d\d))?", re.ASCII)
_REGION: Final = re.compile(r"[A-Za-z_]+(?:/[A-Za-z_+\-0-9]+)+", re.ASCII)


class NotATime(ValueError):
    """Not understood, or out of range."""


class Interval(NamedTuple):
    """One of both is zero."""

    months: int
    us: int

    def plus(self, other: "Interval", sign: int = 1) -> "Interval":
        """Both together."""
        months, us = self.months + sign * other.months, self.us + sign * other.us
        if (self.months or other.months) and (self.us or other.us):
            raise NotATime
        return Interval(months, us)

    def times(self, factor: int) -> "Interval":
        """So often."""
        return Interval(self.months * factor, self.us * factor)


def read_unit(name: str, *, in_interval: bool = False) -> Interval:
    """One year, one day …; of several too: `days`."""
    singular = name.upper().removesuffix("S")
    if singular not in _UNITS or (in_interval and singular in _NOT_IN_INTERVALS):
        raise NotATime
    return Interval(*_UNITS[singular])


def read_interval(text: str, unit: str) -> Interval:
    """`INTERVAL '…' unit`; without a unit its parts have theirs: `1 day 2 hours`."""
    at, found = 0, Interval(0, 0)
    text = f"{text} {unit}" if unit else text
    while at < len(text) or not at:
        match = _PART.match(text, at)
        if match is None:
            raise NotATime
        one = read_unit(match[4], in_interval=True)
        part = one.times(int(match[2]))
        if match[3]:
            if one.us != _UNITS["SECOND"][1]:
                raise NotATime
            part = part.plus(Interval(0, _micros(match[3])))
        found = found.plus(part, -1 if match[1] == "-" else 1)
        at = match.end()
    return found


def read_span(text: str, first: str, last: str) -> Interval:
    """`INTERVAL '1 02:03:04' DAY TO SECOND`."""
    pattern = _SPANS.get((first.upper(), last.upper()))
    match = pattern.fullmatch(text) if pattern is not None else None
    if match is None:
        raise NotATime
    found = Interval(0, 0)
    for name, digits in match.groupdict().items():
        if name == "FRACTION":
            found = found.plus(Interval(0, _micros(digits or "0")))
        elif name != "sign":
            found = found.plus(read_unit(name).times(int(digits)))
    return found.times(-1 if match["sign"] == "-" else 1)


def read_zone(name: str) -> tzinfo:
    """A time zone of Spark: an offset, UTC, or the name of a place."""
    if name in ("Z", "UTC", "GMT"):
        return UTC
    match = _OFFSET.fullmatch(name)
    if match is not None:
        hours, minutes = int(match[2]), int(match[3] or 0)
        if hours * 60 + minutes > 18 * 60 or minutes > 59:
            raise NotATime
        offset = timedelta(hours=hours, minutes=minutes)
        return timezone(-offset if match[1] == "-" else offset)
    if not _REGION.fullmatch(name):
        raise NotATime
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise NotATime from error


def read_local(text: str) -> tuple[datetime, tzinfo | None]:
    """A text as Spark casts it to a timestamp, and the zone that it names."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise NotATime
    year, month, day, hour, minute, second = (
        int(each) if each else least
        for each, least in zip(match.groups()[:6], (1, 1, 1, 0, 0, 0), strict=True)
    )
    local = datetime(year, month, day, hour, minute, second, _micros(match[7] or "0"))  # noqa: DTZ001 - local
    return local, read_zone(match[8]) if match[8] else None


def read_date(text: str) -> date:
    """A text as Spark casts it to a date: what is behind the day does not count."""
    match = _DATE_ONLY.fullmatch(text.strip())
    if match is None:
        raise NotATime
    return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))


def place_in(local: datetime, zone: tzinfo) -> datetime:
    """The moment of a local time. Where clocks were put forward it is later, as Java has it."""
    return local.replace(tzinfo=zone).astimezone(UTC)


def from_seconds(seconds: int | Decimal) -> datetime:
    """A number as Spark casts it to a timestamp."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(seconds * 1_000_000))


def move(time: Time, by: Interval, zone: tzinfo) -> Time:
    """A time and an interval. Days are days of the zone: 23 or 25 hours now and then."""
    if not isinstance(time, datetime):
        if by.us % _DAY_US:
            return move(place_in(datetime.combine(time, datetime.min.time()), zone), by, zone)
        return _move_date(time, by)
    if time.tzinfo is not None:
        local = time.astimezone(zone).replace(tzinfo=None)
        days = abs(by.us) // _DAY_US * (-1 if by.us < 0 else 1)
        moved = datetime.combine(_move_date(local.date(), Interval(by.months, days * _DAY_US)), local.time())
        return place_in(moved, zone) + timedelta(microseconds=by.us - days * _DAY_US)
    return datetime.combine(_move_date(time.date(), Interval(by.months, 0)), time.time()) + timedelta(
        microseconds=by.us
    )


def cut_off(time: datetime, unit: str, zone: tzinfo) -> datetime:
    """`date_trunc`: the beginning of the unit that a moment is in."""
    local = time.astimezone(zone).replace(tzinfo=None)
    match unit.upper():
        case "MICROSECOND":
            return time
        case "MILLISECOND":
            return place_in(local.replace(microsecond=local.microsecond // 1000 * 1000), zone)
        case "SECOND":
            return place_in(local.replace(microsecond=0), zone)
        case "MINUTE":
            return place_in(local.replace(second=0, microsecond=0), zone)
        case "HOUR":
            return place_in(local.replace(minute=0, second=0, microsecond=0), zone)
        case "DAY" | "DD":
            day = local.date()
        case _:
            day = cut_off_date(local.date(), unit)
    return place_in(datetime.combine(day, datetime.min.time()), zone)


def cut_off_date(day: date, unit: str) -> date:
    """`trunc`: the first day of the week, month, quarter or year."""
    match unit.upper():
        case "WEEK":
            return day - timedelta(days=day.weekday())
        case "MONTH" | "MM" | "MON":
            return day.replace(day=1)
        case "QUARTER":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "YEAR" | "YYYY" | "YY":
            return day.replace(month=1, day=1)
    raise NotATime


def end_of_month(day: date) -> date:
    """Its last day."""
    return day.replace(day=monthrange(day.year, day.month)[1])


def _move_date(day: date, by: Interval) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + by.months, 12)
    if not 1 <= year <= 9999:
        raise NotATime
    # The last day of a month that has no such day.
    moved = date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
    return moved + timedelta(days=by.us // _DAY_US)


def _micros(digits: str) -> int:
    return int(f"{digits:0<9}") // 1000
