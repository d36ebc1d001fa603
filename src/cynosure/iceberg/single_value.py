"""One value of a type as JSON: column defaults, literals in expressions, bounds in scan tasks.

In memory a date is days, a time microseconds, a timestamp micro- or nanoseconds since 1970; a decimal is a
`Decimal` of the type's scale; uuid, fixed and binary are `UUID` and `bytes`.

A maintainer must not break: reading is exact. Text that would have to be rounded or cut to fit the type is
refused, because the same text would then mean different rows to different engines.
"""

import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final, NoReturn
from uuid import UUID as Uuid

from cynosure.common.errors import BadInput
from cynosure.iceberg import types
from cynosure.iceberg.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    StructType,
    Type,
)

INT_RANGE: Final = (-(2**31), 2**31 - 1)
LONG_RANGE: Final = (-(2**63), 2**63 - 1)

US_PER_S: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

# Wide enough for any decimal(38, S) text; exactness is enforced by the trap, not by the width.
EXACT: Final = Context(prec=80, traps=[Inexact, InvalidOperation])

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
# ISO 8601 asks for a sign on years that do not have exactly four digits.
_DATE: Final = r"(\d{4}|[+-]\d{4,9})-(\d\d)-(\d\d)"
_TIME: Final = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_DATE_ONLY = re.compile(_DATE, re.ASCII)
_TIME_ONLY = re.compile(_TIME, re.ASCII)
_DATE_TIME = re.compile(rf"{_DATE}T{_TIME}(Z|[+-]\d\d:\d\d)?", re.ASCII)
_DECIMAL = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII | re.IGNORECASE)


def read_value(type_: Type, json: object, *, field: str) -> Any:
    """The value that decoded JSON stands for; never None at the top.

    Raises `BadInput` naming `field` when the JSON is not exactly a value of the type.
    """
    if isinstance(type_, DecimalType):
        return _read_decimal(type_, json, field)
    if isinstance(type_, FixedType):
        return _read_fixed(type_, json, field)
    if isinstance(type_, StructType):
        return _read_struct(type_, json, field)
    if isinstance(type_, ListType):
        return _read_items(type_.element, json, field, is_required=type_.is_element_required)
    if isinstance(type_, MapType):
        return _read_map(type_, json, field)
    if isinstance(type_, GeometryType | GeographyType):
        _refuse(type_, field, "Leave it out: there is no JSON form for values of this type.")
    return _PLAIN[type_.name](json, field)


def write_value(type_: Type, value: Any) -> Any:
    """The canonical JSON of a primitive value, ready to encode; the inverse of `read_value`."""
    if isinstance(type_, DecimalType):
        return f"{value:f}"
    if isinstance(type_, FixedType) or type_ == types.BINARY:
        return value.hex().upper()
    if type_ == types.UUID:
        return str(value)
    if type_ == types.DATE:
        return _write_date(value)
    if type_ == types.TIME:
        return _write_time(value, 6)
    if type_ in (types.TIMESTAMP, types.TIMESTAMPTZ):
        return _write_timestamp(value, 6) + ("+00:00" if type_ == types.TIMESTAMPTZ else "")
    if type_ in (types.TIMESTAMP_NS, types.TIMESTAMPTZ_NS):
        return _write_timestamp(value, 9) + ("+00:00" if type_ == types.TIMESTAMPTZ_NS else "")
    return value


def check_default(type_: Type, json: object, *, field: str) -> None:
    """Refuse a column default that is not a value of the column's type.

    A struct's default says only that the struct is there; its fields have defaults of their own.
    """
    if json is None:
        return
    if isinstance(type_, StructType):
        if json != {} or not isinstance(json, dict):
            _refuse(type_, field, "Send null or {}, and defaults for the fields of the struct.")
        return
    read_value(type_, json, field=field)


# Plain types.


def _read_boolean(json: object, field: str) -> bool:
    if not isinstance(json, bool):
        _refuse(types.BOOLEAN, field, "Send true or false.")
    return json


def _read_whole(type_: Type, bounds: tuple[int, int]) -> Callable[[object, str], int]:
    def read(json: object, field: str) -> int:
        if type(json) is not int or not bounds[0] <= json <= bounds[1]:
            _refuse(type_, field, "Send a whole number within the type's range.")
        return json

    return read


