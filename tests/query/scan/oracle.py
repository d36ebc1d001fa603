"""What a governed scan must give, row by row, in plain Python: SQL's logic as Spark has it."""

import math
from typing import Any

from cynosure.testing.scan_kit import reference


def both(left: Any, right: Any) -> dict[str, Any]:
    return {"type": "and", "left": left, "right": right}


def either(left: Any, right: Any) -> dict[str, Any]:
    return {"type": "or", "left": left, "right": right}


def passes(expression: Any, row: dict[int, Any]) -> bool | None:
    """TRUE, FALSE or UNKNOWN of a row, by field id."""
    if isinstance(expression, bool):
        return expression
    kind = expression["type"]
    if kind in ("and", "or"):
        left, right = passes(expression["left"], row), passes(expression["right"], row)
        decisive = kind == "or"
        if decisive in (left, right):
            return decisive
        return None if None in (left, right) else not decisive
    value = row[expression["term"]["id"]]
    if kind == "is-null":
        return value is None
    if kind == "not-null":
        return value is not None
    if value is None:
        return None
    if kind in ("is-nan", "not-nan"):
        return math.isnan(value) == (kind == "is-nan")
    if kind in ("in", "not-in"):
        return (value in expression["values"]) == (kind == "in")
    return _compare(kind, value, expression["value"])


def _compare(kind: str, value: Any, constant: Any) -> bool:
    if isinstance(value, float) and math.isnan(value):
        return kind in ("gt", "gt-eq", "not-eq")
    match kind:
        case "lt":
            return value < constant
        case "lt-eq":
            return value <= constant
        case "gt":
            return value > constant
        case "gt-eq":
            return value >= constant
        case "eq":
            return value == constant
        case "not-eq":
            return value != constant
        case "starts-with":
            return value.startswith(constant)
        case "not-starts-with":
            return not value.startswith(constant)
    raise AssertionError(kind)


__all__ = ["both", "either", "passes", "reference"]
