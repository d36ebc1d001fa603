"""The complement of a filter.

A maintainer must not break: a comparison of order is not turned round. In two-valued logic a null is neither
below 5 nor at least 5, so `not (a < 5)` holds for it and `a >= 5` does not; a planner that took one for the
other would drop files with rows that were asked for.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from cynosure.iceberg.expressions.bound import BoundExpression
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import FALSE, TRUE, Always, And, Expression, Not, Or

OPPOSITE: Final = {
    one: other
    for pair in (
        ("is-null", "not-null"),
        ("is-nan", "not-nan"),
        ("eq", "not-eq"),
        ("in", "not-in"),
        ("starts-with", "not-starts-with"),
    )
    for one, other in (pair, pair[::-1])
}
"""Operators that hold for exactly the rows for which the other does not, nulls and NaN included."""

X = TypeVar("X", Expression, BoundExpression)


def negate(expression: X) -> X:
    """The filter for exactly the other rows, without `not` above anything but an order comparison."""
    _, complement = fold(expression, _expand)
    return complement  # type: ignore[no-any-return]


def rewrite_not(expression: X) -> X:
    """The same filter without `not` above anything but an order comparison."""
    rewritten, _ = fold(expression, _expand)
    return rewritten  # type: ignore[no-any-return]


def _expand(node: Any) -> tuple[Sequence[Any], Join[tuple[Any, Any]]]:
    """Each result is a pair: the node rewritten, and its complement."""
    match node:
        case Always(answer):
            return (), lambda _: (node, FALSE if answer else TRUE)
        case And(left, right):
            return (left, right), lambda parts: _pair(And, Or, parts)
        case Or(left, right):
            return (left, right), lambda parts: _pair(Or, And, parts)
        case Not(child):
            return (child,), lambda parts: (parts[0][1], parts[0][0])
    opposite = OPPOSITE.get(node.op)
    return (), lambda _: (node, Not(node) if opposite is None else replace(node, op=opposite))


def _pair(same: type[Any], other: type[Any], parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    (left, not_left), (right, not_right) = parts
    return same(left, right), other(not_left, not_right)
