"""A filter in the form that tests take: leaves on one column, joined by `and` and `or`, without complements.

A maintainer must not break: the normal form holds for the same rows. `not (a < 5)` holds for null and NaN.
"""

from collections.abc import Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundExpression,
    BoundMembership,
    BoundReference,
    BoundTerm,
    BoundTermComparison,
    BoundTransform,
    BoundUnary,
)
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.negate import rewrite_not
from cynosure.iceberg.expressions.nodes import FALSE, TRUE, Always, And, Not, Or
from cynosure.iceberg.types import is_floating

_TURNED = {"lt": "gt-eq", "lt-eq": "gt", "gt": "lt-eq", "gt-eq": "lt"}


class Leaf(Struct, frozen=True):
    """A question about one column, or about a transform of it."""

    op: str
    term: BoundTerm
    values: tuple[Any, ...] = ()
    """One for a comparison, some for a set, none for null and NaN."""

    @property
    def source(self) -> BoundReference:
        """The column."""
        return self.term.source if isinstance(self.term, BoundTransform) else self.term


class Unknown(Struct, frozen=True):
    """A question that no bounds answer: about two columns."""

    leaf: Any


Normal: TypeAlias = Always | And["Normal"] | Or["Normal"] | Leaf | Unknown


def normalize(expression: BoundExpression) -> Normal:
    """The normal form of a filter."""
    return fold(rewrite_not(expression), _expand)


def all_of(parts: Sequence[Any]) -> Any:
    """What holds where all parts hold."""
    if FALSE in parts:
        return FALSE
    kept = [part for part in parts if part != TRUE]
    result = kept.pop() if kept else TRUE
    while kept:
        result = And(kept.pop(), result)
    return result


def any_of(parts: Sequence[Any]) -> Any:
    """What holds where one part holds."""
    if TRUE in parts:
        return TRUE
    kept = [part for part in parts if part != FALSE]
    result = kept.pop() if kept else FALSE
    while kept:
        result = Or(kept.pop(), result)
    return result


def _expand(node: Any) -> tuple[Sequence[Any], Join[Normal]]:
    match node:
        case Always():
            return (), lambda _: node
        case And(left, right):
            return (left, right), all_of
        case Or(left, right):
            return (left, right), any_of
        case Not(BoundComparison(op, term, value)) if op in _TURNED:
            parts = [Leaf(_TURNED[op], term, (value,)), Leaf("is-null", term)]
            if is_floating(term.type):
                parts.append(Leaf("is-nan", term))
            return (), lambda _: any_of(parts)
        case BoundUnary(op, term):
            return (), lambda _: Leaf(op, term)
        case BoundComparison(op, term, value):
            return (), lambda _: Leaf(op, term, (value,))
        case BoundMembership(op, term, values):
            return (), lambda _: Leaf(op, term, values)
        case BoundTermComparison() | Not():
            return (), lambda _: Unknown(node)
    raise TypeError(f"not a bound expression: {type(node).__name__}")
