"""One value of a type as bytes: bounds of columns and of partition fields.

A maintainer must not break: bytes of a narrower type are read as the value they stood for when a column was
promoted afterwards (int to long, float to double, date to timestamp, more decimal digits). Old files keep
their bounds, and a wrong one would drop their rows from scans.
"""

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from cynosure.iceberg import types
from cynosure.iceberg.single_value import EXACT
from cynosure.iceberg.types import DecimalType, FixedType, Type

_DAY_US: Final = 86_400_000_000
_WHOLE: Final = struct.Struct("<q"), struct.Struct("<i")
_INSTANTS: Final = {types.TIMESTAMP: _DAY_US, types.TIMESTAMP_NS: _DAY_US * 1000}


def read_bound(type_: Type, data: bytes) -> Any:
    """The value that the bytes stand for; None when they are no value of the type.

    A bound is a hint: a scan without it is correct and reads more. So damage here is not an error.
    """
    try:
        if isinstance(type_, DecimalType):
            if not 0 < len(data) <= 32:
                return None
            return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-type_.scale, context=EXACT)
        if isinstance(type_, FixedType):
            return data if len(data) == type_.length else None
        if type_ in _INSTANTS and len(data) == 4:
            return struct.unpack("<i", data)[0] * _INSTANTS[type_]
        read = _READ.get(type_.name) if isinstance(type_, types.Primitive) else None
        return None if read is None else read(data)
    except (struct.error, ValueError):
        return None


def write_bound(type_: Type, value: Any) -> bytes:
    """The bytes of a value of a primitive type that has bounds."""
    if isinstance(type_, DecimalType):
        unscaled = int(value.scaleb(type_.scale, context=EXACT))
        return unscaled.to_bytes(
            (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
        )
    if isinstance(type_, FixedType):
        return bytes(value)
    if not isinstance(type_, types.Primitive) or type_.name not in _WRITE:
        raise TypeError(f"no bounds for {type_}")
    return _WRITE[type_.name](value)


def _read_long(data: bytes) -> int:
    number: int = (_WHOLE[1] if len(data) == 4 else _WHOLE[0]).unpack(data)[0]
    return number


def _read_double(data: bytes) -> float:
    number: float = struct.unpack("<f" if len(data) == 4 else "<d", data)[0]
    return number


def _reading(form: str) -> Callable[[bytes], Any]:
    return lambda data: struct.unpack(form, data)[0]


def _writing(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(form, value)


_READ: Final[Mapping[str, Callable[[bytes], Any]]] = {
    "boolean": lambda data: data != b"\x00" if len(data) == 1 else None,
    "int": _reading("<i"),
    "date": _reading("<i"),
    **dict.fromkeys(
        ("long", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), _read_long
    ),
    "float": _reading("<f"),
    "double": _read_double,
    "string": bytes.decode,
    "uuid": lambda data: UUID(bytes=data),
    "binary": lambda data: data,
}
_WRITE: Final[Mapping[str, Callable[[Any], bytes]]] = {
    "boolean": lambda value: b"\x01" if value else b"\x00",
    **dict.fromkeys(("int", "date"), _writing("<i")),
    **dict.fromkeys(
        ("long", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"), _writing("<q")
    ),
    "float": _writing("<f"),
    "double": _writing("<d"),
    "string": str.encode,
    "uuid": lambda value: value.bytes,
    "binary": bytes,
}
