"""An expression of DuckDB with the type that Spark gives to it, and why something is not lowered.

A maintainer must not break: the text of a `Typed` has, in DuckDB, exactly the type `type.duck`. Whoever makes
one casts.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from cynosure.query.local.spark_types import NULL, SparkType

MAX_SQL: Final = 2**20
"""Longest text for DuckDB, of any part of a statement: some operands stand in it more than once."""
_MAX_REPEATED: Final = 1_000
"""Longest operands that are repeated rather than bound, which takes DuckDB longer."""
COLUMN_LETTERS: Final = 100
"""What a text of a table counts as: see `Typed.letters`."""


class OutsideSubset(Exception):
    """What of a query is not known to be answered alike. `what`: names of nodes and types, no constants."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Typed(Struct, frozen=True):
    """Text with its type."""

    sql: str
    type: SparkType
    constant: Any = None
    """The value of a bare literal of the statement (int or str): Spark has rules of their own for these."""
    is_suffixed: bool = False
    """`1L` and `CAST(1 AS BIGINT)` look alike by now, and differ beside decimals."""
    is_fallible: bool = False
    """Of a column: computed in a subquery, for some rows only, in a way that can fail on others."""
    has_query: bool = False
    """Whether a subquery is in it: such text is not repeated, as it would scan again."""
    letters: int = COLUMN_LETTERS
    """Of a text: how long it may be if those of tables are not longer than `COLUMN_LETTERS`."""

    def __post_init__(self) -> None:
        check_length(len(self.sql))

    def cast(self, type_: SparkType) -> "Typed":
        """The same in another type that holds it. Without the rules of literals."""
        if self.type == type_:
            return self
        if self.type == NULL:
            return Typed(f"CAST(NULL AS {type_.duck})", type_)
        return Typed(f"CAST({self.sql} AS {type_.duck})", type_, has_query=self.has_query)


def check_length(length: int) -> None:
    """Ask before a text is made: one that doubles some times is the end of the process."""
    if length > MAX_SQL:
        raise OutsideSubset("a statement that becomes too long")


def join_texts(separator: str, texts: Iterable[str]) -> str:
    """One text of many, if it is not too long."""
    parts = list(texts)
    check_length(sum(len(each) + len(separator) for each in parts))
    return separator.join(parts)


def bind(operands: list[str], make: Callable[..., str]) -> str:
    """What `make` writes of operands that it repeats: long ones by names, or each operator doubled them."""
    if sum(len(each) for each in operands) <= _MAX_REPEATED:
        return make(*operands)
    fields = join_texts(", ", (f"p{place} := {each}" for place, each in enumerate(operands)))
    # Not `v.p0`, which DuckDB takes for a column in HAVING.
    body = make(*(f"struct_extract(v, 'p{place}')" for place in range(len(operands))))
    return f"list_transform([struct_pack({fields})], lambda v: {body})[1]"


def text_literal(value: str) -> str:
    """A text in DuckDB's SQL."""
    if "\0" in value:
        raise OutsideSubset("a NUL character")
    escaped = value.replace("'", "''")
    return f"CAST('{escaped}' AS VARCHAR)"


def failing(condition: str) -> str:
    """An expression that fails with a condition of Spark: see `failures.py`."""
    return f"error('CYN_{condition}')"
