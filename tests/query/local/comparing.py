"""Whether two answers are the same: types exactly, rows exactly, floats to 12 digits."""

import math
from typing import Any

import pyarrow as pa


def explain_difference(local: pa.Table, spark: pa.Table, *, is_ordered: bool = True) -> str | None:
    """What differs first."""
    types, wanted = [each.type for each in local.schema], [each.type for each in spark.schema]
    for place, (one, other) in enumerate(zip(types, wanted, strict=False)):
        if one != other and not (pa.types.is_nested(one) and pa.types.is_nested(other)):
            return f"column {place}: type {one}, of Spark {other}"
    if len(types) != len(wanted):
        return f"{len(types)} columns, of Spark {len(wanted)}"
    ours, theirs = _rows(local), _rows(spark)
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, of Spark {len(theirs)}"
    if not is_ordered:
        ours, theirs = sorted(ours, key=_sort_key), sorted(theirs, key=_sort_key)
    for number, (one_row, other_row) in enumerate(zip(ours, theirs, strict=True)):
        for place, (one, other) in enumerate(zip(one_row, other_row, strict=True)):
            if not _is_same(one, other):
                return f"row {number}, column {place}: {one!r}, of Spark {other!r}"
    return None


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _sort_key(row: tuple[Any, ...]) -> list[str]:
    # Both zeros are one number, and sort as one.
    return [f"{each + 0.0:.9e}" if isinstance(each, float) else repr(each) for each in row]


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other) and type(one) is type(other)
