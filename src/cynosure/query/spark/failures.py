"""What Spark raises, as our errors: by conditions and classes, never by what it says.

Messages of Spark hold values of rows, plans, paths. Conditions (`DIVIDE_BY_ZERO`) are constants.

A maintainer must not break: no text of an exception gets through.
"""

import re
from types import MappingProxyType
from typing import Any, Final

from cynosure.common.errors import CynosureError
from cynosure.query.errors import EngineUnavailable, OutOfMemory, QueryCancelled, QueryFailed, SqlError
from cynosure.query.spark.native_failures import find_storage_error

_CONDITION: Final = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z][A-Z0-9_]*)*")
_MOST: Final = 20
_TEXTS: Final = MappingProxyType(
    {
        "DIVIDE_BY_ZERO": ("A number is divided by zero", "Use try_divide, or NULLIF on the divisor."),
        "REMAINDER_BY_ZERO": ("A remainder is taken by zero", "Use try_mod, or NULLIF on the divisor."),
        "INTERVAL_DIVIDED_BY_ZERO": ("An interval is divided by zero", "Use try_divide."),
        "CAST_INVALID_INPUT": ("A text is not what it is cast to", "Use try_cast."),
        "CAST_OVERFLOW": ("A value is too large for what it is cast to", "Use try_cast."),
        "ARITHMETIC_OVERFLOW": (
            "A result is too large for its type",
            "Use try_add and its like, or a larger type.",
        ),
        "BINARY_ARITHMETIC_OVERFLOW": ("A result is too large for its type", "Cast to a larger type."),
        "NUMERIC_VALUE_OUT_OF_RANGE": (
            "A number does not fit into its decimal type",
            "Cast to a larger one.",
        ),
        "INVALID_ARRAY_INDEX": ("An array has no such element", "Use get, or try_element_at."),
        "INVALID_ARRAY_INDEX_IN_ELEMENT_AT": ("An array has no such element", "Use try_element_at."),
        "MAP_KEY_DOES_NOT_EXIST": ("A map has no such key", "Use try_element_at."),
        "CANNOT_PARSE_TIMESTAMP": ("A text is no timestamp of this format", "Use try_to_timestamp."),
        "INVALID_DATETIME_PATTERN": (
            "A pattern of a date is not understood",
            "See Spark's datetime patterns.",
        ),
        "DATETIME_OVERFLOW": ("A date or timestamp is out of range", ""),
        "SCALAR_SUBQUERY_TOO_MANY_ROWS": (
            "A subquery that must give one value gives more rows",
            "Add LIMIT 1.",
        ),
        "USER_RAISED_EXCEPTION": ("The statement raised an error itself (raise_error, assert_true)", ""),
        "DUPLICATED_MAP_KEY": ("A map gets the same key twice", ""),
        "COLLECTION_SIZE_LIMIT_EXCEEDED": ("An array would have too many elements", ""),
        "INVALID_PARAMETER_VALUE": ("A function got a value that it does not take", ""),
        "UNSUPPORTED_DATATYPE": ("The result has a type that cannot be given", "Cast it to a string."),
    }
)
_WRONG_TEXT: Final = ("AnalysisException", "ParseException", "ExtendedAnalysisException")
_MEMORY: Final = ("OutOfMemoryError", "SparkOutOfMemoryError")
_PYTHON: Final = ("PythonException",)
_GONE: Final = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError", "BrokenPipeError")
"""What is raised in the driver when its Java is no longer there."""
_OF_VALUES: Final = (
    "ArithmeticException",
    "DateTimeException",
    "DateTimeParseException",
    "IllegalArgumentException",
    "NumberFormatException",
    "PatternSyntaxException",
    "SparkArithmeticException",
    "SparkDateTimeException",
    "SparkIllegalArgumentException",
    "SparkNumberFormatException",
    "SparkRuntimeException",
)
"""Of functions on values that they do not take, to which Spark gave no condition of its own."""


class ScanFailed(EngineUnavailable):
    """A scan on an executor failed; the broker knows why, and says it."""


def to_error(raised: BaseException) -> CynosureError:
    """The error of our tree for whatever was raised in the driver."""
    if isinstance(raised, CynosureError):
        return raised
    names, conditions, is_cancelled, has_many_rows = _read(raised)

    def has(kinds: tuple[str, ...]) -> bool:
        return any(name in kinds for name in names)

    if is_cancelled:
        return QueryCancelled("The statement was ended")
    if names[0] in _GONE:
        return EngineUnavailable("Spark's driver ended while it ran the statement", fix="Try again.")
    if has_many_rows or has(_MEMORY):
        return OutOfMemory(
            "Spark would need more memory for this statement than it has",
            fix="Ask for fewer rows or columns, or give Spark more memory (query.spark.driver_memory, and "
            "spark.driver.maxResultSize where query.spark.config has that).",
        )
    if has(_PYTHON):
        return ScanFailed("A scan on an executor of Spark failed", fix="Try again.")
    if (of_storage := find_storage_error(names)) is not None:
        return of_storage
    condition = next(
        (each for each in reversed(conditions) if _is_known(each)), conditions[-1] if conditions else ""
    )
    if has(_WRONG_TEXT):
        return SqlError(
            "Spark does not accept the statement",
            fix="Check names, types and arguments of functions.",
            condition=condition,
        )
    if condition:
        message, fix = _TEXTS.get(condition.partition(".")[0], ("Spark failed on the statement", ""))
        return QueryFailed(message, condition=condition, fix=fix)
    if names[-1] in _OF_VALUES:
        return QueryFailed("A function got a value that it does not take")
    return EngineUnavailable(
        "Spark could not run the statement", fix="Try again.", raised=names[-1] if names else ""
    )


def is_too_large(raised: BaseException) -> bool:
    """Whether Spark ended a job because of how many rows it gave."""
    return _read(raised)[3]


def _is_known(condition: str) -> bool:
    return condition.partition(".")[0] in _TEXTS


def _read(raised: BaseException) -> tuple[list[str], list[str], bool, bool]:
    """Class names and conditions from the outermost to the root; whether it was cancelled, or too large."""
    names = [type(raised).__name__]
    conditions: list[str] = []
    is_cancelled = has_many_rows = False
    java = getattr(raised, "java_exception", None) or getattr(raised, "_origin", None)
    own = getattr(raised, "getCondition", None)
    if java is None and own is not None:
        conditions += _checked(own())
    while java is not None and len(names) < _MOST:
        names.append(str(java.getClass().getName()).rpartition(".")[2])
        conditions += _find_condition(java)
        text = str(java.getMessage() or "")
        # Of these two Spark says nothing but in its text, which is read here and goes no further.
        is_cancelled |= "cancelled" in text and names[-1] == "SparkException" and text.startswith("Job ")
        is_cancelled |= any(each in conditions for each in ("SPARK_JOB_CANCELLED",))
        has_many_rows |= "maxResultSize" in text
        java = java.getCause()
    return names, conditions, is_cancelled, has_many_rows


def _find_condition(java: Any) -> list[str]:
    try:
        return _checked(java.getCondition())
    except Exception:
        # Not all of Java's errors are Spark's, and py4j tells only by trying.
        return []


def _checked(condition: Any) -> list[str]:
    text = str(condition or "")
    return [text] if _CONDITION.fullmatch(text) else []
