"""Equality deletes: rows are gone whose values equal those of a row in a delete file, NULL to NULL.

NaN equals NaN, however it is written in bits; the two zeros of floating-point columns differ, as in Java.

Each column's values become numbers, those of the delete file numbering them, and several columns are joined
into one number step by step; so any number of columns costs no loop over rows.

A maintainer must not break: values are compared as the table's types, after promotion, of original rows.
"""

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import StructType
from cynosure.query.errors import NotReadable
from cynosure.query.scan.row_filter import find_path, find_value


class EqualityDeletes:
    """The rows of delete files that name the same columns."""

    def __init__(self, ids: Sequence[int], schema: Schema, deleted: Sequence[pa.Array]) -> None:
        """`deleted`: the values of each of the columns, row by row."""
        self._paths = [find_path(id_, schema) for id_ in ids]
        self._known: list[pa.Array] = []
        """Of each column, and then of each joining: the values that are deleted, in the order of their
        numbers."""
        self._joined: list[pa.Array] = []
        numbers = None
        for given in deleted:
            values = _with_one_nan(given)
            known = values.unique()
            self._known.append(known)
            own = pc.index_in(values, value_set=known)
            if numbers is None:
                numbers = own
                continue
            joined = _join(numbers, own, len(known))
            self._joined.append(joined.unique())
            numbers = pc.index_in(joined, value_set=self._joined[-1])

    @property
    def columns(self) -> frozenset[int]:
        """Top-level columns that are compared."""
        return frozenset(top for top, _ in self._paths)

    @property
    def size_bytes(self) -> int:
        """What is held."""
        return sum(each.nbytes for each in (*self._known, *self._joined))

    def matches(self, columns: Mapping[int, pa.Array]) -> pa.Array:
        """Which rows are gone; never NULL."""
        numbers = None
        for at, (top, path) in enumerate(self._paths):
            # A value that no delete names has no number, and NULL is a value of its own in such a set.
            own = pc.index_in(_with_one_nan(find_value(columns, top, path)), value_set=self._known[at])
            if numbers is None:
                numbers = own
                continue
            joined = _join(numbers, own, len(self._known[at]))
            known = self._joined[at - 1]
            # Rows without a number stay without one: NULL is in no joined set.
            numbers = pc.index_in(joined, value_set=known)
        return pc.is_valid(numbers)


def check_ids(ids: Sequence[int], schema: Schema) -> None:
    """Refuse deletes by columns that cannot be compared here."""
    for id_ in ids:
        place = schema.places.get(id_)
        if place is None:
            raise NotReadable(
                "Rows were deleted by a column that the table no longer has",
                field_id=id_,
                fix="Compact the table, so that its equality deletes are applied.",
            )
        if not all(isinstance(each.type, StructType) for each in place.around):
            raise NotReadable("Rows were deleted by a column inside a list or map", field_id=id_)
    if not ids:
        raise NotReadable("An equality delete names no columns")


def _with_one_nan(values: pa.Array) -> pa.Array:
    """The same values; a set of Arrow tells NaNs apart by their bits, of which there are many."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), values)


def _join(numbers: pa.Array, own: pa.Array, count: int) -> pa.Array:
    """One number for two; both are of 32 bits, so it fits."""
    return pc.add(pc.multiply(numbers.cast(pa.int64()), max(count, 1)), own.cast(pa.int64()))
