"""Columns packed from values: at once, or in parts as a file is read.

A maintainer must not break: the size of a column is bounded by the values that were given, never by the
number of files times the number of columns. A hostile manifest names another column in every file.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final

from cynosure.iceberg.manifests.columns import (
    Coded,
    Column,
    Constant,
    Objects,
    PackedBytes,
    PackedInts,
    PackedLists,
    PackedText,
    Sparse,
)

_WIDTHS: Final = (
    ("B", 0, 2**8),
    ("b", -(2**7), 2**7),
    ("H", 0, 2**16),
    ("h", -(2**15), 2**15),
    ("I", 0, 2**32),
    ("i", -(2**31), 2**31),
    ("q", -(2**63), 2**63),
)
_SPARSE_BELOW: Final = 4
"""A column that fewer than one in so many files has is stored with the numbers of those files."""


class IntsBuilder:
    """A column of whole numbers, gathered in parts: eight bytes for each while it grows."""

    __slots__ = ("_constants", "_has_gaps", "_numbers", "_present")

    def __init__(self) -> None:
        self._numbers = array("q")
        self._present = bytearray()
        self._has_gaps = False
        self._constants: set[int | None] | None = set()
        """The values, as long as every part had only one."""

    def __len__(self) -> int:
        return len(self._present)

    def extend(self, values: Sequence[int | None]) -> None:
        """Add the values of some more files."""
        if not values:
            return
        if values.count(values[0]) == len(values):
            self._extend_constant(values[0], len(values))
            return
        self._constants = None
        if None in values:
            self._has_gaps = True
            self._present += bytes(value is not None for value in values)
            self._numbers.extend([value or 0 for value in values])
        else:
            self._present += b"\x01" * len(values)
            self._numbers.extend(values)  # type: ignore[arg-type]

    def _extend_constant(self, value: int | None, count: int) -> None:
        if self._constants is not None:
            self._constants.add(value)
        if value is None:
            self._has_gaps = True
        self._present += (b"\x00" if value is None else b"\x01") * count
        self._numbers.extend(array("q", [value or 0]) * count)

    def finish(self) -> Column[int]:
        """The column."""
        numbers = self._numbers
        if self._constants is not None and len(self._constants) == 1:
            return Constant(self._constants.pop(), len(numbers))
        present = bytes(self._present) if self._has_gaps else None
        return PackedInts(_pack(numbers), present)


def pack_ints(values: Sequence[int | None]) -> Column[int]:
    """A column of whole numbers of at most 64 bits."""
    builder = IntsBuilder()
    builder.extend(values)
    return builder.finish()


class BytesBuilder:
    """A column of byte strings, gathered in parts."""

    __slots__ = ("_buffer", "_count", "_has_gaps", "_present", "_sizes", "_width")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._count = 0
        self._width: int | None = None
        """Of all values, as long as they have one."""
        self._sizes = array("I")
        """Of every value, once they differ."""
        self._present = bytearray()
        self._has_gaps = False

    def __len__(self) -> int:
        return self._count

    def extend(self, values: Sequence[bytes | None]) -> None:
        """Add the values of some more files."""
        if not values:
            return
        if None in values:
            if not self._has_gaps:
                self._has_gaps = True
                self._present += b"\x01" * self._count
            self._present += bytes(value is not None for value in values)
            values = [value or b"" for value in values]
        elif self._has_gaps:
            self._present += b"\x01" * len(values)
        joined = b"".join(values)  # type: ignore[arg-type]
        width = len(values[0] or b"")
        sizes = None
        if len(joined) != width * len(values) or not all(len(one or b"") == width for one in values):
            sizes = [len(one or b"") for one in values]
        if not self._count:
            self._width = None if sizes else width
        elif self._width is not None and (sizes or self._width != width):
            self._sizes.extend([self._width] * self._count)
            self._width = None
        if self._width is None:
            self._sizes.extend(sizes or [width] * len(values))
        self._buffer += joined
        self._count += len(values)

    def finish(self) -> Column[bytes]:
        """The column."""
        count, width = self._count, self._width
        if self._has_gaps and 1 not in self._present:
            return Constant(None, count)
        present = bytes(self._present) if self._has_gaps else None
        buffer = bytes(self._buffer)
        if width is not None and present is None:
            if buffer == buffer[:width] * count:
                return Constant(buffer[:width], count)
            return PackedBytes(buffer, width=width, starts=None, present=None)
        sizes = [width] * count if width is not None else self._sizes
        starts = _pack([*accumulate(sizes, initial=0)])
        return PackedBytes(buffer, width=None, starts=starts, present=present)


def pack_bytes(values: Sequence[bytes | None]) -> Column[bytes]:
    """A column of byte strings."""
    builder = BytesBuilder()
    builder.extend(values)
    return builder.finish()


def pack_text(values: Sequence[bytes | None]) -> Column[str]:
    """A column of texts, given as UTF-8, that start alike, as paths do. Raises `UnicodeDecodeError`."""
    found = [value for value in values if value is not None]
    if not found:
        return Constant(None, len(values))
    # One line for each, so that no text can complete a letter of another.
    b"\n".join(found).decode()
    first, last = min(found), max(found)
    # What the first and the last in order share, all share.
    cut = next(
        (at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first)
    )
    return PackedText(first[:cut], pack_bytes([None if one is None else one[cut:] for one in values]))


def pack_coded(values: Sequence[Any]) -> Column[Any]:
    """A column of few different values that can be compared."""
    codes: dict[Any, int] = {}
    # A union of types in one column would merge 1, 1.0 and True; no column here has one.
    packed = [codes.setdefault(value, len(codes)) for value in values]
    if len(codes) <= 1:
        return Constant(values[0] if values else None, len(values))
    return Coded(pack_ints(packed), tuple(codes))


class ListsBuilder:
    """A column of lists of whole numbers, gathered in parts."""

    __slots__ = ("_has_gaps", "_numbers", "_present", "_sizes")

    def __init__(self) -> None:
        self._numbers = array("q")
        self._sizes = array("I")
        self._present = bytearray()
        self._has_gaps = False

    def extend(self, values: Sequence[Sequence[int] | None]) -> None:
        """Add the lists of some more files."""
        self._present += bytes(value is not None for value in values)
        self._has_gaps = self._has_gaps or None in values
        self._sizes.extend([len(value or ()) for value in values])
        self._numbers.extend([number for value in values for number in value or ()])

    def finish(self) -> Column[tuple[int, ...]]:
        """The column."""
        count = len(self._sizes)
        if 1 not in self._present:
            return Constant(None, count)
        numbers, width = self._numbers, self._sizes[0]
        if not self._has_gaps and min(self._sizes) == max(self._sizes) and numbers == numbers[:width] * count:
            return Constant(tuple(numbers[:width]), count)
        starts = _pack([*accumulate(self._sizes, initial=0)])
        return PackedLists(_pack(numbers), starts, bytes(self._present) if self._has_gaps else None)


def pack_values(values: Sequence[Any]) -> Column[Any]:
    """A column of partition values: of one type, whichever it is."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return Constant(None, len(values))
    if kinds == {int}:
        return pack_ints(values)
    if kinds == {bytes}:
        return pack_bytes(values)
    if kinds == {str}:
        return pack_text([None if value is None else value.encode() for value in values])
    return Objects(tuple(values))


def spread(rows: "array[int]", column: Column[Any], count: int) -> Column[Any]:
    """A column of values that only the files with these numbers, in ascending order, have."""
    if len(rows) == count:
        return column
    if len(rows) * _SPARSE_BELOW < count:
        return Sparse(_pack(rows), column, count)
    dense: list[Any] = [None] * count
    for row, value in zip(rows, column, strict=True):
        dense[row] = value
    return pack_values(dense)


def _pack(numbers: "Sequence[int] | array[int]") -> "array[int]":
    low, high = (min(numbers), max(numbers)) if len(numbers) else (0, 0)
    for code, first, end in _WIDTHS:
        if first <= low and high < end:
            return array(code, numbers)
    raise ValueError("a number of more than 64 bits")  # no reader makes one
