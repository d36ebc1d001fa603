"""Rows of Arrow as JSON, without loss.

    boolean, text, integers     as they are; 64 bits too: read them with a parser that knows such numbers
    floats                      numbers; "NaN", "Infinity", "-Infinity"
    decimals                    text: 12.30
    dates, times, timestamps    text of ISO 8601; those with a time zone in UTC, with Z
    binary                      text in Base64
    lists, structs              lists, objects
    maps                        objects where keys are text; else lists of [key, value]
    intervals                   text of ISO 8601: PT90S, P14M

A maintainer must not break: a value is never rounded, and null is never the same as anything else.
"""

import base64
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES: Final = {
    "null": "void",
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "month_interval": "interval year to month",
}
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def sql_type(type_: "pa.DataType") -> str:
    """An Arrow type as Spark writes it."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types = pa.types
    if types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if types.is_timestamp(type_):
        return "timestamp_ntz" if type_.tz is None else "timestamp"
    if types.is_duration(type_):
        return "interval day to second"
    if types.is_fixed_size_binary(type_):
        return "binary"
    if types.is_dictionary(type_):
        return sql_type(type_.value_type)
    if types.is_map(type_):
        return f"map<{sql_type(type_.key_type)},{sql_type(type_.item_type)}>"
    if types.is_struct(type_):
        fields = (type_.field(at) for at in range(type_.num_fields))
        return f"struct<{','.join(f'{each.name}:{sql_type(each.type)}' for each in fields)}>"
    if _is_list(type_):
        return f"array<{sql_type(type_.value_type)}>"
    return _NAMES.get(str(type_), str(type_))


def to_json_values(array: "pa.Array") -> list[Any]:
    """The values of an array, each something that JSON has."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types, type_ = pa.types, array.type
    if types.is_boolean(type_) or types.is_integer(type_) or types.is_null(type_) or _is_text(type_):
        values: list[Any] = array.to_pylist()
        return values
    if types.is_dictionary(type_):
        return to_json_values(array.dictionary_decode())
    if types.is_struct(type_):
        return _structs(array)
    if types.is_map(type_):
        return _maps(array)
    if _is_list(type_):
        return _lists(array)
    if types.is_temporal(type_) or str(type_) == "month_interval":
        return _times(array)
    if types.is_floating(type_):
        # By text: a float of 32 bits as one of 64 would show digits that it does not have.
        return _each(array.cast(pa.string()) if type_ == pa.float32() else array, _float)
    if types.is_decimal(type_):
        return _each(array, lambda value: format(value, "f"))
    return _each(array, lambda value: base64.b64encode(value).decode("ascii"))


def _times(array: "pa.Array") -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types, type_ = pa.types, array.type
    if types.is_timestamp(type_):
        wall = array.cast(pa.timestamp(type_.unit)).cast(pa.string())
        end = "" if type_.tz is None else "Z"
        return _each(wall, lambda value: value.replace(" ", "T") + end)
    if types.is_duration(type_):
        return _each(array.cast(pa.int64()), lambda value: _seconds(value, _PER_SECOND[type_.unit]))
    if str(type_) == "month_interval":
        return _each(array.view(pa.int32()), lambda value: f"P{value}M")
    return _each(array.cast(pa.string()), str)


def _each(array: "pa.Array", change: Callable[[Any], Any]) -> list[Any]:
    return [None if value is None else change(value) for value in array.to_pylist()]


def _float(value: float | str) -> float | str:
    number = float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def _seconds(value: int, per_second: int) -> str:
    whole, rest = divmod(abs(value), per_second)
    digits = len(str(per_second)) - 1
    fraction = f".{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{'-' if value < 0 else ''}PT{whole}{fraction}S"


def _structs(array: "pa.Array") -> list[Any]:
    names = [array.type.field(at).name for at in range(array.type.num_fields)]
    # Flattened, they have the nulls of the struct itself too, and begin where it begins.
    columns = [to_json_values(each) for each in array.flatten()]
    rows = zip(*columns, strict=True) if columns else iter([()] * len(array))
    return [
        dict(zip(names, row, strict=True)) if is_valid else None
        for row, is_valid in zip(rows, array.is_valid().to_pylist(), strict=True)
    ]


def _lists(array: "pa.Array") -> list[Any]:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_type))
    offsets = array.offsets.to_pylist()
    values = to_json_values(array.values)
    return [
        values[offsets[at] : offsets[at + 1]] if is_valid else None
        for at, is_valid in enumerate(array.is_valid().to_pylist())
    ]


def _maps(array: "pa.Array") -> list[Any]:
    offsets = array.offsets.to_pylist()
    keys, items = to_json_values(array.keys), to_json_values(array.items)
    is_object = _is_text(array.type.key_type)
    found: list[Any] = []
    for at, is_valid in enumerate(array.is_valid().to_pylist()):
        some = slice(offsets[at], offsets[at + 1])
        pairs = zip(keys[some], items[some], strict=True)
        found.append((dict(pairs) if is_object else [list(each) for each in pairs]) if is_valid else None)
    return found


def _is_text(type_: "pa.DataType") -> bool:
    return _NAMES.get(str(type_)) == "string"


def _is_list(type_: "pa.DataType") -> bool:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types = pa.types
    return bool(types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_))