def _read_double(json: object, field: str) -> float:
    if type(json) is int or isinstance(json, float):
        try:
            number = float(json)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    _refuse(types.DOUBLE, field, "Send a number.")


def _read_float(json: object, field: str) -> float:
    try:
        # JSON carries decimal text; the nearest 32-bit number is what it stands for.
        (number,) = struct.unpack("<f", struct.pack("<f", _read_double(json, field)))
    except OverflowError:
        _refuse(types.FLOAT, field, "Send a number within the range of a 32-bit float.")
    return float(number)


def _read_string(json: object, field: str) -> str:
    if not isinstance(json, str):
        _refuse(types.STRING, field, "Send text.")
    return json


def _read_date(json: object, field: str) -> int:
    if isinstance(json, str) and (match := _DATE_ONLY.fullmatch(json)):
        day = _count_days(*match.groups())
        if day is not None and INT_RANGE[0] <= day <= INT_RANGE[1]:
            return day
    _refuse(types.DATE, field, "Send a date as YYYY-MM-DD.")


def _read_time(json: object, field: str) -> int:
    if isinstance(json, str) and (match := _TIME_ONLY.fullmatch(json)):
        time = _count_time(match.groups(), US_PER_S)
        if time is not None:
            return time
    _refuse(types.TIME, field, "Send a time as HH:MM:SS.ffffff.")


def _read_timestamp(type_: Type, per_s: int, *, is_zoned: bool) -> Callable[[object, str], int]:
    digits = "f" * (6 if per_s == US_PER_S else 9)
    form = f"YYYY-MM-DDTHH:MM:SS.{digits}" + ("+00:00" if is_zoned else "")

    def read(json: object, field: str) -> int:
        if isinstance(json, str) and (match := _DATE_TIME.fullmatch(json)):
            year, month, day, *time, zone = match.groups()
            days, count = _count_days(year, month, day), _count_time(time, per_s)
            if days is not None and count is not None and (zone is not None) == is_zoned:
                moment = days * 86_400 * per_s + count - _count_offset(zone) * per_s
                if LONG_RANGE[0] <= moment <= LONG_RANGE[1]:
                    return moment
        _refuse(type_, field, f"Send a timestamp as {form}.")

    return read


def _count_days(year: str, month: str, day: str) -> int | None:
    # The calendar repeats every 400 years; Python's own ends at 9999.
    cycles, rest = divmod(int(year), _CYCLE_YEARS)
    try:
        in_cycle = date(rest + _CYCLE_YEARS, int(month), int(day))
    except ValueError:
        return None
    return in_cycle.toordinal() - _EPOCH_DAY + (cycles - 1) * _CYCLE_DAYS


def _count_time(parts: Any, per_s: int) -> int | None:
    hour, minute, second = int(parts[0]), int(parts[1]), int(parts[2] or 0)
    nanos = int((parts[3] or "").ljust(9, "0"))
    step = NS_PER_S // per_s
    if hour > 23 or minute > 59 or second > 59 or nanos % step:
        return None
    return (hour * 3600 + minute * 60 + second) * per_s + nanos // step


def _count_offset(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[4:6]) * 60
    return -seconds if zone[0] == "-" else seconds


def _read_uuid(json: object, field: str) -> Uuid:
    if not isinstance(json, str) or not _UUID.fullmatch(json):
        _refuse(types.UUID, field, "Send a UUID in its usual form of 36 characters.")
    return Uuid(json)


def _read_binary(json: object, field: str) -> bytes:
    if not isinstance(json, str) or not _HEX.fullmatch(json):
        _refuse(types.BINARY, field, "Send hexadecimal digits, two for each byte.")
    return bytes.fromhex(json)


def _read_nothing(json: object, field: str) -> NoReturn:
    _refuse(types.UNKNOWN, field, "Leave it out: there is no JSON form for values of this type.")


_PLAIN: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "boolean": _read_boolean,
    "int": _read_whole(types.INT, INT_RANGE),
    "long": _read_whole(types.LONG, LONG_RANGE),
    "float": _read_float,
    "double": _read_double,
    "string": _read_string,
    "date": _read_date,
    "time": _read_time,
    "timestamp": _read_timestamp(types.TIMESTAMP, US_PER_S, is_zoned=False),
    "timestamptz": _read_timestamp(types.TIMESTAMPTZ, US_PER_S, is_zoned=True),
    "timestamp_ns": _read_timestamp(types.TIMESTAMP_NS, NS_PER_S, is_zoned=False),
    "timestamptz_ns": _read_timestamp(types.TIMESTAMPTZ_NS, NS_PER_S, is_zoned=True),
    "uuid": _read_uuid,
    "binary": _read_binary,
    "unknown": _read_nothing,
    "variant": _read_nothing,
}


