"""Sorted keys and their values as columns, in memory and in rows.

Both stay joined in one bytes object each: a node of a hundred entries is a handful of objects, so
the cache holds several times more of them, and C code does the loops (join, split, replace, find).
A maintainer must not break: keys hold no NUL (it separates them), columns are immutable and shared
between versions of a node, and bytes from a row are never trusted: whatever does not fit raises
`CorruptObject` here, so that no other code meets it.
"""

import struct
import zlib
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Final

from cynosure.common.errors import CorruptObject
from cynosure.persistence.deflate import deflate

_NO_STARTS: Final = array("I")
_COMPRESS_FROM_BYTES = 128
_MAX_SECTION_BYTES = 64 * 1024 * 1024
_DENSE_BYTES = 16
_RAW_DEFLATE = -15
_BYTES_OBJECT = 33

_PACKED = struct.Struct(">BII")
_KEYS = struct.Struct(">IH")
_VALUES = struct.Struct(">IBI")
_LENGTH = struct.Struct(">I")


def common_prefix(low: bytes, high: bytes) -> bytes:
    """What two keys have in common at their start; of sorted keys: first and last decide for all."""
    shorter = min(len(low), len(high))
    differing = int.from_bytes(low[:shorter], "big") ^ int.from_bytes(high[:shorter], "big")
    return low[: shorter - (differing.bit_length() + 7) // 8]


class Reader:
    """A cursor over stored bytes that raises `CorruptObject` instead of reading past the end."""

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """The next fixed-size fields."""
        return layout.unpack(self.take(layout.size))

    def take(self, size_bytes: int) -> bytes:
        """The next bytes, exactly as many."""
        start, self.at = self.at, self.at + size_bytes
        if self.at > len(self._data):
            raise CorruptObject("Index data is cut off", expected_bytes=self.at, found_bytes=len(self._data))
        return self._data[start : self.at]

    def finish(self) -> None:
        """Everything must have been read by now."""
        if self.at != len(self._data):
            raise CorruptObject(
                "Index data is followed by unknown bytes", surplus_bytes=len(self._data) - self.at
            )


def pack(body: bytes, *, is_dense: bool = False) -> bytes:
    """A section, compressed when that makes it smaller. Dense data (short ids) is not even tried."""
    if not is_dense and len(body) >= _COMPRESS_FROM_BYTES:
        compressed = deflate(body, is_raw=True)
        if len(compressed) < len(body):
            return _PACKED.pack(1, len(body), len(compressed)) + compressed
    return _PACKED.pack(0, len(body), len(body)) + body


def unpack(reader: Reader) -> bytes:
    """The body of the section at the reader."""
    is_compressed, body_bytes, stored_bytes = reader.unpack(_PACKED)
    stored = reader.take(stored_bytes)
    if is_compressed == 0 and body_bytes == stored_bytes:
        return stored
    if is_compressed != 1 or body_bytes > _MAX_SECTION_BYTES:
        raise CorruptObject("An index section has an impossible header", body_bytes=body_bytes)
    inflater = zlib.decompressobj(_RAW_DEFLATE)
    try:
        # One byte more than promised, so that the end of the stream is reached when all is well.
        body = inflater.decompress(stored, body_bytes + 1)
    except zlib.error as error:
        raise CorruptObject("An index section does not decompress") from error
    if len(body) != body_bytes or not inflater.eof or inflater.unused_data:
        raise CorruptObject("An index section decompresses to another size", expected_bytes=body_bytes)
    return body


class KeyColumn:
    """Sorted, distinct keys without their common prefix, each between two NUL bytes.

    A lookup goes by one byte of the key's hash and compares the few keys that share it: fewer steps
    and far fewer scattered memory reads than bisecting a list of keys, and no object per key. The
    packed form is kept: most changes replace values under unchanged keys, and then the next version
    of the node is written without compressing its keys again.
    """

    __slots__ = ("_packed", "_starts", "_tags", "count", "joined", "prefix")

    def __init__(self, prefix: bytes, joined: bytes, packed: bytes | None = None) -> None:
        self.prefix = prefix
        self.joined = joined
        self.count = joined.count(b"\0") - 1
        self._packed = packed
        # Made by the first lookup: neither a scan nor an inner node ever needs them.
        self._tags: bytes | None = None
        self._starts: array[int] = _NO_STARTS

    @classmethod
    def of(cls, keys: Sequence[bytes]) -> "KeyColumn":
        """From sorted, distinct keys without NUL."""
        if not keys:
            return cls(b"", b"\0")
        prefix = common_prefix(keys[0], keys[-1])
        joined = b"\0" + b"\0".join(keys) + b"\0"
        # Exact, because only a key's start follows a NUL.
        return cls(prefix, joined.replace(b"\0" + prefix, b"\0") if prefix else joined)

    def find(self, key: bytes) -> int:
        """Position of this key, or -1."""
        tags = self._tags
        if tags is None:
            tags = self._tag()
        tag = hash(key) & 0xFF
        at = tags.find(tag)
        while at >= 0:
            starts = self._starts
            if self.prefix + self.joined[starts[at] : starts[at + 1] - 1] == key:
                return at
            at = tags.find(tag, at + 1)
        return -1

    def _tag(self) -> bytes:
        """Where each key starts in `joined`, and one byte of its hash."""
        keys = self.to_list()
        taken_off = len(self.prefix) - 1
        self._starts = array("I", accumulate([len(key) - taken_off for key in keys], initial=1))
        self._tags = bytes([hash(key) & 0xFF for key in keys])
        return self._tags

    def to_list(self) -> list[bytes]:
        """All keys in order, whole."""
        if not self.count:
            return []
        body, prefix = self.joined[1:-1], self.prefix
        if prefix:
            body = prefix + body.replace(b"\0", b"\0" + prefix)
        return body.split(b"\0")

    @property
    def last(self) -> bytes:
        """The greatest key. The column must not be empty."""
        return self.prefix + self.joined[self.joined.rindex(b"\0", 0, -1) + 1 : -1]

    @property
    def size_bytes(self) -> int:
        """Before compression."""
        return len(self.prefix) + len(self.joined)

    @property
    def weight_bytes(self) -> int:
        """Memory held."""
        # Not packed yet: it will be when it is written, which may be after the cache has weighed it.
        packed_bytes = len(self.joined) // 3 if self._packed is None else len(self._packed)
        held_bytes = len(self.prefix) + len(self.joined) + packed_bytes
        return 184 + 4 * _BYTES_OBJECT + held_bytes + 5 * self.count

    def encode(self) -> bytes:
        """Stored form."""
        if self._packed is None:
            header = _KEYS.pack(self.count, len(self.prefix))
            self._packed = header + self.prefix + pack(self.joined[1:-1])
        return self._packed

    @classmethod
    def decode(cls, reader: Reader, stored: bytes) -> "KeyColumn":
        """From the stored form at the reader; `stored` is the data the reader reads."""
        start = reader.at
        count, prefix_bytes = reader.unpack(_KEYS)
        prefix = reader.take(prefix_bytes)
        body = unpack(reader)
        column = cls(prefix, b"\0" + body + b"\0" if count else b"\0", stored[start : reader.at])
        if column.count != count or b"\0" in prefix or (body and not count):
            raise CorruptObject("An index node holds another number of keys than it says", expected=count)
        return column


class ValueColumn:
    """Values in the order of their keys: of one width without any per-value object, or with ends."""

    __slots__ = ("body", "count", "ends", "width")

    def __init__(self, body: bytes, count: int, width: int, ends: "array[int] | None") -> None:
        self.body = body
        self.width = width
        self.ends = ends
        self.count = count

    @classmethod
    def of(cls, values: Sequence[bytes]) -> "ValueColumn":
        """From values in key order."""
        widths = set(map(len, values))
        if len(widths) <= 1:
            return cls(b"".join(values), len(values), widths.pop() if widths else 0, None)
        return cls(b"".join(values), len(values), 0, array("I", accumulate(map(len, values))))

    def __getitem__(self, at: int) -> bytes:
        if self.ends is None:
            width = self.width
            return self.body[at * width : at * width + width]
        return self.body[self.ends[at - 1] if at else 0 : self.ends[at]]

    def to_list(self) -> list[bytes]:
        """All values in key order."""
        body = self.body
        if self.ends is not None:
            return [body[start:end] for start, end in pairwise((0, *self.ends))]
        width = self.width
        if not width:
            return [b""] * self.count
        return [body[at : at + width] for at in range(0, len(body), width)]

    def replaced(self, changes: Mapping[int, bytes]) -> "ValueColumn":
        """A copy with other values at some positions."""
        width = self.width
        if self.ends is None and all(len(value) == width for value in changes.values()):
            body = bytearray(self.body)
            for at, value in changes.items():
                body[at * width : at * width + width] = value
            return ValueColumn(bytes(body), self.count, width, None)
        values = self.to_list()
        for at, value in changes.items():
            values[at] = value
        return ValueColumn.of(values)

    @property
    def size_bytes(self) -> int:
        """Before compression."""
        return len(self.body) + (0 if self.ends is None else 4 * self.count)

    @property
    def weight_bytes(self) -> int:
        """Memory held."""
        return 64 + _BYTES_OBJECT + len(self.body) + (0 if self.ends is None else 80 + 4 * self.count)

    def encode(self) -> bytes:
        """Stored form."""
        if self.ends is None:
            header = _VALUES.pack(self.count, 0, self.width)
            return header + pack(self.body, is_dense=self.width <= _DENSE_BYTES)
        lengths = [end - start for start, end in pairwise((0, *self.ends))]
        return _VALUES.pack(self.count, 1, 0) + pack(struct.pack(f">{self.count}I", *lengths) + self.body)

    @classmethod
    def decode(cls, reader: Reader) -> "ValueColumn":
        """From the stored form at the reader."""
        count, is_variable, width = reader.unpack(_VALUES)
        body = unpack(reader)
        if not is_variable:
            if len(body) != count * width:
                raise CorruptObject(
                    "An index node holds another number of values than it says", expected=count
                )
            return cls(body, count, width, None)
        lengths_bytes = _LENGTH.size * count
        if is_variable != 1 or len(body) < lengths_bytes:
            raise CorruptObject("An index node holds another number of values than it says", expected=count)
        lengths = struct.unpack(f">{count}I", body[:lengths_bytes])
        if sum(lengths) != len(body) - lengths_bytes:
            raise CorruptObject("An index node's values have other lengths than it says", expected=count)
        return cls(body[lengths_bytes:], count, 0, array("I", accumulate(lengths)))
