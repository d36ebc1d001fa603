"""What names mean inside one SELECT, as Spark has it: without regard to case, the longest qualifier first.

    Out      a column that something gives: of a table, or of a subquery
    Source   something in FROM, with its qualifier and its columns
    Scope    the sources of one SELECT, and the scope around it for correlated subqueries

A column of a table that passes through `*` unchanged stays the same `Out`, so that it is asked for only if
somebody above asks.

A maintainer must not break: what is asked of a table is never less than what the written tree names. More is
slow; less is an error in the engine.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import NamedTuple, NoReturn

from cynosure.iceberg.types import NestedField
from cynosure.query.arrow_types import find_unsupported
from cynosure.query.errors import SqlError


class Out:
    """A column that a source gives."""

    __slots__ = ("field", "is_asked", "mention", "name")

    def __init__(self, name: str, *, mention: int | None = None, field: NestedField | None = None) -> None:
        self.name = name
        self.mention = mention
        self.field = field
        self.is_asked = False

    def ask(self) -> None:
        """It is needed."""
        if self.field is not None and (type_ := find_unsupported(self.field.type)) is not None:
            raise SqlError(
                "The type of a column is not supported",
                fix="Leave the column out.",
                name=self.name,
                type=type_,
            )
        self.is_asked = True

    @property
    def is_supported(self) -> bool:
        """Whether `*` has it."""
        return self.field is None or find_unsupported(self.field.type) is None


class Source:
    """Something in FROM."""

    def __init__(
        self, qualifiers: Iterable[tuple[str, ...]], columns: Sequence[Out], *, is_open: bool = False
    ) -> None:
        self.qualifiers = frozenset(tuple(part.lower() for part in each) for each in qualifiers)
        self.columns = tuple(columns)
        self.is_open = is_open
        """It has columns that are not known here: the engine knows their names."""
        self.alias: str = ""
        """What its columns are qualified with in the tree now, if that is another name than was written."""
        self.pushed: frozenset[int] = frozenset()
        """Mentions whose rows are this source's rows one by one: a condition on it may go to their scans."""
        self.is_hidden = False
        """The right side of a semi or anti join: seen by its condition only."""
        self.is_null_side = False
        """An outer join may give null in place of its rows."""

    def find(self, name: str) -> list[Out]:
        """Its columns of a name."""
        return self._by_name.get(name.lower(), [])

    @cached_property
    def _by_name(self) -> dict[str, list[Out]]:
        found: dict[str, list[Out]] = {}
        for each in self.columns:
            found.setdefault(each.name.lower(), []).append(each)
        return found

    def ask_all(self) -> None:
        """All that `*` has."""
        for each in self.columns:
            if each.is_supported:
                each.ask()


class Found:
    """What a name stands for."""

    __slots__ = ("is_guess", "out", "qualifier_length", "source")

    def __init__(
        self, out: Out | None, source: Source | None, qualifier_length: int, *, is_guess: bool = False
    ) -> None:
        self.is_guess = is_guess
        """It may be a column of something whose columns are not known here."""
        self.out = out
        """None: a name of the SELECT itself, or of something that is not known here."""
        self.source = source
        self.qualifier_length = qualifier_length


class Shown(NamedTuple):
    """A column of FROM as `*` has it."""

    out: Out
    source: Source | None
    """None: of no single one, the key of a full join."""


