"""Thrift's binary protocol: any value there and back, without knowing what it is.

A struct is a dictionary of its fields by number, each with its type on the wire; so fields that a newer
server has, and that nobody here has heard of, come back to it as they were.

A maintainer must not break: nothing is allocated for what is only announced. Lengths and counts are checked
against what an answer may still have, in which every value counts more than its bytes, and depth is bounded.
"""

import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

BOOL: Final = 2
BYTE: Final = 3
DOUBLE: Final = 4
INT16: Final = 6
INT32: Final = 8
INT64: Final = 10
STRING: Final = 11
STRUCT: Final = 12
MAP: Final = 13
SET: Final = 14
LIST: Final = 15

_STOP: Final = 0
_FIXED: Final = {
    BOOL: struct.Struct("!?"),
    BYTE: struct.Struct("!b"),
    DOUBLE: struct.Struct("!d"),
    INT16: struct.Struct("!h"),
    INT32: struct.Struct("!i"),
    INT64: struct.Struct("!q"),
}
_VERSION: Final = 0x80010000
_CALL: Final = 1
_REPLY: Final = 2
_EXCEPTION: Final = 3
_MAX_DEPTH: Final = 24
_MAX_NAME_BYTES: Final = 256
_VALUE_BYTES: Final = 64
"""What a value counts beside its bytes, being an object here: an empty struct, of one byte, takes 72."""
NOT_THRIFT: Final = "no answer of Thrift's strict binary protocol"


class BadThrift(Exception):
    """The bytes are not what Thrift's protocol allows, or more of them than may be."""


class Value(NamedTuple):
    """A value and its type on the wire."""

    type: int
    value: Any


Fields = Mapping[int, Value]
"""A struct."""


class Values(NamedTuple):
    """A list or set."""

    type: int
    items: Sequence[Any]


class Pairs(NamedTuple):
    """A map."""

    key_type: int
    value_type: int
    items: Sequence[tuple[Any, Any]]


class Reply(NamedTuple):
    """The answer to a request: the fields of its result; or those of the server's own failure."""

    name: str
    number: int
    fields: Fields
    is_failure: bool


def text(value: str) -> Value:
    """A string."""
    return Value(STRING, value)


def texts(values: Sequence[str]) -> Value:
    """A list of strings."""
    return Value(LIST, Values(STRING, values))


def text_map(values: Mapping[str, str]) -> Value:
    """A map of strings."""
    return Value(MAP, Pairs(STRING, STRING, list(values.items())))


def structs(values: Sequence[Fields]) -> Value:
    """A list of structs."""
    return Value(LIST, Values(STRUCT, values))


def encode_call(name: str, number: int, arguments: Fields) -> bytes:
    """A request."""
    out = bytearray(struct.pack("!I", _VERSION | _CALL))
    _write(out, STRING, name)
    _write(out, INT32, number)
    _write(out, STRUCT, arguments)
    return bytes(out)


def _write(out: bytearray, type_: int, value: Any) -> None:
    if (fixed := _FIXED.get(type_)) is not None:
        out += fixed.pack(value)
    elif type_ == STRING:
        data = value.encode("utf-8", "surrogateescape")
        out += struct.pack("!i", len(data)) + data
    elif type_ == STRUCT:
        for number, (field_type, field) in value.items():
            out += struct.pack("!bh", field_type, number)
            _write(out, field_type, field)
        out.append(_STOP)
    elif type_ == MAP:
        out += struct.pack("!bbi", value.key_type, value.value_type, len(value.items))
        for key, each in value.items:
            _write(out, value.key_type, key)
            _write(out, value.value_type, each)
    else:
        out += struct.pack("!bi", value.type, len(value.items))
        for each in value.items:
            _write(out, value.type, each)


class Decoder:
    """One answer, read as it comes."""

    def __init__(self, read: Callable[[int], Awaitable[bytes]], *, limit_bytes: int) -> None:
        """`read` gives some bytes, at least one and at most as many as it is told.

        `limit_bytes` is for the answer as it is kept, each value with `_VALUE_BYTES`.
        """
        self._read = read
        self._left = limit_bytes
        self._buffer = b""
        self._at = 0

    async def read_reply(self) -> Reply:
        """A whole answer. `BadThrift`; whatever `read` raises."""
        first = int.from_bytes(await self._take(4), "big")
        kind = first & 0xFF
        if first & 0xFFFFFF00 != _VERSION or kind not in (_REPLY, _EXCEPTION):
            raise BadThrift(NOT_THRIFT)
        name = await self._read_text(_MAX_NAME_BYTES)
        number = await self._read_value(INT32, 0)
        return Reply(name, number, await self._read_struct(0), is_failure=kind == _EXCEPTION)

    @property
    def has_rest(self) -> bool:
        """Whether there are bytes behind the answer."""
        return self._at < len(self._buffer)

    def _charge(self, count: int) -> None:
        if count > self._left:
            raise BadThrift("too large")
        self._left -= count

    async def _take(self, count: int) -> bytes:
        self._charge(count)
        start = self._at
        if start + count <= len(self._buffer):
            self._at = start + count
            return self._buffer[start : self._at]
        parts = [self._buffer[start:]]
        missing = count - len(parts[0])
        while missing > 0:
            # More than is asked for, as there is: fields are small.
            part = await self._read(max(missing, 65_536))
            parts.append(part)
            missing -= len(part)
        joined = b"".join(parts)
        self._buffer, self._at = joined[count:], 0
        return joined[:count]

    async def _read_value(self, type_: int, depth: int) -> Any:
        self._charge(_VALUE_BYTES)
        if (fixed := _FIXED.get(type_)) is not None:
            return fixed.unpack(await self._take(fixed.size))[0]
        if type_ == STRING:
            return await self._read_text(self._left)
        if depth > _MAX_DEPTH:
            raise BadThrift("nested too deeply")
        if type_ == STRUCT:
            return await self._read_struct(depth + 1)
        if type_ == MAP:
            return await self._read_map(depth + 1)
        if type_ in (LIST, SET):
            return await self._read_list(depth + 1)
        raise BadThrift("unknown type")

    async def _read_text(self, limit: int) -> str:
        length = int.from_bytes(await self._take(4), "big", signed=True)
        if not 0 <= length <= limit:
            raise BadThrift("a string of no possible length")
        return (await self._take(length)).decode("utf-8", "surrogateescape")

    async def _read_struct(self, depth: int) -> dict[int, Value]:
        fields: dict[int, Value] = {}
        while (type_ := (await self._take(1))[0]) != _STOP:
            number = int.from_bytes(await self._take(2), "big", signed=True)
            fields[number] = Value(type_, await self._read_value(type_, depth))
        return fields

    async def _read_map(self, depth: int) -> Pairs:
        key_type, value_type, count = struct.unpack("!bbi", await self._take(6))
        self._check_count(2 * count)
        items = [
            (await self._read_value(key_type, depth), await self._read_value(value_type, depth))
            for _ in range(count)
        ]
        return Pairs(key_type, value_type, items)

    async def _read_list(self, depth: int) -> Values:
        type_, count = struct.unpack("!bi", await self._take(5))
        self._check_count(count)
        return Values(type_, [await self._read_value(type_, depth) for _ in range(count)])

    def _check_count(self, count: int) -> None:
        if not 0 <= count * _VALUE_BYTES <= self._left:
            raise BadThrift("a list of no possible length")
