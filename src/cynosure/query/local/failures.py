"""What DuckDB says when it fails, as errors of ours: a condition of Spark and a constant text.

A maintainer must not break: DuckDB prints values into its messages ("Could not convert string 'secret'"), so
nothing of a message is ever passed on; it only chooses among the texts below.
"""

import re
from typing import Final

from cynosure.common.errors import CynosureError
from cynosure.query.errors import EngineUnavailable, OutOfMemory, QueryFailed

_TEXTS: Final = {
    "DIVIDE_BY_ZERO": (
        "The statement divides by zero",
        "Use try_divide, or NULLIF(divisor, 0), to get NULL in its place.",
    ),
    "REMAINDER_BY_ZERO": (
        "The statement takes the remainder of a division by zero",
        "Use try_mod, or NULLIF(divisor, 0), to get NULL in its place.",
    ),
    "ARITHMETIC_OVERFLOW": (
        "A number becomes too large for its type",
        "Cast to a larger type before calculating, or use try_add, try_subtract, try_multiply, try_sum.",
    ),
    "NUMERIC_VALUE_OUT_OF_RANGE": (
        "A decimal has more digits than its type",
        "Cast to a decimal of more digits, or to DOUBLE.",
    ),
    "CAST_OVERFLOW": ("A value does not fit into the type that it is cast to", "Use try_cast."),
    "CAST_INVALID_INPUT": ("A text cannot be cast to the type that is asked for", "Use try_cast."),
    "DATETIME_OVERFLOW": ("A date or time is beyond what its type holds", "Use smaller intervals."),
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": (
        "A subquery that stands for one value gives more than one row",
        "Add LIMIT 1 or an aggregate to it.",
    ),
}
_OWN: Final = re.compile(r"\bCYN_([A-Z_]+)\b")
_MEMORY: Final = re.compile(r"\A\s*(Out of Memory Error|.*failed to (allocate|pin|offload))", re.ASCII)
_RULES: Final = (
    (
        re.compile(r"\A\s*Out of Range Error: Overflow in \w+ of (DECIMAL|INT128|HUGEINT)"),
        "NUMERIC_VALUE_OUT_OF_RANGE",
    ),
    (re.compile(r"\A\s*Out of Range Error: Overflow in \w+ of DATE"), "DATETIME_OVERFLOW"),
    (re.compile(r"\A\s*Out of Range Error: .*(date|Date|DATE|timestamp|Timestamp)"), "DATETIME_OVERFLOW"),
    (re.compile(r"\A\s*Out of Range Error: "), "ARITHMETIC_OVERFLOW"),
    (re.compile(r"\A\s*Conversion Error: Type INT128 "), "ARITHMETIC_OVERFLOW"),
    (re.compile(r"\A\s*Conversion Error: Could not cast value .* to DECIMAL"), "NUMERIC_VALUE_OUT_OF_RANGE"),
    (re.compile(r"\A\s*Conversion Error: Casting value .* to type DECIMAL"), "NUMERIC_VALUE_OUT_OF_RANGE"),
    (re.compile(r"\A\s*Conversion Error: Type \w+(\(\d+,\d+\))? with value"), "CAST_OVERFLOW"),
    (re.compile(r"\A\s*Conversion Error: Failed to cast decimal value"), "CAST_OVERFLOW"),
    (re.compile(r"\A\s*Conversion Error: Could not convert string"), "CAST_INVALID_INPUT"),
    (
        re.compile(r"\A\s*Invalid Input Error: More than one row returned by a subquery"),
        "SCALAR_SUBQUERY_TOO_MANY_ROWS",
    ),
)


def is_fatal(error: BaseException) -> bool:
    """Whether the database must not be used any more."""
    return bool(re.match(r"\s*(FATAL|INTERNAL) Error", str(error), re.IGNORECASE))


def is_interrupt(error: BaseException) -> bool:
    """Whether somebody stopped it."""
    return str(error).lstrip().startswith("INTERRUPT Error")


def to_error(error: BaseException) -> CynosureError:
    """The error for the user."""
    text = str(error)
    if _MEMORY.match(text):
        return OutOfMemory(
            "The statement needs more memory than the local engine may use",
            fix="Ask for less at once, set query.spill_to_disk, or raise query.local.memory_limit.",
        )
    own = _OWN.search(text)
    if own and own[1] in _TEXTS:
        return failed(own[1])
    for pattern, condition in _RULES:
        if pattern.match(text):
            return failed(condition)
    if is_fatal(error):
        return EngineUnavailable("The local engine failed", fix="Send the statement again.")
    return QueryFailed(
        "The statement failed on its data",
        fix="Look for casts, divisions and dates that cannot be computed.",
    )


def failed(condition: str) -> QueryFailed:
    """A failure of the statement itself."""
    message, fix = _TEXTS[condition]
    return QueryFailed(message, condition=condition, fix=fix)
