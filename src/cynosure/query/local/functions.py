"""Scalar functions of the common subset: texts, numbers, conditions; dates are in `dates.py`.

What the session says (`current_user()`, `now()`) is a literal by now: `query.sql.binding` puts it there.

A maintainer must not break: a function is here only with the arguments for which DuckDB's answer is Spark's;
others (positions below zero, empty patterns, texts that must be parsed) are outside of the subset.
"""

from typing import Final

from msgspec.structs import replace
from sqlglot import exp

from cynosure.query.local import exact, operators
from cynosure.query.local import spark_types as t
from cynosure.query.local.arguments import any_query, name_of, number_of, only, text_of
from cynosure.query.local.canonical import flatten
from cynosure.query.local.context import Place
from cynosure.query.local.dates import DATES, Lower
from cynosure.query.local.typed import OutsideSubset, Typed, bind, join_texts, text_literal

# Texts


def _letters(name: str, function: exact.Function) -> Lower:
    def lower(node: exp.Expression, place: Place) -> Typed:
        value = text_of(node.this, place, name_of(node))
        if value.has_query:
            raise OutsideSubset(f"{name_of(node)} of a subquery")
        slow = place.context.need(function)

        def make(sql: str) -> str:
            # As many bytes as letters: ASCII, where both engines agree.
            return f"(CASE WHEN strlen({sql}) = length({sql}) THEN {name}({sql}) ELSE {slow}({sql}) END)"

        return Typed(bind([value.sql], make), t.STRING)

    return lower


def _length(node: exp.Expression, place: Place) -> Typed:
    only(node, "this")
    value = text_of(node.this, place, "LENGTH")
    return Typed(f"CAST(length({value.sql}) AS INTEGER)", t.INT, has_query=value.has_query)


def _substring(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "start", "length")
    value = text_of(node.this, place, "SUBSTRING")
    start = max(number_of(node.args.get("start"), place, "SUBSTRING"), 1)
    length = node.args.get("length")
    tail = "" if length is None else f", {number_of(length, place, 'SUBSTRING')}"
    return Typed(f"substring({value.sql}, {start}{tail})", t.STRING, has_query=value.has_query)


def _side(name: str) -> Lower:
    def lower(node: exp.Expression, place: Place) -> Typed:
        only(node, "this", "expression")
        value = text_of(node.this, place, name_of(node))
        count = number_of(node.expression, place, name_of(node))
        return Typed(f"{name}({value.sql}, {count})", t.STRING, has_query=value.has_query)

    return lower


_NUMBER_LETTERS: Final = 20


def _joined(parts: list[Typed], place: Place) -> Typed:
    """`||`: null if any is."""
    texts = [each if each.type == t.STRING else operators.convert(each, t.STRING) for each in parts]
    joined = join_texts(" || ", (each.sql for each in texts))
    letters = sum(each.letters if each.type == t.STRING else _NUMBER_LETTERS for each in parts)
    return Typed(f"({joined})", t.STRING, has_query=any_query(*parts), letters=place.context.grow(letters))


def _concat(node: exp.Expression, place: Place) -> Typed:
    if not node.expressions or node.args.get("coalesce"):
        raise OutsideSubset("CONCAT")
    return _joined([place.lower(each) for each in node.expressions], place)


def _pipes(node: exp.Expression, place: Place) -> Typed:
    return _joined([place.lower(each) for each in flatten(node)], place)


def _trim(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "position", "expression")
    value = text_of(node.this, place, "TRIM")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim", "": "trim"}[
        str(node.args.get("position") or "").upper()
    ]
    characters = " "
    if node.expression is not None:
        given = place.lower(node.expression).constant
        if not isinstance(given, str) or not given or not given.isascii():
            raise OutsideSubset("TRIM")
        characters = given
    return Typed(f"{name}({value.sql}, {text_literal(characters)})", t.STRING, has_query=value.has_query)


