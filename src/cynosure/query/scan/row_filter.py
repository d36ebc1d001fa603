"""Expressions over Arrow columns: which rows pass. Used for row filters, predicates and nothing else.

SQL's logic of three values: a comparison with NULL is NULL, and only TRUE passes. NaN is larger than every
number and equal to itself, the zeros of floating-point columns are one, as Spark has it. Constants are exact
values of the column's type; texts compare by code points, bytes without sign, uuids as their text.

A maintainer must not break: what is not understood exactly is `NotUnderstood`; nothing is cast or guessed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cynosure.common.errors import CynosureError
from cynosure.iceberg.expressions import BoundExpression, bind, parse_expression
from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundMembership,
    BoundReference,
    BoundTerm,
    BoundUnary,
)
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import TRUE, Always, And, Or
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import UUID, StructType, Type, is_floating
from cynosure.query.arrow_types import find_unsupported, to_arrow
from cynosure.query.errors import NotReadable

Columns = Mapping[int, pa.Array]
"""Top-level columns by field id, of the types of `query.arrow_types`."""
Test = Callable[[Columns], pa.Array]

_COMPARE: Final = {
    "lt": "less",
    "lt-eq": "less_equal",
    "gt": "greater",
    "gt-eq": "greater_equal",
    "eq": "equal",
    "not-eq": "not_equal",
}
_ABOVE: Final = frozenset({"gt", "gt-eq"})
"""What NaN passes, compared with a number."""


class NotUnderstood(NotReadable):
    """An expression that is not evaluated here."""


class RowFilter(Struct, frozen=True):
    """An expression, ready for any number of batches."""

    expression: BoundExpression
    columns: frozenset[int]
    """Top-level field ids that it looks at."""
    fields: frozenset[int]
    """Field ids of what it compares: columns, or fields in structs."""
    test: Test

    @property
    def is_always_true(self) -> bool:
        """Whether all rows pass."""
        return self.expression == TRUE

    def evaluate(self, columns: Columns, rows: int) -> pa.Array:
        """Which of so many rows pass: TRUE. FALSE and NULL do not."""
        found = self.test(columns)
        return pa.repeat(found, rows) if isinstance(found, pa.Scalar) else found


def read_filter(json: bytes, schema: Schema, *, what: str) -> RowFilter:
    """An expression by field id. `NotUnderstood` says `what` it is, and no more."""
    try:
        expression = bind(parse_expression(json), StructType(schema.fields), field=what)
    except CynosureError:
        # Its text may hold constants of a policy.
        raise NotUnderstood("An expression is not understood exactly", what=what) from None
    return make_filter(expression, schema)


def make_filter(expression: BoundExpression, schema: Schema) -> RowFilter:
    """A bound expression, ready to be evaluated. `NotUnderstood` where it cannot be."""
    compiler = _Compiler(schema)
    test = fold(expression, compiler.expand)
    return RowFilter(expression, frozenset(compiler.columns), frozenset(compiler.fields), test)


def split_conjuncts(expression: BoundExpression) -> list[BoundExpression]:
    """The parts that all have to hold, in order."""
    found: list[BoundExpression] = []
    pending = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, And):
            pending += (node.right, node.left)
        elif node != TRUE:
            found.append(node)
    return found


def find_path(field_id: int, schema: Schema) -> tuple[int, tuple[int, ...]]:
    """The top-level column of a field, and the places in structs that lead to it."""
    place = schema.places[field_id]
    steps = (*place.around, place.field)
    path = []
    for outer, inner in pairwise(steps):
        ids = [each.id for each in outer.type.fields]  # type: ignore[union-attr]  # bound: structs only
        path.append(ids.index(inner.id))
    return steps[0].id, tuple(path)


def find_value(columns: Columns, top: int, path: tuple[int, ...]) -> pa.Array:
    """The values of a field; NULL where a struct around it is."""
    return pc.struct_field(columns[top], list(path)) if path else columns[top]


def to_scalar(value: Any, type_: Type) -> pa.Scalar:
    """A constant as Arrow has it in a column of this type."""
    return pa.scalar(_plain(value, type_), to_arrow(type_))


def _plain(value: Any, type_: Type) -> Any:
    return str(value) if type_ == UUID else value


class _Compiler:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.columns: set[int] = set()
        self.fields: set[int] = set()

    def expand(self, node: BoundExpression) -> tuple[Sequence[BoundExpression], Join[Test]]:
        match node:
            case And(left, right):
                return (left, right), lambda parts: _joined("and_kleene", parts)
            case Or(left, right):
                return (left, right), lambda parts: _joined("or_kleene", parts)
            case Always(answer):
                test = _constant(answer)
            case BoundUnary(op, term):
                test = self._unary(op, term)
            case BoundComparison(op, term, value):
                test = self._comparison(op, term, value)
            case BoundMembership(op, term, values):
                test = self._membership(op, term, values)
            case _:
                _refuse()
        return (), lambda _: test

    def _find(self, term: BoundTerm) -> tuple[int, tuple[int, ...]]:
        if not isinstance(term, BoundReference):
            _refuse()
        if find_unsupported(term.type):
            _refuse()
        top, path = find_path(term.id, self._schema)
        self.columns.add(top)
        self.fields.add(term.id)
        return top, path

    def _unary(self, op: str, term: BoundTerm) -> Test:
        top, path = self._find(term)

        def test(columns: Columns) -> pa.Array:
            values = find_value(columns, top, path)
            match op:
                case "is-null":
                    return pc.is_null(values)
                case "not-null":
                    return pc.is_valid(values)
                case "is-nan":
                    return pc.is_nan(values)
            return pc.invert(pc.is_nan(values))

        return test

    def _comparison(self, op: str, term: BoundTerm, value: Any) -> Test:
        top, path = self._find(term)
        if op in ("starts-with", "not-starts-with"):
            return _prefix(top, path, value, is_negated=op == "not-starts-with")
        if is_floating(term.type):
            return _floating(top, path, op, value, term.type)
        constant, function = to_scalar(value, term.type), _COMPARE[op]

        def test(columns: Columns) -> pa.Array:
            return pc.call_function(function, [find_value(columns, top, path), constant])

        return test

    def _membership(self, op: str, term: BoundTerm, values: tuple[Any, ...]) -> Test:
        top, path = self._find(term)
        if is_floating(term.type):
            if any(map(math.isnan, values)):
                _refuse()
            # The zeros are one value here, and two to a set of Arrow.
            values = (*values, 0.0, -0.0) if 0.0 in values else values
        chosen = pa.array([_plain(each, term.type) for each in values], to_arrow(term.type))

        def test(columns: Columns) -> pa.Array:
            tested = find_value(columns, top, path)
            found = pc.is_in(tested, value_set=chosen)
            if op == "not-in":
                found = pc.invert(found)
            # A set of Arrow takes NULL for one more value; here it is neither in nor out.
            return pc.if_else(pc.is_valid(tested), found, None) if tested.null_count else found

        return test


def _joined(function: str, parts: list[Test]) -> Test:
    left, right = parts

    def test(columns: Columns) -> pa.Array:
        return pc.call_function(function, [left(columns), right(columns)])

    return test


def _constant(answer: bool) -> Test:
    def test(columns: Columns) -> pa.Array:
        return pa.scalar(answer)

    return test


def _prefix(top: int, path: tuple[int, ...], value: str, *, is_negated: bool) -> Test:
    def test(columns: Columns) -> pa.Array:
        found = pc.starts_with(find_value(columns, top, path), pattern=value)
        return pc.invert(found) if is_negated else found

    return test


def _floating(top: int, path: tuple[int, ...], op: str, value: float, type_: Type) -> Test:
    if math.isnan(value):
        _refuse()
    constant = to_scalar(value, type_)

    def test(columns: Columns) -> pa.Array:
        values = find_value(columns, top, path)
        found = pc.call_function(_COMPARE[op], [values, constant])
        return pc.or_kleene(found, pc.is_nan(values)) if op in _ABOVE else found

    return test


def _refuse() -> NoReturn:
    raise NotUnderstood("An expression has a part that is not evaluated by scans")
