"""Files that are written: their rows, metrics, sizes and names; and what is left after a failure."""

import math
import struct
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO, _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from cynosure.client.appending.file_set import Limits
from cynosure.client.appending.metrics import cut_lower, cut_upper
from cynosure.client.appending.stores import LocalFiles
from cynosure.common.errors import BadInput, Unavailable
from cynosure.iceberg.manifests.content_file import ContentFile
from tests.client.appending.small_table import column, make_table, make_writing, write

pytestmark = pytest.mark.anyio

EVERY = [
    column(1, "b", "boolean"),
    column(2, "i", "int"),
    column(3, "l", "long", required=True),
    column(4, "f", "float"),
    column(5, "d", "double"),
    column(6, "small", "decimal(9, 2)"),
    column(7, "middle", "decimal(18, 4)"),
    column(8, "large", "decimal(38, 10)"),
    column(9, "day", "date"),
    column(10, "time", "time"),
    column(11, "ts", "timestamp"),
    column(12, "tz", "timestamptz"),
    column(13, "text", "string"),
    column(14, "id", "uuid"),
    column(15, "fixed", "fixed[3]"),
    column(16, "bytes", "binary"),
    column(17, "at", {"type": "struct", "fields": [column(20, "x", "double"), column(21, "y", "string")]}),
    column(18, "tags", {"type": "list", "element-id": 22, "element": "string", "element-required": False}),
    column(
        19,
        "map",
        {
            "type": "map",
            "key-id": 23,
            "key": "string",
            "value-id": 24,
            "value": "int",
            "value-required": False,
        },
    ),
]


def every_row(number: int) -> dict[str, Any]:
    """All columns; every third row has nulls wherever it may."""
    if number % 3 == 2:
        return {"l": number}
    sign = -1 if number % 2 else 1
    return {
        "b": number % 2 == 0,
        "i": sign * number,
        "l": sign * number * 10**12,
        "f": math.nan if number % 4 == 0 else sign * number / 8,
        "d": math.nan if number % 4 == 1 else sign * number / 3,
        "small": Decimal(sign * number).scaleb(-2),
        "middle": Decimal(sign * number * 10**9).scaleb(-4),
        "large": Decimal(sign * number * 10**20).scaleb(-10),
        "day": sign * number,
        "time": number * 1_000_003,
        "ts": sign * number * 10**15 // 7,
        "tz": sign * number * 10**15 // 7,
        "text": "abcdefghijklmnop" * (number % 3) + f"é{number}",
        "id": uuid.UUID(int=number * 2**100 + 7).bytes,
        "fixed": struct.pack(">I", number)[1:],
        "bytes": bytes([255 - number % 250]) * (number % 40),
        "at": {"x": float(number), "y": f"y{number}"} if number % 5 else None,
        "tags": [f"t{number}", None] if number % 2 else [],
        "map": [("k", number)],
    }


def every_arrow(count: int) -> pa.Table:
    target = make_table(EVERY)
    from cynosure.client.appending.arrow_types import to_arrow_schema

    schema = to_arrow_schema(target.schema)
    rows = [every_row(number) for number in range(count)]
    arrays = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        if pa.types.is_date(field.type):
            arrays.append(pa.array(values, pa.int32()).cast(field.type))
        elif pa.types.is_temporal(field.type):
            arrays.append(pa.array(values, pa.int64()).cast(field.type))
        elif field.type == pa.uuid():
            arrays.append(pa.ExtensionArray.from_storage(pa.uuid(), pa.array(values, pa.binary(16))))
        else:
            arrays.append(pa.array(values, field.type))
    plain = pa.schema([(field.name, array.type) for field, array in zip(schema, arrays, strict=True)])
    return pa.table(
        [array.cast(field.type) for array, field in zip(arrays, plain, strict=True)], schema=plain
    )


def by_pyiceberg(place: Path, data: pa.Table, **properties: str) -> DataFile:
    """The file that PyIceberg makes of the same rows."""
    fields = make_table(EVERY).schema_json
    metadata = new_table_metadata(
        schema=Schema.model_validate_json(fields),
        partition_spec=PartitionSpec(),
        sort_order=UNSORTED_SORT_ORDER,
        location=f"file://{place}",
        properties=properties,
    )
    [found] = _dataframe_to_data_files(metadata, data, PyArrowFileIO())
    return found


