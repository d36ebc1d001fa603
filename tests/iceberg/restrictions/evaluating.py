"""Two naive readers that apply a filter as it is sent, in the two ways that engines are known to.

They disagree on purpose wherever expressions leave room: about null, NaN and the two zeros.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from cynosure.iceberg.expressions.nodes import (
    Always,
    And,
    Comparison,
    Constant,
    Expression,
    IdReference,
    Membership,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.single_value import read_value

Row = Mapping[int, Any]
"""Values by field id, as `single_value.py` holds them."""


def is_shown_like_java(node: Expression, row: Row) -> bool:
    """Two-valued: null is below everything, NaN above, and the zeros are ordered."""
    match node:
        case Always(answer):
            return answer
        case And(left, right):
            return is_shown_like_java(left, row) and is_shown_like_java(right, row)
        case Or(left, right):
            return is_shown_like_java(left, row) or is_shown_like_java(right, row)
        case Not(child):
            return not is_shown_like_java(child, row)
        case Unary(op, IdReference(id_)):
            return _test(op, row[id_])
        case Comparison("starts-with" | "not-starts-with" as op, IdReference(id_), Constant(prefix)):
            starts = row[id_] is not None and row[id_].startswith(prefix)
            return starts == (op == "starts-with")
        case Comparison(op, IdReference(id_), constant):
            return _ORDER[op](_rank(row[id_]), _rank(_value(constant)))
        case Membership(op, IdReference(id_), values):
            return (_rank(row[id_]) in [_rank(_value(each)) for each in values]) == (op == "in")
    raise AssertionError(node)


def is_shown_like_sql(node: Expression, row: Row) -> bool:
    """Three-valued, with the arithmetic of IEEE 754: NaN compares with nothing, the zeros are equal."""
    return _know(node, row) is True


def _know(node: Expression, row: Row) -> bool | None:
    match node:
        case Always(answer):
            return answer
        case And(left, right):
            both = {_know(left, row), _know(right, row)}
            return False if False in both else None if None in both else True
        case Or(left, right):
            both = {_know(left, row), _know(right, row)}
            return True if True in both else None if None in both else False
        case Not(child):
            known = _know(child, row)
            return None if known is None else not known
        case Unary(op, IdReference(id_)):
            return _test(op, row[id_])
        case Comparison(op, IdReference(id_), constant):
            if row[id_] is None:
                return None
            if op.endswith("starts-with"):
                return bool(row[id_].startswith(constant.value)) == (op == "starts-with")
            return bool(_ORDER[op](row[id_], _value(constant)))
        case Membership(op, IdReference(id_), values):
            if row[id_] is None:
                return None
            return (row[id_] in [_value(each) for each in values]) == (op == "in")
    raise AssertionError(node)


def _test(op: str, value: Any) -> bool:
    is_nan = isinstance(value, float) and math.isnan(value)
    return {
        "is-null": value is None,
        "not-null": value is not None,
        "is-nan": is_nan,
        "not-nan": not is_nan,
    }[op]


def _value(constant: Any) -> Any:
    assert constant.type is not None
    return read_value(constant.type, constant.value, field="constant")


def _rank(value: Any) -> tuple[int, Any, float]:
    if value is None:
        return 0, 0, 0.0
    if isinstance(value, float):
        return (
            (2, 0, 0.0) if math.isnan(value) else (1, value, math.copysign(1, value) if value == 0 else 0.0)
        )
    return 1, value, 0.0


_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda one, other: one == other,
    "not-eq": lambda one, other: one != other,
    "lt": lambda one, other: one < other,
    "lt-eq": lambda one, other: one <= other,
    "gt": lambda one, other: one > other,
    "gt-eq": lambda one, other: one >= other,
}
