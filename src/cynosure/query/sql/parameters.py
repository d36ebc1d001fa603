"""Values of parameters: `:name` and `?` become literals of a type in the tree, never text.

A maintainer must not break: a value is a node. Nothing of it is parsed.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from sqlglot import exp

from cynosure.query.errors import SqlError
from cynosure.query.sql.edits import replace_all
from cynosure.query.sql.places import place_of_node

Parameters = Mapping[str, Any] | Sequence[Any]

_PATTERNS: Final[Mapping[str, str]] = {
    "DATE": r"\d{4}-\d\d-\d\d",
    "TIMESTAMP": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?",
    "TIMESTAMP_NTZ": r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?",
    "DECIMAL": r"-?\d{1,38}(\.\d{1,38})?",
    "BIGINT": r"-?\d{1,19}",
    "INT": r"-?\d{1,10}",
    "DOUBLE": r"-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?",
    "STRING": r"(?s:.*)",
    "BOOLEAN": r"(?i:true|false)",
}


def put_parameters(tree: exp.Expr, parameters: Parameters) -> None:
    """Replace all placeholders of a tree; each value must be used, and each placeholder have one."""
    named = dict(parameters) if isinstance(parameters, Mapping) else {}
    ordered = [] if isinstance(parameters, Mapping) else list(parameters)
    used: set[str] = set()
    at = 0
    found: list[tuple[exp.Expr, exp.Expr]] = []
    for node in sorted(tree.find_all(exp.Placeholder), key=lambda each: each.meta.get("start", 0)):
        name = node.args.get("this")
        if node.args.get("widget") or node.args.get("jdbc"):
            raise SqlError("A parameter is not understood", fix="Write :name or ?.", **place_of_node(node))
        if name:
            text = name if isinstance(name, str) else name.name
            if text not in named:
                raise SqlError(
                    "A parameter has no value",
                    fix="Send a value for it.",
                    parameter=text,
                    **place_of_node(node),
                )
            used.add(text)
            found.append((node, literal_of(named[text], text)))
            continue
        if at >= len(ordered):
            raise SqlError(
                "A parameter has no value",
                fix="Send one value for each ?.",
                parameter=at + 1,
                **place_of_node(node),
            )
        found.append((node, literal_of(ordered[at], str(at + 1))))
        at += 1
    replace_all(found)
    if at < len(ordered) or used < named.keys():
        raise SqlError(
            "A value has no parameter",
            fix="Send values only for parameters of the statement.",
            parameter=", ".join(sorted(named.keys() - used)) or str(at + 1),
        )


def literal_of(value: Any, name: str) -> exp.Expr:
    """A node with this value: of JSON, or `{"type": …, "value": …}`."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() if -(2**63) <= value < 2**63:
            return _number(str(value))
        case float() if math.isfinite(value):
            return _cast(exp.Literal.string(repr(value)), "DOUBLE")
        case str():
            return _text(value, name)
        case {"type": str() as type_, "value": inner, **rest} if not rest:
            return _typed(type_.upper(), inner, name)
    _refuse(name)


def _typed(type_: str, value: Any, name: str) -> exp.Expr:
    pattern = _PATTERNS.get(type_)
    if pattern is None:
        _refuse(name)
    if value is None:
        return _cast(exp.Null(), type_)
    text = str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else str(value)
    if isinstance(value, dict | list) or not re.fullmatch(pattern, text, re.ASCII):
        _refuse(name)
    if type_ == "STRING":
        return _text(text, name)
    if type_ == "BOOLEAN":
        return exp.Boolean(this=text.lower() == "true")
    if type_ == "DECIMAL":
        whole, _, fraction = text.removeprefix("-").partition(".")
        digits = max(len(whole.lstrip("0")) + len(fraction), 1)
        if digits > 38:
            _refuse(name)
        return _cast(exp.Literal.string(text), f"DECIMAL({digits}, {len(fraction)})")
    return _cast(exp.Literal.string(text), type_)


def _text(value: str, name: str) -> exp.Expr:
    if "${" in value or any(0xD800 <= ord(sign) < 0xE000 for sign in value):
        _refuse(name)
    return exp.Literal.string(value)


def _number(text: str) -> exp.Expr:
    if text.startswith("-"):
        return exp.Paren(this=exp.Neg(this=exp.Literal.number(text[1:])))
    return exp.Literal.number(text)


def _cast(value: exp.Expr, type_: str) -> exp.Expr:
    return exp.TryCast(this=value, to=exp.DataType.build(type_, dialect="spark"))


def _refuse(name: str) -> NoReturn:
    raise SqlError(
        "The value of a parameter is not understood",
        fix='Send a text, a number, a boolean, null, or {"type": "DATE", "value": "2026-01-31"}; types: '
        + ", ".join(_PATTERNS)
        + ".",
        parameter=name,
    )
