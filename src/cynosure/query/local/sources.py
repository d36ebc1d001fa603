"""FROM and joins: which rows a SELECT works on, and what their columns are called there.

A maintainer must not break: a relation is mentioned once in a tree and read once; a query of WITH that is
used twice is kept, not read twice.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlglot import exp

from cynosure.query.local import operators
from cynosure.query.local.context import Context, Place
from cynosure.query.local.fallible import all_of
from cynosure.query.local.scope import Output, Scope, Shown, Source
from cynosure.query.local.typed import OutsideSubset, Typed


class Cte(Struct, frozen=True):
    """A query of WITH."""

    alias: str
    sql: str
    outputs: tuple[Output, ...]
    uses: list[int]
    """One number: how often it is used."""


Ctes = dict[str, Cte]
Relations = dict[str, tuple[Output, ...]]

_KINDS: Final = {
    ("", ""): "JOIN",
    ("", "INNER"): "JOIN",
    ("", "CROSS"): "CROSS JOIN",
    ("LEFT", ""): "LEFT JOIN",
    ("LEFT", "OUTER"): "LEFT JOIN",
    ("RIGHT", ""): "RIGHT JOIN",
    ("RIGHT", "OUTER"): "RIGHT JOIN",
    ("FULL", ""): "FULL JOIN",
    ("FULL", "OUTER"): "FULL JOIN",
    ("LEFT", "SEMI"): "SEMI JOIN",
    ("", "SEMI"): "SEMI JOIN",
    ("LEFT", "ANTI"): "ANTI JOIN",
    ("", "ANTI"): "ANTI JOIN",
}

_ALL_ROWS: Final = 2**63 - 1
"""A limit that nothing reaches: conditions are not moved below a limit."""


def lower_from(node: exp.Select, scope: Scope, context: Context, ctes: Ctes, relations: Relations) -> str:
    """` FROM …`, or nothing; the scope knows the sources afterwards."""
    clause = node.args.get("from_")
    joins = node.args.get("joins") or []
    if clause is None:
        if joins:
            raise OutsideSubset("joins without FROM")
        return ""
    is_filtered = bool(joins or node.args.get("where"))
    maker = _Sources(scope, context, ctes, relations, is_filtered=is_filtered)
    sql, source = maker.source(clause.this)
    scope.add(source)
    for join in joins:
        sql += maker.join(join, _word(join))
    return f" FROM {sql}"


def _word(join: exp.Expression) -> str:
    if {key for key, value in join.args.items() if value} - {"this", "side", "kind", "on", "using", "method"}:
        raise OutsideSubset("a join of this kind")
    word = _KINDS.get((str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()))
    if word is None:
        raise OutsideSubset("a join of this kind")
    is_natural = str(join.args.get("method") or "").upper() == "NATURAL"
    if (join.args.get("method") and not is_natural) or (is_natural and word in {"SEMI JOIN", "ANTI JOIN"}):
        raise OutsideSubset("a join of this kind")
    has_condition = bool(join.args.get("on") or join.args.get("using") or is_natural)
    if word == "JOIN" and not has_condition:
        return "CROSS JOIN"
    if word == "CROSS JOIN" and has_condition:
        return "JOIN"
    if not has_condition and word != "CROSS JOIN":
        raise OutsideSubset("an outer join without a condition")
    return word


class _Sources:
    """Makes sources of one FROM."""

    def __init__(
        self, scope: Scope, context: Context, ctes: Ctes, relations: Relations, *, is_filtered: bool
    ) -> None:
        self._is_filtered = is_filtered
        self._scope = scope
        self._context = context
        self._ctes = ctes
        self._relations = relations

    def source(self, node: exp.Expression) -> tuple[str, Source]:
        """Text and names of one item."""
        alias = self._context.next_alias()
        if isinstance(node, exp.Table):
            return self._table(node, alias)
        if isinstance(node, exp.Subquery | exp.Values):
            allowed = {"this", "alias"} if isinstance(node, exp.Subquery) else {"expressions", "alias"}
            if {key for key, value in node.args.items() if value} - allowed:
                raise OutsideSubset("a subquery in FROM of this kind")
            lowered = self._context.lower_query(
                node.this if isinstance(node, exp.Subquery) else node, self._scope.parent
            )
            outputs = _renamed(lowered.outputs, node.args.get("alias"))
            sql = lowered.sql
            if self._is_filtered and any(each.is_fallible for each in outputs):
                # A condition that DuckDB moved into it could meet rows that its own conditions leave out.
                sql = f"SELECT * FROM ({sql}) AS inside LIMIT {_ALL_ROWS}"  # noqa: S608 - made here only
            return f"({sql}) AS {alias}", Source(node.alias, alias, outputs)
        raise OutsideSubset(f"{type(node).__name__.upper()} in FROM")

    def _table(self, node: exp.Table, alias: str) -> tuple[str, Source]:
        if {key for key, value in node.args.items() if value} - {"this", "alias"}:
            raise OutsideSubset("a table of this kind")
        if not isinstance(node.this, exp.Identifier):
            raise OutsideSubset("a table function")
        name = node.name.lower()
        if name in self._ctes:
            cte = self._ctes[name]
            # Kept rather than put in, for the same reason as below; see `_ALL_ROWS`.
            cte.uses[0] += 2 if self._is_filtered and any(each.is_fallible for each in cte.outputs) else 1
            outputs = _renamed(cte.outputs, node.args.get("alias"))
            return f"{cte.alias} AS {alias}", Source(node.alias_or_name, alias, outputs)
        if name not in self._relations:
            raise OutsideSubset("a name that is no relation")
        outputs = _renamed(self._relations[name], node.args.get("alias"))
        return f"{name} AS {alias}", Source(node.alias_or_name, alias, outputs)

    def join(self, node: exp.Expression, word: str) -> str:
        """One join: its text; what it adds is in the scope then."""
        sql, source = self.source(node.this)
        if word == "CROSS JOIN":
            self._scope.add(source)
            return f" CROSS JOIN {sql}"
        using = [each.name for each in node.args.get("using") or []]
        if node.args.get("method"):
            using = self._common(source)
        if using:
            return f" {word} {sql} ON {self._using(using, source, word)}"
        self._scope.sources.append(source)
        place = Place(self._context, self._scope)
        condition = all_of(node.args["on"], place, is_filter=True)
        if condition.has_query and word != "JOIN":
            raise OutsideSubset("a subquery in the condition of an outer join")
        if word in {"SEMI JOIN", "ANTI JOIN"}:
            self._scope.sources.pop()
        else:
            self._scope.shown += source.shown()
        return f" {word} {sql} ON {condition.sql}"

    def _common(self, source: Source) -> list[str]:
        """What both sides of a NATURAL join have, in the order of the left one."""
        right = {each.name.lower() for each in source.outputs}
        found = [each.name for each in self._scope.shown if each.name.lower() in right]
        if not found:
            raise OutsideSubset("a NATURAL join of what has no column in common")
        return found

    def _using(self, names: list[str], source: Source, word: str) -> str:
        conditions, hidden, merged = [], set(), {}
        for each in names:
            left = self._scope.resolve([each])
            places = [i for i, one in enumerate(source.outputs) if one.name.lower() == each.lower()]
            if len(places) != 1:
                raise OutsideSubset("USING of a name that is not there once")
            right = source.column(places[0])
            if left.type != right.type:
                raise OutsideSubset("USING of different types")
            conditions.append(operators.compare("=", left, right))
            hidden.add(places[0])
            merged[each.lower()] = {
                "RIGHT JOIN": right,
                "FULL JOIN": Typed(
                    f"coalesce({left.sql}, {right.sql})", left.type, letters=max(left.letters, right.letters)
                ),
            }.get(word, left)
        self._show(merged, source, word)
        if word not in {"SEMI JOIN", "ANTI JOIN"}:
            self._scope.merged.update(merged)
            self._scope.sources.append(Source(source.name, source.alias, source.outputs, frozenset(hidden)))
        return operators.join_conditions("AND", conditions).sql

    def _show(self, merged: dict[str, Typed], source: Source, word: str) -> None:
        """The order of `*`: keys, what is left of the left side, what is left of the right one."""
        scope = self._scope
        left, right = _split(scope.shown, merged), _split(source.shown(), merged)
        if word in {"SEMI JOIN", "ANTI JOIN"}:
            scope.shown = [*left[0], *left[1]]
            return
        keys = right[0] if word == "RIGHT JOIN" else left[0]
        if word == "FULL JOIN":
            keys = [Shown(each.name, merged[each.name.lower()], "") for each in left[0]]
        covered = {"RIGHT JOIN": left[0], "FULL JOIN": [*left[0], *right[0]]}.get(word, right[0])
        scope.shown = [*keys, *left[1], *right[1]]
        scope.covered = [*covered, *scope.covered]


def _split(shown: list[Shown], keys: Iterable[str]) -> tuple[list[Shown], list[Shown]]:
    """Columns of these names, in the order of the names; and all others."""
    found = []
    for key in keys:
        named = [each for each in shown if each.name.lower() == key]
        if len(named) != 1:
            raise OutsideSubset("USING of a name that is not there once")
        found += named
    return found, [each for each in shown if each not in found]


def _renamed(outputs: tuple[Output, ...], alias: exp.Expression | None) -> tuple[Output, ...]:
    names = [each.name for each in alias.args.get("columns") or []] if alias is not None else []
    if not names:
        return outputs
    if len(names) != len(outputs):
        raise OutsideSubset("names for a different number of columns")
    return tuple(replace(each, name=name) for name, each in zip(names, outputs, strict=True))
