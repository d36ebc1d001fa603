r"""Entries read by one regular expression.

The entries of a manifest are alike: the same metrics for the same columns, the same optional fields present.
Some of them are read step by step, and from these a pattern is made that matches an entry as a whole and cuts
it into its values, all in compiled code. An entry that does not match is read step by step, so a pattern
never decides what an entry means, only how fast it is read.

    status   snapshot               count  key    size  lower bound
    (V)      (?:\x00|\x02(V))   …   \x14   \x02   \x10  (.{8})        …

where V, a number, is `[\x80-\xff]{0,9}+[\x00-\x7f]`.

A maintainer must not break: what a pattern matches is exactly what the readers of `avro/decode.py` accept,
with the same values. Every choice in it is decided by its first byte and never taken back (atomic groups), so
that matching is linear in the bytes, whatever they are.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from cynosure.iceberg.manifests.avro.encode import write_long
from cynosure.iceberg.manifests.avro.schema import Array, Enum, Fixed, Map, Node, Plain, Record, Union, unwrap
from cynosure.iceberg.manifests.entry_fields import EntryField
from cynosure.iceberg.manifests.metrics import is_usual_map

_NUMBER: Final = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
_MAX_LENGTHS: Final = 192
"""Different lengths of one text that a pattern takes."""
_MAX_SIZE: Final = 8_192
"""Below it, the size of a byte string has one or two bytes."""
MAX_BYTES: Final = 64 * 1024
"""Of a pattern: compiling takes about 1.5 ms for each 1,000."""
_MAX_ITEMS: Final = 16
_SIZES: Final = {"boolean": rb"[\x00\x01]", "float": b".{4}", "double": b".{8}", "null": b""}


class Group(Struct, frozen=True):
    """What one group of a pattern holds."""

    name: str
    kind: str
    key: int = 0
    """The column, for metrics."""
    has_size: bool = False
    """Whether the size of a byte string is in front of it."""


class Check(Struct, frozen=True):
    """A map of which any item may be missing: there must be as many as it says."""

    count_at: int
    """The group of the number."""
    first: int
    end: int

    def fails(self, groups: tuple[bytes | None, ...]) -> bool:
        """Whether what matched is not what the entry says."""
        found = self.end - self.first - groups[self.first : self.end].count(None)
        count = groups[self.count_at]
        return found != 0 if count is None else count != _count_bytes(found)


class EntryPattern(Struct, frozen=True):
    """A pattern for an entry, what its groups mean, and what it cannot check itself."""

    expression: re.Pattern[bytes]
    groups: tuple[Group, ...]
    checks: tuple[Check, ...]


def learn_pattern(
    fields: Sequence[EntryField], samples: Sequence[Sequence[Any]], *, max_bytes: int = MAX_BYTES
) -> EntryPattern | None:
    """A pattern for entries like these; None when there is none of at most so many bytes.

    A sample has the value of each field: a list of pairs for metrics, bytes for texts.
    """
    making = _Making()
    parts: list[bytes] = []
    size = 0
    try:
        for at, field in enumerate(fields):
            part = making.add(field, [sample[at] for sample in samples])
            parts.append(part)
            size += len(part)
            if size > min(max_bytes, MAX_BYTES):
                return None
    except _NoPatternError:
        return None
    return EntryPattern(_compile(b"".join(parts)), tuple(making.groups), tuple(making.checks))


@lru_cache(maxsize=1024)
def _count_bytes(number: int) -> bytes:
    out = bytearray()
    write_long(out, number)
    return bytes(out)


@lru_cache(maxsize=128)
def _compile(pattern: bytes) -> re.Pattern[bytes]:
    # Compiling takes milliseconds, and the manifests of a table need the same few patterns.
    return re.compile(pattern, re.DOTALL)


class _NoPatternError(Exception):
    """These entries are not alike enough, or have parts that no pattern here knows."""


class _Making:
    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.checks: list[Check] = []

    def add(self, field: EntryField, values: list[Any]) -> bytes:
        """The pattern for one field."""
        name, kind = field.name, field.kind
        if not name:
            if isinstance(unwrap(field.type), Record | Array | Map) or unwrap(field.type) == Plain("string"):
                raise _NoPatternError
            return _match_value(field.type, values)
        if kind == "partition":
            self.groups.append(Group(name, kind))
            return b"(%b)" % _match_value(field.type, values)
        return _optional(field.type, values, lambda node, found: self._capture(name, kind, node, found))

    def _capture(self, name: str, kind: str, node: Node, values: list[Any]) -> bytes:
        if kind in ("counts", "bounds"):
            return self._capture_map(name, kind, node, values)
        if kind == "raw counts":
            self.groups.append(Group(name, kind))
            return b"(%b)" % self._capture_map("", kind, node, values)
        if kind in ("text", "bytes") and isinstance(node, Plain):
            pattern, has_size = _match_bytes([len(value) for value in values])
            self.groups.append(Group(name, kind, has_size=has_size))
            return pattern
        self.groups.append(Group(name, kind))
        return b"(%b)" % _match_value(node, values)

    def _capture_map(self, name: str, kind: str, node: Node, maps: list[list[tuple[int, Any]]]) -> bytes:
        if not is_usual_map(node, is_bytes=kind == "bounds"):
            raise _NoPatternError
        shapes = Counter(tuple(key for key, _ in pairs) for pairs in maps)
        (keys, count), *others = shapes.most_common()
        if others and kind != "raw counts" and all(_is_ascending(one) for one in shapes):
            return self._capture_some(name, kind, maps)
        if others and count * 2 < len(maps):
            raise _NoPatternError
        chosen = [pairs for pairs in maps if tuple(key for key, _ in pairs) == keys]
        parts = [_number(len(keys))] if keys else []
        for key in keys:
            parts.append(_number(key) + self._capture_item(name, kind, key, chosen))
        return b"".join(parts) + rb"\x00"

    def _capture_some(self, name: str, kind: str, maps: list[list[tuple[int, Any]]]) -> bytes:
        """A map that has some of some columns: a file has no bounds of a column that is null in all rows.

        The pattern does not know how many there must be, so that is checked for every match.
        """
        keys = sorted({key for pairs in maps for key, _ in pairs})
        self.groups.append(Group(name, "count"))
        first = len(self.groups)
        parts = [b"(?:%b%b)?+" % (_number(key), self._capture_item(name, kind, key, maps)) for key in keys]
        self.checks.append(Check(first - 1, first, len(self.groups)))
        return rb"(?>\x00|(%b)%b\x00)" % (_NUMBER, b"".join(parts))

    def _capture_item(self, name: str, kind: str, key: int, maps: list[list[tuple[int, Any]]]) -> bytes:
        if kind == "raw counts":
            return _NUMBER
        if kind == "counts":
            self.groups.append(Group(name, kind, key))
            return b"(%b)" % _NUMBER
        sizes = [len(value) for pairs in maps for one, value in pairs if one == key]
        pattern, has_size = _match_bytes(sizes)
        self.groups.append(Group(name, kind, key, has_size=has_size))
        return pattern


def _is_ascending(keys: tuple[int, ...]) -> bool:
    # A key of 0 looks like the end of the map.
    return all(earlier < later for earlier, later in pairwise((0, *keys)))


def _optional(node: Node, values: list[Any], match: Any) -> bytes:
    if not isinstance(node, Union):
        return match(node, values)  # type: ignore[no-any-return]
    if len(node.branches) != 2 or node.branches[0] != Plain("null"):
        raise _NoPatternError
    found = [value for value in values if value is not None]
    if not found and not isinstance(node.branches[1], Plain):
        return rb"\x00"
    if not found and node.branches[1].kind in ("bytes", "string"):  # type: ignore[union-attr]
        return rb"\x00"
    return rb"(?>\x00|\x02%b)" % match(node.branches[1], found)


def _match_value(node: Node, values: list[Any]) -> bytes:
    """The pattern for a value, without a group."""
    if isinstance(node, Plain):
        if node.kind in ("bytes", "string"):
            if node.logical is not None:
                raise _NoPatternError
            sizes = [len(value.encode() if isinstance(value, str) else value) for value in values]
            return _match_bytes(sizes, is_captured=False)[0]
        return _SIZES.get(node.kind, _NUMBER)
    if isinstance(node, Fixed):
        return b".{%d}" % node.size
    if isinstance(node, Enum):
        raise _NoPatternError
    if isinstance(node, Record):
        parts = []
        for at, field in enumerate(node.fields):
            found = [value[at] for value in values]
            parts.append(_optional(field.type, found, _match_value))
        return b"".join(parts)
    if isinstance(node, Union):
        return _optional(node, values, _match_value)
    if isinstance(node, Array) and isinstance(node.item, Plain) and node.item.kind in ("int", "long"):
        longest = max(map(len, values), default=0)
        if longest > _MAX_ITEMS:
            raise _NoPatternError
        lists = [b"%b%b" % (_number(size), _NUMBER * size) for size in range(1, longest + 1)]
        return b"(?>%b)" % b"|".join([rb"\x00", *(one + rb"\x00" for one in lists)])
    raise _NoPatternError


def _match_bytes(sizes: list[int], *, is_captured: bool = True) -> tuple[bytes, bool]:
    """The pattern for a byte string; with a group, whether the size is in it."""
    if len(set(sizes)) == 1 and sizes[0] in (1, 4, 8):
        # The widths of numbers: of such a column all values have one.
        form = b"%b(.{%d})" if is_captured else b"%b.{%d}"
        return form % (_number(sizes[0]), sizes[0]), False
    # Whole ranges, so that the next manifest of the table needs the same pattern.
    frequent = [size for size, _ in Counter(sizes).most_common(4)]
    low, high = min(sizes, default=0) // 64 * 64, max(sizes, default=0) // 64 * 64 + 64
    if high - low > _MAX_LENGTHS or high > _MAX_SIZE:
        raise _NoPatternError
    order = list(range(low, high)) if len(set(sizes)) > 4 else sorted(frequent)
    pattern = b"|".join(b"%b.{%d}" % (_number(size), size) for size in order)
    return (b"((?>%b))" if is_captured else b"(?>%b)") % pattern, is_captured


def _number(number: int) -> bytes:
    return b"".join(rb"\x%02x" % byte for byte in _count_bytes(number))
