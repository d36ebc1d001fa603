"""Parts of filters that DataFusion evaluates exactly as `row_filter.py` does, in its own expressions.

Whole numbers, booleans, dates, timestamps, decimals and texts, at the top level of a table, in columns that a
file has in the table's own type. Floating-point numbers are not: it tells the zeros apart. Whether a value is
NULL only where the file counts them: it takes a count that is not there for 0, and skips row groups by it.

A maintainer must not break: constants have exactly the type of the column, so that nothing is cast; and a
part of which anything is not in this list is not given away at all.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from datafusion import Expr, col, lit
from datafusion import functions as f

from cynosure.iceberg.expressions import BoundExpression
from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundMembership,
    BoundReference,
    BoundTerm,
    BoundUnary,
)
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import And, Or
from cynosure.iceberg.types import (
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    Type,
)
from cynosure.query.scan.row_filter import to_scalar

_EXACT: Final = frozenset({BOOLEAN, INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING})
Names = Mapping[int, str]
"""Of columns in the file, by field id."""
Counts = Callable[[int], bool]
"""Whether the file says of all its parts how many values of a field are NULL."""


def find_pushable(expression: BoundExpression, names: Names, counts_nulls: Counts) -> Expr | None:
    """A part of a filter for DataFusion; `None` when it is not surely the same there."""

    def expand(node: BoundExpression) -> tuple[Sequence[BoundExpression], Join[Expr | None]]:
        match node:
            case And(left, right):
                return (left, right), lambda parts: _both(parts, is_and=True)
            case Or(left, right):
                return (left, right), lambda parts: _both(parts, is_and=False)
        leaf = _find_leaf(node, names, counts_nulls)
        return (), lambda _: leaf

    return fold(expression, expand)


def column(name: str) -> Expr:
    """A column by its exact name."""
    escaped = name.replace('"', '""')
    return col(f'"{escaped}"')


def _both(parts: list[Expr | None], *, is_and: bool) -> Expr | None:
    left, right = parts
    if left is None or right is None:
        return None
    return left & right if is_and else left | right


def _find_leaf(node: BoundExpression, names: Names, counts_nulls: Counts) -> Expr | None:
    match node:
        case BoundUnary("is-null", BoundReference() as term) if _is_exact(term, names):
            return column(names[term.id]).is_null() if counts_nulls(term.id) else None
        case BoundUnary("not-null", BoundReference() as term) if _is_exact(term, names):
            return column(names[term.id]).is_not_null()
        case BoundComparison(op, BoundReference() as term, value) if _is_exact(term, names):
            return _compare(op, column(names[term.id]), _literal(value, term.type))
        case BoundMembership(op, BoundReference() as term, values) if _is_exact(term, names):
            constants = [_literal(value, term.type) for value in values]
            return f.in_list(column(names[term.id]), constants, negated=op == "not-in")
    return None


def _compare(op: str, tested: Expr, constant: Expr) -> Expr | None:
    match op:
        case "eq":
            return tested == constant
        case "not-eq":
            return tested != constant
        case "lt":
            return tested < constant
        case "lt-eq":
            return tested <= constant
        case "gt":
            return tested > constant
        case "gt-eq":
            return tested >= constant
        case "starts-with":
            return f.starts_with(tested, constant)
    return None


def _is_exact(term: BoundTerm, names: Names) -> bool:
    is_here = isinstance(term, BoundReference) and term.id in names
    return is_here and (term.type in _EXACT or isinstance(term.type, DecimalType))


def _literal(value: Any, type_: Type) -> Expr:
    return lit(to_scalar(value, type_))
