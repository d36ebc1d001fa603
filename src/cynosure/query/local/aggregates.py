"""Aggregates and window functions, with Spark's types.

A maintainer must not break: `avg` of decimals is an exact division of an exact sum; a sum of decimals that
needs more than 38 digits fails, where DuckDB alone would go on a little longer.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from sqlglot import exp

from cynosure.query.local import operators
from cynosure.query.local import spark_types as t
from cynosure.query.local.arguments import INT_MAX, number_of, only
from cynosure.query.local.canonical import canonical
from cynosure.query.local.context import Place
from cynosure.query.local.typed import OutsideSubset, Typed, failing

Wrap = Callable[[str], str]
"""Puts FILTER and OVER behind a call."""


def _argument(node: exp.Expression, place: Place) -> tuple[str, Typed]:
    """DISTINCT or nothing, and the only argument."""
    inner = node.this
    extra = {key for key, value in node.args.items() if value} - {"this", "big_int"}
    if extra:
        raise OutsideSubset(type(node).__name__.upper())
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1 or inner.args.get("on"):
            raise OutsideSubset("DISTINCT of several columns in an aggregate")
        return "DISTINCT ", place.lower(inner.expressions[0])
    return "", place.lower(inner)


def _count(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
    if isinstance(node.this, exp.Star):
        return Typed(wrap("count(*)"), t.LONG)
    if node.expressions:
        raise OutsideSubset("COUNT of several columns")
    if isinstance(node.this, exp.Distinct) and len(node.this.expressions) > 1:
        return _count_rows(node.this, place, wrap)
    distinct, value = _argument(node, place)
    if distinct and not value.type.is_plain:
        raise OutsideSubset("COUNT DISTINCT of a nested column")
    return Typed(wrap(f"count({distinct}{value.sql})"), t.LONG)


def _count_rows(node: exp.Distinct, place: Place, wrap: Wrap) -> Typed:
    """`count(DISTINCT a, b)`: rows in which none of them is null."""
    only(node, "expressions")
    values = [place.lower(each) for each in node.expressions]
    if any(not each.type.is_plain or each.type in (t.FLOAT, t.DOUBLE, t.NULL) for each in values):
        # Both zeros are one value to Spark, also inside of rows.
        raise OutsideSubset("COUNT DISTINCT of several columns of this kind")
    there = " AND ".join(f"{each.sql} IS NOT NULL" for each in values)
    listed = ", ".join(each.sql for each in values)
    return Typed(wrap(f"count(DISTINCT CASE WHEN {there} THEN row({listed}) END)"), t.LONG)


def _sum(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
    distinct, value = _argument(node, place)
    type_ = t.sum_type(value.type)
    if type_ is None:
        raise OutsideSubset(f"SUM of {value.type.kind}")
    return _summed(distinct, value, type_, wrap)


def _summed(distinct: str, value: Typed, type_: t.SparkType, wrap: Wrap) -> Typed:
    if value.type.is_floating:
        value = value.cast(t.DOUBLE)
    call = wrap(f"sum({distinct}{value.sql})")
    if type_.kind != "decimal" or type_.precision < t.MAX_PRECISION:
        return Typed(f"CAST({call} AS {type_.duck})", type_)
    largest = "9" * t.MAX_PRECISION
    limit = f"CAST('{largest[: t.MAX_PRECISION - type_.scale]}.{'9' * type_.scale}' AS {type_.duck})"
    # DuckDB sums in 128 bits, which hold a little more than 38 digits.
    checked = f"CASE WHEN {call} > {limit} OR {call} < - {limit} THEN {failing('NUMERIC_VALUE_OUT_OF_RANGE')}"
    return Typed(f"CAST(({checked} ELSE {call} END) AS {type_.duck})", type_)


def _average(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
    distinct, value = _argument(node, place)
    if value.type.kind == "decimal":
        summed = _summed(distinct, value, t.sum_of_decimals(value.type), wrap)
        counted = Typed(wrap(f"count({distinct}{value.sql})"), t.LONG).cast(t.decimal(20, 0))
        # No rows: null, not a division by zero.
        counted = Typed(f"nullif({counted.sql}, CAST(0 AS DECIMAL(20,0)))", counted.type)
        return operators.exact_division(
            summed, counted, t.average_of_decimals(value.type), place.context.functions
        )
    if not value.type.is_numeric:
        raise OutsideSubset(f"AVG of {value.type.kind}")
    return Typed(wrap(f"avg({distinct}{value.cast(t.DOUBLE).sql})"), t.DOUBLE)


def _same_type(name: str) -> Callable[[exp.Expression, Place, Wrap], Typed]:
    def lower(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
        _, value = _argument(node, place)
        if not value.type.is_plain or value.type == t.BINARY:
            raise OutsideSubset(f"{name.upper()} of {value.type.kind}")
        return Typed(wrap(f"{name}({value.sql})"), value.type)

    return lower


def _of_booleans(name: str) -> Callable[[exp.Expression, Place, Wrap], Typed]:
    def lower(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
        _, value = _argument(node, place)
        return Typed(wrap(f"{name}({operators.boolean(value, name.upper()).sql})"), t.BOOLEAN)

    return lower


def _count_if(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
    distinct, value = _argument(node, place)
    if distinct:
        raise OutsideSubset("COUNT_IF DISTINCT")
    condition = operators.boolean(value, "COUNT_IF").sql
    return Typed(wrap(f"count(CASE WHEN {condition} THEN 1 END)"), t.LONG)


def _of_exact(name: str) -> Callable[[exp.Expression, Place, Wrap], Typed]:
    def lower(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
        distinct, value = _argument(node, place)
        if not value.type.is_integral and value.type.kind != "decimal":
            # Of doubles, both may overflow on the way, and not alike.
            raise OutsideSubset(f"{name.upper()} of {value.type.kind}")
        return Typed(wrap(f"{name}({distinct}{value.cast(t.DOUBLE).sql})"), t.DOUBLE)

    return lower


_AGGREGATES: Final[dict[type[exp.Expression], Callable[[exp.Expression, Place, Wrap], Typed]]] = {
    exp.Count: _count,
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Min: _same_type("min"),
    exp.Max: _same_type("max"),
    exp.LogicalAnd: _of_booleans("bool_and"),
    exp.LogicalOr: _of_booleans("bool_or"),
    exp.CountIf: _count_if,
    exp.Stddev: _of_exact("stddev_samp"),
    exp.StddevSamp: _of_exact("stddev_samp"),
    exp.StddevPop: _of_exact("stddev_pop"),
    exp.Variance: _of_exact("var_samp"),
    exp.VariancePop: _of_exact("var_pop"),
}


def _plain(node: exp.Expression, place: Place) -> Typed:
    """An aggregate by itself."""
    return _AGGREGATES[type(node)](node, place, lambda call: call)


AGGREGATES: Final[dict[type[exp.Expression], Callable[[exp.Expression, Place], Typed]]] = dict.fromkeys(
    _AGGREGATES, _plain
)


def lower_filtered(node: exp.Expression, place: Place) -> Typed:
    """`aggregate FILTER (WHERE …)`."""
    return _aggregate(_filtered(node), place, lambda call: call)


def _filtered(node: exp.Expression) -> exp.Expression:
    """The aggregate of what the condition leaves: DuckDB computes arguments before it asks a FILTER."""
    aggregate = canonical(node.this).copy()
    condition = node.expression.this

    def guard(value: exp.Expression) -> exp.Expression:
        return exp.Case(ifs=[exp.If(this=condition.copy(), true=value)])

    inner = aggregate.this
    if isinstance(inner, exp.Star):
        aggregate.set("this", guard(exp.Literal.number(1)))
    elif isinstance(inner, exp.Distinct):
        inner.set("expressions", [guard(each) for each in inner.expressions])
    elif isinstance(inner, exp.Expression):
        aggregate.set("this", guard(inner))
    else:
        raise OutsideSubset("FILTER")
    return aggregate


def _aggregate(node: exp.Expression, place: Place, wrap: Wrap) -> Typed:
    node = canonical(node)
    found = _AGGREGATES.get(type(node))
    if found is None:
        raise OutsideSubset(type(node).__name__.upper())
    return found(node, place, wrap)


_RANKS: Final[dict[type[exp.Expression], tuple[str, t.SparkType]]] = {
    exp.RowNumber: ("row_number()", t.INT),
    exp.Rank: ("rank()", t.INT),
    exp.DenseRank: ("dense_rank()", t.INT),
    exp.PercentRank: ("percent_rank()", t.DOUBLE),
    exp.CumeDist: ("cume_dist()", t.DOUBLE),
}


def lower_window(node: exp.Expression, place: Place) -> Typed:
    """`function OVER (…)`."""
    over = _over(node, place)

    def wrap(call: str) -> str:
        return f"{call} OVER ({over})"

    function = canonical(node.this)
    if "BETWEEN" in over and (type(function) in _RANKS or isinstance(function, exp.Ntile)):
        raise OutsideSubset("a rank with a frame")  # Spark takes none but its own
    if type(function) in _RANKS:
        _need_order(over)
        call, type_ = _RANKS[type(function)]
        if function.expressions:
            raise OutsideSubset(type(function).__name__.upper())
        return Typed(f"CAST({wrap(call)} AS {type_.duck})", type_)
    if isinstance(function, exp.Ntile):
        _need_order(over)
        count = number_of(function.this, place, "NTILE", 1)
        return Typed(f"CAST({wrap(f'ntile({count})')} AS INTEGER)", t.INT)
    if isinstance(function, exp.Lag | exp.Lead):
        return _neighbour(function, place, wrap, over)
    ignored = isinstance(function, exp.IgnoreNulls)
    inner = function.this if ignored or isinstance(function, exp.RespectNulls) else function
    if isinstance(inner, exp.FirstValue | exp.LastValue):
        _need_order(over)
        value = place.lower(inner.this)
        name = "first_value" if isinstance(inner, exp.FirstValue) else "last_value"
        return Typed(wrap(f"{name}({value.sql}{' IGNORE NULLS' if ignored else ''})"), value.type)
    if isinstance(function, exp.Filter):
        # Spark does not have it.
        raise OutsideSubset("FILTER in a window")
    if isinstance(function.this, exp.Distinct):
        raise OutsideSubset("DISTINCT in a window")
    return _aggregate(function, place, wrap)


def _need_order(over: str) -> None:
    if "ORDER BY" not in over:
        raise OutsideSubset("a window without ORDER BY")


def _neighbour(node: exp.Expression, place: Place, wrap: Wrap, over: str) -> Typed:
    _need_order(over)
    if "BETWEEN" in over:
        raise OutsideSubset("LAG or LEAD with a frame")
    value = place.lower(node.this)
    name = "lag" if isinstance(node, exp.Lag) else "lead"
    offset_node, default_node = node.args.get("offset"), node.args.get("default")
    offset = number_of(offset_node, place, name.upper()) if offset_node is not None else 1
    if default_node is None:
        return Typed(wrap(f"{name}({value.sql}, {offset})"), value.type)
    default = place.lower(default_node)
    if default.type not in (value.type, t.NULL):
        raise OutsideSubset(f"{name.upper()} with a default of another type")
    return Typed(wrap(f"{name}({value.sql}, {offset}, {default.cast(value.type).sql})"), value.type)


def _over(node: exp.Expression, place: Place) -> str:
    """What stands in the parentheses of OVER."""
    name = node.args.get("alias")
    if name is not None:
        named = place.windows.get(name.name.lower())
        if named is None or node.args.get("partition_by") or node.args.get("order") or node.args.get("spec"):
            raise OutsideSubset("a named window")
        return _over(named, place)
    parts = []
    partition = node.args.get("partition_by") or []
    if partition:
        parts.append("PARTITION BY " + ", ".join(_key(each, place) for each in partition))
    order = node.args.get("order")
    keys = order.expressions if order is not None else []
    if keys:
        parts.append("ORDER BY " + ", ".join(order_key(each, _key(each.this, place)) for each in keys))
    spec = node.args.get("spec")
    if spec is not None:
        parts.append(_frame(spec, bool(keys)))
    return " ".join(parts)


def _key(node: exp.Expression, place: Place) -> str:
    value = place.lower(node)
    if not value.type.is_plain:
        raise OutsideSubset("a key of a nested type")
    return value.sql


def order_key(node: exp.Expression, sql: str) -> str:
    """One key of ORDER BY: nulls first when ascending unless said otherwise, as Spark."""
    if not isinstance(node, exp.Ordered) or node.args.get("with_fill"):
        raise OutsideSubset("ORDER BY")
    is_descending = bool(node.args.get("desc"))
    direction = "DESC" if is_descending else "ASC"
    nulls = "FIRST" if node.args.get("nulls_first") else "LAST"
    return f"{sql} {direction} NULLS {nulls}"


def _frame(spec: exp.Expression, is_ordered: bool) -> str:
    kind = str(spec.args.get("kind") or "").upper()
    if spec.args.get("exclude") or kind not in {"ROWS", "RANGE"}:
        raise OutsideSubset("a frame")
    start, first = _bound(spec.args.get("start"), spec.args.get("start_side"), kind)
    end, last = _bound(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"), kind)
    if not is_ordered:
        raise OutsideSubset("a frame without ORDER BY")
    if first > last:
        raise OutsideSubset("a frame that ends before it begins")
    return f"{kind} BETWEEN {start} AND {end}"


def _bound(value: "exp.Expression | str | None", side: str | None, kind: str) -> tuple[str, float]:
    """Its text, and how many rows behind the current one it is."""
    if value == "CURRENT ROW":
        return "CURRENT ROW", 0
    direction = str(side or "").upper()
    if direction not in {"PRECEDING", "FOLLOWING"}:
        raise OutsideSubset("a frame")
    sign = -1 if direction == "PRECEDING" else 1
    if value == "UNBOUNDED":
        return f"UNBOUNDED {direction}", sign * inf
    if kind == "ROWS" and isinstance(value, exp.Literal) and str(value.this).isdigit():
        rows = int(str(value.this))
        if rows <= INT_MAX:
            return f"{rows} {direction}", sign * rows
    raise OutsideSubset("a frame")
