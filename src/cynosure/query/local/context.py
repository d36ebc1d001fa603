"""What lowering one query needs throughout: functions that must exist, names that are taken.

A maintainer must not break: `expressions`, `functions` and `aggregates` know subqueries only through
`lower_query`, so that none of them needs to know how queries are made.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct, field

from cynosure.query.local.exact import Function
from cynosure.query.local.scope import Output, Scope
from cynosure.query.local.typed import Typed

if TYPE_CHECKING:
    from sqlglot import exp

Windows = dict[str, "exp.Window"]


class LoweredQuery(Struct, frozen=True):
    """A query of DuckDB and its columns `o0`, `o1` …"""

    sql: str
    outputs: tuple[Output, ...]


class Context(Struct):
    """Of one query of an engine."""

    lower_query: "Callable[[exp.Expression, Scope | None], LoweredQuery]"
    lower: "Callable[[exp.Expression, Place], Typed]"
    functions: dict[str, Function] = field(default_factory=dict)
    sources: int = 0

    def next_alias(self) -> str:
        """For a source; never used twice."""
        self.sources += 1
        return f"s{self.sources}"

    def need(self, function: Function) -> str:
        """Its name; it will be there."""
        self.functions[function.name] = function
        return function.name


class Place(Struct, frozen=True):
    """Where an expression stands."""

    context: Context
    scope: Scope
    windows: Windows = {}
    """Named windows of the SELECT."""

    def lower(self, node: "exp.Expression") -> Typed:
        """An expression inside of it."""
        return self.context.lower(node, self)

    def at(self, scope: Scope) -> "Place":
        """The same with other names."""
        return Place(self.context, scope, self.windows)
