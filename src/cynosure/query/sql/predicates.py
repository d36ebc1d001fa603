"""Which parts of a condition scans may apply: whitelisted, per mention of a table.

A condition that must be TRUE for a row to be kept is read as a bound from above: parts that are not
understood, or not about the mention, count as TRUE. So a scan leaves out only rows that the engine would
leave out as well.

A maintainer must not break: when in doubt, TRUE. Nothing here is under a NOT but comparisons that know their
opposite. A pushed predicate cannot fail and has no effect: it compares an unmasked column with a constant of
its exact type.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from cynosure.iceberg.expressions.nodes import (
    FALSE,
    And,
    CompareOp,
    Comparison,
    Constant,
    Expression,
    IdReference,
    Membership,
    Or,
    Unary,
)
from cynosure.iceberg.types import (
    BOOLEAN,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    NestedField,
    Type,
)
from cynosure.query.sql.literals import constant_of
from cynosure.query.sql.outputs import path_of
from cynosure.query.sql.scope import Scope, Source

Accepts = Callable[[Source], bool]
Masked = Callable[[int], frozenset[int]]

_OPERATORS: Final[Mapping[type[exp.Expr], CompareOp]] = {
    exp.EQ: "eq",
    exp.NullSafeEQ: "eq",
    exp.NEQ: "not-eq",
    exp.LT: "lt",
    exp.LTE: "lt-eq",
    exp.GT: "gt",
    exp.GTE: "gt-eq",
}
_FLIPPED: Final[Mapping[CompareOp, CompareOp]] = {
    "lt": "gt",
    "lt-eq": "gt-eq",
    "gt": "lt",
    "gt-eq": "lt-eq",
    "eq": "eq",
    "not-eq": "not-eq",
}
_OPPOSITE: Final[Mapping[CompareOp, CompareOp]] = {
    "eq": "not-eq",
    "not-eq": "eq",
    "lt": "gt-eq",
    "gt-eq": "lt",
    "gt": "lt-eq",
    "lt-eq": "gt",
}
_MAX_LEAVES: Final = 5_000
"""Values of one condition that are pushed; beyond, nothing is."""

_EXACT: Final = frozenset({BOOLEAN, INT, LONG, DATE, TIMESTAMP, TIMESTAMPTZ, STRING})
"""Types whose comparisons mean the same everywhere: no NaN, no zeros with a sign, no texts of bytes."""

_Bounds = dict[int, Expression]
"""What must be true of each mention; one that is not there: nothing."""


def predicates_of(condition: exp.Expr, scope: Scope, masked: Masked, accepts: Accepts) -> _Bounds:
    """By the numbers of mentions: what a row of the mention must satisfy for the condition to be TRUE."""
    reader = _Reader(scope, masked, accepts)
    bounds = reader.read(condition)
    return bounds if reader.leaves <= _MAX_LEAVES else {}


class _Reader:
    def __init__(self, scope: Scope, masked: Masked, accepts: Accepts) -> None:
        self._scope = scope
        self._masked = masked
        self._accepts = accepts
        self.leaves = 0

    def read(self, node: exp.Expr) -> _Bounds:
        """Without recursion along chains of AND and OR."""
        node = node.unnest()
        if isinstance(node, exp.And):
            bounds: _Bounds = {}
            for part in _flatten(node, exp.And):
                for number, bound in self.read(part).items():
                    bounds[number] = And(bounds[number], bound) if number in bounds else bound
            return bounds
        if isinstance(node, exp.Or):
            parts = [self.read(part) for part in _flatten(node, exp.Or)]
            common = set(parts[0]).intersection(*parts[1:])
            found: _Bounds = {}
            for number in common:
                joined = parts[0][number]
                for other in parts[1:]:
                    joined = Or(joined, other[number])
                found[number] = joined
            return found
        return self._read_leaf(node, is_negated=False)

    def _read_leaf(self, node: exp.Expr, *, is_negated: bool) -> _Bounds:
        match node:
            case exp.Not():
                return {} if is_negated else self._read_leaf(node.this.unnest(), is_negated=True)
            case exp.NullSafeEQ() if is_negated:
                return {}
            case exp.EQ() | exp.NullSafeEQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                return self._read_comparison(node, is_negated=is_negated)
            case exp.In():
                return self._read_in(node, is_negated=is_negated)
            case exp.Between() if not is_negated:
                low = self._compare("gt-eq", node.this, node.args["low"])
                high = self._compare("lt-eq", node.this, node.args["high"])
                bounds = dict(low)
                for number, bound in high.items():
                    bounds[number] = And(bounds[number], bound) if number in bounds else bound
                return bounds
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._about(node.this, lambda id_: Unary("not-null" if is_negated else "is-null", id_))
            case exp.Like() | exp.StartsWith() if not is_negated:
                return self._read_prefix(node)
            case exp.Column():
                return self._about(
                    node,
                    lambda id_: Comparison("eq", id_, Constant(not is_negated, BOOLEAN)),
                    only=BOOLEAN,
                )
        return {}

    def _read_comparison(self, node: exp.Expr, *, is_negated: bool) -> _Bounds:
        op = _OPERATORS[type(node)]
        if is_negated:
            op = _OPPOSITE[op]
        return self._compare(op, node.this, node.expression) or self._compare(
            _FLIPPED[op], node.expression, node.this
        )

    def _compare(self, op: CompareOp, column: exp.Expr, value: exp.Expr) -> _Bounds:
        found = self._column(column)
        if found is None:
            return {}
        number, field = found
        constant = constant_of(value, field.type)
        if constant is None:
            return {}
        self.leaves += 1
        return {number: Comparison(op, IdReference(field.id), constant)}

    def _read_in(self, node: exp.In, *, is_negated: bool) -> _Bounds:
        found = self._column(node.this)
        if found is None or node.args.get("query") is not None or not node.expressions:
            return {}
        number, field = found
        constants = []
        for each in node.expressions:
            if isinstance(each, exp.Null) and not is_negated:
                continue  # never equal
            constant = constant_of(each, field.type)
            if constant is None:
                return {}
            constants.append(constant)
        self.leaves += len(constants)
        if not constants:
            return {number: FALSE}
        return {number: Membership("not-in" if is_negated else "in", IdReference(field.id), tuple(constants))}

    def _read_prefix(self, node: exp.Expr) -> _Bounds:
        pattern = node.expression
        if node.args.get("negate") or not isinstance(pattern, exp.Literal) or not pattern.is_string:
            return {}
        prefix = pattern.name
        if isinstance(node, exp.Like):
            prefix = prefix.removesuffix("%")
            if prefix == pattern.name or any(sign in prefix for sign in "%_\\"):
                return {}
        if not prefix or "\x00" in prefix:
            return {}
        return self._about(
            node.this,
            lambda id_: Comparison("starts-with", id_, Constant(prefix, STRING)),
            only=STRING,
        )

    def _about(
        self, node: exp.Expr, make: Callable[[IdReference], Expression], *, only: object = None
    ) -> _Bounds:
        found = self._column(node)
        if found is None or (only is not None and found[1].type != only):
            return {}
        self.leaves += 1
        return {found[0]: make(IdReference(found[1].id))}

    def _column(self, node: exp.Expr) -> tuple[int, NestedField] | None:
        """The mention and field of a plain, unmasked column of a source of this very scope."""
        node = node.unnest()
        path = path_of(node) if isinstance(node, exp.Column) else None
        if not path or isinstance(node.this, exp.Star):
            return None
        found = self._scope.find_exactly([part.name.lower() for part in path])
        if found is None:
            return None
        out, source = found
        if out.mention is None or out.field is None or out.mention not in source.pushed:
            return None
        if not self._accepts(source):
            return None
        if out.field.id in self._masked(out.mention) or not _is_exact(out.field.type):
            return None
        return out.mention, out.field


def _is_exact(type_: Type) -> bool:
    return isinstance(type_, DecimalType) or type_ in _EXACT


def _flatten(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    pending = [node]
    while pending:
        each = pending.pop().unnest()
        if isinstance(each, kind):
            pending += [each.args["expression"], each.this]
        else:
            found.append(each)
    return found
