"""Expressions: one small function per kind of node. What is not in `_LOWERED` is outside of the subset.

A maintainer must not break: every entry is compared with Spark in tests/query/local/test_against_spark.py
before it is added.
"""

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from cynosure.query.local import operators
from cynosure.query.local import spark_types as t
from cynosure.query.local.aggregates import AGGREGATES, lower_filtered, lower_window
from cynosure.query.local.canonical import canonical
from cynosure.query.local.context import Place
from cynosure.query.local.fallible import all_of, any_of
from cynosure.query.local.functions import ANONYMOUS, FUNCTIONS
from cynosure.query.local.scope import follow
from cynosure.query.local.typed import OutsideSubset, Typed, check_length, join_texts, text_literal

_INT_MAX: Final = 2**31
_LONG_MAX: Final = 2**63


def lower_expression(node: exp.Expression, place: Place) -> Typed:
    """An expression with Spark's type; `OutsideSubset` for all that is not known."""
    node, context = canonical(node), place.context
    outer, context.letters = context.letters, 0
    value = context.count(_find(node)(node, place))
    if value.type == t.STRING:
        # A text may always be the longest that it is made of.
        value = replace(value, letters=max(value.letters, context.letters))
        context.letters = max(outer, value.letters)
    else:
        context.letters = outer
    return value


def _find(node: exp.Expression) -> Callable[[exp.Expression, Place], Typed]:
    kind = type(node)
    if kind is exp.Anonymous:
        function = ANONYMOUS.get(str(node.this).lower())
        if function is None:
            raise OutsideSubset(f"function {_shown(str(node.this))}")
        return function
    found = _LOWERED.get(kind) or FUNCTIONS.get(kind) or AGGREGATES.get(kind)
    if found is None:
        raise OutsideSubset(_shown(kind.__name__))
    return found


def _shown(name: str) -> str:
    """A name for a reason: never long, never odd."""
    return name.upper()[:40] if name.isidentifier() else "UNKNOWN"


def _column(node: exp.Expression, place: Place) -> Typed:
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        raise OutsideSubset("a star inside of an expression")
    return place.scope.resolve([each.name for each in node.parts])


def _dot(node: exp.Expression, place: Place) -> Typed:
    if not isinstance(node.expression, exp.Identifier):
        raise OutsideSubset("DOT")
    return follow(place.lower(node.this), [node.expression.name])


def _literal(node: exp.Expression, place: Place) -> Typed:
    text = str(node.this)
    if node.is_string:
        return Typed(text_literal(text), t.STRING, constant=text, letters=len(text.encode()))
    if text.isascii() and text.isdigit():
        return _integer(int(text))
    if "e" in text.lower():
        if not isfinite(float(text)):
            raise OutsideSubset("a literal beyond DOUBLE")
        return Typed(f"CAST('{float(text)!r}' AS DOUBLE)", t.DOUBLE)
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise OutsideSubset("a literal") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or exponent > 0:
        raise OutsideSubset("a literal")
    precision = max(len(number.as_tuple().digits), -exponent)
    if precision > t.MAX_PRECISION:
        raise OutsideSubset("a literal of more than 38 digits")
    type_ = t.decimal(precision, -exponent)
    return Typed(f"CAST('{number:f}' AS {type_.duck})", type_)


def _integer(value: int) -> Typed:
    if -_INT_MAX <= value < _INT_MAX:
        return Typed(f"CAST({value} AS INTEGER)", t.INT, constant=value)
    if -_LONG_MAX <= value < _LONG_MAX:
        return Typed(f"CAST({value} AS BIGINT)", t.LONG, constant=value)
    raise OutsideSubset("an integer beyond BIGINT")


def _negative(node: exp.Expression, place: Place) -> Typed:
    value = place.lower(node.this)
    if isinstance(node.this, exp.Literal) and isinstance(value.constant, int):
        return _integer(-value.constant)  # one literal of Spark: the smallest INT is an INT
    return operators.negate(value)


def _boolean(node: exp.Expression, place: Place) -> Typed:
    return Typed("TRUE" if node.this else "FALSE", t.BOOLEAN)


def _null(node: exp.Expression, place: Place) -> Typed:
    return Typed("NULL", t.NULL)


def _paren(node: exp.Expression, place: Place) -> Typed:
    return place.lower(node.this)


def _not(node: exp.Expression, place: Place) -> Typed:
    value = operators.boolean(place.lower(node.this), "NOT")
    return Typed(f"(NOT {value.sql})", t.BOOLEAN, has_query=value.has_query)


def _and(node: exp.Expression, place: Place) -> Typed:
    return all_of(node, place, is_filter=False)


def _comparison(operator: str) -> Callable[[exp.Expression, Place], Typed]:
    def lower(node: exp.Expression, place: Place) -> Typed:
        return operators.compare(operator, place.lower(node.this), place.lower(node.expression))

    return lower


