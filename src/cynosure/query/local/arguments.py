"""Arguments of functions: of one type, constant, or not at all.

A maintainer must not break: an argument that is not looked at is an error, not a default.
"""

from typing import Final

from sqlglot import exp

from cynosure.query.local import spark_types as t
from cynosure.query.local.context import Place
from cynosure.query.local.typed import OutsideSubset, Typed

INT_MAX: Final = 2**31 - 1
"""Spark takes no larger number for a position, length or count."""


def name_of(node: exp.Expression) -> str:
    """Of a function, for reasons."""
    return str(node.this).upper()[:40] if isinstance(node, exp.Anonymous) else type(node).__name__.upper()


def only(node: exp.Expression, *allowed: str) -> None:
    """Refuse a node with further arguments."""
    if {key for key, value in node.args.items() if value} - set(allowed):
        raise OutsideSubset(name_of(node))


def text_of(node: exp.Expression | None, place: Place, what: str) -> Typed:
    """An argument that is a text."""
    if node is None:
        raise OutsideSubset(what)
    value = place.lower(node)
    if value.type == t.NULL:
        return value.cast(t.STRING)
    if value.type != t.STRING:
        raise OutsideSubset(f"{what} of {value.type.kind}")
    return value


def number_of(node: exp.Expression | None, place: Place, what: str, low: int = 0) -> int:
    """An argument that is an integer of the statement."""
    constant = place.lower(node).constant if node is not None else None
    if not isinstance(constant, int) or not low <= constant <= INT_MAX:
        raise OutsideSubset(what)
    return constant


def any_query(*values: Typed) -> bool:
    """Whether a subquery is in one of them."""
    return any(each.has_query for each in values)
