"""A filter for one reader: who reads is known, and a row is shown only where the filter is TRUE, as in SQL.

Expressions of Iceberg know no UNKNOWN: `a <> 5` and `a < 5` hold there for rows where `a` is null, and
engines that turn the expression into SQL disagree. So the filter is written such that all of them agree:
without `not`, and with `not-null` beside every comparison that null could pass.

A maintainer must not break: what is made here shows no row that the filter, read as SQL, does not show. Of
NaN, SQL is followed as Spark has it: larger than every number (`binding.py`, where types are known).
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    FALSE,
    TRUE,
    Always,
    And,
    Apply,
    Comparison,
    Constant,
    Expression,
    Leaf,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
)
from cynosure.iceberg.restrictions.language import find_role
from cynosure.iceberg.restrictions.mapping import find_mapped, in_mapping
from cynosure.iceberg.restrictions.readers import Reader

Pair: TypeAlias = tuple[Expression, Expression]
"""Where a part of the filter is TRUE, and where it is FALSE. It is neither where it is UNKNOWN."""

_OPPOSITE: Final = {
    one: other
    for pair in (
        ("is-null", "not-null"),
        ("is-nan", "not-nan"),
        ("eq", "not-eq"),
        ("lt", "gt-eq"),
        ("gt", "lt-eq"),
        ("in", "not-in"),
        ("starts-with", "not-starts-with"),
    )
    for one, other in (pair, pair[::-1])
}
_NEVER_OF_NULL: Final = frozenset({"is-null", "not-null", "is-nan", "not-nan", "eq", "in", "starts-with"})
"""What every engine answers alike for null."""


def resolve(expression: Expression, reader: Reader) -> Expression:
    """The rows that a canonical filter shows to a reader."""

    def expand(node: Expression) -> tuple[Sequence[Expression], Join[Pair]]:
        match node:
            case And(left, right):
                return (left, right), lambda parts: _pair(both, either, parts)
            case Or(left, right):
                return (left, right), lambda parts: _pair(either, both, parts)
            case Not(child):
                return (child,), lambda parts: parts[0][::-1]
            case Always(answer):
                return (), lambda _: _constant(is_true=answer)
        leaf = _resolve_leaf(node, reader)
        return (), lambda _: leaf

    return fold(expression, expand)[0]


def both(left: Expression, right: Expression) -> Expression:
    """`and`, without what goes without saying."""
    if isinstance(left, Always):
        return right if left.answer else FALSE
    if isinstance(right, Always):
        return left if right.answer else FALSE
    return And(left, right)


def either(left: Expression, right: Expression) -> Expression:
    """`or`, without what goes without saying."""
    if isinstance(left, Always):
        return TRUE if left.answer else right
    if isinstance(right, Always):
        return TRUE if right.answer else left
    return Or(left, right)


Joining = Callable[[Expression, Expression], Expression]


def _pair(same: Joining, other: Joining, parts: list[Pair]) -> Pair:
    (left, not_left), (right, not_right) = parts
    return same(left, right), other(not_left, not_right)


def _resolve_leaf(leaf: Leaf, reader: Reader) -> Pair:
    role = find_role(leaf)
    if role is not None:
        # Not simply complements: having a role counts when it is active, not having it when it is not had.
        is_without = role not in reader.assigned and role not in reader.missing
        return _constant(is_true=role in reader.active)[0], _constant(is_true=is_without)[0]
    mapped = find_mapped(leaf)
    if mapped is not None:
        kept = resolve(mapped.filter, reader)
        # Never negated (`language.py`): where it is FALSE is not asked, and were nowhere.
        return FALSE if kept == FALSE else in_mapping(replace(mapped, filter=kept)), FALSE
    match leaf:
        case Comparison(op, Apply(), Constant(value)):
            return _constant(is_true=(value == reader.name) == (op == "eq"))
        case Membership(op, Apply(), values):
            return _constant(is_true=(reader.name in [each.value for each in values]) == (op == "in"))
        case Comparison(_, NamedReference(), Apply()):
            leaf = replace(leaf, right=Constant(reader.name))
    return _guarded(leaf), _guarded(replace(leaf, op=_OPPOSITE[leaf.op]))


def _guarded(leaf: Leaf) -> Expression:
    if leaf.op in _NEVER_OF_NULL:
        return leaf
    column = leaf.left if isinstance(leaf, Comparison) else leaf.child
    return And(Unary("not-null", column), leaf)


def _constant(*, is_true: bool) -> Pair:
    return (TRUE, FALSE) if is_true else (FALSE, TRUE)