NAMES = {
    "record_count": "record_count",
    "value_counts": "value_counts",
    "null_value_counts": "null_value_counts",
    "lower_bounds": "lower_bounds",
    "upper_bounds": "upper_bounds",
}


@pytest.mark.parametrize("mode", ["truncate(16)", "full", "counts", "none", "truncate(3)"])
async def test_metrics_are_those_of_pyiceberg(tmp_path: Path, mode: str) -> None:
    data = every_arrow(40)
    name = "write.metadata.metrics.default"
    target = make_table(EVERY, place=tmp_path, **{name: mode})

    [ours] = (await write(target, data)).files
    theirs = by_pyiceberg(tmp_path / "other", data, **{name: mode})

    # Inside structs Iceberg's Java writers have bounds, as we do, and PyIceberg has none.
    nested = {20, 21}
    for mine, name in NAMES.items():
        found = getattr(ours, mine)
        if isinstance(found, dict):
            found = {key: value for key, value in found.items() if "bound" not in mine or key not in nested}
        assert found == getattr(theirs, name), mine
    has_bounds = mode not in ("counts", "none")
    assert (nested <= set(ours.lower_bounds or ())) == has_bounds
    assert set(ours.column_sizes or ()) == set(theirs.column_sizes)
    assert len(ours.split_offsets or ()) == len(theirs.split_offsets or ())


async def test_rows_are_read_back_and_columns_have_ids(tmp_path: Path) -> None:
    data = every_arrow(20)

    [file] = (await write(make_table(EVERY, place=tmp_path), data)).files
    path = Path(file.path.removeprefix("file://"))

    read = pq.read_table(path)
    assert str(read.to_pylist()) == str(data.to_pylist())
    assert path.stat().st_size == file.file_size_bytes
    schema = pq.ParquetFile(path).schema_arrow
    assert [int(each.metadata[b"PARQUET:field_id"]) for each in schema] == [each["id"] for each in EVERY]
    assert schema.field("tags").type.value_field.metadata[b"PARQUET:field_id"] == b"22"
    assert schema.field("map").type.item_field.metadata[b"PARQUET:field_id"] == b"24"
    assert b"iceberg.schema" in pq.read_metadata(path).metadata


async def test_nans_are_counted_and_no_bound_is_one(tmp_path: Path) -> None:
    columns = [
        column(1, "x", "double"),
        column(2, "s", {"type": "struct", "fields": [column(3, "y", "float")]}),
    ]
    data = pa.table(
        {
            "x": [math.nan, None, 1.0, math.nan],
            "s": pa.array(
                [{"y": math.nan}, None, {"y": None}, {"y": -0.0}], pa.struct([("y", pa.float32())])
            ),
        }
    )

    [file] = (await write(make_table(columns, place=tmp_path), data)).files

    assert file.nan_value_counts == {1: 2, 3: 1}
    assert file.null_value_counts == {1: 1, 3: 2}
    assert file.lower_bounds == {1: struct.pack("<d", 1.0), 3: struct.pack("<f", -0.0)}
    assert file.upper_bounds == {1: struct.pack("<d", 1.0), 3: struct.pack("<f", 0.0)}


async def test_a_column_whose_file_says_too_little_has_no_bounds(tmp_path: Path) -> None:
    """Parquet leaves out the bounds of long values. Those of other row groups would be wrong for the file."""
    columns = [column(1, "text", "string")]
    target = make_table(columns, place=tmp_path, **{"write.parquet.row-group-limit": "1"})

    [file] = (await write(target, pa.table({"text": ["b", "a" * 10_000, None, "c"]}))).files

    assert (file.lower_bounds, file.upper_bounds) == ({}, {})
    assert (file.value_counts, file.null_value_counts) == ({1: 4}, {1: 1})


