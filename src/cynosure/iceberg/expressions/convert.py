"""A constant of a filter as an exact value of a column's type.

A maintainer must not break: nothing is rounded, cut or parsed from another kind of value. A text is never a
number and a number never a text: a cast that fails on some row would tell of rows the user cannot see.
"""

from decimal import Decimal
from enum import Enum
from typing import Any, Final

from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.nodes import Constant
from cynosure.iceberg.single_value import (
    INT_RANGE,
    LONG_RANGE,
    decimal_limit,
    fit_decimal,
    parse_decimal,
    read_value,
)
from cynosure.iceberg.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    DecimalType,
    Type,
)

_UNITS: Final = {DATE: 1, TIME: 1, TIMESTAMP: 1, TIMESTAMPTZ: 1, TIMESTAMP_NS: 1000, TIMESTAMPTZ_NS: 1000}
"""Of the numbers that stand for times. They are microseconds also where the column counts nanoseconds."""


class Beyond(Enum):
    """A number that no value of the type reaches: every comparison with it has the same answer."""

    ABOVE = "above"
    BELOW = "below"


def convert(constant: Constant, type_: Type, *, field: str, are_times_numbers: bool = False) -> Any:
    """The exact value, or `Beyond`. Raises `BadInput` when there is no such value.

    With `are_times_numbers`, a whole number is a date or time: days, or microseconds.
    """
    if are_times_numbers and type_ in _UNITS and type(constant.value) is int:
        low, high = INT_RANGE if type_ == DATE else LONG_RANGE
        time = constant.value * _UNITS[type_]
        return Beyond.ABOVE if time > high else Beyond.BELOW if time < low else time
    if type_ in (INT, LONG):
        whole = _read_whole(constant)
        if whole is not None:
            low, high = INT_RANGE if type_ == INT else LONG_RANGE
            return Beyond.ABOVE if whole > high else Beyond.BELOW if whole < low else whole
    elif isinstance(type_, DecimalType):
        exact = _read_decimal(constant)
        if exact is not None and exact.copy_abs() >= decimal_limit(type_):
            return Beyond.ABOVE if exact > 0 else Beyond.BELOW
        fitted = None if exact is None else fit_decimal(type_, exact)
        if fitted is not None:
            return fitted
    elif type_ in (FLOAT, DOUBLE):
        number = _read_floating(constant, type_, field)
        if number is not None:
            return number
    elif constant.type is None or constant.type == type_:
        return read_value(type_, constant.value, field=field)
    raise BadInput(
        "The constant is not a value of the column's type",
        field=field,
        fix="Send a constant of the column's type.",
        type=str(type_),
    )


def _read_whole(constant: Constant) -> int | None:
    value = constant.value
    if constant.type not in (None, INT, LONG) or isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def _read_decimal(constant: Constant) -> Decimal | None:
    value = constant.value
    if isinstance(constant.type, DecimalType):
        return parse_decimal(value)
    if constant.type in (None, INT, LONG) and type(value) is int:
        return Decimal(value)
    return parse_decimal(value) if constant.type is None else None


def _read_floating(constant: Constant, type_: Type, field: str) -> float | None:
    value = constant.value
    if type(value) is not int:
        # Decimal text stands for the nearest number of its own type; from there on nothing may be lost.
        source = type_ if constant.type is None else constant.type
        if source not in (FLOAT, DOUBLE):
            return None
        value = read_value(source, value, field=field)
    fitted: float = read_value(type_, value, field=field)
    return fitted if fitted == value else None
