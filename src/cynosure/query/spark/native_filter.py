"""Row filters and predicates as conditions of Spark, in its SQL, for the inner session.

Means exactly what `query.scan.row_filter` does: only TRUE passes, NaN is above every number, the zeros are
one. Constants are written so that they have the column's very type; texts with escapes for all but letters
and digits.

Iceberg chooses files by the same conditions, with other rules for NaN, zeros and uuids: those are written so
that it either agrees or does not see them.

A maintainer must not break: what is not understood exactly is `NotReadable`, and nothing is cast but
constants.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, NoReturn

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
from cynosure.iceberg.expressions.nodes import Always, And, Or
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    StructType,
    Type,
    is_floating,
)
from cynosure.query.arrow_types import find_unsupported
from cynosure.query.errors import NotReadable

_SIGNS: Final = {"lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">=", "eq": "=", "not-eq": "<>"}
_BELOW_ZERO: Final = frozenset({"lt", "gt-eq"})
"""Compared with -0.0, these take both zeros alike for Iceberg too; the others do with 0.0."""


_Texts = tuple[str, str]


class Condition:
    """A condition of Spark, and the fields that it looks at."""

    def __init__(self, json: bytes, schema: Schema, *, what: str) -> None:
        try:
            bound = bind(parse_expression(json), StructType(schema.fields), field=what)
        except CynosureError:
            # Its text may hold constants of a policy.
            raise NotReadable("An expression is not understood exactly", what=what) from None
        self._schema = schema
        self.fields: set[int] = set()
        self.text, self.sample = fold(bound, self._expand)
        """In Spark's SQL. The sample has one constant in place of many: it is analyzed alike, and quickly."""

    @property
    def is_always_true(self) -> bool:
        """Whether all rows pass."""
        return self.text == "TRUE"

    def _expand(self, node: BoundExpression) -> tuple[Sequence[BoundExpression], Join[_Texts]]:
        sample = None
        match node:
            case And(left, right):
                return (left, right), lambda parts: _join(parts, "AND")
            case Or(left, right):
                return (left, right), lambda parts: _join(parts, "OR")
            case Always(answer):
                text = "TRUE" if answer else "FALSE"
            case BoundUnary(op, term):
                text = _unary(op, self._column(term))
            case BoundComparison(op, term, value):
                text = _comparison(op, self._column(term), value, term.type)
            case BoundMembership(op, term, values):
                text = _membership(op, self._column(term), values, term.type)
                sample = _membership(op, self._column(term), values[:1], term.type)
            case _:
                _refuse()
        return (), lambda _: (text, sample or text)

    def _column(self, term: BoundTerm) -> str:
        if not isinstance(term, BoundReference) or find_unsupported(term.type):
            _refuse()
        place = self._schema.places[term.id]
        self.fields.add(term.id)
        return ".".join(quote(each.name) for each in (*place.around, place.field))


def quote(name: str) -> str:
    """A name as Spark's SQL takes it."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def literal(value: Any, type_: Type) -> str:
    """A constant of exactly this type, or one that Spark makes so before it runs."""
    match type_:
        case DecimalType(precision, scale):
            return f"CAST('{Decimal(value):f}' AS DECIMAL({precision},{scale}))"
        case FixedType():
            return _bytes(value)
    write = _WRITERS.get(type_)
    return write(value) if write else _refuse()


def _join(parts: list[_Texts], word: str) -> _Texts:
    (left, left_sample), (right, right_sample) = parts
    return f"({left} {word} {right})", f"({left_sample} {word} {right_sample})"


def _unary(op: str, column: str) -> str:
    match op:
        case "is-null":
            return f"({column} IS NULL)"
        case "not-null":
            return f"({column} IS NOT NULL)"
        case "is-nan":
            return f"isnan({column})"
        case "not-nan":
            # Spark says of NULL that it is no NaN.
            return f"({column} IS NOT NULL AND NOT isnan({column}))"
    _refuse()


def _comparison(op: str, column: str, value: Any, type_: Type) -> str:
    if op in ("starts-with", "not-starts-with"):
        if not value:
            # Iceberg fails on it where a partition of shortened texts is NULL.
            return f"({column} IS NOT NULL)" if op == "starts-with" else "FALSE"
        found = f"startswith({_unseen(column, type_)}, {literal(value, STRING)})"
        return found if op == "starts-with" else f"(NOT {found})"
    if op not in _SIGNS:
        _refuse()
    if is_floating(type_):
        return _floating(op, column, value, type_)
    return f"({_unseen(column, type_)} {_SIGNS[op]} {literal(value, type_)})"


def _floating(op: str, column: str, value: float, type_: Type) -> str:
    if math.isnan(value):
        _refuse()
    if value == 0.0:
        if op == "eq":
            return _membership("in", column, (value,), type_)
        value = -0.0 if op in _BELOW_ZERO else 0.0
    text = f"({column} {_SIGNS[op]} {literal(value, type_)})"
    # NaN passes already; said aloud, Iceberg does not leave out files that have some.
    return f"({text} OR isnan({column}))" if op in ("gt", "gt-eq") else text


def _membership(op: str, column: str, values: Sequence[Any], type_: Type) -> str:
    if is_floating(type_) and any(map(math.isnan, values)):
        _refuse()
    if not values:
        _refuse()
    word = "IN" if op == "in" else "NOT IN"
    parts = [values]
    if is_floating(type_) and 0.0 in values:
        # Two to Iceberg. In a long list Spark takes them for one, and tells it of that alone: so they have
        # their own.
        parts = [[each for each in values if each != 0.0], (0.0, -0.0)]
    texts = [
        f"{_unseen(column, type_)} {word} ({', '.join(literal(each, type_) for each in part)})"
        for part in parts
        if part
    ]
    return f"({(' OR ' if op == 'in' else ' AND ').join(texts)})"


def _unseen(column: str, type_: Type) -> str:
    """Uuids are texts to Spark. Iceberg takes them for numbers, and leaves out groups of rows that match."""
    return f"concat({column}, '')" if type_ == UUID else column


def _number(value: float, name: str) -> str:
    if math.isnan(value):
        _refuse()
    if math.isinf(value):
        return f"CAST('{'-' if value < 0 else ''}Infinity' AS {name})"
    return f"CAST('{value!r}' AS {name})"


def _text(value: str) -> str:
    return f"'{''.join(map(_escape, value))}'"


def _escape(character: str) -> str:
    if character.isascii() and (character.isalnum() or character in " _-.:/@"):
        return character
    return f"\\U{ord(character):08X}"


def _bytes(value: bytes) -> str:
    return f"X'{value.hex()}'"


def _refuse() -> NoReturn:
    raise NotReadable("An expression has a part that is not evaluated by scans")


_WRITERS: Final[Mapping[Type, Callable[[Any], str]]] = {
    BOOLEAN: lambda value: "TRUE" if value else "FALSE",
    INT: lambda value: f"CAST({int(value)}L AS INT)",
    LONG: lambda value: f"{int(value)}L",
    FLOAT: partial(_number, name="FLOAT"),
    DOUBLE: partial(_number, name="DOUBLE"),
    DATE: lambda value: f"date_from_unix_date({int(value)})",
    # The inner session is in UTC.
    TIMESTAMP: lambda value: f"CAST(timestamp_micros({int(value)}L) AS TIMESTAMP_NTZ)",
    TIMESTAMPTZ: lambda value: f"timestamp_micros({int(value)}L)",
    STRING: _text,
    UUID: lambda value: _text(str(value)),
    BINARY: _bytes,
}