def _arithmetic(operator: str) -> Callable[[exp.Expression, Place], Typed]:
    def lower(node: exp.Expression, place: Place) -> Typed:
        if isinstance(node.expression, exp.Interval):
            return _add_interval(place.lower(node.this), node.expression, is_minus=operator == "-")
        return operators.arithmetic(operator, place.lower(node.this), place.lower(node.expression))

    return lower


_YEAR_MONTH: Final = frozenset({"YEAR", "MONTH"})
_DAY_TIME: Final = frozenset({"HOUR", "MINUTE", "SECOND"})


def _add_interval(value: Typed, interval: exp.Interval, *, is_minus: bool) -> Typed:
    """A date or time and an interval of one unit."""
    unit = str(interval.args.get("unit") or "").upper().removesuffix("S")
    amount = interval.this
    text = str(amount.this) if isinstance(amount, exp.Literal) else ""
    sign = -1 if is_minus else 1
    if text.startswith("-"):
        sign, text = -sign, text[1:]
    if not (text.isascii() and text.isdigit()) or len(text) > 6:
        raise OutsideSubset("INTERVAL")
    if unit not in _YEAR_MONTH | _DAY_TIME | {"DAY"}:
        raise OutsideSubset("INTERVAL")
    number = sign * int(text)
    moved = f"({value.sql} + INTERVAL '{number}' {unit})"
    if value.type == t.DATE and unit == "DAY":
        return Typed(f"({value.sql} + CAST({number} AS INTEGER))", t.DATE, has_query=value.has_query)
    if value.type == t.DATE and unit in _YEAR_MONTH:
        return Typed(f"CAST({moved} AS DATE)", t.DATE, has_query=value.has_query)
    if value.type.kind in {"timestamp", "timestamp_ntz"}:
        return Typed(f"CAST({moved} AS TIMESTAMP)", value.type, has_query=value.has_query)
    raise OutsideSubset("INTERVAL")


def _division(node: exp.Expression, place: Place) -> Typed:
    return operators.divide(place.lower(node.this), place.lower(node.expression), place.context.functions)


def _integer_division(*, is_rest: bool) -> Callable[[exp.Expression, Place], Typed]:
    def lower(node: exp.Expression, place: Place) -> Typed:
        left, right = place.lower(node.this), place.lower(node.expression)
        return operators.divide_integers(left, right, is_rest=is_rest)

    return lower


def _is(node: exp.Expression, place: Place) -> Typed:
    value = place.lower(node.this)
    if isinstance(node.expression, exp.Null):
        return Typed(f"({value.sql} IS NULL)", t.BOOLEAN, has_query=value.has_query)
    if isinstance(node.expression, exp.Boolean) and value.type == t.BOOLEAN:
        wanted = "TRUE" if node.expression.this else "FALSE"
        return Typed(f"({value.sql} IS {wanted})", t.BOOLEAN, has_query=value.has_query)
    raise OutsideSubset("IS")


def _between(node: exp.Expression, place: Place) -> Typed:
    if node.args.get("symmetric"):
        raise OutsideSubset("BETWEEN SYMMETRIC")
    value = place.lower(node.this)
    if value.has_query:
        raise OutsideSubset("BETWEEN of a subquery")
    low = operators.compare(">=", value, place.lower(node.args["low"]))
    high = operators.compare("<=", value, place.lower(node.args["high"]))
    return operators.join_conditions("AND", [low, high])


def _in(node: exp.Expression, place: Place) -> Typed:
    if {key for key, value in node.args.items() if value} - {"this", "expressions", "query"}:
        raise OutsideSubset("IN")
    value = place.lower(node.this)
    query = node.args.get("query")
    if query is not None:
        if not _is_decisive(node):
            raise OutsideSubset("IN with a subquery as a value")
        lowered = place.context.lower_query(query, place.scope)
        if len(lowered.outputs) != 1 or lowered.outputs[0].type != value.type or not value.type.is_plain:
            raise OutsideSubset("IN with a subquery of another type")
        return Typed(f"({value.sql} IN ({lowered.sql}))", t.BOOLEAN, has_query=True)
    options = [place.lower(each) for each in node.expressions]
    if value.type.kind == "decimal" or any(isinstance(each, exp.Query) for each in node.expressions):
        # Compared one by one: integers of the statement have rules of their own beside decimals.
        if value.has_query:
            raise OutsideSubset("IN of a subquery")
        check_length(len(value.sql) * len(options))
        return operators.join_conditions("OR", [operators.compare("=", value, each) for each in options])
    one, *others = operators.unify([value, *options], "IN")
    if not one.type.is_plain:
        raise OutsideSubset("IN")
    listed = join_texts(", ", (each.sql for each in others))
    return Typed(f"({one.sql} IN ({listed}))", t.BOOLEAN, has_query=any(x.has_query for x in (one, *others)))


