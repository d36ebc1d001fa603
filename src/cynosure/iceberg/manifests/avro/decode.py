"""Readers of values, one made for each schema.

A reader takes the bytes of a block and an offset, and gives a value and the offset after it. Reading beyond
the end is an `IndexError` or a `Malformed`; whoever reads a block turns both into one error.

A maintainer must not break: no slice is taken without a check of its end, because Python cuts it silently.
"""

from collections.abc import Callable
from decimal import Decimal
from struct import unpack_from
from typing import Any, TypeAlias
from uuid import UUID

from cynosure.iceberg.manifests.avro.malformed import Malformed
from cynosure.iceberg.manifests.avro.schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Plain,
    Record,
    Union,
    least_bytes,
)
from cynosure.iceberg.single_value import EXACT

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]


def read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to 64 bits as it is stored, before the sign is put back."""
    byte = data[at]
    at += 1
    if byte < 128:
        return byte, at
    number = byte & 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise Malformed("A number is longer than ten bytes")
    if number >> 64:
        raise Malformed("A number has more than 64 bits")
    return number, at


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A whole number."""
    byte = data[at]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at + 1
    number, at = read_unsigned(data, at)
    return (number >> 1) ^ -(number & 1), at


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """Bytes with their length in front."""
    size, at = read_long(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise Malformed("A value is longer than the bytes that are left")
    return data[at:end], end


def read_text(data: bytes, at: int) -> tuple[str, int]:
    """Text with its length in front."""
    value, at = read_bytes(data, at)
    try:
        return value.decode(), at
    except UnicodeDecodeError:
        raise Malformed("A text is not UTF-8") from None


def read_count(data: bytes, at: int, least: int) -> tuple[int, int]:
    """How many items the next part of a list has; 0 at its end."""
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        size, at = read_long(data, at)
        if not 0 <= size <= len(data) - at:
            raise Malformed("A list is longer than the bytes that are left")
    if count * least > len(data) - at:
        raise Malformed("A list has more items than bytes are left")
    return count, at


def make_reader(node: Node) -> Reader:
    """The reader for values of a type."""
    if isinstance(node, Plain):
        return _make_plain(node)
    if isinstance(node, Fixed):
        return _make_fixed(node)
    if isinstance(node, Enum):
        return _make_enum(node)
    if isinstance(node, Array):
        return _make_array(make_reader(node.item), least_bytes(node.item))
    if isinstance(node, Map):
        return _make_map(make_reader(node.value))
    if isinstance(node, Union):
        return _make_union(node)
    return _make_record(node)


def _read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise Malformed("A truth value is neither 0 nor 1")
    return byte == 1, at + 1


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return unpack_from("<f", data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return unpack_from("<d", data, at)[0], at + 8


_PLAIN: dict[str, Reader] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": read_long,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": read_bytes,
    "string": read_text,
}


def _make_plain(node: Plain) -> Reader:
    if node.kind == "bytes" and node.logical == "decimal":
        return _make_decimal(read_bytes, node.scale)
    if node.kind == "string" and node.logical == "uuid":
        return _read_uuid_text
    return _PLAIN[node.kind]


def _read_uuid_text(data: bytes, at: int) -> tuple[UUID, int]:
    text, at = read_text(data, at)
    try:
        return UUID(text), at
    except ValueError:
        raise Malformed("A text is not a UUID") from None


def _make_fixed(node: Fixed) -> Reader:
    size = node.size

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        if end > len(data):
            raise Malformed("A value is longer than the bytes that are left")
        return data[at:end], end

    def read_uuid(data: bytes, at: int) -> tuple[UUID, int]:
        value, at = read(data, at)
        return UUID(bytes=value), at

    if node.logical == "decimal":
        return _make_decimal(read, node.scale)
    return read_uuid if node.logical == "uuid" and size == 16 else read


def _make_decimal(read: Reader, scale: int) -> Reader:
    def read_decimal(data: bytes, at: int) -> tuple[Decimal, int]:
        value, at = read(data, at)
        if len(value) > 32:
            raise Malformed("A decimal has more digits than any type")
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, context=EXACT), at

    return read_decimal


def _make_enum(node: Enum) -> Reader:
    symbols = node.symbols

    def read(data: bytes, at: int) -> tuple[str, int]:
        index, at = read_long(data, at)
        if not 0 <= index < len(symbols):
            raise Malformed("A symbol is not one of the enumeration")
        return symbols[index], at

    return read


def _make_array(read_item: Reader, least: int) -> Reader:
    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            count, at = read_count(data, at, least)
            if not count:
                return items, at
            for _ in range(count):
                item, at = read_item(data, at)
                items.append(item)

    return read


def _make_map(read_value: Reader) -> Reader:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        items: dict[str, Any] = {}
        while True:
            count, at = read_count(data, at, 1)
            if not count:
                return items, at
            for _ in range(count):
                key, at = read_text(data, at)
                items[key], at = read_value(data, at)

    return read


def _make_union(node: Union) -> Reader:
    readers = [make_reader(branch) for branch in node.branches]

    def read(data: bytes, at: int) -> tuple[Any, int]:
        index, at = read_long(data, at)
        if not 0 <= index < len(readers):
            raise Malformed("A value has a type that its union does not have")
        return readers[index](data, at)

    if len(readers) == 2 and node.branches[0] == Plain("null"):
        inner = readers[1]

        def read_optional(data: bytes, at: int) -> tuple[Any, int]:
            index = data[at]
            if index == 0:
                return None, at + 1
            return inner(data, at + 1) if index == 2 else read(data, at)

        return read_optional
    return read


def _make_record(node: Record) -> Reader:
    readers = [make_reader(field.type) for field in node.fields]

    def read(data: bytes, at: int) -> tuple[tuple[Any, ...], int]:
        values = []
        for one in readers:
            value, at = one(data, at)
            values.append(value)
        return tuple(values), at

    return read
