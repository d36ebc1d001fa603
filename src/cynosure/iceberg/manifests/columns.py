"""Values of many files packed tightly: one object for a column, not one for a value.

A column is as long as its manifest has files; a value that a file does not have is None.

A maintainer must not break: a column never changes, and gives a value without looking at the others.
"""

import re
from abc import abstractmethod
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from sys import getsizeof
from typing import Final, Generic, TypeVar

T_co = TypeVar("T_co", covariant=True)

_FEW: Final = 16
"""So many values are found faster each by itself, in the bytes, than by a look at every file."""


class Column(Generic[T_co]):
    """One value, or None, for each file."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, row: int) -> T_co | None: ...

    @abstractmethod
    def __iter__(self) -> Iterator[T_co | None]: ...

    def take(self, rows: Iterable[int]) -> "list[T_co | None]":
        """The values of some files."""
        return [*map(self.__getitem__, rows)]

    def find_any(self, values: Collection[T_co]) -> Iterator[int]:
        """The files whose value is one of these."""
        wanted = frozenset(values)
        if wanted.isdisjoint(self):
            return iter(())
        return (row for row, value in enumerate(self) if value in wanted)

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Memory that the column holds, about."""


class Constant(Column[T_co]):
    """The same for all files."""

    __slots__ = ("_count", "value")

    def __init__(self, value: T_co | None, count: int) -> None:
        self.value = value
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> T_co | None:
        return self.value

    def __iter__(self) -> Iterator[T_co | None]:
        value = self.value
        return (value for _ in range(self._count))

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        return 64 + getsizeof(self.value)


class PackedInts(Column[int]):
    """Whole numbers in as few bytes as the largest needs."""

    __slots__ = ("_present", "values")

    def __init__(self, values: "array[int]", present: bytes | None) -> None:
        self.values = values
        self._present = present
        """1 for files that have a value; None when all have."""

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> int | None:
        return self.values[row] if self._present is None or self._present[row] else None

    def __iter__(self) -> Iterator[int | None]:
        if self._present is None:
            return iter(self.values)
        return (value if there else None for value, there in zip(self.values, self._present, strict=True))

    def take(self, rows: Iterable[int]) -> list[int | None]:  # noqa: D102 (said once, above)
        return [*map(self.values.__getitem__, rows)] if self._present is None else super().take(rows)

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        return 56 + getsizeof(self.values) + (getsizeof(self._present) if self._present else 0)


class PackedBytes(Column[bytes]):
    """Byte strings in one buffer: all of one width, or with the place where each starts."""

    __slots__ = ("_buffer", "_present", "_starts", "_width")

    def __init__(
        self, buffer: bytes, *, width: int | None, starts: "array[int] | None", present: bytes | None
    ) -> None:
        self._buffer = buffer
        self._width = width
        self._starts = starts
        self._present = present

    def __len__(self) -> int:
        if self._starts is not None:
            return len(self._starts) - 1
        return len(self._buffer) // self._width  # type: ignore[operator]

    def __getitem__(self, row: int) -> bytes | None:
        if self._present is not None and not self._present[row]:
            return None
        if self._starts is not None:
            return self._buffer[self._starts[row] : self._starts[row + 1]]
        width: int = self._width  # type: ignore[assignment]
        return self._buffer[row * width : (row + 1) * width]

    def __iter__(self) -> Iterator[bytes | None]:
        buffer = self._buffer
        if self._starts is not None:
            ends = iter(self._starts)
            next(ends)
            all_: Iterator[bytes] = (
                buffer[start:end] for start, end in zip(self._starts, ends, strict=False)
            )
        else:
            width: int = self._width  # type: ignore[assignment]
            all_ = (buffer[at : at + width] for at in range(0, len(buffer), width))
        if self._present is None:
            return all_
        return (value if there else None for value, there in zip(all_, self._present, strict=True))

    def take(self, rows: Iterable[int]) -> list[bytes | None]:  # noqa: D102 (said once, above)
        buffer, starts = self._buffer, self._starts
        if self._present is not None:
            return super().take(rows)
        if starts is not None:
            return [buffer[starts[row] : starts[row + 1]] for row in rows]
        width: int = self._width  # type: ignore[assignment]
        return [buffer[row * width : row * width + width] for row in rows]

    def find_any(self, values: Collection[bytes]) -> Iterator[int]:  # noqa: D102 (said once, above)
        if len(values) > _FEW or b"" in values:
            return super().find_any(values)
        return (row for value in values for row in self._find(value))

    def _find(self, value: bytes) -> Iterator[int]:
        buffer, starts, width = self._buffer, self._starts, self._width
        at = buffer.find(value)
        while at >= 0:
            if starts is None:
                row, rest = divmod(at, width or 1)
                is_there = not rest and len(value) == width
            else:
                # The last that starts here: those before it are empty.
                row = bisect_right(starts, at) - 1
                is_there = starts[row] == at and starts[row + 1] - at == len(value)
            if is_there:
                yield row
            at = buffer.find(value, at + 1)

    def has(self, pattern: re.Pattern[bytes]) -> bool:
        """Whether a value may match: the pattern is for single bytes."""
        return pattern.search(self._buffer) is not None

    def cast(self, code: str) -> "memoryview[int] | memoryview[float] | None":
        """All values as numbers of one width in this machine's order, without a copy.

        None when they have another width or some file has none. Only for little-endian machines, as the
        stored form is: ask `sys.byteorder` first.
        """
        if self._present is not None or self._width != array(code).itemsize:
            return None
        return memoryview(self._buffer).cast(code)  # type: ignore[call-overload, no-any-return]

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        return (
            72
            + getsizeof(self._buffer)
            + (getsizeof(self._starts) if self._starts is not None else 0)
            + (getsizeof(self._present) if self._present else 0)
        )


