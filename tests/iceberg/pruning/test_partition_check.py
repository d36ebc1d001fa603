"""A file that is appended is in the partition that its metrics tell of."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cynosure.iceberg.manifests.bounds import write_bound
from cynosure.iceberg.manifests.content_file import ContentFile
from cynosure.iceberg.partitioning import PartitionField, PartitionSpec
from cynosure.iceberg.pruning.partition_check import find_contradiction
from cynosure.iceberg.types import parse_type
from tests.iceberg.pruning.samples import SCHEMA, random_file, random_spec

DAY_US = 86_400_000_000


def check(transform: str, type_: str, value: Any, low: Any, high: Any, *, nulls: int = 0) -> bool:
    """Whether a file with these bounds may be in the partition."""
    of_type = parse_type(type_)
    spec = PartitionSpec((PartitionField("p", transform, source_id=1, field_id=1000),), spec_id=3)
    file = ContentFile(
        path="f",
        format="parquet",
        spec_id=3,
        partition=(value,),
        record_count=10,
        file_size_bytes=1,
        value_counts={1: 10},
        null_value_counts={1: nulls},
        lower_bounds=None if low is None else {1: write_bound(of_type, low)},
        upper_bounds=None if high is None else {1: write_bound(of_type, high)},
    )
    return find_contradiction(file, spec, lambda _: of_type) is None


@pytest.mark.parametrize(
    ("transform", "type_", "value", "low", "high", "is_fine"),
    [
        ("identity", "long", 5, 5, 5, True),
        ("identity", "long", 5, 6, 7, False),
        ("identity", "long", 5, 1, 4, False),
        ("identity", "long", 5, None, None, True),
        ("identity", "string", "abc", "ab", "ac", True),
        ("identity", "string", "abc", "b", "c", False),
        ("day", "timestamp", 10, 10 * DAY_US, 11 * DAY_US - 1, True),
        ("day", "timestamp", 11, 10 * DAY_US, 11 * DAY_US - 1, False),
        ("day", "timestamp", -9, -10 * DAY_US, -10 * DAY_US + 5, True),
        ("truncate[10]", "int", 20, 21, 29, True),
        ("truncate[10]", "int", 20, 30, 39, False),
        ("bucket[16]", "long", 3, 34, 34, True),
        ("bucket[16]", "long", 4, 34, 34, False),
        ("bucket[16]", "long", 4, 34, 35, True),
        ("void", "long", None, 1, 2, True),
    ],
)
def test_bounds_may_contradict_a_partition(
    transform: str, type_: str, value: Any, low: Any, high: Any, is_fine: bool
) -> None:
    assert check(transform, type_, value, low, high) == is_fine


@pytest.mark.parametrize(("value", "nulls", "is_fine"), [(None, 10, True), (None, 0, False), (5, 3, False)])
def test_null_counts_may_contradict_a_partition(value: Any, nulls: int, is_fine: bool) -> None:
    assert check("identity", "long", value, None, None, nulls=nulls) == is_fine


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_true_file_is_refused(seed: int) -> None:
    rng = random.Random(seed)
    spec = random_spec(rng)
    for number in range(5):
        file, _ = random_file(spec, rng, number, least=-1, nan=True)
        assert find_contradiction(file, spec, SCHEMA.find_type) is None


def test_the_first_wrong_value_is_named() -> None:
    fields = [PartitionField(f"p{at}", "identity", source_id=at, field_id=999 + at) for at in (1, 2)]
    spec = PartitionSpec(tuple(fields), spec_id=3)
    bound = write_bound(parse_type("int"), 7)
    file = ContentFile(
        path="f", format="parquet", spec_id=3, partition=(5, 6), record_count=1, file_size_bytes=1
    )
    file = replace(file, lower_bounds={2: bound}, upper_bounds={2: bound})

    assert find_contradiction(file, spec, SCHEMA.find_type) == 1
