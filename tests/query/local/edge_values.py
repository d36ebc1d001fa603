"""Rows with the values that engines disagree about: nulls, zeros, signs, NaN, letters, ends of months."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa


def _decimals(*texts: str | None) -> list[Decimal | None]:
    return [None if each is None else Decimal(each) for each in texts]


def make_tables() -> dict[str, pa.Table]:
    """`v`: one column per type, two of most. `w`: to join with."""
    nan, inf = float("nan"), float("inf")
    v = pa.table(
        {
            "id": pa.array(range(8), pa.int32()),
            "i": pa.array([0, 1, -1, 7, -7, 2_000_000, None, 42], pa.int32()),
            "j": pa.array([3, -2, 5, None, 2, 1000, 4, 42], pa.int32()),
            "l": pa.array([0, 10**12, -(10**12), 3, None, -3, 9, 42], pa.int64()),
            "m": pa.array([5, 7, -3, 2, 1, None, 11, 42], pa.int64()),
            "x": pa.array([0.0, -0.0, 1.5, nan, inf, -2.5, None, 1e300]),
            "y": pa.array([2.5, 3.5, nan, 1.0, -1.0, None, 0.125, -7.75]),
            "f": pa.array([0.5, -0.25, nan, None, 1.5, 3.0, -0.0, 0.1], pa.float32()),
            "a": pa.array(
                _decimals("0.00", "1.25", "-1.25", "12345.67", None, "0.01", "-99999.99", "2.50"),
                pa.decimal128(9, 2),
            ),
            "b": pa.array(
                _decimals("3.33", "-7.00", "1.01", None, "2.00", "100.10", "-0.50", "9999999.99"),
                pa.decimal128(15, 2),
            ),
            "c": pa.array(
                _decimals("1.000001", "-2.5", "123456789.123456", "0.333333", None, "-0.000001", "7", "1"),
                pa.decimal128(30, 6),
            ),
            "e": pa.array(_decimals("5", "-5", "15", "25", "35", None, "45", "1"), pa.decimal128(4, 0)),
            "s": pa.array(["", "abc", "Zebra ", "  pad", None, "straße É", "a%b_c", "ﬁn ΑΣ"]),
            "t": pa.array(["b", "abc", "zebra", "", "x", None, "%", "日本語 text"]),
            "dt": pa.array(
                [
                    date(2020, 2, 29),
                    date(1999, 12, 31),
                    None,
                    date(1969, 12, 31),
                    date(2024, 1, 31),
                    date(1900, 3, 1),
                    date(2023, 10, 29),
                    date(1582, 10, 15),
                ]
            ),
            "du": pa.array([date(2020, 1, 31)] * 3 + [None] + [date(2021, 5, 31)] * 4),
            "ts": pa.array(
                [
                    datetime(2020, 2, 29, 23, 59, 59, 999999, UTC),
                    datetime(1969, 12, 31, 23, 0, 0, 1, UTC),
                    None,
                ]
                + [datetime(2024, 3, 31, 1, 30, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)]
                + [datetime(2023, 10, 29, 2, 30, tzinfo=UTC)] * 3,
                pa.timestamp("us", tz="UTC"),
            ),
            "n": pa.array([1_582_979_401_000_000] * 4 + [None] * 4, pa.timestamp("us")),
            "z": pa.array([True, False, None, True, False, None, True, False]),
            "st": pa.array(
                [{"x": 1, "q": {"r": "in"}}, None, {"x": None, "q": None}, *[{"x": 3, "q": {"r": None}}] * 5],
                pa.struct([("x", pa.int32()), ("q", pa.struct([("r", pa.string())]))]),
            ),
        }
    )
    w = pa.table(
        {
            "id": pa.array([1, 2, 2, 5, None, 9], pa.int32()),
            "g": pa.array(["p", "q", "p", None, "q", "p"]),
            "val": pa.array(_decimals("1.10", "2.20", None, "4.40", "5.50", "6.60"), pa.decimal128(12, 2)),
            "k": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
            "r": pa.array([1.5, nan, -0.0, 0.0, nan, None]),
        }
    )
    return {"v": v, "w": w}
