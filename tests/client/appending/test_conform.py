"""Columns of a caller in a table's types: what is widened, what is filled in, what is refused and how."""

from typing import Any

import pyarrow as pa
import pytest

from cynosure.client.appending.arrow_types import to_arrow_schema
from cynosure.client.appending.conform import Conformer
from cynosure.common.errors import BadInput
from tests.client.appending.small_table import column, make_table


def conform(columns: list[dict[str, Any]], data: pa.RecordBatch) -> pa.RecordBatch:
    found = Conformer(make_table(columns).schema, data.schema).conform(data)
    found.validate(full=True)
    return found


LIST = {"type": "list", "element-id": 21, "element": "long", "element-required": True}
MAP = {
    "type": "map",
    "key-id": 31,
    "key": "string",
    "value-id": 32,
    "value": "double",
    "value-required": False,
}
STRUCT = {"type": "struct", "fields": [column(41, "a", "int", required=True), column(42, "b", "string")]}


@pytest.mark.parametrize(
    ("type_", "array", "expected"),
    [
        ("int", pa.array([1, None], pa.int8()), [1, None]),
        ("long", pa.array([2**32 - 1], pa.uint32()), [2**32 - 1]),
        ("double", pa.array([0.5], pa.float32()), [0.5]),
        ("string", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
        ("string", pa.array(["a", None], pa.large_string()), ["a", None]),
        ("string", pa.array(["a"], pa.string_view()), ["a"]),
        ("binary", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
        ("timestamp", pa.array([1], pa.timestamp("s")), [pa.scalar(1, pa.timestamp("s")).as_py()]),
        ("int", pa.nulls(2), [None, None]),
        (LIST, pa.array([[0], [1, 2], None, []], pa.large_list(pa.int32())).slice(1), [[1, 2], None, []]),
        (LIST, pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), [[1, 2], None]),
        (
            MAP,
            pa.array(
                [[("z", 0.0)], [("a", 1.0), ("b", None)], None], pa.map_(pa.string(), pa.float32())
            ).slice(1),
            [[("a", 1.0), ("b", None)], None],
        ),
        (
            STRUCT,
            pa.array([{"a": 9}, {"a": 1}, None], pa.struct([("a", pa.int16())])).slice(1),
            [{"a": 1, "b": None}, None],
        ),
    ],
    ids=str,
)
def test_what_fits_is_kept_as_it_is(type_: Any, array: pa.Array, expected: list[Any]) -> None:
    columns = [column(1, "c", type_)]

    found = conform(columns, pa.record_batch({"c": array}))

    assert found.column("c").to_pylist() == expected
    assert found.schema.equals(to_arrow_schema(make_table(columns).schema), check_metadata=True)


@pytest.mark.parametrize(
    ("type_", "array", "path"),
    [
        ("int", pa.array([1], pa.int64()), "c"),
        ("int", pa.array([1], pa.uint32()), "c"),
        ("long", pa.array(["1"]), "c"),
        ("long", pa.array([1.0]), "c"),
        ("float", pa.array([1.0], pa.float64()), "c"),
        ("string", pa.array([1]), "c"),
        ("string", pa.array([b"x"]), "c"),
        ("timestamp", pa.array([1], pa.timestamp("us", "UTC")), "c"),
        ("timestamptz", pa.array([1], pa.timestamp("us")), "c"),
        ("timestamp", pa.array([1_001], pa.timestamp("ns")), "c"),
        ("date", pa.array([1], pa.timestamp("us")), "c"),
        ("decimal(5, 2)", pa.array([None], pa.decimal128(6, 2)), "c"),
        ("fixed[3]", pa.array([b"ab"], pa.binary(2)), "c"),
        ("uuid", pa.array(["x"]), "c"),
        ("unknown", pa.array([1]), "c"),
        (LIST, pa.array([[1, None]], pa.list_(pa.int64())), "c.element"),
        (LIST, pa.array([["x"]]), "c.element"),
        (LIST, pa.array([1]), "c"),
        (MAP, pa.array([[("a", "x")]], pa.map_(pa.string(), pa.string())), "c.value"),
        (STRUCT, pa.array([{"a": None}], pa.struct([("a", pa.int32())])), "c.a"),
        (STRUCT, pa.array([{"a": 1, "z": 2}]).cast(pa.struct([("a", pa.int32()), ("z", pa.int32())])), "c.z"),
        (STRUCT, pa.array([{"b": "x"}]), "c.a"),
        ("variant", pa.array([b"x"]), "c"),
        ("geometry", pa.array([b"x"]), "c"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_with_its_column(type_: Any, array: pa.Array, path: str) -> None:
    with pytest.raises(BadInput) as refused:
        conform([column(1, "c", type_)], pa.record_batch({"c": array}))

    assert refused.value.field == path
    assert refused.value.fix


def test_missing_columns_are_null_or_their_default() -> None:
    columns = [
        column(1, "n", "long"),
        column(2, "text", "string"),
        column(3, "day", "date", **{"write-default": "2020-01-02"}),
        column(4, "cost", "decimal(5, 2)", required=True, **{"write-default": "1.50"}),
        column(5, "id", "uuid", **{"write-default": "00000000-0000-0000-0000-000000000007"}),
    ]

    [row] = conform(columns, pa.record_batch({"n": [1]})).to_pylist()

    assert (row["n"], row["text"], str(row["day"]), str(row["cost"])) == (1, None, "2020-01-02", "1.50")
    assert row["id"].int == 7


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (pa.record_batch({"text": ["x"]}), "n"),
        (pa.record_batch({"n": [1], "more": [1]}), "more"),
        (pa.record_batch({"N": [1]}), "N"),
        (pa.record_batch([pa.array([1]), pa.array([2])], names=["n", "n"]), "n"),
        (pa.record_batch({"n": pa.array([1, None], pa.int64())}), "n"),
    ],
    ids=["missing", "more", "case", "twice", "null"],
)
def test_other_columns_than_the_tables_are_refused(data: pa.RecordBatch, path: str) -> None:
    with pytest.raises(BadInput) as refused:
        conform([column(1, "n", "long", required=True), column(2, "text", "string")], data)

    assert refused.value.field == path


def test_an_error_does_not_quote_data() -> None:
    batch = pa.record_batch({"c": pa.array([123_456_789], pa.timestamp("ns"))})

    with pytest.raises(BadInput) as refused:
        conform([column(1, "c", "timestamp")], batch)

    assert "123456789" not in str(refused.value)