def _is_decisive(node: exp.Expression) -> bool:
    """Whether IN with a subquery stands where unknown is as good as false, which Spark gives in its place.

    Below AND and OR of a condition, perhaps with NOT right around it: there Spark knows what is unknown.
    """
    is_bare = True
    while isinstance(node.parent, exp.Paren | exp.And | exp.Or) or (
        is_bare and isinstance(node.parent, exp.Not)
    ):
        is_bare = is_bare and isinstance(node.parent, exp.Paren)
        node = node.parent
    above = node.parent
    if isinstance(above, exp.If):
        is_compared = isinstance(above.parent, exp.Case) and above.parent.this is not None
        return node.arg_key == "this" and not is_compared
    return isinstance(above, exp.Where | exp.Having) or (isinstance(above, exp.Join) and node.arg_key == "on")


def _exists(node: exp.Expression, place: Place) -> Typed:
    lowered = place.context.lower_query(node.this, place.scope)
    return Typed(f"EXISTS ({lowered.sql})", t.BOOLEAN, has_query=True)


def _scalar_query(node: exp.Expression, place: Place) -> Typed:
    lowered = place.context.lower_query(node, place.scope)
    if len(lowered.outputs) != 1:
        raise OutsideSubset("a subquery of several columns as a value")
    output = lowered.outputs[0]
    return Typed(f"({lowered.sql})", output.type, has_query=True, letters=output.letters)


def _case(node: exp.Expression, place: Place) -> Typed:
    subject = place.lower(node.this) if node.this else None
    if subject and subject.has_query:
        raise OutsideSubset("CASE of a subquery")
    check_length(len(subject.sql) * len(node.args["ifs"]) if subject else 0)
    conditions, results = [], []
    for each in node.args["ifs"]:
        condition = place.lower(each.this)
        conditions.append(
            operators.compare("=", subject, condition) if subject else operators.condition(condition, "CASE")
        )
        results.append(place.lower(each.args["true"]))
    default = node.args.get("default")
    results.append(place.lower(default) if default is not None else Typed("NULL", t.NULL))
    return make_case(conditions, results)


def make_case(conditions: list[Typed], results: list[Typed]) -> Typed:
    """CASE; one result more than conditions."""
    *chosen, otherwise = operators.unify(results, "CASE")
    arms = join_texts(
        " ",
        (
            f"WHEN {condition.sql} THEN {result.sql}"
            for condition, result in zip(conditions, chosen, strict=True)
        ),
    )
    has_query = any(each.has_query for each in (*conditions, *results))
    return Typed(f"(CASE {arms} ELSE {otherwise.sql} END)", otherwise.type, has_query=has_query)


def _if(node: exp.Expression, place: Place) -> Typed:
    condition = operators.boolean(place.lower(node.this), "IF")
    otherwise = node.args.get("false")
    results = [
        place.lower(node.args["true"]),
        place.lower(otherwise) if otherwise is not None else Typed("NULL", t.NULL),
    ]
    return make_case([condition], results)


_TARGETS: Final = {
    exp.DType.BOOLEAN: t.BOOLEAN,
    exp.DType.INT: t.INT,
    exp.DType.BIGINT: t.LONG,
    exp.DType.DOUBLE: t.DOUBLE,
    exp.DType.TEXT: t.STRING,
    exp.DType.VARCHAR: t.STRING,
    exp.DType.DATE: t.DATE,
    exp.DType.TIMESTAMPTZ: t.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: t.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: t.TIMESTAMP_NTZ,
}


def _cast(node: exp.Expression, place: Place) -> Typed:
    if node.args.get("safe") or node.args.get("format"):
        raise OutsideSubset("TRY_CAST")
    to = node.args["to"]
    if to.this == exp.DType.DECIMAL:
        parameters = [int(each.this.this) for each in to.expressions] or [10]
        precision, scale = parameters[0], parameters[1] if len(parameters) > 1 else 0
        if not 0 <= scale <= precision <= t.MAX_PRECISION or precision == 0:
            raise OutsideSubset("CAST")
        return operators.convert(place.lower(node.this), t.decimal(precision, scale))
    type_ = _TARGETS.get(to.this)
    if type_ is None or to.expressions:
        raise OutsideSubset("CAST")
    return operators.convert(place.lower(node.this), type_)


_LOWERED: Final[dict[type[exp.Expression], Callable[[exp.Expression, Place], Typed]]] = {
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Boolean: _boolean,
    exp.Null: _null,
    exp.Paren: _paren,
    exp.Not: _not,
    exp.And: _and,
    exp.Or: any_of,
    exp.EQ: _comparison("="),
    exp.NEQ: _comparison("<>"),
    exp.LT: _comparison("<"),
    exp.LTE: _comparison("<="),
    exp.GT: _comparison(">"),
    exp.GTE: _comparison(">="),
    exp.NullSafeEQ: _comparison("IS NOT DISTINCT FROM"),
    exp.NullSafeNEQ: _comparison("IS DISTINCT FROM"),
    exp.Add: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.Div: _division,
    exp.IntDiv: _integer_division(is_rest=False),
    exp.Mod: _integer_division(is_rest=True),
    exp.Is: _is,
    exp.Between: _between,
    exp.In: _in,
    exp.Exists: _exists,
    exp.Subquery: _scalar_query,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Window: lower_window,
    exp.Filter: lower_filtered,
}
