"""Packed columns give back what was put in, in as many bytes as it needs."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cynosure.iceberg.manifests.columns import Column, Constant, PackedInts, Sparse
from cynosure.iceberg.manifests.packing import (
    BytesBuilder,
    IntsBuilder,
    ListsBuilder,
    pack_bytes,
    pack_coded,
    pack_ints,
    pack_text,
    pack_values,
    spread,
)

NUMBERS = st.none() | st.integers(0, 3) | st.integers(-(2**63), 2**63 - 1)
BLOBS = st.none() | st.binary(max_size=4) | st.binary(min_size=8, max_size=8)
LISTS = st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple)


def check(column: Column[Any], values: list[Any]) -> None:
    assert len(column) == len(values)
    assert [*column] == values
    assert [column[row] for row in range(len(values))] == values
    some = [row for row in range(len(values)) if row % 3 != 1]
    assert column.take(some) == [values[row] for row in some]
    assert column.size_bytes > 0


@given(parts=st.lists(st.lists(NUMBERS, max_size=6), max_size=4))
def test_whole_numbers(parts: list[list[int | None]]) -> None:
    builder = IntsBuilder()
    for part in parts:
        builder.extend(part)
    check(builder.finish(), [value for part in parts for value in part])


@given(parts=st.lists(st.lists(BLOBS, max_size=6), max_size=4))
def test_byte_strings(parts: list[list[bytes | None]]) -> None:
    builder = BytesBuilder()
    for part in parts:
        builder.extend(part)
    check(builder.finish(), [value for part in parts for value in part])


@given(parts=st.lists(st.lists(LISTS, max_size=6), max_size=4))
def test_lists(parts: list[list[tuple[int, ...] | None]]) -> None:
    builder = ListsBuilder()
    for part in parts:
        builder.extend(part)
    check(builder.finish(), [value for part in parts for value in part])


@given(values=st.lists(st.none() | st.text(max_size=5).map(lambda text: "s3://é" + text), max_size=6))
def test_texts(values: list[str | None]) -> None:
    check(pack_text([None if value is None else value.encode() for value in values]), values)
    check(pack_values(values), values)
    check(pack_coded(values), values)


@given(
    values=st.lists(st.none() | st.text("ab", max_size=3), max_size=12),
    wanted=st.lists(st.text("ab", max_size=3) | st.text("ab", min_size=4, max_size=6), max_size=20),
    start=st.sampled_from(["", "s3://"]),
)
def test_files_are_found_by_text(values: list[str | None], wanted: list[str], start: str) -> None:
    # Few letters: many values are parts of others, or of two neighbours.
    texts = [None if value is None else start + value for value in values]
    paths = {start + value for value in wanted}
    column = pack_text([None if text is None else text.encode() for text in texts])
    assert sorted(column.find_any(paths)) == [row for row, text in enumerate(texts) if text in paths]


def test_a_text_cannot_complete_a_letter_of_its_neighbour() -> None:
    with pytest.raises(UnicodeDecodeError):
        pack_text([b"a\xc3", b"\xa9"])


@given(rows=st.sets(st.integers(0, 39)), count=st.just(40))
def test_values_of_some_files(rows: set[int], count: int) -> None:
    from array import array

    places = sorted(rows)
    column = spread(array("I", places), pack_ints([row * 7 for row in places]), count)

    check(column, [row * 7 if row in rows else None for row in range(count)])
    assert isinstance(column, Sparse) == (len(rows) < 10)


@pytest.mark.parametrize(
    ("value", "width"), [(255, 1), (-128, 1), (256, 2), (-129, 2), (2**32 - 1, 4), (-(2**31), 4), (2**32, 8)]
)
def test_a_number_takes_as_few_bytes_as_the_largest_needs(value: int, width: int) -> None:
    column = pack_ints([0, value])

    assert isinstance(column, PackedInts)
    assert column.values.itemsize == width


def test_what_is_the_same_for_all_is_kept_once() -> None:
    assert isinstance(pack_ints([5] * 1000), Constant)
    assert isinstance(pack_bytes([b"x"] * 1000), Constant)
    assert pack_ints([5] * 1000).size_bytes < 200


def test_numbers_of_one_width_are_seen_without_a_copy() -> None:
    column = pack_bytes([number.to_bytes(8, "little", signed=True) for number in (-5, 7)])

    assert [*column.cast("q")] == [-5, 7]  # type: ignore[attr-defined]
    assert column.cast("i") is None  # type: ignore[attr-defined]
    assert column.has(re.compile(rb"\x07"))  # type: ignore[attr-defined]
