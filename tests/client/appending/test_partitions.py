"""Rows go to the partitions that PyIceberg puts them in."""

from collections import defaultdict
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg import transforms
from pyiceberg.types import IcebergType, PrimitiveType

from cynosure.client.appending.arrow_types import to_arrow_schema
from cynosure.client.appending.partitions import Partitioner
from cynosure.common.errors import BadInput
from tests.client.appending.small_table import column, make_table

LONG = st.integers(-(2**63), 2**63 - 1)
# Years that Python's calendar knows: PyIceberg goes through it.
US = st.integers(-(62 * 10**15), 250 * 10**15)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": LONG,
    "date": st.integers(-700_000, 2_900_000),
    "time": st.integers(0, 86_399_999_999),
    "timestamp": US,
    "timestamptz": US,
    "timestamp_ns": LONG,
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    "binary": st.binary(max_size=12),
    "fixed[5]": st.binary(min_size=5, max_size=5),
    "uuid": st.uuids(),
    "decimal(9, 2)": st.decimals(-9_999_999, 9_999_999, places=2),
    "boolean": st.booleans(),
}
TRANSFORMS = {
    "identity": transforms.IdentityTransform(),
    "bucket[16]": transforms.BucketTransform(16),
    "truncate[7]": transforms.TruncateTransform(7),
    "year": transforms.YearTransform(),
    "month": transforms.MonthTransform(),
    "day": transforms.DayTransform(),
    "hour": transforms.HourTransform(),
    "void": transforms.VoidTransform(),
}


def to_pyiceberg(name: str) -> PrimitiveType:
    return TypeAdapter(IcebergType).validate_python(name)  # type: ignore[return-value]


CASES = [
    (type_, name)
    for type_ in VALUES
    for name, transform in TRANSFORMS.items()
    # PyIceberg hashes nanoseconds as they are; the specification asks for microseconds.
    if transform.can_transform(to_pyiceberg(type_)) and (type_, name) != ("timestamp_ns", "bucket[16]")
]


def to_array(type_: pa.DataType, values: list[Any]) -> pa.Array:
    if type_ == pa.uuid():
        raw = [None if value is None else value.bytes for value in values]
        return pa.ExtensionArray.from_storage(type_, pa.array(raw, pa.binary(16)))
    if pa.types.is_date(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int64()).cast(type_)
    return pa.array(values, type_)


@pytest.mark.parametrize(("type_", "transform"), CASES)
@settings(max_examples=15)
@given(data=st.data())
def test_partitions_are_those_of_pyiceberg(type_: str, transform: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[type_], max_size=12))
    target = make_table([column(1, "c", type_), column(2, "n", "long")], by=[(1, transform)])
    schema = to_arrow_schema(target.schema)
    arrays = [to_array(schema.field("c").type, values), pa.array(range(len(values)), pa.int64())]
    batch = pa.RecordBatch.from_arrays(arrays, schema=schema)

    found = {
        partition: rows.column("n").to_pylist()
        for partition, rows in Partitioner(target.spec, target.schema).divide(batch)
    }

    apply = TRANSFORMS[transform].transform(to_pyiceberg(type_))
    expected: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for number, value in enumerate(values):
        made = apply(value) if value is not None else None
        # PyIceberg keeps an identity of a UUID as it is, and a decimal too.
        expected[(made,)].append(number)
    assert found == expected


def test_fields_combine_and_rows_keep_their_order() -> None:
    columns = [
        column(1, "a", "long"),
        column(2, "s", {"type": "struct", "fields": [column(3, "b", "string")]}),
        column(4, "n", "long"),
    ]
    target = make_table(columns, by=[(1, "identity"), (3, "truncate[1]"), (4, "void")])
    schema = to_arrow_schema(target.schema)
    rows = [
        {"a": number % 3 or None, "s": {"b": "xyz"[number % 2] + "1"} if number % 5 else None, "n": number}
        for number in range(60)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)

    found = dict(Partitioner(target.spec, target.schema).divide(batch))

    assert {value for part in found.values() for value in part.column("n").to_pylist()} == set(range(60))
    for (a, b, void), part in found.items():
        numbers = part.column("n").to_pylist()
        assert numbers == sorted(numbers)
        assert void is None
        for number in numbers:
            assert (number % 3 or None) == a
            assert ("xyz"[number % 2] if number % 5 else None) == b


def test_values_are_held_as_the_catalog_holds_them() -> None:
    columns = [column(1, "u", "uuid"), column(2, "d", "decimal(4, 1)"), column(3, "t", "date")]
    target = make_table(columns, by=[(1, "identity"), (2, "identity"), (3, "identity")])
    schema = to_arrow_schema(target.schema)
    arrays = [
        to_array(field.type, [value])
        for field, value in zip(schema, (UUID(int=5), Decimal("1.5"), 3), strict=True)
    ]

    [(partition, _)] = Partitioner(target.spec, target.schema).divide(
        pa.RecordBatch.from_arrays(arrays, schema=schema)
    )

    assert partition == (UUID(int=5), Decimal("1.5"), 3)


def test_a_transform_that_nobody_here_knows_is_refused() -> None:
    target = make_table([column(1, "c", "long")], by=[(1, "zorder[3]")])

    with pytest.raises(BadInput) as refused:
        Partitioner(target.spec, target.schema)

    assert refused.value.field == "partition-spec.fields[0].transform"