async def test_unknown_columns_are_not_in_files_and_nanoseconds_are(tmp_path: Path) -> None:
    columns = [column(1, "nothing", "unknown"), column(2, "at", "timestamp_ns")]
    at = pa.array([1, 2_000_000_001]).cast(pa.timestamp("ns"))

    [file] = (
        await write(make_table(columns, place=tmp_path), pa.table({"nothing": pa.nulls(2), "at": at}))
    ).files

    assert pq.read_schema(file.path.removeprefix("file://")).names == ["at"]
    assert file.upper_bounds == {2: struct.pack("<q", 2_000_000_001)}


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(1, 5))
def test_cut_text_is_never_on_the_wrong_side(text: str, length: int) -> None:
    low, high = cut_lower(text, length), cut_upper(text, length)

    assert low.encode() <= text.encode()
    assert len(low) <= length
    if high is not None:
        assert high.encode() >= text.encode()
        assert len(high) <= length


@given(st.binary(), st.integers(1, 5))
def test_cut_bytes_are_never_on_the_wrong_side(data: bytes, length: int) -> None:
    low, high = cut_lower(data, length), cut_upper(data, length)

    assert low <= data
    assert high is None or (high >= data and len(high) <= length)
    assert (high is None) == (len(data) > length and data[:length] == b"\xff" * length)


LONGS = [column(1, "n", "long"), column(2, "text", "string")]


def numbers(count: int, width: int = 40) -> pa.Table:
    return pa.table(
        {"n": list(range(count)), "text": [f"{n * 7919 % 1_000_003:0{width}}" for n in range(count)]}
    )


def read_all(files: list[ContentFile]) -> list[int]:
    paths = [file.path.removeprefix("file://") for file in files]
    return [n for path in paths for n in pq.read_table(path)["n"].to_pylist()]


async def test_a_file_ends_near_the_target_size(tmp_path: Path) -> None:
    target = make_table(LONGS, place=tmp_path, **{"write.target-file-size-bytes": "60000"})

    files = (await write(target, numbers(20_000), limits=Limits(batch_rows=500))).files

    assert read_all(files) == list(range(20_000))
    sizes = [file.file_size_bytes for file in files]
    assert len(sizes) > 2
    assert all(60_000 <= size < 120_000 for size in sizes[:-1])


async def test_row_groups_and_codec_are_those_of_the_table(tmp_path: Path) -> None:
    asked = {"write.parquet.row-group-limit": "400", "write.parquet.compression-codec": "gzip"}

    [file] = (await write(make_table(LONGS, place=tmp_path, **asked), numbers(1000))).files

    found = pq.read_metadata(file.path.removeprefix("file://"))
    assert [found.row_group(at).num_rows for at in range(found.num_row_groups)] == [400, 400, 200]
    assert found.row_group(0).column(0).compression == "GZIP"
    assert len(file.split_offsets or ()) == 3


async def test_many_partitions_keep_few_files_open(tmp_path: Path) -> None:
    target = make_table(LONGS, place=tmp_path, by=[(1, "bucket[20]")])
    writing = make_writing(target, numbers(1000), limits=Limits(open_files=4, batch_rows=250))

    files = (await writing.run()).files

    assert writing._set.most_open == 4
    assert sorted(read_all(files)) == list(range(1000))
    assert {file.partition for file in files} == {(number,) for number in range(20)}


@pytest.mark.parametrize(
    "limits", [Limits(buffered_bytes=10_000, batch_rows=50), Limits(spooled_bytes=1, batch_rows=50)]
)
async def test_what_is_buffered_is_bounded(tmp_path: Path, limits: Limits) -> None:
    target = make_table(
        LONGS, place=tmp_path, by=[(1, "bucket[4]")], **{"write.parquet.row-group-limit": "100"}
    )
    writing = make_writing(target, numbers(2000), limits=limits)
    most = 0

    def watch(rows: int, files: int) -> None:
        nonlocal most
        most = max(most, sum(file.buffered_bytes for file in writing._set._open.values()))

    writing._on_progress = watch
    files = (await writing.run()).files

    assert sorted(read_all(files)) == list(range(2000))
    assert most <= 10_000
    if limits.spooled_bytes == 1:
        assert len(files) > 4


