"""Operators: arithmetic, comparisons, casts. All with Spark's types and failures (ANSI mode).

A maintainer must not break: DuckDB divides integers and decimals otherwise, gives infinity for a division by
zero and rounds where Spark cuts. So nothing is left to its own rules: operands are cast, results are checked.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import Final

from cynosure.query.local import exact
from cynosure.query.local import spark_types as t
from cynosure.query.local.spark_types import SparkType
from cynosure.query.local.typed import OutsideSubset, Typed, bind, failing, join_texts

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_NUMBER: Final = re.compile(r"-?(\d+)(?:\.(\d+))?", re.ASCII)
_CALLS: Final = {"+": "add", "-": "subtract", "*": "multiply"}
"""Of integers, by name: of `i + 1 > 1` with its sign DuckDB makes `i > 0`, and nothing fails for its size."""
_LONG_LIMIT: Final = "CAST(9223372036854775808 AS DOUBLE)"


def literal_date(text: str) -> Typed | None:
    """A DATE of its usual form."""
    try:
        found = date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None
    return Typed(f"CAST('{found.isoformat()}' AS DATE)", t.DATE) if found else None


def literal_timestamp(text: str, type_: SparkType) -> Typed | None:
    """A TIMESTAMP of its usual form, in UTC."""
    if literal_date(text):
        text += " 00:00:00"
    try:
        found = datetime.fromisoformat(text) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        return None
    return Typed(f"CAST('{found.isoformat(sep=' ')}' AS TIMESTAMP)", type_) if found else None


def literal_decimal(constant: int) -> SparkType:
    """What an integer of the statement is beside a decimal: as many digits as it has."""
    return t.decimal(len(str(abs(constant))), 0)


def _refuse(what: str, *types: SparkType) -> OutsideSubset:
    return OutsideSubset(f"{what} of {', '.join(each.kind for each in types)}")


def unify(values: list[Typed], what: str) -> list[Typed]:
    """All in their common type: for CASE, COALESCE, IN, comparisons. Texts of dates become dates."""
    times = {each.type for each in values if each.type.kind in {"date", "timestamp", "timestamp_ntz"}}
    if len(times) == 1:
        [time] = times
        values = [_from_text(each, time) if each.type == t.STRING else each for each in values]
    common = t.NULL
    for each in values:
        found = t.find_common(common, each.type)
        if found is None:
            raise _refuse(what, *(one.type for one in values))
        common = found
    return [each.cast(common) for each in values]


def _from_text(value: Typed, type_: SparkType) -> Typed:
    """A text of the statement that stands beside dates or times."""
    if isinstance(value.constant, str):
        found = literal_date(value.constant) if type_ == t.DATE else literal_timestamp(value.constant, type_)
        if found:
            return found
    raise _refuse("a conversion", value.type, type_)


def compare(operator: str, left: Typed, right: Typed) -> Typed:
    """`=`, `<`, `IS NOT DISTINCT FROM` …"""
    one, other = _unify_compared(left, right)
    if not one.type.is_plain:
        raise _refuse("a comparison", left.type, right.type)
    return Typed(
        f"({one.sql} {operator} {other.sql})", t.BOOLEAN, has_query=left.has_query or right.has_query
    )


def _unify_compared(left: Typed, right: Typed) -> list[Typed]:
    """Beside a decimal, an integer of the statement has only the digits that it has."""
    for one, other in ((left, right), (right, left)):
        if one.type.kind == "decimal" and isinstance(other.constant, int):
            common = t.widen_decimals(one.type, literal_decimal(other.constant))
            return [left.cast(common), right.cast(common)]
    return unify([left, right], "a comparison")


def boolean(value: Typed, what: str) -> Typed:
    """Of a condition."""
    if value.type == t.NULL:
        return value.cast(t.BOOLEAN)
    if value.type != t.BOOLEAN:
        raise _refuse(what, value.type)
    return value


def condition(value: Typed, what: str) -> Typed:
    """What decides by itself: Spark takes no NULL there."""
    if value.type == t.NULL:
        raise _refuse(what, value.type)
    return boolean(value, what)


def join_conditions(operator: str, values: Iterable[Typed]) -> Typed:
    """AND, OR."""
    parts = [boolean(each, operator) for each in values]
    sql = join_texts(f" {operator} ", (each.sql for each in parts))
    return Typed(f"({sql})", t.BOOLEAN, has_query=any(each.has_query for each in parts))


def arithmetic(operator: str, left: Typed, right: Typed) -> Typed:
    """`+`, `-`, `*` of numbers."""
    one, other = _operands(left, right, operator)
    has_query = left.has_query or right.has_query
    if one.type.is_integral:
        return Typed(f"{_CALLS[operator]}({one.sql}, {other.sql})", one.type, has_query=has_query)
    sql = f"({one.sql} {operator} {other.sql})"
    if one.type.kind != "decimal":
        return Typed(sql, one.type, has_query=has_query)
    if operator == "*":
        type_, scale = t.multiply_decimals(one.type, other.type), one.type.scale + other.type.scale
    else:
        type_, scale = t.add_decimals(one.type, other.type), max(one.type.scale, other.type.scale)
    if type_.scale != scale:
        raise _refuse(f"{operator} that loses digits", one.type, other.type)
    return Typed(f"CAST({sql} AS {type_.duck})", type_, has_query=has_query)


def _operands(left: Typed, right: Typed, what: str) -> tuple[Typed, Typed]:
    """Both as they are calculated with: decimals keep their own types, everything else becomes one type."""
    if left.type == t.NULL and right.type.is_numeric:
        left = left.cast(right.type)
    if right.type == t.NULL and left.type.is_numeric:
        right = right.cast(left.type)
    if not (left.type.is_numeric and right.type.is_numeric):
        raise _refuse(what, left.type, right.type)
    if "decimal" in {left.type.kind, right.type.kind} and not (
        left.type.is_floating or right.type.is_floating
    ):
        return _exact_operand(left), _exact_operand(right)
    common = t.common_number(left.type, right.type)
    return left.cast(common), right.cast(common)


def _exact_operand(value: Typed) -> Typed:
    if value.is_suffixed:
        raise _refuse("a constant beside a decimal", value.type)
    if isinstance(value.constant, int):
        return value.cast(literal_decimal(value.constant))
    return value.cast(t.as_decimal(value.type))


def divide(left: Typed, right: Typed, functions: dict[str, exact.Function]) -> Typed:
    """`/`: of decimals exact, otherwise as doubles; a divisor of zero fails."""
    if t.NULL in (left.type, right.type):
        raise _refuse("/", left.type, right.type)  # Spark takes some of these for doubles
    one, other = _operands(left, right, "/")
    has_query = left.has_query or right.has_query
    if one.type.kind == "decimal":
        return exact_division(one, other, t.divide_decimals(one.type, other.type), functions)
    one, other = one.cast(t.DOUBLE), other.cast(t.DOUBLE)
    if isinstance(right.constant, int) and right.constant != 0:
        return Typed(f"({one.sql} / {other.sql})", t.DOUBLE, has_query=has_query)
    if has_query:
        functions[exact.DIVIDE_DOUBLES.name] = exact.DIVIDE_DOUBLES
        return Typed(f"{exact.DIVIDE_DOUBLES.name}({one.sql}, {other.sql})", t.DOUBLE, has_query=True)
    return Typed(_checked(one, other, "/", "DIVIDE_BY_ZERO"), t.DOUBLE)


def exact_division(
    left: Typed, right: Typed, type_: SparkType, functions: dict[str, exact.Function]
) -> Typed:
    """Of decimals, to a type."""
    function = exact.divider(left.type, right.type, type_)
    functions[function.name] = function
    return Typed(
        f"{function.name}({left.sql}, {right.sql})", type_, has_query=left.has_query or right.has_query
    )


def _checked(one: Typed, other: Typed, operator: str, condition: str) -> str:
    """Null beside zero is null, as in Spark. DuckDB takes what can fail for volatile, and optimises less."""

    def make(dividend: str, divisor: str) -> str:
        # The rest of the smallest number and -1 is an overflow to DuckDB.
        safe = f"CASE WHEN {divisor} = -1 THEN 1 ELSE {divisor} END" if operator == "%" else divisor
        return (
            f"(CASE WHEN {divisor} = 0 AND {dividend} IS NOT NULL THEN {failing(condition)} "
            f"ELSE {dividend} {operator} {safe} END)"
        )

    return bind([one.sql, other.sql], make)


def divide_integers(left: Typed, right: Typed, *, is_rest: bool) -> Typed:
    """`div` and `%` of integers."""
    if not (left.type.is_integral and right.type.is_integral) or left.has_query or right.has_query:
        raise _refuse("% or div", left.type, right.type)
    type_ = t.common_number(left.type, right.type) if is_rest else t.LONG
    one, other = left.cast(type_), right.cast(type_)
    condition = "REMAINDER_BY_ZERO" if is_rest else "DIVIDE_BY_ZERO"
    operator = "%" if is_rest else "//"
    if isinstance(right.constant, int) and right.constant != 0:
        divisor = f"CAST(1 AS {type_.duck})" if is_rest and right.constant == -1 else other.sql
        return Typed(f"({one.sql} {operator} {divisor})", type_)
    return Typed(_checked(one, other, operator, condition), type_)


def negate(value: Typed) -> Typed:
    """Unary minus."""
    if not value.type.is_numeric:
        raise _refuse("-", value.type)
    if value.type.is_integral:
        return Typed(
            f"subtract(CAST(0 AS {value.type.duck}), {value.sql})", value.type, has_query=value.has_query
        )
    return Typed(f"CAST((- {value.sql}) AS {value.type.duck})", value.type, has_query=value.has_query)


def convert(value: Typed, type_: SparkType) -> Typed:
    """An explicit CAST."""
    source = value.type
    if source in (type_, t.NULL):
        return Typed(value.cast(type_).sql, type_, has_query=value.has_query)
    if source == t.STRING and type_.kind in {"date", "timestamp", "timestamp_ntz"}:
        return _from_text(value, type_)
    if source == t.STRING and type_.kind == "decimal" and isinstance(value.constant, str):
        return _decimal_of_text(value.constant, type_)
    kinds = (source.kind, type_.kind)
    if source.is_integral and type_ == t.LONG and isinstance(value.constant, int):
        return Typed(f"CAST({value.sql} AS BIGINT)", type_, is_suffixed=True)
    plain = Typed(f"CAST({value.sql} AS {type_.duck})", type_, has_query=value.has_query)
    if kinds in _PLAIN_CASTS or (source.is_integral and type_.is_integral):
        return plain
    if kinds == ("decimal", "decimal") or (source.is_integral and type_.kind == "decimal"):
        return plain
    if source.kind in {"decimal", "float", "double"} and type_.is_integral:
        return _cut(value, type_)
    raise _refuse("a cast", source, type_)


def _decimal_of_text(text: str, type_: SparkType) -> Typed:
    """`1.5BD` is a cast of its text by now. Only what fits without rounding."""
    digits = _NUMBER.fullmatch(text)
    if not digits or len(digits[2] or "") > type_.scale or len(digits[1]) > type_.precision - type_.scale:
        raise _refuse("a cast", t.STRING, type_)
    return Typed(f"CAST('{text}' AS {type_.duck})", type_)


_PLAIN_CASTS: Final = frozenset(
    {
        ("int", "double"),
        ("long", "double"),
        ("float", "double"),
        ("decimal", "double"),
        ("int", "string"),
        ("long", "string"),
        ("boolean", "string"),
        ("date", "timestamp"),
        ("timestamp", "date"),
    }
)


def _cut(value: Typed, type_: SparkType) -> Typed:
    """To an integer: Spark cuts digits off, DuckDB rounds."""

    def cut(sql: str) -> str:
        return f"CAST(trunc({sql}) AS {type_.duck})"

    if value.type.kind == "decimal" or type_ == t.INT:
        return Typed(cut(value.sql), type_, has_query=value.has_query)
    if value.has_query:
        raise _refuse("a cast", value.type, type_)

    def make(sql: str) -> str:
        # 2^63 itself passes Spark's check, and becomes the largest long.
        return f"(CASE WHEN {sql} = {_LONG_LIMIT} THEN 9223372036854775807 ELSE {cut(sql)} END)"

    return Typed(bind([value.sql], make), type_)
