"""A test on a value, and whether any value between two bounds can pass it.

A maintainer must not break: null passes no comparison but `not-eq`, `not-in` and `not-starts-with`; an
unknown bound may be anything; and a bound may have been cut, so equal bounds do not mean equal values.
"""

from collections.abc import Callable
from math import isnan
from typing import Any, Final

PASSED_BY_NULL: Final = frozenset({"is-null", "not-eq", "not-in", "not-starts-with", "not-nan"})


def make_test(op: str, values: tuple[Any, ...]) -> Callable[[Any], bool]:
    """Whether one value, null included, passes."""
    if op == "is-null":
        return lambda value: value is None
    if op == "not-null":
        return lambda value: value is not None
    if op == "is-nan":
        return lambda value: value is not None and isnan(value)
    if op == "not-nan":
        return lambda value: value is None or not isnan(value)
    if op in ("in", "not-in"):
        chosen = frozenset(values)
        return (lambda value: value in chosen) if op == "in" else (lambda value: value not in chosen)
    (wanted,) = values
    return _COMPARE[op](wanted)


_COMPARE: Final[dict[str, Callable[[Any], Callable[[Any], bool]]]] = {
    "lt": lambda wanted: lambda value: value is not None and value < wanted,
    "lt-eq": lambda wanted: lambda value: value is not None and value <= wanted,
    "gt": lambda wanted: lambda value: value is not None and value > wanted,
    "gt-eq": lambda wanted: lambda value: value is not None and value >= wanted,
    "eq": lambda wanted: lambda value: value is not None and value == wanted,
    "not-eq": lambda wanted: lambda value: value is None or value != wanted,
    "starts-with": lambda wanted: lambda value: value is not None and value.startswith(wanted),
    "not-starts-with": lambda wanted: lambda value: value is None or not value.startswith(wanted),
}


def widen_zero(op: str, values: tuple[Any, ...]) -> str:
    """The test that also takes the other zero: engines differ on whether -0.0 is less than 0.0."""
    if len(values) == 1 and isinstance(values[0], float) and values[0] == 0:
        return {"lt": "lt-eq", "gt": "gt-eq"}.get(op, op)
    return op


def make_range_test(op: str, values: tuple[Any, ...]) -> Callable[[Any, Any], bool]:
    """Whether a value that is neither null nor NaN, between a lower and an upper bound, can pass.

    Bounds are None when unknown. A bound that is NaN compares with nothing, and so rules out nothing.
    """
    least, most = (min(values), max(values)) if values else (None, None)
    match widen_zero(op, values):
        case "lt":
            return lambda low, _: low is None or not low >= least
        case "lt-eq":
            return lambda low, _: low is None or not low > least
        case "gt":
            return lambda _, high: high is None or not high <= most
        case "gt-eq":
            return lambda _, high: high is None or not high < most
        case "eq" | "in":
            if least == most:
                return lambda low, high: (
                    not ((low is not None and low > most) or (high is not None and high < least))
                )

            def has_one(low: Any, high: Any) -> bool:
                if (low is not None and low > most) or (high is not None and high < least):
                    return False
                return any(
                    not ((low is not None and low > one) or (high is not None and high < one))
                    for one in values
                )

            return has_one
        case "starts-with":
            prefix, size = values[0], len(values[0])
            return lambda low, high: (
                not ((low is not None and low[:size] > prefix) or (high is not None and high[:size] < prefix))
            )
        case "not-starts-with":
            prefix = values[0]
            return lambda low, high: (
                not (
                    low is not None
                    and high is not None
                    and low.startswith(prefix)
                    and high.startswith(prefix)
                )
            )
    # not-eq and not-in: bounds may be cut, so nothing is ruled out.
    return lambda low, high: True
