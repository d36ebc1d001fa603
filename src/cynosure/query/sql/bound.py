"""What binding needs to know about tables, and what comes out of it.

    mention          a place in the tree that names a table: `a.b.t VERSION AS OF 5 x` is one, with its alias
    BoundTable       what the name stands for: columns of a table, or the query of a view
    MentionNeed      what the bound query needs of one mention: columns, predicates

A maintainer must not break: two mentions of one table are two needs; each is governed by itself.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from cynosure.iceberg.expressions.nodes import TRUE, Expression
from cynosure.iceberg.schema import Schema

if TYPE_CHECKING:
    from sqlglot import exp


class TimeTravel(Struct, frozen=True):
    """Which state of a table. One of them, or none for the current one."""

    version: int | str | None = None
    """A snapshot id, or the name of a branch or tag (`VERSION AS OF`, `FOR VERSION AS OF`, `t.branch_x`)."""
    timestamp_us: int | None = None
    """`TIMESTAMP AS OF`: the snapshot that was current then."""


class TableMention(Struct, frozen=True):
    """A table as a statement names it."""

    number: int
    """Unique in the statement, views included."""
    parts: tuple[str, ...]
    """As written, one part per level: `cat`.`ns`.`t`. Not resolved against the session's catalog yet."""
    travel: TimeTravel | None = None
    line: int = 0
    column: int = 0


class BoundTable(Struct, frozen=True):
    """A table: what can be asked of it."""

    schema: Schema
    """To read with."""
    masked: frozenset[int] = frozenset()
    """Field ids that are shown otherwise, nested ones included: no predicate on them is pushed."""


class BoundView(Struct, frozen=True):
    """A view: its query, parsed and allowed like a user's, bound with the invoker's rights."""

    tree: "exp.Expression"
    """Of its Spark representation. Its own mentions have numbers of their own."""
    columns: tuple[str, ...]
    """Names that it gives, in order."""
    default_catalog: str
    default_namespace: tuple[str, ...]
    """What names in it are relative to."""
    shown: str


BoundName = BoundTable | BoundView


class MentionNeed(Struct, frozen=True):
    """What a bound query needs of one mention."""

    mention: TableMention
    view: str
    """Its name in the bound tree: `cyn_<number>`."""
    columns: tuple[int, ...]
    """Top-level field ids, in the order of the schema. None: only the number of rows counts."""
    predicates: Expression = TRUE
    """What may be applied in the scan: column-op-literal by field id with constants of the columns' exact
    types, over unmasked primitive columns, joined by and/or; rows where it is not TRUE are not needed. It
    stays in the bound tree as well."""


class BoundQuery(Struct, frozen=True):
    """A query over views `cyn_<number>`, with views of the catalog inlined as subqueries."""

    tree: "exp.Expression"
    needs: tuple[MentionNeed, ...]
    columns: tuple[str, ...]
    """Names of the result where the statement says them; empty where only the engine knows. Fewer than there
    are columns where not even their number is known (PIVOT, table functions)."""


Tables = Mapping[int, BoundName]
"""By the number of the mention."""
