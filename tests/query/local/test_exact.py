"""Functions that DuckDB does not have exactly, against Python's own decimals."""

import random
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest

from cynosure.query.local import exact
from cynosure.query.local.spark_types import SparkType, decimal, divide_decimals, to_arrow_type

WIDE = Context(prec=200)
SHAPES = (
    (decimal(9, 2), decimal(15, 2)),
    (decimal(38, 4), decimal(38, 4)),
    (decimal(25, 2), decimal(20, 0)),
    (decimal(18, 0), decimal(18, 9)),
    (decimal(38, 18), decimal(10, 10)),
)


def values(type_: SparkType, count: int, chance: random.Random) -> list[Decimal]:
    digits = [chance.randint(1, type_.precision) for _ in range(count)]
    return [
        Decimal(chance.choice((-1, 1)) * chance.randint(1, 10**each - 1)).scaleb(-type_.scale, WIDE)
        for each in digits
    ]


def divide(above: list[Decimal], below: list[Decimal], left: SparkType, right: SparkType) -> pa.Array:
    function = exact.divider(left, right, divide_decimals(left, right))
    return function.call(
        pa.chunked_array([pa.array(above, to_arrow_type(left))]),
        pa.chunked_array([pa.array(below, to_arrow_type(right))]),
    )


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_division(left: SparkType, right: SparkType) -> None:
    chance = random.Random(7)
    result = divide_decimals(left, right)
    for above, below in zip(values(left, 300, chance), values(right, 300, chance), strict=True):
        wanted = WIDE.divide(above, below).quantize(Decimal(1).scaleb(-result.scale), ROUND_HALF_UP, WIDE)
        if abs(wanted.scaleb(result.scale, WIDE)) >= 10**result.precision:
            with pytest.raises(exact.ConditionMet, match="NUMERIC_VALUE_OUT_OF_RANGE"):
                divide([above], [below], left, right)
        else:
            assert divide([above], [below], left, right).to_pylist() == [wanted]


def test_many_rows_at_once_are_the_same_as_one_by_one() -> None:
    chance = random.Random(8)
    left, right = decimal(9, 2), decimal(7, 1)
    above, below = values(left, 500, chance), values(right, 500, chance)
    alone = [divide([one], [other], left, right)[0] for one, other in zip(above, below, strict=True)]
    assert divide(above, below, left, right).to_pylist() == [each.as_py() for each in alone]


def test_halves_go_away_from_zero() -> None:
    type_ = decimal(3, 0)
    function = exact.divider(type_, type_, decimal(4, 0))
    above, below = [[Decimal(each) for each in row] for row in ((5, -5, 1, -1, 3), (2, 2, 2, -2, 4))]
    answer = function.call(
        *(pa.chunked_array([pa.array(row, pa.decimal128(3, 0))]) for row in (above, below))
    )
    assert answer.to_pylist() == [Decimal(each) for each in (3, -3, 1, 1, 1)]


@pytest.mark.parametrize("digits", [5, 30])
def test_zero_is_no_divisor(digits: int) -> None:
    type_ = decimal(digits, 2)
    with pytest.raises(exact.ConditionMet, match=r"^CYN_DIVIDE_BY_ZERO$"):
        divide([Decimal(1), Decimal(2)], [Decimal(1), Decimal(0)], type_, type_)


def test_rounding_of_doubles() -> None:
    given = [2.5, -2.5, 0.125, 1.005, float("inf"), 1e300, -0.04]
    answer = exact.rounder(1).call(pa.chunked_array([pa.array(given)])).to_pylist()
    assert answer == [2.5, -2.5, 0.1, 1.0, float("inf"), 1e300, -0.0]
    assert exact.rounder(2).call(pa.chunked_array([pa.array([0.125, 1.005])])).to_pylist() == [0.13, 1.01]


def test_letters() -> None:
    given = pa.chunked_array([["straße", "ﬁn", "ΑΣ"]])
    assert exact.UPPER.call(given).to_pylist() == ["STRASSE", "FIN", "ΑΣ"]
    assert exact.LOWER.call(given).to_pylist() == ["straße", "ﬁn", "ας"]