class Given:
    """Columns of a SELECT by name, as far as they are known before it runs."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Out]] = {}
        self._made: dict[str, int] = {}
        self._has_unnamed = False
        self._is_open = False

    def add(self, name: str, origin: Out | None, *, is_new: bool) -> None:
        """One more. `is_new`: it got its name here; else `origin` is the column that it is, if known."""
        columns = self._columns.setdefault(name.lower(), [])
        if is_new:
            self._made[name.lower()] = self._made.get(name.lower(), 0) + 1
        elif origin is not None and all(each is not origin for each in columns):
            columns.append(origin)

    def add_unnamed(self) -> None:
        """One that Spark calls by its text: `count(1)`."""
        self._has_unnamed = True

    def add_unknown(self) -> None:
        """Some, with names that only the engine knows."""
        self._is_open = True

    def has(self, name: str) -> bool:
        """Whether a column has this name."""
        return name.lower() in self._columns

    def has_column(self, out: Out | None) -> bool:
        """Whether a column is just this one."""
        return any(each is out for columns in self._columns.values() for each in columns)

    def may_have(self, name: str) -> bool:
        """Whether one that is not known here could have it."""
        return self._is_open or (self._has_unnamed and not name.replace("_", "a").isalnum())

    def require_one(self, name: str) -> None:
        """`SqlError` if it could be two that Spark does not tell apart. A column and a made one it does."""
        if len(self._columns[name.lower()]) > 1 or self._made.get(name.lower(), 0) > 1:
            raise SqlError(
                "Two columns of SELECT have this name",
                fix="Name one of them otherwise with AS, or write its position.",
                name=name,
            )


class Scope:
    """Names of one SELECT."""

    def __init__(self, outer: "Scope | None") -> None:
        self.outer = outer
        self.sources: list[Source] = []
        self.shown: list[Shown] = []
        """What `*` gives, in order."""
        self.covered: list[Shown] = []
        """Keys of joins that are seen with the name of their source only: what `t.*` begins with."""
        self.merged: dict[str, list[Out]] = {}
        """Columns of USING and NATURAL joins: one name for both sides."""
        self.aliases: set[str] = set()
        """Names that SELECT's own items have got so far: by AS, or as fields of structs."""
        self._named: dict[tuple[str, ...], list[Source]] = {}
        self.given = Given()
        """What SELECT gives: what ORDER BY and HAVING look at first."""

    def add(self, source: Source) -> None:
        """One more thing in FROM."""
        self.sources.append(source)
        self._name(source)
        self.shown += [Shown(each, source) for each in source.columns]

    def take_over(self, inner: "Scope") -> None:
        """All of a join in parentheses."""
        self.sources += inner.sources
        for source in inner.sources:
            self._name(source)
        self.shown += inner.shown
        self.covered += inner.covered
        self.merged.update(inner.merged)

    def _name(self, source: Source) -> None:
        for each in source.qualifiers:
            self._named.setdefault(each, []).append(source)

    def visible(self) -> list[Source]:
        """Sources whose columns can be named."""
        return [each for each in self.sources if not each.is_hidden]

    @property
    def is_open(self) -> bool:
        """Whether there may be columns that are not known here."""
        return any(each.is_open for each in self.sources)

    def around(self) -> "Iterator[Scope]":
        """This scope and those around it, the nearest first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    def resolve(self, parts: Sequence[str], *, prefer_given: bool = False, is_select: bool = True) -> Found:
        """What a name with dots stands for. `SqlError` when it is nothing, or could be two things.

        Errors do not say where: in a view, looking for that takes as long as the view is.
        """
        if prefer_given and len(parts) == 1 and self.given.has(parts[0]):
            self.given.require_one(parts[0])
            # Spark decides by the place (`HAVING max(k) > 1` is about the column): so it must be there.
            for source in self.visible():
                for out in source.find(parts[0]):
                    if out.is_supported:
                        out.ask()
            return Found(None, None, 0)
        for scope in self.around():
            found = scope._resolve_here(parts)
            if found is not None:
                return found
            if scope is self and is_select and parts[0].lower() in self.aliases:
                return Found(None, None, 0)
        if any(scope.is_open for scope in self.around()) or (prefer_given and self.given.may_have(parts[0])):
            return Found(None, None, 0, is_guess=True)
        self._refuse_unknown(parts)

    def find_sources(self, qualifier: Sequence[str]) -> list[Source]:
        """Sources of a qualifier: what `t.*` means."""
        wanted = tuple(part.lower() for part in qualifier)
        return [each for each in self._named.get(wanted, ()) if not each.is_hidden]

    def find_column(self, parts: Sequence[str]) -> Out | None:
        """The one column of a source of this very scope that a whole path names; no field of a struct."""
        found = self.find_exactly([part.lower() for part in parts])
        return found[0] if found is not None else None

    def find_exactly(self, parts: Sequence[str]) -> tuple[Out, Source] | None:
        """The same, with its source. None where more than one thing could be meant, or a merged column."""
        *qualifier, name = parts
        if not qualifier and name in self.merged:
            return None
        visible = self.visible()
        found = [
            (out, source)
            for source in visible
            if not qualifier or tuple(qualifier) in source.qualifiers or qualifier == [source.alias.lower()]
            for out in source.find(name)
        ]
        if len(found) != 1 or (len(qualifier) == 1 and any(each.find(qualifier[0]) for each in visible)):
            return None
        return found[0]

    def _resolve_here(self, parts: Sequence[str]) -> Found | None:
        for length in range(len(parts) - 1, 0, -1):
            matching = self.find_sources(parts[:length])
            found = [(out, source) for source in matching for out in source.find(parts[length])]
            if found:
                return self._one(found, parts, length)
            if any(each.is_open for each in matching):
                return Found(None, None, length)
        merged = self.merged.get(parts[0].lower())
        if merged:
            for out in merged:
                out.ask()
            return Found(None, None, 0)
        found = [(out, source) for source in self.visible() for out in source.find(parts[0])]
        return self._one(found, parts, 0) if found else None

    def _one(self, found: list[tuple[Out, Source]], parts: Sequence[str], length: int) -> Found:
        if len(found) > 1:
            candidates = sorted({".".join((*min(s.qualifiers, default=()), o.name)) for o, s in found})
            raise SqlError(
                "The name of a column is ambiguous",
                fix="Write the table or alias before it.",
                name=".".join(parts),
                candidates=candidates,
            )
        out, source = found[0]
        out.ask()
        return Found(out, source, length)

    def _refuse_unknown(self, parts: Sequence[str]) -> NoReturn:
        names = {
            each.name for scope in self.around() for source in scope.visible() for each in source.columns
        } | self.aliases
        wanted = parts[-1] if len(parts) > 1 else parts[0]
        by_lower = {name.lower(): name for name in sorted(names)}
        near = [by_lower[each] for each in get_close_matches(wanted.lower(), by_lower, n=3, cutoff=0.6)]
        raise SqlError(
            "There is no such column",
            fix=f"Did you mean {' or '.join(near)}?" if near else "DESCRIBE the table to see its columns.",
            name=".".join(parts),
        )