async def test_the_same_rows_under_the_same_key_are_the_same_files(tmp_path: Path) -> None:
    target = make_table(LONGS, place=tmp_path, by=[(1, "truncate[1000]")])

    first = await write(target, numbers(3000), key="a")
    again = await write(target, numbers(3000), key="a", is_repeat=True)
    other = await write(target, numbers(3000), key="b", is_repeat=True)

    assert again.files == first.files
    assert again.own == []
    assert len(other.own) == len(first.own) == 3
    assert not {file.path for file in first.files} & {file.path for file in other.files}


class Failing(LocalFiles):
    """A store that takes some files and then no more."""

    def __init__(self, good: int) -> None:
        self.good = good

    async def write(self, location: str, content: Any) -> None:
        self.good -= 1
        if self.good < 0:
            raise Unavailable("No more")
        await super().write(location, content)


async def test_nothing_is_left_when_a_file_cannot_be_written(tmp_path: Path) -> None:
    target = make_table(LONGS, place=tmp_path, by=[(1, "bucket[9]")])

    with pytest.raises(Unavailable, match="No more"):
        await write(target, numbers(900), store=Failing(5))

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_nothing_is_left_when_later_rows_are_wrong(tmp_path: Path) -> None:
    columns = [column(1, "n", "long", required=True)]
    good, bad = pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": pa.array([3, None], pa.int64())})
    reader = pa.RecordBatchReader.from_batches(good.schema, [good, bad])

    with pytest.raises(BadInput, match="required") as refused:
        await write(make_table(columns, place=tmp_path), reader, target_file_bytes=1)

    assert refused.value.field == "n"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_names_of_partitions_are_safe_everywhere(tmp_path: Path) -> None:
    target = make_table(LONGS, place=tmp_path, by=[(2, "identity")])
    wild = ["../../etc", "a/b", "%2e%2e", "", ".", "ä?#", "x" * 300, None]

    files = (await write(target, pa.table({"n": list(range(8)), "text": wild}))).files

    assert [file.partition for file in files] == [(text,) for text in wild]
    for file in files:
        assert file.path.startswith(f"file://{tmp_path}/data/p0=")
        assert file.path.removeprefix(f"file://{tmp_path}/").isascii()
        assert not set("%?#") & set(file.path)
        assert file.path.count("/") == str(tmp_path).count("/") + 5


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"write.data.path": "file://{place}/d"}, "d/"),
        (
            {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"},
            "data/",
        ),
    ],
)
async def test_files_lie_where_the_table_says(
    tmp_path: Path, properties: dict[str, str], expected: str
) -> None:
    given_ = {name: value.format(place=tmp_path) for name, value in properties.items()}
    [file] = (await write(make_table(LONGS, place=tmp_path, **given_), numbers(3))).files

    inside = file.path.removeprefix(f"file://{tmp_path}/")
    assert inside.startswith(expected)
    assert inside.count("/") == (5 if "object" in "".join(properties) else 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.parquet.compression-codec", "zip"),
        ("write.target-file-size-bytes", "big"),
        ("write.metadata.metrics.default", "some"),
        ("write.metadata.metrics.column.n", "truncate(0)"),
        ("write.format.default", "orc"),
        ("encryption.key-id", "k1"),
    ],
)
async def test_properties_that_are_not_understood_are_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(BadInput) as refused:
        await write(make_table(LONGS, place=tmp_path, **{name: value}), numbers(1))

    assert refused.value.field == name
    assert refused.value.fix


def test_wide_tables_keep_metrics_of_their_first_columns() -> None:
    from cynosure.client.appending.options import Kept, read_modes

    columns = [column(number, f"c{number}", "int") for number in range(1, 151)]

    modes = read_modes({"write.metadata.metrics.column.c150": "counts"}, make_table(columns).schema)

    assert {modes[number].kept for number in range(1, 101)} == {Kept.BOUNDS}
    assert {modes[number].kept for number in range(101, 150)} == {Kept.NOTHING}
    assert modes[150].kept is Kept.COUNTS
