"""A filter for people and logs.

A maintainer must not break: no constant appears in it. A filter's constants are somebody's data.
"""

from collections.abc import Sequence

from cynosure.iceberg.expressions.fold import Join, fold
from cynosure.iceberg.expressions.nodes import (
    Always,
    And,
    Apply,
    Comparison,
    Constant,
    Expression,
    IdReference,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
    Value,
)

_SIGNS = {"lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">=", "eq": "=", "not-eq": "!="}
_KINDS = {bool: "boolean", int: "int", float: "double", str: "string"}


Node = Expression | Value


def describe(expression: Expression) -> str:
    """The filter as one line, with kinds of values in place of the values."""
    root: Node = expression
    return fold(root, _expand)


def _expand(node: Node) -> tuple[Sequence[Node], Join[str]]:
    match node:
        case Always(answer):
            return (), lambda _: "true" if answer else "false"
        case And(left, right):
            return (left, right), lambda parts: f"({parts[0]} and {parts[1]})"
        case Or(left, right):
            return (left, right), lambda parts: f"({parts[0]} or {parts[1]})"
        case Not(child):
            return (child,), lambda parts: f"not {parts[0]}"
        case Unary(test, child):
            return (child,), lambda parts: f"{parts[0]} {test}"
        case Comparison(op, left, right):
            return (left, right), lambda parts: f"{parts[0]} {_SIGNS.get(op, op)} {parts[1]}"
        case Membership(member, child, values):
            return (child,), lambda parts: f"{parts[0]} {member} ({len(values)} values)"
        case _:
            return _expand_value(node)


def _expand_value(value: Value) -> tuple[Sequence[Node], Join[str]]:
    match value:
        case NamedReference(name):
            return (), lambda _: name
        case IdReference(id_):
            return (), lambda _: f"#{id_}"
        case Constant(json, type_):
            return (), lambda _: f"({type_ or _KINDS[type(json)]})"
        case Apply(function, arguments):
            name = ".".join(function.identifier)
            return arguments, lambda parts: f"{name}({', '.join(parts)})"
