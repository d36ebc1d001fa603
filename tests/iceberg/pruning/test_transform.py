"""Transforms give what PyIceberg's give."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.transforms import parse_transform

from cynosure.iceberg.pruning.transform import make_transform, murmur3
from cynosure.iceberg.types import parse_type
from tests.iceberg.manifests.samples import VALUES

WHOLE = ("int", "long")
TIMES = ("timestamp", "timestamptz")
CASES = [
    *(
        (transform, type_)
        for transform in ("bucket[16]", "truncate[10]")
        for type_ in (*WHOLE, "string", "binary")
    ),
    *(("bucket[7]", type_) for type_ in ("date", "time", *TIMES, "uuid", "fixed[5]", "decimal(9, 2)")),
    *(("truncate[50]", type_) for type_ in ("decimal(9, 2)", "decimal(38, 10)")),
    *((transform, type_) for transform in ("year", "month", "day", "hour") for type_ in TIMES),
    *((transform, "date") for transform in ("year", "month", "day")),
]
YEAR_9999_DAYS = 2_932_000
RANGES = {
    "date": st.integers(-700_000, YEAR_9999_DAYS),
    **{name: st.integers(-700_000 * 86_400_000_000, YEAR_9999_DAYS * 86_400_000_000) for name in TIMES},
}


@pytest.mark.parametrize(("transform", "type_"), CASES)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_transform_gives_what_pyiceberg_gives(transform: str, type_: str, data: Any) -> None:
    value = data.draw(RANGES.get(type_, VALUES[type_]))
    theirs = parse_transform(transform).transform(_their_type(type_))

    ours = make_transform(transform, parse_type(type_))

    assert ours is not None
    assert ours(value) == theirs(value)


def _their_type(name: str) -> Any:
    from pyiceberg.schema import Schema

    field = {"id": 1, "name": "c", "required": False, "type": name}
    return Schema.model_validate({"type": "struct", "fields": [field]}).fields[0].field_type


@pytest.mark.parametrize(
    ("transform", "type_"),
    [("void", "int"), ("zorder", "int"), ("hour", "date"), ("year", "string"), ("bucket[4]", "timestamp_ns")],
)
def test_what_is_not_known_is_left_open(transform: str, type_: str) -> None:
    assert make_transform(transform, parse_type(type_)) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ((34).to_bytes(8, "little"), 2017239379),
        (b"iceberg", 1210000089),
        (b"\x00\x01\x02\x03", -188683207 & 0xFFFFFFFF),
    ],
)
def test_the_hash_is_the_one_of_the_specification(data: bytes, expected: int) -> None:
    assert murmur3(data) == expected


@pytest.mark.parametrize(
    ("days", "month"), [(0, 0), (-1, -1), (31, 1), (11_016, 361), (2**31 - 1, 70_555_326)]
)
def test_months_are_counted_for_any_year(days: int, month: int) -> None:
    count = make_transform("month", parse_type("date"))

    assert count is not None
    assert count(days) == month
