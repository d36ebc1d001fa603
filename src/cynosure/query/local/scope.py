"""What names mean at one place of a query: sources with their columns, and the query around it.

A maintainer must not break: a name that could mean two things here is refused, not guessed.
"""

from typing import NamedTuple

from msgspec import Struct

from cynosure.iceberg import types as iceberg
from cynosure.query.local.spark_types import SparkType, of_iceberg
from cynosure.query.local.typed import COLUMN_LETTERS, OutsideSubset, Typed


class Output(Struct, frozen=True):
    """A column that a query or relation gives. In DuckDB it is called by its place: `o0`, `o1` …"""

    name: str
    """What the statement calls it; empty: it has no name that can be used."""
    type: SparkType
    is_fallible: bool = False
    letters: int = COLUMN_LETTERS
    """Both: see `Typed`."""


class Shown(NamedTuple):
    """A column of FROM as `*` has it."""

    name: str
    value: Typed
    source: str
    """What DuckDB calls its source; empty: of no single one, the key of a full join."""


class Source(Struct, frozen=True):
    """One item of FROM."""

    name: str
    """What the statement calls it."""
    alias: str
    """What DuckDB calls it."""
    outputs: tuple[Output, ...]
    hidden: frozenset[int] = frozenset()
    """Places of columns that are seen with the source's name only: the right ones of USING."""

    def shown(self) -> list[Shown]:
        """Its columns in order."""
        return [Shown(each.name, self.column(place), self.alias) for place, each in enumerate(self.outputs)]

    def column(self, place: int) -> Typed:
        """A column of it."""
        output = self.outputs[place]
        return Typed(
            f"{self.alias}.o{place}", output.type, is_fallible=output.is_fallible, letters=output.letters
        )


class Scope:
    """Names of one SELECT."""

    def __init__(self, parent: "Scope | None" = None) -> None:
        self.parent = parent
        self.sources: list[Source] = []
        self.shown: list[Shown] = []
        """What `*` gives, in order."""
        self.covered: list[Shown] = []
        """Keys of joins that are seen with the name of their source only: what `t.*` begins with."""
        self.merged: dict[str, Typed] = {}
        """Columns of USING, for names without a source."""
        self.aliases: dict[str, Typed] = {}
        """Names of the SELECT list where they can be used: ORDER BY, GROUP BY, HAVING."""
        self.forbidden: frozenset[str] = frozenset()
        """Names that mean columns of the same SELECT list, which is not lowered."""
        self.is_named_inside = False
        """Whether a subquery names something of it."""
        self.unclear: frozenset[str] = frozenset()
        """Names that could mean a column or another one of the SELECT list."""

    def add(self, source: Source) -> None:
        """One more thing in FROM."""
        self.sources.append(source)
        self.shown += source.shown()

    def resolve(self, parts: list[str]) -> Typed:
        """A column by its parts, as written: `column`, `source.column`, and fields of structs behind it."""
        found = self._find(parts)
        if found is None:
            raise OutsideSubset("a name that is not known here")
        return found

    def _find(self, parts: list[str]) -> Typed | None:
        here = self._find_here(parts)
        if here is not None:
            return here
        if parts[0].lower() in self.forbidden:
            raise OutsideSubset("a column that names another one of the same SELECT")
        if self.parent is None:
            return None
        found = self.parent._find(parts)
        self.parent.is_named_inside = self.parent.is_named_inside or found is not None
        return found

    def _find_here(self, parts: list[str]) -> Typed | None:
        name = parts[0].lower()
        sources = [each for each in self.sources if each.name.lower() == name]
        if len(parts) > 1 and sources:
            if len(sources) > 1:
                raise OutsideSubset("a source that is named twice")
            places = [
                place
                for place, output in enumerate(sources[0].outputs)
                if output.name.lower() == parts[1].lower()
            ]
            column = self._only([sources[0].column(place) for place in places])
            return None if column is None else follow(column, parts[2:])
        column = self._find_plain(name)
        return None if column is None else follow(column, parts[1:])

    def _find_plain(self, name: str) -> Typed | None:
        if name in self.unclear:
            raise OutsideSubset("an ambiguous name")
        if name in self.aliases:
            return self.aliases[name]
        if name in self.merged:
            return self.merged[name]
        return self._only(
            [
                source.column(place)
                for source in self.sources
                for place, output in enumerate(source.outputs)
                if output.name.lower() == name and place not in source.hidden
            ]
        )

    @staticmethod
    def _only(found: list[Typed]) -> Typed | None:
        if len(found) > 1:
            raise OutsideSubset("an ambiguous name")
        return found[0] if found else None

    def overlay(self, aliases: dict[str, Typed], unclear: frozenset[str]) -> "Scope":
        """The same with names of the SELECT list in front."""
        scope = Scope(self.parent)
        scope.sources, scope.merged = self.sources, self.merged
        scope.aliases, scope.unclear = aliases, unclear
        return scope

    def star(self, source_name: str | None = None) -> list[tuple[str, Typed]]:
        """What `*` stands for, in order."""
        shown = self.shown
        if source_name is not None:
            named = {each.alias for each in self.sources if each.name.lower() == source_name.lower()}
            shown = [each for each in (*self.covered, *self.shown) if each.source in named]
        return [(each.name, each.value) for each in shown]


def follow(value: Typed, names: list[str]) -> Typed:
    """Fields of a struct, one inside of the other."""
    for name in names:
        nested = value.type.nested
        if not isinstance(nested, iceberg.StructType):
            raise OutsideSubset("a field of what is no struct")
        fields = [each for each in nested.fields if each.name.lower() == name.lower()]
        type_ = of_iceberg(fields[0].type) if len(fields) == 1 else None
        if type_ is None:
            raise OutsideSubset("a field that is not known here")
        sql = f"struct_extract({value.sql}, '{quote_text(fields[0].name)}')"
        value = Typed(sql, type_, has_query=value.has_query)
    return value


def quote_text(text: str) -> str:
    """Inside of quotes of DuckDB's text."""
    return text.replace("'", "''")
