"""All deletes of one data file together."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cynosure.query.scan.deletes.equality import EqualityDeletes


class FileDeletes:
    """What is gone from one data file."""

    def __init__(
        self, positions: "array[int] | None" = None, equality: Sequence[EqualityDeletes] = ()
    ) -> None:
        """`positions` are sorted, each once."""
        self._positions = positions
        self._equality = tuple(equality)

    def __bool__(self) -> bool:
        return bool(self._positions) or bool(self._equality)

    @property
    def columns(self) -> frozenset[int]:
        """Top-level columns that are needed to know."""
        return frozenset().union(*(each.columns for each in self._equality))

    def keep(self, columns: Mapping[int, pa.Array], first_row: int, rows: int) -> pa.Array | None:
        """Which of so many rows from a place on are left; `None`: all of them."""
        found = self._keep_places(first_row, rows)
        for each in self._equality:
            left = pc.invert(each.matches(columns))
            found = left if found is None else pc.and_(found, left)
        return found

    def _keep_places(self, first_row: int, rows: int) -> pa.Array | None:
        if not self._positions:
            return None
        begin = bisect_left(self._positions, first_row)
        end = bisect_left(self._positions, first_row + rows, begin)
        if begin == end:
            return None
        left = bytearray(b"\1") * rows
        for position in self._positions[begin:end]:
            left[position - first_row] = 0
        return pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(left)]).cast(pa.bool_())