# Types with parameters and parts.


def parse_decimal(text: object) -> Decimal | None:
    """A finite decimal number from its text, whatever its scale; None when it is not one."""
    if isinstance(text, str) and len(text) <= 100 and _DECIMAL.fullmatch(text):
        return Decimal(text)
    return None


def fit_decimal(type_: DecimalType, number: Decimal) -> Decimal | None:
    """The same number at the type's scale; None when that would change it."""
    try:
        return number.quantize(Decimal(1).scaleb(-type_.scale), context=EXACT)
    except (Inexact, InvalidOperation):
        return None


def decimal_limit(type_: DecimalType) -> Decimal:
    """The first number that has too many digits for the type."""
    return Decimal(1).scaleb(type_.precision - type_.scale)


def _read_decimal(type_: DecimalType, json: object, field: str) -> Decimal:
    number = parse_decimal(json)
    fitted = None if number is None else fit_decimal(type_, number)
    if fitted is None or fitted.copy_abs() >= decimal_limit(type_):
        _refuse(type_, field, "Send a number as text, with at most the type's digits.")
    return fitted


def _read_fixed(type_: FixedType, json: object, field: str) -> bytes:
    value = _read_binary(json, field)
    if len(value) != type_.length:
        _refuse(type_, field, f"Send hexadecimal digits for exactly {type_.length} bytes.")
    return value


def _read_struct(type_: StructType, json: object, field: str) -> dict[int, Any]:
    if not isinstance(json, dict):
        _refuse(type_, field, "Send an object with field ids as keys.")
    value: dict[int, Any] = {}
    for part in type_.fields:
        given = json.get(str(part.id))
        if given is not None:
            value[part.id] = read_value(part.type, given, field=f"{field}.{part.id}")
        elif part.is_required:
            _refuse(type_, f"{field}.{part.id}", "Send a value for every required field.")
    return value


def _read_items(type_: Type, json: object, field: str, *, is_required: bool) -> list[Any]:
    if not isinstance(json, list):
        _refuse(type_, field, "Send a list of values.")
    items = []
    for at, given in enumerate(json):
        if given is None and is_required:
            _refuse(type_, f"{field}[{at}]", "Send a value: null is not allowed here.")
        items.append(None if given is None else read_value(type_, given, field=f"{field}[{at}]"))
    return items


def _read_map(type_: MapType, json: object, field: str) -> list[tuple[Any, Any]]:
    if not isinstance(json, dict):
        _refuse(type_, field, "Send an object with lists of keys and values.")
    keys = _read_items(type_.key, json.get("keys"), f"{field}.keys", is_required=True)
    values = _read_items(
        type_.value, json.get("values"), f"{field}.values", is_required=type_.is_value_required
    )
    if len(keys) != len(values):
        _refuse(type_, field, "Send as many values as keys.")
    return list(zip(keys, values, strict=True))


def _write_time(count: int, digits: int) -> str:
    seconds, fraction = divmod(count, 10**digits)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:0{digits}}"


def _write_timestamp(count: int, digits: int) -> str:
    days, rest = divmod(count, 86_400 * 10**digits)
    return f"{_write_date(days)}T{_write_time(rest, digits)}"


def _write_date(days: int) -> str:
    cycles, rest = divmod(days + _EPOCH_DAY - 1, _CYCLE_DAYS)
    in_cycle = date.fromordinal(rest + 1)
    year = in_cycle.year + cycles * _CYCLE_YEARS
    text = f"{year:04}" if 0 <= year <= 9999 else f"{year:+05}"
    return f"{text}-{in_cycle.month:02}-{in_cycle.day:02}"


def _refuse(type_: Type, field: str, fix: str) -> NoReturn:
    # The value itself stays out: a literal or default may be somebody's data.
    kind = type_ if types.is_primitive(type_) or type_ == types.VARIANT else type(type_).__name__
    raise BadInput("The value does not fit the type", field=field, fix=fix, type=str(kind))
