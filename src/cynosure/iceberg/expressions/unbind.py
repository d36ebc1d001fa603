"""A bound filter as it would have been written: names of columns, constants as JSON carries them.

A maintainer must not break: binding what comes out to the same schema gives back what went in.
"""

from collections.abc import Sequence

from cynosure.iceberg.expressions.bound import (
    BoundComparison,
    BoundExpression,
    BoundMembership,
    BoundReference,
    BoundTerm,
    BoundTermComparison,
    BoundUnary,
)
from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    ICEBERG_FUNCTIONS,
    Always,
    And,
    Apply,
    Comparison,
    Constant,
    Expression,
    Function,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
    Value,
)
from cynosure.iceberg.single_value import write_value


def unbind(expression: BoundExpression) -> Expression:
    """The filter with the names that the schema has."""
    return fold(expression, _expand)


def _expand(node: BoundExpression) -> tuple[Sequence[BoundExpression], Join[Expression]]:
    leaf: Expression
    match node:
        case And(left, right):
            return (left, right), lambda parts: And(parts[0], parts[1])
        case Or(left, right):
            return (left, right), lambda parts: Or(parts[0], parts[1])
        case Not(child):
            return (child,), lambda parts: Not(parts[0])
        case Always():
            leaf = node
        case BoundUnary(test, term):
            leaf = Unary(test, _term(term))
        case BoundComparison(compare, term, value):
            leaf = Comparison(compare, _term(term), Constant(write_value(term.type, value)))
        case BoundMembership(member, term, values):
            constants = tuple(Constant(write_value(term.type, each)) for each in values)
            leaf = Membership(member, _term(term), constants)
        case BoundTermComparison(compare, one, other):
            leaf = Comparison(compare, _term(one), _term(other))
    return (), lambda _: leaf


def _term(term: BoundTerm) -> Value:
    if isinstance(term, BoundReference):
        return NamedReference(term.name)
    width = () if term.parameter is None else (Constant(term.parameter),)
    function = Function((term.transform,), ICEBERG_FUNCTIONS)
    return Apply(function, (*width, NamedReference(term.source.name)))
