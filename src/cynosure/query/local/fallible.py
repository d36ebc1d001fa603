"""Which expressions can fail on a row, and conditions that keep others from being asked about it.

`b <> 0 AND a / b > 1` does not fail in Spark: the second is asked only where the first holds. DuckDB promises
no order, least of all where it moves conditions below joins. So what can fail is put behind what stands
before it by CASE, which both engines evaluate in order.

A maintainer must not break: a condition that comes first in the statement is asked first.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from sqlglot import exp

from cynosure.query.local import operators
from cynosure.query.local import spark_types as t
from cynosure.query.local.canonical import flatten
from cynosure.query.local.context import Place
from cynosure.query.local.typed import OutsideSubset, Typed, join_texts

_FAILING: Final = (
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Round),
    *(exp.Cast, exp.TryCast, exp.Anonymous),
)


def may_fail(node: exp.Expression, place: Place) -> bool:
    """Whether it can fail on some row. Of subqueries it counts what they are compared with."""
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Column):
        try:
            return place.scope.resolve([each.name for each in node.parts]).is_fallible
        except OutsideSubset:
            return False  # and it is refused where it is lowered
    if isinstance(node, _FAILING) and node.find(exp.Column):
        return True
    return any(may_fail(each, place) for each in node.iter_expressions())


def all_of(node: exp.Expression, place: Place, *, is_filter: bool) -> Typed:
    """AND. `is_filter`: only rows count for which all hold, so unknown is as good as false."""
    kind = _FILTER if is_filter else _ALL
    if is_filter and not isinstance(node, exp.And):
        return operators.condition(_lower(node, place, kind), "AND")
    return _join(node, place, kind, is_split=is_filter)


def any_of(node: exp.Expression, place: Place) -> Typed:
    """OR."""
    return _join(node, place, _ANY)


class _Kind(Struct, frozen=True):
    """What a chain of conditions is, and how one of them decides."""

    word: str
    decided: str
    is_filter: bool = False


_FILTER: Final = _Kind("AND", "IS NOT TRUE THEN FALSE", is_filter=True)
_FILTER_ANY: Final = _Kind("OR", "THEN TRUE", is_filter=True)
_ALL: Final = _Kind("AND", "IS FALSE THEN FALSE")
_ANY: Final = _Kind("OR", "THEN TRUE")
_SOURCE: Final = re.compile(r"\bs\d+\b", re.ASCII)


def _lower(node: exp.Expression, place: Place, kind: _Kind) -> Typed:
    """A part of a chain. Of an OR in a filter, AND is a value: Spark asks on behind what is unknown there."""
    bare = node.unnest()
    if kind is _FILTER and isinstance(bare, exp.And):
        return _join(bare, place, _FILTER)
    if kind.is_filter and isinstance(bare, exp.Or):
        return _join(bare, place, _FILTER_ANY)
    return place.lower(node)


def _join(node: exp.Expression, place: Place, kind: _Kind, *, is_split: bool = False) -> Typed:
    """Parts in order. Those that can fail are in one CASE, so that the text grows by addition.

    `is_split`: one CASE more where a part names a further source, as DuckDB moves conditions below joins.
    """
    parts: list[str] = []
    groups: dict[frozenset[str], tuple[int, list[str]]] = {}
    arms: list[str] = []
    named: frozenset[str] = frozenset()
    has_query = False
    for each in flatten(node):
        value = operators.boolean(_lower(each, place, kind), kind.word)
        has_query = has_query or value.has_query
        if is_split:
            named |= frozenset(_SOURCE.findall(value.sql))
        if not may_fail(each, place):
            parts.append(value.sql)
        elif value.has_query:
            parts.append(_guard(arms, value.sql))
        elif named in groups:
            at, members = groups[named]
            members.append(value.sql)
            parts[at] = _guard(arms, value.sql if kind.is_filter else join_texts(f" {kind.word} ", members))
        else:
            groups[named] = (len(parts), [value.sql])
            parts.append(_guard(arms, value.sql))
        if not value.has_query:  # which would be read again
            arms.append(f"WHEN {value.sql} {kind.decided}")
    return Typed(f"({join_texts(f' {kind.word} ', parts)})", t.BOOLEAN, has_query=has_query)


def _guard(arms: Sequence[str], sql: str) -> str:
    """Asked where nothing before it has decided."""
    return f"(CASE {join_texts(' ', arms)} ELSE {sql} END)" if arms else sql
