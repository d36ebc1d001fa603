"""Values without parts as files have them, made into what the table says: promotions, and nothing lossy.

A maintainer must not break: only what Iceberg calls a promotion, or another spelling of the same values, is
converted. Whether values would happen to fit is never looked at.
"""

import re
from array import array
from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as at

from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    NestedField,
    Type,
)
from cynosure.query.arrow_types import to_arrow
from cynosure.query.errors import NotReadable

Convert = Callable[[pa.Array], pa.Array]

_INT96: Final = b"cynosure.int96"
_UUID_BYTES: Final = 16
_UUID_CHARACTERS: Final = 36
_UUID_PARTS: Final = re.compile(rb"(.{8})(.{4})(.{4})(.{4})(.{12})", re.DOTALL)


def find_conversion(wanted: NestedField, found: pa.Field) -> Convert | None:
    """How values of a file become the table's; `None`: they are already. `NotReadable`: they do not."""
    source, target = found.type, to_arrow(wanted.type)
    if at.is_dictionary(source):
        inner = find_conversion(wanted, found.with_type(source.value_type))
        plain = source.value_type
        return lambda values: inner(values.cast(plain)) if inner else values.cast(plain)
    if isinstance(source, pa.BaseExtensionType):
        inner = find_conversion(wanted, found.with_type(source.storage_type))
        return lambda values: inner(values.storage) if inner else values.storage
    if wanted.type == UUID:
        if at.is_fixed_size_binary(source) and source.byte_width == _UUID_BYTES:
            return _write_uuids
    elif _fits(wanted.type, source) or (wanted.type == TIMESTAMPTZ and is_int96(found)):
        return None if source == target else _cast(target)
    raise NotReadable("A file has another type than its table", column=wanted.name, type=str(source)[:100])


def mark_int96(field: pa.Field) -> pa.Field:
    """A timestamp that a file has in 96 bits. Such a one says no time zone; it is in UTC always."""
    return field.with_metadata({**(field.metadata or {}), _INT96: b"1"})


def is_int96(field: pa.Field) -> bool:
    """Whether a file has a timestamp in 96 bits."""
    return _INT96 in (field.metadata or {})


def _fits(wanted: Type, source: pa.DataType) -> bool:
    if isinstance(wanted, DecimalType):
        is_narrower = at.is_decimal(source) and source.precision <= wanted.precision
        return bool(is_narrower and source.scale == wanted.scale)
    if isinstance(wanted, FixedType):
        return bool(at.is_fixed_size_binary(source) and source.byte_width == wanted.length)
    return _SOURCES[wanted](source)


def _is_small_whole(source: pa.DataType) -> bool:
    return bool(at.is_integer(source) and (source.bit_width < 32 or source == pa.int32()))


def _is_whole(source: pa.DataType) -> bool:
    return bool(at.is_integer(source) and source != pa.uint64())


def _is_micros(source: pa.DataType) -> bool:
    # Nanoseconds would have to be cut. Files of old writers have them in 96 bits, which the reader cuts.
    return bool(at.is_timestamp(source) and source.unit != "ns")


_SOURCES: Final[dict[Type, Callable[[pa.DataType], bool]]] = {
    BOOLEAN: at.is_boolean,
    INT: _is_small_whole,
    LONG: _is_whole,
    FLOAT: lambda source: source == pa.float32(),
    DOUBLE: lambda source: source in (pa.float32(), pa.float64()),
    DATE: at.is_date32,
    TIMESTAMP: lambda source: at.is_date32(source) or (_is_micros(source) and source.tz is None),
    TIMESTAMPTZ: lambda source: _is_micros(source) and source.tz is not None,
    STRING: lambda source: at.is_string(source) or at.is_large_string(source) or at.is_string_view(source),
    BINARY: lambda source: at.is_binary(source) or at.is_large_binary(source) or at.is_binary_view(source),
}


def _cast(target: pa.DataType) -> Convert:
    return lambda values: pc.cast(values, target, safe=True)


def _write_uuids(values: pa.Array) -> pa.Array:
    """As text, 36 characters each, without a loop over rows."""
    rows = len(values)
    kept = values.is_valid().buffers()[1] if values.null_count else None
    held = values.buffers()[1]
    raw = memoryview(held)[values.offset * _UUID_BYTES :][: rows * _UUID_BYTES] if held else b""
    text = _UUID_PARTS.sub(rb"\1-\2-\3-\4-\5", bytes(raw).hex().encode())
    offsets = array("i", range(0, _UUID_CHARACTERS * (rows + 1), _UUID_CHARACTERS))
    return pa.Array.from_buffers(pa.string(), rows, [kept, pa.py_buffer(offsets), pa.py_buffer(text)])
