"""A filter that knows its columns: field ids instead of names, exact values instead of JSON.

A maintainer must not break: a value here is always of its term's type (`single_value.py` says how it is
held), so whoever evaluates it needs no casts.
"""

from typing import Any, TypeAlias

from msgspec import Struct

from cynosure.iceberg.expressions.nodes import Always, And, CompareOp, MemberOp, Not, Or, UnaryOp
from cynosure.iceberg.types import Type


class BoundReference(Struct, frozen=True):
    """A column that can be reached without going through a list or map."""

    id: int
    name: str
    """As the schema spells it, dotted."""
    type: Type
    is_required: bool
    """Whether the column and all structs around it are required, so that it is never null."""


class BoundTransform(Struct, frozen=True):
    """A partition transform of a column."""

    transform: str
    parameter: int | None
    source: BoundReference
    type: Type
    """Of the result."""

    @property
    def name(self) -> str:
        """The column's name, for messages."""
        return self.source.name


BoundTerm: TypeAlias = BoundReference | BoundTransform


class BoundUnary(Struct, frozen=True):
    """A question about one term."""

    op: UnaryOp
    term: BoundTerm


class BoundComparison(Struct, frozen=True):
    """A term against a value of its type."""

    op: CompareOp
    term: BoundTerm
    value: Any


class BoundTermComparison(Struct, frozen=True):
    """Two terms of one type, or of types that promote to one."""

    op: CompareOp
    left: BoundTerm
    right: BoundTerm


class BoundMembership(Struct, frozen=True):
    """A term against a set of values of its type, each once, in the order they were given."""

    op: MemberOp
    term: BoundTerm
    values: tuple[Any, ...]


BoundLeaf: TypeAlias = BoundUnary | BoundComparison | BoundTermComparison | BoundMembership
BoundExpression: TypeAlias = (
    Always | And["BoundExpression"] | Or["BoundExpression"] | Not["BoundExpression"] | BoundLeaf
)
