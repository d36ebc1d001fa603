"""Functions that the dialect leaves as names, as the nodes that they are.

`query.sql.dialect` gives nodes only to functions that sqlglot writes back unchanged; what is lowered here
needs the meaning, not the spelling.

A maintainer must not break: the node means exactly what Spark means by the name, for every argument that is
lowered further on.
"""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

_Build = Callable[..., exp.Expression]


def canonical(node: exp.Expression) -> exp.Expression:
    """The node itself, or what a name stands for. The tree is not changed: Spark may have to run it."""
    if not isinstance(node, exp.Anonymous):
        return node
    found = _BUILDERS.get((str(node.this).lower(), len(node.expressions)))
    return found(*(each.copy() for each in node.expressions)) if found else node


def flatten(node: exp.Expression) -> list[exp.Expression]:
    """Operands of a chain of one operator, in order."""
    kind, found, waiting = type(node), [], [node]
    while waiting:
        each = waiting.pop()
        if type(each) is kind:
            waiting += [each.expression, each.this]
        else:
            found.append(each)
    return found


def _literal_unit(unit: exp.Expression) -> exp.Expression:
    return unit if isinstance(unit, exp.Literal) and unit.is_string else exp.Literal.string("")


_ONE: Final[dict[str, type[exp.Expression]]] = {
    "char_length": exp.Length,
    "character_length": exp.Length,
    "len": exp.Length,
    "lcase": exp.Lower,
    "ucase": exp.Upper,
    "to_date": exp.TsOrDsToDate,
    "date": exp.TsOrDsToDate,
    "year": exp.Year,
    "quarter": exp.Quarter,
    "month": exp.Month,
    "day": exp.Day,
    "hour": exp.Hour,
    "minute": exp.Minute,
    "second": exp.Second,
    "dayofmonth": exp.DayOfMonth,
    "dayofweek": exp.DayOfWeek,
    "dayofyear": exp.DayOfYear,
    "weekofyear": exp.WeekOfYear,
    "last_day": exp.LastDay,
    "ceiling": exp.Ceil,
    "negative": exp.Neg,
    "mean": exp.Avg,
    "std": exp.StddevSamp,
    "var_samp": exp.Variance,
    "every": exp.LogicalAnd,
    "some": exp.LogicalOr,
    "any": exp.LogicalOr,
    "btrim": exp.Trim,
}

_BUILDERS: Final[dict[tuple[str, int], _Build]] = {
    **{(name, 1): (lambda this, kind=kind: kind(this=this)) for name, kind in _ONE.items()},
    ("ltrim", 1): lambda this: exp.Trim(this=this, position="LEADING"),
    ("rtrim", 1): lambda this: exp.Trim(this=this, position="TRAILING"),
    ("substr", 2): lambda this, start: exp.Substring(this=this, start=start),
    ("substr", 3): lambda this, start, length: exp.Substring(this=this, start=start, length=length),
    ("instr", 2): lambda this, wanted: exp.StrPosition(this=this, substr=wanted),
    ("locate", 2): lambda wanted, this: exp.StrPosition(this=this, substr=wanted),
    ("lpad", 3): lambda this, n, fill: exp.Pad(this=this, expression=n, fill_pattern=fill, is_left=True),
    ("rpad", 3): lambda this, n, fill: exp.Pad(this=this, expression=n, fill_pattern=fill, is_left=False),
    ("lpad", 2): lambda this, n: exp.Pad(this=this, expression=n, is_left=True),
    ("rpad", 2): lambda this, n: exp.Pad(this=this, expression=n, is_left=False),
    ("nvl", 2): lambda this, other: exp.Coalesce(this=this, expressions=[other]),
    ("ifnull", 2): lambda this, other: exp.Coalesce(this=this, expressions=[other]),
    ("nvl2", 3): lambda this, one, other: exp.If(
        this=exp.Not(this=exp.Is(this=this, expression=exp.Null())), true=one, false=other
    ),
    ("mod", 2): lambda this, other: exp.Mod(this=this, expression=other),
    ("date_add", 2): lambda this, days: exp.TsOrDsAdd(this=this, expression=days),
    ("dateadd", 2): lambda this, days: exp.TsOrDsAdd(this=this, expression=days),
    ("date_sub", 2): lambda this, days: exp.TsOrDsAdd(this=this, expression=exp.Neg(this=days)),
    ("datediff", 2): lambda end, start: exp.DateDiff(this=end, expression=start),
    ("date_diff", 2): lambda end, start: exp.DateDiff(this=end, expression=start),
    ("add_months", 2): lambda this, months: exp.AddMonths(this=this, expression=months),
    ("trunc", 2): lambda this, unit: exp.DateTrunc(this=this, unit=_literal_unit(unit)),  # type: ignore[no-untyped-call]
    ("date_trunc", 2): lambda unit, this: exp.TimestampTrunc(this=this, unit=_literal_unit(unit)),
}