def _replace(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "expression", "replacement")
    value = text_of(node.this, place, "REPLACE")
    wanted = text_of(node.expression, place, "REPLACE")
    if not isinstance(wanted.constant, str) or not wanted.constant:
        raise OutsideSubset("REPLACE")
    replacement = node.args.get("replacement")
    put = text_of(replacement, place, "REPLACE") if replacement is not None else Typed("''", t.STRING, "")
    if not isinstance(put.constant, str):
        raise OutsideSubset("REPLACE")
    old, new = len(wanted.constant.encode()), len(put.constant.encode())
    letters = value.letters if new <= old else place.context.grow(value.letters * new // old)
    sql = f"replace({value.sql}, {wanted.sql}, {put.sql})"
    return Typed(sql, t.STRING, has_query=value.has_query, letters=letters)


def _position(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "substr")
    value = text_of(node.this, place, "INSTR")
    wanted = text_of(node.args.get("substr"), place, "INSTR")
    if not isinstance(wanted.constant, str) or not wanted.constant:
        raise OutsideSubset("INSTR")
    return Typed(f"CAST(instr({value.sql}, {wanted.sql}) AS INTEGER)", t.INT, has_query=value.has_query)


def _tested(name: str) -> Lower:
    def lower(node: exp.Expression, place: Place) -> Typed:
        only(node, "this", "expression")
        value, wanted = (
            text_of(node.this, place, name_of(node)),
            text_of(node.expression, place, name_of(node)),
        )
        return Typed(f"{name}({value.sql}, {wanted.sql})", t.BOOLEAN, has_query=any_query(value, wanted))

    return lower


def _like(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "expression", "negate")
    value = text_of(node.this, place, "LIKE")
    pattern = place.lower(node.expression)
    if not isinstance(pattern.constant, str) or "\\" in pattern.constant:
        raise OutsideSubset("LIKE with a pattern that is no plain text")
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Typed(f"({value.sql} {word} {pattern.sql})", t.BOOLEAN, has_query=value.has_query)


def _pad(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "expression", "fill_pattern", "is_left")
    value = text_of(node.this, place, "PAD")
    length = number_of(node.expression, place, "PAD")
    fill = node.args.get("fill_pattern")
    filled = place.lower(fill).constant if fill is not None else " "
    if not isinstance(filled, str) or not filled or not filled.isascii():
        raise OutsideSubset("PAD")
    name = "lpad" if node.args.get("is_left") else "rpad"
    sql = f"{name}({value.sql}, {length}, {text_literal(filled)})"
    return Typed(sql, t.STRING, has_query=value.has_query, letters=place.context.grow(length))


# Conditions


def _coalesce(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "expressions")
    values = operators.unify([place.lower(each) for each in (node.this, *node.expressions)], "COALESCE")
    listed = join_texts(", ", (each.sql for each in values))
    return Typed(f"coalesce({listed})", values[0].type, has_query=any_query(*values))


def _nullif(node: exp.Expression, place: Place) -> Typed:
    value, other = place.lower(node.this), place.lower(node.expression)
    if value.has_query:
        raise OutsideSubset("NULLIF of a subquery")

    def make(one: str, two: str) -> str:
        same = operators.compare("=", replace(value, sql=one), replace(other, sql=two))
        return f"(CASE WHEN {same.sql} THEN NULL ELSE {one} END)"

    return Typed(bind([value.sql, other.sql], make), value.type, has_query=other.has_query)


def _extreme(name: str) -> Lower:
    def lower(node: exp.Expression, place: Place) -> Typed:
        values = [place.lower(each) for each in (node.this, *node.expressions)]
        if len({each.type == t.STRING for each in values if each.type != t.NULL}) > 1:
            raise OutsideSubset(name_of(node))  # here, Spark takes no text for a date
        values = operators.unify(values, name_of(node))
        if len(values) < 2 or not values[0].type.is_plain:
            raise OutsideSubset(name_of(node))
        listed = join_texts(", ", (each.sql for each in values))
        return Typed(f"{name}({listed})", values[0].type, has_query=any_query(*values))

    return lower


def _null_test(test: str) -> Lower:
    def lower(node: exp.Expression, place: Place) -> Typed:
        if len(node.expressions) != 1:
            raise OutsideSubset(name_of(node))
        value = place.lower(node.expressions[0])
        return Typed(f"({value.sql} {test})", t.BOOLEAN, has_query=value.has_query)

    return lower


# Numbers


def _absolute(node: exp.Expression, place: Place) -> Typed:
    value = place.lower(node.this)
    if not value.type.is_numeric:
        raise OutsideSubset(f"ABS of {value.type.kind}")
    return Typed(f"CAST(abs({value.sql}) AS {value.type.duck})", value.type, has_query=value.has_query)


_ROUNDED_DIGITS: Final = 30
"""Each number is a function more in a database that all statements share."""


def _round(node: exp.Expression, place: Place) -> Typed:
    only(node, "this", "decimals")
    value = place.lower(node.this)
    digits = node.args.get("decimals")
    scale = number_of(digits, place, "ROUND") if digits is not None else 0
    if value.type == t.DOUBLE:
        if scale > _ROUNDED_DIGITS:
            raise OutsideSubset("ROUND to so many digits")
        sql = f"{place.context.need(exact.rounder(scale))}({value.sql})"
        return Typed(sql, t.DOUBLE, has_query=value.has_query)
    if value.type.is_integral:
        return Typed(value.sql, value.type, has_query=value.has_query)
    if value.type.kind != "decimal":
        raise OutsideSubset(f"ROUND of {value.type.kind}")
    kept = min(scale, value.type.scale)
    precision = value.type.precision - value.type.scale + 1 + kept
    if precision > t.MAX_PRECISION:
        raise OutsideSubset("ROUND of a wide decimal")
    type_ = t.decimal(precision, kept)
    return Typed(f"CAST({value.sql} AS {type_.duck})", type_, has_query=value.has_query)


def _whole(name: str) -> Lower:
    """`floor` and `ceil`."""

    def lower(node: exp.Expression, place: Place) -> Typed:
        only(node, "this")
        value = place.lower(node.this)
        if value.type.is_integral:
            return Typed(value.cast(t.LONG).sql, t.LONG, has_query=value.has_query)
        if value.type.kind != "decimal":
            raise OutsideSubset(f"{name.upper()} of {value.type.kind}")
        if not value.type.scale:
            return Typed(value.sql, value.type, has_query=value.has_query)
        type_ = t.decimal(min(value.type.precision - value.type.scale + 1, t.MAX_PRECISION), 0)
        return Typed(f"CAST({name}({value.sql}) AS {type_.duck})", type_, has_query=value.has_query)

    return lower


FUNCTIONS: Final[dict[type[exp.Expression], Lower]] = {
    **DATES,
    exp.Upper: _letters("upper", exact.UPPER),
    exp.Lower: _letters("lower", exact.LOWER),
    exp.Length: _length,
    exp.Substring: _substring,
    exp.Left: _side("left"),
    exp.Right: _side("right"),
    exp.Concat: _concat,
    exp.DPipe: _pipes,
    exp.Trim: _trim,
    exp.Replace: _replace,
    exp.StrPosition: _position,
    exp.Contains: _tested("contains"),
    exp.StartsWith: _tested("starts_with"),
    exp.EndsWith: _tested("ends_with"),
    exp.Like: _like,
    exp.Pad: _pad,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Greatest: _extreme("greatest"),
    exp.Least: _extreme("least"),
    exp.Abs: _absolute,
    exp.Round: _round,
    exp.Floor: _whole("floor"),
    exp.Ceil: _whole("ceil"),
}

ANONYMOUS: Final[dict[str, Lower]] = {
    "isnull": _null_test("IS NULL"),
    "isnotnull": _null_test("IS NOT NULL"),
}
