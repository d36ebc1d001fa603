"""A filter as JSON.

A maintainer must not break: clients from before the current form understand only the older one, so residuals
go out in the older form unless the client showed that it knows better.
"""

from collections.abc import Sequence
from typing import Any, Final, NoReturn

import msgspec

from cynosure.common.errors import BadInput
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
    IdReference,
    Membership,
    NamedReference,
    Not,
    Or,
    Unary,
    Value,
)
from cynosure.iceberg.types import encode_type

FLIPPED: Final = {"lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq", "eq": "eq", "not-eq": "not-eq"}
"""What an operator becomes when its operands change places."""

Node = Expression | Value
Expansion = tuple[Sequence[Node], Join[Any]]


def encode_expression(expression: Expression, *, is_legacy: bool = False) -> bytes:
    """The canonical JSON text of a filter."""
    return msgspec.json.encode(expression_to_json(expression, is_legacy=is_legacy))


def expression_to_json(expression: Expression, *, is_legacy: bool = False) -> Any:
    """A filter as plain JSON values.

    The older form has no words for ids, calls of functions other than Iceberg's transforms, comparisons of
    two columns, or types of literals; types are left out, the others are `BadInput`.
    """
    root: Node = expression
    return fold(root, _expand_legacy if is_legacy else _expand)


def _expand(node: Node) -> Expansion:
    match node:
        case Always(answer):
            return (), lambda _: answer
        case And(left, right) | Or(left, right):
            op = "and" if isinstance(node, And) else "or"
            return (left, right), lambda parts: {"type": op, "left": parts[0], "right": parts[1]}
        case Not(child):
            return (child,), lambda parts: {"type": "not", "child": parts[0]}
        case Unary(test, child):
            return (child,), lambda parts: {"type": test, "child": parts[0]}
        case Comparison(compare, left, right):
            return (left, right), lambda parts: {"type": compare, "left": parts[0], "right": parts[1]}
        case Membership(member, child, values):
            constants = _write_constants(values)
            return (child,), lambda parts: {"type": member, "child": parts[0], "values": constants}
        case NamedReference(name):
            return (), lambda _: {"type": "reference", "name": name}
        case IdReference(id_):
            return (), lambda _: {"type": "reference", "id": id_}
        case Constant():
            return (), lambda _: _write_constant(node)
        case Apply(function, arguments):
            return arguments, lambda parts: {
                "type": "apply",
                "function": _write_function(function),
                "arguments": parts,
            }


def _expand_legacy(node: Node) -> Expansion:
    match node:
        case Unary(test, child):
            return (_term(child),), lambda parts: {"type": test, "term": parts[0]}
        case Comparison():
            return _expand_legacy_comparison(node)
        case Membership(member, child, values):
            constants = [one.value for one in values]
            return (_term(child),), lambda parts: {"type": member, "term": parts[0], "values": constants}
        case NamedReference(name):
            return (), lambda _: name
        case Apply(Function((transform,), catalog), arguments) if catalog in (None, ICEBERG_FUNCTIONS):
            match arguments:
                case (NamedReference() | Apply() as term,):
                    text = transform
                case (Constant(int(parameter)), NamedReference() | Apply() as term):
                    text = f"{transform}[{parameter}]"
                case _:
                    _refuse()
            return (term,), lambda parts: {"type": "transform", "transform": text, "term": parts[0]}
        case Always() | And() | Or() | Not():
            return _expand(node)
    _refuse()


def _expand_legacy_comparison(node: Comparison) -> Expansion:
    op, term, constant = node.op, node.left, node.right
    flipped = FLIPPED.get(op)
    if isinstance(term, Constant) and flipped is not None:
        term, constant, op = constant, term, flipped  # type: ignore[assignment]
    if not isinstance(constant, Constant):
        _refuse()
    value = constant.value
    return (_term(term),), lambda parts: {"type": op, "term": parts[0], "value": value}


def _term(value: Value) -> Value:
    if not isinstance(value, NamedReference | Apply):
        _refuse()
    return value


def _write_constant(constant: Constant) -> Any:
    if constant.type is None:
        return constant.value
    return {"type": "literal", "value": constant.value, "data-type": encode_type(constant.type)}


def _write_constants(values: tuple[Constant, ...]) -> Any:
    type_ = values[0].type if values else None
    if type_ is None or any(one.type != type_ for one in values):
        return [_write_constant(one) for one in values]
    return {
        "type": "literals",
        "values": [one.value for one in values],
        "data-type": encode_type(type_),
    }


def _write_function(function: Function) -> Any:
    if function.catalog is not None:
        return {"catalog": function.catalog, "identifier": list(function.identifier)}
    return function.identifier[0] if len(function.identifier) == 1 else list(function.identifier)


def _refuse() -> NoReturn:
    raise BadInput(
        "The expression cannot be written in the older form",
        field="expression",
        fix="Use the current form: left, right and child.",
    )
