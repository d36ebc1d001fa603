"""What a filter is made of: predicates, and the values they test.

A maintainer must not break: nodes say what was asked, not how it was written, so both JSON forms of the same
filter are equal. Comparisons are null-safe and two-valued, as Iceberg's expressions specification has it.
"""

from typing import Final, Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

from cynosure.iceberg.types import Type

E = TypeVar("E")

UnaryOp = Literal["is-null", "not-null", "is-nan", "not-nan"]
CompareOp = Literal["lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq", "starts-with", "not-starts-with"]
MemberOp = Literal["in", "not-in"]

ICEBERG_FUNCTIONS: Final = "iceberg_functions"
"""The reserved catalog name of the functions that Iceberg itself defines: its partition transforms."""


# Values.


class NamedReference(Struct, frozen=True):
    """A column by its dotted name."""

    name: str


class IdReference(Struct, frozen=True):
    """A column by its field id: survives a rename."""

    id: int


class Constant(Struct, frozen=True):
    """A value as JSON carries it; `type` is None when the writer left it to the column."""

    value: bool | int | float | str
    type: Type | None = None


class Function(Struct, frozen=True):
    """Which function: namespaces and name, and the catalog when it is not the table's own."""

    identifier: tuple[str, ...]
    catalog: str | None = None


class Apply(Struct, frozen=True):
    """A function called on values or predicates."""

    function: Function
    arguments: tuple["Value | Expression", ...]


Value: TypeAlias = NamedReference | IdReference | Constant | Apply


# Predicates. The first four also join bound leaves (`bound.py`).


class Always(Struct, frozen=True):
    """True for every row, or for none. Use `TRUE` and `FALSE`."""

    answer: bool


class And(Struct, Generic[E], frozen=True):
    """Both."""

    left: E
    right: E


class Or(Struct, Generic[E], frozen=True):
    """One of two, or both."""

    left: E
    right: E


class Not(Struct, Generic[E], frozen=True):
    """The complement: true for exactly the other rows."""

    child: E


class Unary(Struct, frozen=True):
    """A question about one value."""

    op: UnaryOp
    child: Value


class Comparison(Struct, frozen=True):
    """A question about two values."""

    op: CompareOp
    left: Value
    right: Value


class Membership(Struct, frozen=True):
    """Whether a value is one of a set of constants."""

    op: MemberOp
    child: Value
    values: tuple[Constant, ...]


TRUE: Final = Always(answer=True)
FALSE: Final = Always(answer=False)

Leaf: TypeAlias = Unary | Comparison | Membership
Expression: TypeAlias = Always | And["Expression"] | Or["Expression"] | Not["Expression"] | Leaf
