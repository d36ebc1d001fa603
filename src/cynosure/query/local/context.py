"""What lowering one query needs throughout: functions that must exist, names that are taken.

A maintainer must not break: `expressions`, `functions` and `aggregates` know subqueries only through
`lower_query`, so that none of them needs to know how queries are made.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from cynosure.query.local.exact import Function
from cynosure.query.local.scope import Output, Scope
from cynosure.query.local.typed import MAX_SQL, OutsideSubset, Typed, check_length

if TYPE_CHECKING:
    from sqlglot import exp

Windows = dict[str, "exp.Window"]
_MAX_MADE: Final = 64 * MAX_SQL
"""Letters of all expressions together, those inside of others counted again: so much may be held at once."""
_MAX_LETTERS: Final = 4_000
_MAX_GROWN: Final = 4 * _MAX_LETTERS
"""Of one text, and of all together, that functions make longer. There are thousands of rows at a time."""


class LoweredQuery(Struct, frozen=True):
    """A query of DuckDB and its columns `o0`, `o1` …"""

    sql: str
    outputs: tuple[Output, ...]

    def __post_init__(self) -> None:
        check_length(len(self.sql))


class Context(Struct):
    """Of one query of an engine."""

    lower_query: "Callable[[exp.Expression, Scope | None], LoweredQuery]"
    lower: "Callable[[exp.Expression, Place], Typed]"
    functions: dict[str, Function] = field(default_factory=dict)
    sources: int = 0
    made: int = 0
    letters: int = 0
    """Of the longest text inside of the expression that is lowered: see `Typed`."""
    grown: int = 0

    def next_alias(self) -> str:
        """For a source; never used twice."""
        self.sources += 1
        return f"s{self.sources}"

    def count(self, value: Typed) -> Typed:
        """The same; refused when expressions have become too long together."""
        self.made += len(value.sql)
        if self.made > _MAX_MADE:
            raise OutsideSubset("a statement that becomes too long")
        return value

    def grow(self, letters: int) -> int:
        """Of a text that is longer than its parts. DuckDB does not count it against the memory it may use."""
        self.grown += letters
        if letters > _MAX_LETTERS or self.grown > _MAX_GROWN:
            raise OutsideSubset("texts that may become too long")
        return letters

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
