"""Files that name others, with other names in them."""

import io
import struct
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cynosure.client.copying.position_deletes import rewrite_position_deletes
from cynosure.client.copying.vectors import repath_vectors
from cynosure.common.errors import BadInput
from cynosure.iceberg.manifests.repath import PATH_COLUMN, POSITION_COLUMN

# Not in the order of the old ones.
RENAMED = {"a": "new/z", "b": "new/y", "c": "new/x"}


def numbered(name: str, type_: pa.DataType, id_: int, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata={"PARQUET:field_id": str(id_)})


def write(table: pa.Table, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    rows = options.pop("row_group_size", None)
    with pq.ParquetWriter(file, table.schema, store_schema=False, **options) as writer:
        writer.write_table(table, row_group_size=rows)
        writer.add_key_value_metadata({"delete-type": "position"})
    file.seek(0)
    return file


def deletes(*rows: tuple[str, int], with_ids: bool = True) -> pa.Table:
    fields = [
        numbered("file_path", pa.string(), PATH_COLUMN),
        numbered("pos", pa.int64(), POSITION_COLUMN),
        numbered("row", pa.struct([numbered("id", pa.int64(), 1, nullable=True)]), 2147483544, nullable=True),
    ]
    if not with_ids:
        fields = [each.remove_metadata() for each in fields]
    schema = pa.schema(fields)
    columns = [[row[0] for row in rows], [row[1] for row in rows], [{"id": row[1] * 10} for row in rows]]
    return pa.Table.from_arrays(
        [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema=schema
    )


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"compression": "zstd", "row_group_size": 2}, {"compression": "none"}]
)
def test_position_deletes_name_the_new_files_in_their_order(options: dict[str, Any], with_ids: bool) -> None:
    source = deletes(("a", 2), ("a", 7), ("b", 1), ("c", 0), with_ids=with_ids)
    into = io.BytesIO()

    measured = rewrite_position_deletes(write(source, **options), into, RENAMED.__getitem__, path="p")

    assert measured.size_bytes == len(into.getvalue())
    file = pq.ParquetFile(into)
    found = file.read()
    assert list(zip(found["file_path"].to_pylist(), found["pos"].to_pylist(), strict=True)) == [
        ("new/x", 0),
        ("new/y", 1),
        ("new/z", 2),
        ("new/z", 7),
    ]
    assert found["row"].to_pylist() == [{"id": 0}, {"id": 10}, {"id": 20}, {"id": 70}]
    assert found.schema.remove_metadata().equals(source.schema, check_metadata=with_ids)
    assert file.metadata.metadata[b"delete-type"] == b"position"
    assert measured.paths == ("new/x", "new/z")
    assert set(measured.column_sizes or ()) == {PATH_COLUMN, POSITION_COLUMN}
    assert measured.split_offsets == (4,)
    codec = file.metadata.row_group(0).column(0).compression
    assert codec == {"zstd": "ZSTD", "none": "UNCOMPRESSED"}.get(options.get("compression", ""), "SNAPPY")


def test_the_same_deletes_give_the_same_bytes() -> None:
    files = [io.BytesIO(), io.BytesIO()]
    for into in files:
        rewrite_position_deletes(write(deletes(("b", 2), ("a", 7))), into, RENAMED.__getitem__, path="p")
    assert files[0].getvalue() == files[1].getvalue()


def test_what_are_no_position_deletes_is_refused() -> None:
    for file in (io.BytesIO(b"nothing of the kind"), write(pa.table({"x": [1]}))):
        with pytest.raises(BadInput) as refused:
            rewrite_position_deletes(file, io.BytesIO(), RENAMED.__getitem__, path="p")
        assert refused.value.details["path"] == "p"


def puffin(*paths: str, flags: bytes = bytes(4)) -> bytes:
    blobs = [
        {"type": "deletion-vector-v1", "offset": 4, "length": 8, "properties": {"referenced-data-file": path}}
        for path in paths
    ]
    blobs.append({"type": "apache-datasketches-theta-v1", "offset": 4, "length": 8})
    footer = msgspec.json.encode({"blobs": blobs, "properties": {"created-by": "somebody"}})
    return b"PFA1" + b"12345678" + b"PFA1" + footer + struct.pack("<I", len(footer)) + flags + b"PFA1"


def test_vectors_stay_where_they_are_and_name_the_new_files() -> None:
    data = puffin("a", "c")
    file = io.BytesIO(data)

    size_bytes = repath_vectors(file, RENAMED.__getitem__, path="p")

    assert file.getvalue() == puffin("new/z", "new/x")
    assert size_bytes == len(file.getvalue())
    shorter = io.BytesIO(file.getvalue())
    repath_vectors(shorter, {"new/z": "a", "new/x": "c"}.__getitem__, path="p")
    assert shorter.getvalue() == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PFA1",
        b"x" * 100,
        puffin("a")[:-1],
        puffin("a").replace(b'"blobs"', b'"blubs"'),
        puffin("a").replace(b"{", b"[", 1),
        puffin("a")[:-12] + struct.pack("<I", 10**6) + bytes(4) + b"PFA1",
        puffin("a", flags=b"\1\0\0\0"),
    ],
)
def test_vectors_that_cannot_be_read_are_refused(data: bytes) -> None:
    with pytest.raises(BadInput) as refused:
        repath_vectors(io.BytesIO(data), RENAMED.__getitem__, path="p")
    assert refused.value.details["path"] == "p"
