"""Functions that DuckDB does not have exactly: division of decimals, case of letters, checked division.

They work on Arrow arrays without nulls (DuckDB leaves rows with a null out) and are named by their types.

A maintainer must not break: they see governed values only, and a failure says its condition and no value.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from cynosure.query.local.spark_types import DOUBLE, STRING, SparkType, to_arrow_type

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

Names = tuple[str, ...]
_SPARK_SCALE: Final = 38
"""Spark divides to so many digits behind the point, and rounds that to the result's scale."""
_INT64_MAX: Final = 2**63 - 1
_FAST_DIGITS: Final = 18
"""With so few, rounding twice and rounding once are the same for numbers of 64 bits."""


class Function(Struct, frozen=True):
    """One function for DuckDB."""

    name: str
    arguments: Names
    result: str
    call: Callable[..., "pa.Array"]


class ConditionMet(Exception):
    """Told to DuckDB as text: `CYN_` and a condition of Spark."""

    def __init__(self, condition: str) -> None:
        super().__init__(f"CYN_{condition}")


def divider(left: SparkType, right: SparkType, result: SparkType) -> Function:
    """`left / right` of decimals, rounded half up; a divisor of zero fails."""
    name = "_".join(
        ["cyn_divide", *(f"{each.precision}_{each.scale}" for each in (left, right, result))],
    )

    def call(dividend: "pa.ChunkedArray", divisor: "pa.ChunkedArray") -> "pa.Array":
        return _divide(dividend, divisor, left.scale - right.scale, result)

    return Function(name, (left.duck, right.duck), result.duck, call)


def _divide(
    dividend: "pa.ChunkedArray", divisor: "pa.ChunkedArray", shift: int, result: SparkType
) -> "pa.Array":
    """`shift`: digits that the dividend's scale has more than the divisor's."""
    import numpy as np  # noqa: PLC0415 - an extra

    above, below = _unscaled(dividend), _unscaled(divisor)
    small = above[1] is None and below[1] is None
    lows, divisors = above[0], below[0]
    if small and not divisors.all():
        raise ConditionMet("DIVIDE_BY_ZERO")
    digits = result.scale - shift
    if small and 0 <= digits <= _FAST_DIGITS and result.scale <= _FAST_DIGITS:
        factor = 10**digits
        largest = int(np.abs(lows).max(initial=0))
        widest = int(np.abs(divisors).max(initial=0))
        # Half up needs twice the remainder. The smallest int64 has no absolute value, and shows as negative.
        if 0 <= largest * factor <= _INT64_MAX and 0 <= 2 * widest <= _INT64_MAX:
            scaled, size = np.abs(lows) * factor, np.abs(divisors)
            quotient = scaled // size
            quotient += (scaled - quotient * size) * 2 >= size
            if quotient.max(initial=0) >= 10 ** min(result.precision, 19):
                raise ConditionMet("NUMERIC_VALUE_OUT_OF_RANGE")
            return _of_int64(np.where((lows < 0) != (divisors < 0), -quotient, quotient), result)
    return _decimals_of(
        [
            _divide_exactly(one, other, shift, result)
            for one, other in zip(_integers(above), _integers(below), strict=True)
        ],
        result,
    )


def _divide_exactly(dividend: int, divisor: int, shift: int, result: SparkType) -> int:
    """As Spark: to 38 digits behind the point first, then to the scale, half up both times."""
    if divisor == 0:
        raise ConditionMet("DIVIDE_BY_ZERO")
    is_negative = (dividend < 0) != (divisor < 0)
    above, below = abs(dividend), abs(divisor)
    power = _SPARK_SCALE - shift
    if power >= 0:
        above *= 10**power
    else:
        below *= 10**-power
    precise = _half_up(above, below)
    rounded = _half_up(precise, 10 ** (_SPARK_SCALE - result.scale))
    if rounded >= 10**result.precision:
        raise ConditionMet("NUMERIC_VALUE_OUT_OF_RANGE")
    return -rounded if is_negative else rounded


def _half_up(above: int, below: int) -> int:
    quotient, rest = divmod(above, below)
    return quotient + (2 * rest >= below)


def _unscaled(array: "pa.ChunkedArray") -> "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]":
    """Low halves, and high halves unless all values fit into 64 bits."""
    import numpy as np  # noqa: PLC0415

    whole = array.combine_chunks()
    pairs = np.frombuffer(whole.buffers()[1], dtype=np.int64)[
        2 * whole.offset : 2 * (whole.offset + len(whole))
    ]
    lows, highs = pairs[0::2], pairs[1::2]
    fits = bool((highs == (lows >> 63)).all())
    return lows, None if fits else highs


def _integers(halves: "tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]") -> list[int]:
    lows, highs = halves
    if highs is None:
        return [int(each) for each in lows.tolist()]
    return [
        (high << 64) | (low & (2**64 - 1)) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
    ]


def _decimals_of(unscaled: list[int], type_: SparkType) -> "pa.Array":
    import pyarrow as pa  # noqa: PLC0415

    data = b"".join(each.to_bytes(16, "little", signed=True) for each in unscaled)
    return pa.Array.from_buffers(to_arrow_type(type_), len(unscaled), [None, pa.py_buffer(data)])


def _of_int64(unscaled: "np.ndarray[Any, Any]", type_: SparkType) -> "pa.Array":
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    pairs = np.empty((len(unscaled), 2), dtype=np.int64)
    pairs[:, 0] = unscaled
    pairs[:, 1] = unscaled >> 63
    return pa.Array.from_buffers(to_arrow_type(type_), len(unscaled), [None, pa.py_buffer(pairs.tobytes())])


def _divide_doubles(dividend: "pa.ChunkedArray", divisor: "pa.ChunkedArray") -> "pa.Array":
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415

    below = divisor.to_numpy()
    if (below == 0).any():
        raise ConditionMet("DIVIDE_BY_ZERO")
    with np.errstate(all="ignore"):
        return pa.array(dividend.to_numpy() / below, pa.float64())


DIVIDE_DOUBLES: Final = Function(
    "cyn_divide_double", (DOUBLE.duck, DOUBLE.duck), DOUBLE.duck, _divide_doubles
)


def _by_text(change: Callable[[str], str]) -> Callable[["pa.ChunkedArray"], "pa.Array"]:
    def call(texts: "pa.ChunkedArray") -> "pa.Array":
        import pyarrow as pa  # noqa: PLC0415

        return pa.array([change(each) for each in texts.to_pylist()], pa.string())

    return call


UPPER: Final = Function("cyn_upper", (STRING.duck,), STRING.duck, _by_text(str.upper))
"""Of texts that are not ASCII: Spark maps one letter to several where Unicode does, DuckDB does not."""
LOWER: Final = Function("cyn_lower", (STRING.duck,), STRING.duck, _by_text(str.lower))

_WIDE: Final = Context(prec=400)


def rounder(digits: int) -> Function:
    """`round(double, digits)`: of the shortest text that means the number, half up, as Spark."""
    step = Decimal(1).scaleb(-digits)

    def call(numbers: "pa.ChunkedArray") -> "pa.Array":
        import pyarrow as pa  # noqa: PLC0415

        return pa.array([_round(each, step) for each in numbers.to_pylist()], pa.float64())

    return Function(f"cyn_round_{digits}".replace("-", "m"), (DOUBLE.duck,), DOUBLE.duck, call)


def _round(number: float, step: Decimal) -> float:
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return number
    return float(Decimal(repr(number)).quantize(step, "ROUND_HALF_UP", _WIDE))
