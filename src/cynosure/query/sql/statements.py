"""What a statement can be, after parsing. Anything else is `NotAllowed`:

    SELECT …, WITH …, VALUES …, FROM t SELECT …                    Query
    EXPLAIN [EXTENDED | FORMATTED] query                           Explain
    SHOW CATALOGS | NAMESPACES/SCHEMAS/DATABASES | TABLES | VIEWS | COLUMNS | FUNCTIONS | CREATE TABLE |
        TBLPROPERTIES | CURRENT NAMESPACE
    DESCRIBE [TABLE] [EXTENDED] t | DESCRIBE NAMESPACE n | DESCRIBE QUERY q

A maintainer must not break: everything in here has passed the lists of what is allowed.
"""

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from sqlglot import exp


class Query(Struct, frozen=True):
    """Rows are asked for."""

    tree: "exp.Expression"
    """Allowed by itself; not bound yet."""


class Explain(Struct, frozen=True):
    """How a query would be answered."""

    query: Query
    is_extended: bool = False


class Show(Struct, frozen=True):
    """Names of things."""

    what: Literal[
        "catalogs",
        "namespaces",
        "tables",
        "views",
        "columns",
        "functions",
        "create-table",
        "tblproperties",
        "current-namespace",
    ]
    within: tuple[str, ...] = ()
    """Names as written: of a catalog and namespace (`IN a.b`), or of a table. Empty: the session's."""
    like: str | None = None
    """A pattern of Spark: `*` for anything, `|` between alternatives; without regard to case."""
    key: str | None = None
    """The one property that is asked for."""


class Describe(Struct, frozen=True):
    """What one thing is made of."""

    what: Literal["table", "namespace", "query"]
    name: tuple[str, ...] = ()
    is_extended: bool = False
    query: Query | None = None


Statement = Query | Explain | Show | Describe
