"""Partition transforms applied to values.

A maintainer must not break: results are bit for bit those of the specification, or None. A bucket that is off
by one hides every row of the table.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from cynosure.iceberg.manifests.bounds import write_bound
from cynosure.iceberg.single_value import EXACT
from cynosure.iceberg.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    Type,
)

_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)
_HOUR_US: Final = 3_600_000_000
_UNITS: Final = {TIMESTAMP: 1, TIMESTAMPTZ: 1, TIMESTAMP_NS: 1000, TIMESTAMPTZ_NS: 1000}
"""How many units of a type make a microsecond."""
_MASK: Final = 0xFFFFFFFF

Apply = Callable[[Any], Any]


def make_transform(transform: str, type_: Type) -> Apply | None:
    """How a transform maps values of a type other than null; None when this server does not know it."""
    if transform == "identity":
        return lambda value: value
    match = _WITH_WIDTH.fullmatch(transform)
    if match:
        width = int(match[2])
        return _make_bucket(width, type_) if match[1] == "bucket" else _make_truncate(width, type_)
    if transform in ("year", "month", "day", "hour"):
        return _make_time(transform, type_)
    return None


def _make_bucket(width: int, type_: Type) -> Apply | None:
    to_bytes = _hashed_form(type_)
    if to_bytes is None:
        return None
    return lambda value: (murmur3(to_bytes(value)) & 0x7FFFFFFF) % width


def _hashed_form(type_: Type) -> Callable[[Any], bytes] | None:
    if type_ in (INT, LONG, DATE, TIME, TIMESTAMP, TIMESTAMPTZ):
        return lambda value: value.to_bytes(8, "little", signed=True)
    if type_ in (STRING, BINARY, UUID) or isinstance(type_, FixedType | DecimalType):
        # The bytes of a bound are what is hashed: UTF-8, big-endian, and as few as a decimal needs.
        return lambda value: write_bound(type_, value)
    return None


def _make_truncate(width: int, type_: Type) -> Apply | None:
    if type_ in (INT, LONG):
        return lambda value: value - value % width
    if type_ in (STRING, BINARY):
        return lambda value: value[:width]
    if isinstance(type_, DecimalType):
        scale = type_.scale

        def truncate(value: Decimal) -> Decimal:
            unscaled = int(value.scaleb(scale, context=EXACT))
            return Decimal(unscaled - unscaled % width).scaleb(-scale, context=EXACT)

        return truncate
    return None


def _make_time(transform: str, type_: Type) -> Apply | None:
    if type_ == DATE:
        to_days: Apply = lambda value: value  # noqa: E731
    elif type_ in _UNITS:
        day = 24 * _HOUR_US * _UNITS[type_]
        to_days = lambda value: value // day  # noqa: E731
    else:
        return None
    if transform == "hour":
        hour = _HOUR_US * _UNITS.get(type_, 0)
        return (lambda value: value // hour) if hour else None
    if transform == "day":
        return to_days
    if transform == "year":
        return lambda value: _civil(to_days(value))[0] - 1970

    def month(value: Any) -> int:
        year, number = _civil(to_days(value))
        return (year - 1970) * 12 + number - 1

    return month


def _civil(days: int) -> tuple[int, int]:
    """Year and month of a day since 1970, for any year: Python's own calendar ends at 9999."""
    # Years are counted from March, so that the leap day is the last of its year.
    cycle, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day_of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    return year + cycle * 400 + (month >= 10), month + 3 if month < 10 else month - 9


def murmur3(data: bytes) -> int:
    """The 32-bit hash that buckets are made from (x86, seed 0)."""
    hash_ = 0
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        hash_ ^= _scramble(int.from_bytes(data[at : at + 4], "little"))
        hash_ = (hash_ << 13 | hash_ >> 19) & _MASK
        hash_ = (hash_ * 5 + 0xE6546B64) & _MASK
    if whole < len(data):
        hash_ ^= _scramble(int.from_bytes(data[whole:], "little"))
    hash_ ^= len(data)
    hash_ = (hash_ ^ hash_ >> 16) * 0x85EBCA6B & _MASK
    hash_ = (hash_ ^ hash_ >> 13) * 0xC2B2AE35 & _MASK
    return hash_ ^ hash_ >> 16


def _scramble(word: int) -> int:
    word = word * 0xCC9E2D51 & _MASK
    return (word << 15 | word >> 17) * 0x1B873593 & _MASK


def step(type_: Type) -> Any:
    """The smallest difference between two values of a type; None for types that have none."""
    if type_ in (INT, LONG, DATE, TIME) or type_ in _UNITS:
        return 1
    return Decimal(1).scaleb(-type_.scale, context=EXACT) if isinstance(type_, DecimalType) else None


def is_time(transform: str) -> bool:
    """Whether a transform makes a number of years, months, days or hours."""
    return transform in ("year", "month", "day", "hour")
