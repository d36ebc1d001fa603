"""Which expressions can fail on a row, and conditions that keep others from being asked about it.

`b <> 0 AND a / b > 1` does not fail in Spark: the second is asked only where the first holds. DuckDB promises
no order, least of all where it moves conditions below joins. So what can fail is put behind what stands
before it by CASE, which both engines evaluate in order.

A maintainer must not break: a condition that comes first in the statement is asked first.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from cynosure.query.local import operators
from cynosure.query.local import spark_types as t
from cynosure.query.local.canonical import flatten
from cynosure.query.local.context import Place
from cynosure.query.local.typed import OutsideSubset, Typed

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
    parts = flatten(node) if isinstance(node, exp.And) else [node]
    read = operators.condition if is_filter and len(parts) == 1 else operators.boolean
    lowered: list[Typed] = []
    for each in parts:
        value = read(place.lower(each), "AND")
        before = _texts(lowered, " AND ")
        if before and may_fail(each, place):
            guard = (
                f"CASE WHEN {before} THEN {value.sql} ELSE FALSE END"
                if is_filter
                else f"CASE WHEN ({before}) IS FALSE THEN FALSE ELSE {value.sql} END"
            )
            value = Typed(f"({guard})", t.BOOLEAN, has_query=value.has_query)
        lowered.append(value)
    return operators.join_conditions("AND", lowered)


def any_of(node: exp.Expression, place: Place) -> Typed:
    """OR."""
    lowered: list[Typed] = []
    for each in flatten(node):
        value = operators.boolean(place.lower(each), "OR")
        before = _texts(lowered, " OR ")
        if before and may_fail(each, place):
            value = Typed(
                f"(CASE WHEN {before} THEN TRUE ELSE {value.sql} END)", t.BOOLEAN, has_query=value.has_query
            )
        lowered.append(value)
    return operators.join_conditions("OR", lowered)


def _texts(values: Sequence[Typed], word: str) -> str:
    """Conditions once more. Not those with subqueries, which would be read again."""
    return word.join(each.sql for each in values if not each.has_query)