class PackedText(Column[str]):
    """Texts, their common start kept once."""

    __slots__ = ("packed", "prefix")

    def __init__(self, prefix: bytes, packed: Column[bytes]) -> None:
        self.prefix = prefix
        self.packed = packed
        """What follows the prefix, as UTF-8."""

    def __len__(self) -> int:
        return len(self.packed)

    def __getitem__(self, row: int) -> str | None:
        rest = self.packed[row]
        return None if rest is None else (self.prefix + rest).decode()

    def __iter__(self) -> Iterator[str | None]:
        prefix = self.prefix
        return (None if rest is None else (prefix + rest).decode() for rest in self.packed)

    def find_any(self, values: Collection[str]) -> Iterator[int]:  # noqa: D102 (said once, above)
        prefix = self.prefix
        texts = [value.encode("utf-8", "surrogatepass") for value in values]
        return self.packed.find_any({text[len(prefix) :] for text in texts if text.startswith(prefix)})

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        return 56 + getsizeof(self.prefix) + self.packed.size_bytes


class Sparse(Column[T_co]):
    """Values of few files."""

    __slots__ = ("_count", "_rows", "_values")

    def __init__(self, rows: "array[int]", values: Column[T_co], count: int) -> None:
        self._rows = rows
        self._values = values
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> T_co | None:
        at = bisect_left(self._rows, row)
        return self._values[at] if at < len(self._rows) and self._rows[at] == row else None

    def __iter__(self) -> Iterator[T_co | None]:
        last = -1
        for row, value in zip(self._rows, self._values, strict=True):
            for _ in range(row - last - 1):
                yield None
            yield value
            last = row
        for _ in range(self._count - last - 1):
            yield None

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        return 64 + getsizeof(self._rows) + self._values.size_bytes


class Coded(Column[T_co]):
    """Few different values, each kept once."""

    __slots__ = ("codes", "values")

    def __init__(self, codes: Column[int], values: Sequence[T_co | None]) -> None:
        self.codes = codes
        self.values = values

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> T_co | None:
        code = self.codes[row]
        return None if code is None else self.values[code]

    def __iter__(self) -> Iterator[T_co | None]:
        values = self.values
        return (values[code] for code in self.codes if code is not None)

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        return 56 + self.codes.size_bytes + getsizeof(self.values) + sum(map(getsizeof, self.values))


class PackedLists(Column[tuple[int, ...]]):
    """Lists of whole numbers, one after the other."""

    __slots__ = ("_numbers", "_present", "_starts")

    def __init__(self, numbers: "array[int]", starts: "array[int]", present: bytes | None) -> None:
        self._numbers = numbers
        self._starts = starts
        self._present = present

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, row: int) -> tuple[int, ...] | None:
        if self._present is not None and not self._present[row]:
            return None
        return tuple(self._numbers[self._starts[row] : self._starts[row + 1]])

    def __iter__(self) -> Iterator[tuple[int, ...] | None]:
        return (self[row] for row in range(len(self)))

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        held = getsizeof(self._numbers) + getsizeof(self._starts)
        return 64 + held + (getsizeof(self._present) if self._present else 0)


class Objects(Column[T_co]):
    """Values that no packing fits."""

    __slots__ = ("_values",)

    def __init__(self, values: tuple[T_co | None, ...]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: int) -> T_co | None:
        return self._values[row]

    def __iter__(self) -> Iterator[T_co | None]:
        return iter(self._values)

    @property
    def size_bytes(self) -> int:  # noqa: D102 (said once, above)
        return 48 + getsizeof(self._values) + sum(map(getsizeof, self._values))
