"""Rows as JSON: exactly what they are, whatever Arrow has."""

import datetime
import decimal
import json
import math
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from cynosure.api.query.values import sql_type, to_json_values

MAP = pa.map_(pa.string(), pa.int32())
BY_NUMBER = pa.map_(pa.int64(), pa.binary())
UTC = datetime.UTC


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (pa.array([True, None]), "boolean", [True, None]),
        (pa.array([2**63 - 1, -(2**63), None]), "bigint", [2**63 - 1, -(2**63), None]),
        (pa.array([0.1, None], pa.float32()), "float", [0.1, None]),
        (pa.array([0.1, 1e300]), "double", [0.1, 1e300]),
        (pa.array([math.nan, math.inf, -math.inf]), "double", ["NaN", "Infinity", "-Infinity"]),
        (
            pa.array([decimal.Decimal("1.20"), decimal.Decimal("-0.01"), None], pa.decimal128(38, 2)),
            "decimal(38,2)",
            ["1.20", "-0.01", None],
        ),
        (pa.array([datetime.date(2026, 1, 2), None]), "date", ["2026-01-02", None]),
        (pa.array([3_000_000], pa.date32()), "date", ["10183-09-21"]),
        (
            pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None], pa.timestamp("us", "UTC")),
            "timestamp",
            ["2026-01-02T03:04:05.000006Z", None],
        ),
        (pa.array([1], pa.timestamp("us")), "timestamp_ntz", ["1970-01-01T00:00:00.000001"]),
        (pa.array([b"\x00\xff", None]), "binary", ["AP8=", None]),
        (pa.array([[1], None, []]), "array<bigint>", [[1], None, []]),
        (
            pa.array([{"a": 1, "b": [b"x"]}, None]),
            "struct<a:bigint,b:array<binary>>",
            [{"a": 1, "b": ["eA=="]}, None],
        ),
        (pa.array([[("x", 1)], None, []], MAP), "map<string,int>", [{"x": 1}, None, {}]),
        (pa.array([[(1, b"x")]], BY_NUMBER), "map<bigint,binary>", [[[1, "eA=="]]]),
        (pa.array([None, None]), "void", [None, None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), "string", ["a", None, "a"]),
        (
            pa.array([datetime.timedelta(seconds=90, microseconds=5), datetime.timedelta(seconds=-1)]),
            "interval day to second",
            ["PT90.000005S", "-PT1S"],
        ),
    ],
    ids=str,
)
def test_a_value_is_exactly_what_it_was(array: pa.Array, type_: str, expected: list[Any]) -> None:
    assert sql_type(array.type) == type_
    assert to_json_values(array) == expected
    assert json.loads(msgspec.json.encode(to_json_values(array))) == expected


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1], [2, 3], None, [4]]),
        pa.array([[("x", 1)], None, [("y", 2), ("z", 3)]], MAP),
        pa.array([{"a": 1}, None, {"a": 3}]),
        pa.array([[1, 2], None, [5, 6]], pa.list_(pa.int8(), 2)),
        pa.array([{"a": [b"x"]}, {"a": None}, {"a": [b"y", None]}]),
    ],
    ids=str,
)
def test_a_part_of_an_array_has_the_values_of_that_part(array: pa.Array) -> None:
    whole = to_json_values(array)

    for begin in range(len(array)):
        assert to_json_values(array.slice(begin)) == whole[begin:]
        assert to_json_values(array.slice(0, begin)) == whole[:begin]
