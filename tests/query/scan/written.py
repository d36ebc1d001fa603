"""Files as writers make them, for tests: with ids, without, with any schema to read them by."""

import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from cynosure.query.scan_task import DataFile, DeleteFile, ScanTask
from cynosure.testing.scan_kit import SALT


def with_id(field: pa.Field, id_: int) -> pa.Field:
    return field.with_metadata({"PARQUET:field_id": str(id_)})


def numbered(name: str, type_: pa.DataType, id_: int) -> pa.Field:
    return with_id(pa.field(name, type_), id_)


def write(path: Path, table: pa.Table, **options: Any) -> DataFile:
    options = {"store_schema": False, **options}
    pq.write_table(table, path, **options)
    return DataFile(str(path), path.stat().st_size, table.num_rows, "parquet")


def column(id_: int, name: str, type_: Any, **others: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "type": type_, "required": False, **others}


def make_task(
    directory: Path, files: Sequence[DataFile], fields: Sequence[dict[str, Any]], **others: Any
) -> ScanTask:
    schema = {"type": "struct", "schema-id": 0, "fields": list(fields)}
    return ScanTask(
        query_id="query",
        fragment_id="fragment",
        files=tuple(files),
        deletes=others.pop("deletes", ()),
        schema=msgspec.json.encode(schema),
        columns=others.pop("columns", tuple(field["id"] for field in fields)),
        places=others.pop("places", (str(directory),)),
        file_roots=others.pop("file_roots", (str(directory),)),
        salt=SALT,
        **others,
    )


def edit_footer(path: Path, edit: Callable[[dict[int, Any]], None]) -> None:
    """Change what a file says of itself, in Thrift's fields by their ids: see `row_groups_of`."""
    whole = path.read_bytes()
    (size,) = struct.unpack("<I", whole[-8:-4])
    footer = _decode(TCompactProtocol(TMemoryBuffer(whole[-8 - size : -8])), TType.STRUCT)
    edit(footer)
    buffer = TMemoryBuffer()
    _encode(TCompactProtocol(buffer), TType.STRUCT, footer)
    made = buffer.getvalue()
    path.write_bytes(whole[: -8 - size] + made + struct.pack("<I", len(made)) + b"PAR1")


def row_groups_of(footer: dict[int, Any]) -> list[Any]:
    """To be changed in place."""
    found: list[Any] = footer[4][1][1]
    return found


def chunks_of(footer: dict[int, Any]) -> list[dict[int, Any]]:
    """What the footer says of each column of each row group, to be changed in place."""
    return [chunk[3][1] for group in row_groups_of(footer) for chunk in group[1][1][1]]


def _decode(protocol: Any, kind: int) -> Any:
    if kind == TType.STRUCT:
        found = {}
        protocol.readStructBegin()
        while (field := protocol.readFieldBegin())[1] != TType.STOP:
            found[field[2]] = field[1], _decode(protocol, field[1])
            protocol.readFieldEnd()
        protocol.readStructEnd()
        return found
    if kind == TType.LIST:
        of, count = protocol.readListBegin()
        items = [_decode(protocol, of) for _ in range(count)]
        protocol.readListEnd()
        return of, items
    return getattr(protocol, f"read{_name_of(kind)}")()


def _encode(protocol: Any, kind: int, value: Any) -> None:
    if kind == TType.STRUCT:
        protocol.writeStructBegin("")
        for id_, (inner, each) in sorted(value.items()):
            protocol.writeFieldBegin("", inner, id_)
            _encode(protocol, inner, each)
            protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()
    elif kind == TType.LIST:
        of, items = value
        protocol.writeListBegin(of, len(items))
        for each in items:
            _encode(protocol, of, each)
        protocol.writeListEnd()
    else:
        getattr(protocol, f"write{_name_of(kind)}")(value)


def _name_of(kind: int) -> str:
    """As the methods of a protocol call it: texts may be any bytes."""
    return "Binary" if kind == TType.STRING else str(TType._VALUES_TO_NAMES[kind]).title()


def write_positions(path: Path, deleted: Iterable[tuple[str, int]]) -> DeleteFile:
    rows = list(deleted)
    schema = pa.schema(
        [
            numbered("file_path", pa.string(), 2_147_483_546),
            numbered("pos", pa.int64(), 2_147_483_545),
        ]
    )
    columns = [
        pa.array([row[0] for row in rows], pa.string()),
        pa.array([row[1] for row in rows], pa.int64()),
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path, store_schema=False)
    return DeleteFile("position", str(path), path.stat().st_size, "parquet", record_count=len(rows))


def make_blob(positions: Iterable[int]) -> bytes:
    content = b"\xd1\xd3\x39\x64" + BitMap64(positions).serialize()
    return struct.pack(">I", len(content)) + content + struct.pack(">I", zlib.crc32(content))


def write_vector(path: Path, positions: Iterable[int], blob: bytes | None = None) -> DeleteFile:
    chosen = list(positions)
    blob = make_blob(chosen) if blob is None else blob
    path.write_bytes(b"PFA1" + blob + b"footer")
    return DeleteFile(
        "vector",
        str(path),
        path.stat().st_size,
        "puffin",
        offset=4,
        length=len(blob),
        record_count=len(set(chosen)),
    )


def write_equality(path: Path, table: pa.Table, ids: Sequence[int]) -> DeleteFile:
    pq.write_table(table, path, store_schema=False)
    return DeleteFile(
        "equality",
        str(path),
        path.stat().st_size,
        "parquet",
        equality_ids=tuple(ids),
        record_count=table.num_rows,
    )
