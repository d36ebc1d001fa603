"""An expression of DuckDB with the type that Spark gives to it, and why something is not lowered.

A maintainer must not break: the text of a `Typed` has, in DuckDB, exactly the type `type.duck`. Whoever makes
one casts.
"""

from typing import Any

from msgspec import Struct

from cynosure.query.local.spark_types import NULL, SparkType


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

    def cast(self, type_: SparkType) -> "Typed":
        """The same in another type that holds it. Without the rules of literals."""
        if self.type == type_:
            return self
        if self.type == NULL:
            return Typed(f"CAST(NULL AS {type_.duck})", type_)
        return Typed(f"CAST({self.sql} AS {type_.duck})", type_, has_query=self.has_query)


def text_literal(value: str) -> str:
    """A text in DuckDB's SQL."""
    if "\0" in value:
        raise OutsideSubset("a NUL character")
    escaped = value.replace("'", "''")
    return f"CAST('{escaped}' AS VARCHAR)"


def failing(condition: str) -> str:
    """An expression that fails with a condition of Spark: see `failures.py`."""
    return f"error('CYN_{condition}')"
