"""Scan tasks for tests: from plain Arrow tables, or from a table of PyIceberg.

    task = task_from_arrow(tmp_path, pa.table({"id": [1, 2], "name": ["a", None]}), files=2)
    rows = read_rows(task)                                # what a governed scan of it gives

Columns get field ids 1, 2, … in order; nested fields the next ones. Filters are expressions of Iceberg with
field ids, as dictionaries: `{"type": "eq", "term": {"type": "reference", "id": 1}, "value": 2}`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from cynosure.query.scan.governed import governed_batches, output_schema
from cynosure.query.scan.port import Unwatched
from cynosure.query.scan_task import Credentials, DataFile, DeleteFile, Mask, MaskAction, ScanTask

SALT = bytes(range(16))


class NumberedFields:
    """Gives field ids to Arrow fields, and the Iceberg schema that has the same."""

    def __init__(self, first: int = 1) -> None:
        self._next = first

    def _id(self) -> int:
        self._next += 1
        return self._next - 1

    def number(self, schema: pa.Schema) -> tuple[pa.Schema, dict[str, Any]]:
        """The schema with ids in its metadata, and Iceberg's JSON of it."""
        ids = [self._id() for _ in schema]
        made = [self._field(field, id_) for field, id_ in zip(schema, ids, strict=True)]
        fields = [each[1] for each in made]
        return pa.schema([each[0] for each in made]), {"type": "struct", "schema-id": 0, "fields": fields}

    def _field(self, field: pa.Field, id_: int) -> tuple[pa.Field, dict[str, Any]]:
        type_, json = self._type(field.type)
        made = pa.field(field.name, type_, field.nullable, {b"PARQUET:field_id": str(id_).encode()})
        return made, {"id": id_, "name": field.name, "required": not field.nullable, "type": json}

    def _type(self, type_: pa.DataType) -> tuple[pa.DataType, Any]:
        if pa.types.is_struct(type_):
            schema, json = self.number(pa.schema(list(type_)))
            return pa.struct(list(schema)), {"type": "struct", "fields": json["fields"]}
        if pa.types.is_map(type_):
            key_id, value_id = self._id(), self._id()
            key, key_json = self._field(type_.key_field, key_id)
            value, value_json = self._field(type_.item_field, value_id)
            return pa.map_(key, value), {
                "type": "map",
                "key-id": key_id,
                "key": key_json["type"],
                "value-id": value_id,
                "value": value_json["type"],
                "value-required": False,
            }
        if pa.types.is_list(type_):
            element_id = self._id()
            element, element_json = self._field(type_.value_field.with_name("element"), element_id)
            return pa.list_(element), {
                "type": "list",
                "element-id": element_id,
                "element": element_json["type"],
                "element-required": False,
            }
        return type_, iceberg_type(type_)


def iceberg_type(type_: pa.DataType) -> str:
    """The name that Iceberg has for a type without parts."""
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision}, {type_.scale})"
    if pa.types.is_fixed_size_binary(type_):
        return f"fixed[{type_.byte_width}]"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    return {
        pa.bool_(): "boolean",
        pa.int32(): "int",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.date32(): "date",
        pa.string(): "string",
        pa.binary(): "binary",
    }[type_]


def task_from_arrow(
    directory: Path,
    table: pa.Table,
    *,
    files: int = 1,
    columns: Sequence[str] | None = None,
    row_filter: Mapping[str, Any] | bool = True,
    masks: Mapping[str, MaskAction] | None = None,
    predicates: Mapping[str, Any] | bool = True,
    name: str = "part",
    row_group_rows: int = 100_000,
    query_id: str = "query",
    fragment_id: str = "fragment",
    **others: Any,
) -> ScanTask:
    """A task over files that are written now. `columns` and `masks` are by name; others are of `ScanTask`."""
    schema, json = NumberedFields().number(table.schema)
    numbered = pa.Table.from_arrays(
        [each.cast(field.type) for each, field in zip(table.columns, schema, strict=True)], schema=schema
    )
    written = []
    share = -(-max(table.num_rows, 1) // files)
    directory.mkdir(parents=True, exist_ok=True)
    for at in range(files):
        path = directory / f"{name}-{at}.parquet"
        part = numbered.slice(at * share, share)
        pq.write_table(part, path, row_group_size=row_group_rows, store_schema=False)
        written.append(DataFile(str(path), path.stat().st_size, part.num_rows, "parquet"))
    ids = {field["name"]: field["id"] for field in json["fields"]}
    chosen = tuple(ids) if columns is None else columns
    return ScanTask(
        query_id=query_id,
        fragment_id=fragment_id,
        files=tuple(written),
        deletes=others.pop("deletes", ()),
        schema=msgspec.json.encode(json),
        columns=tuple(ids[each] for each in chosen),
        places=(str(directory),),
        row_filter=msgspec.json.encode(row_filter),
        masks=tuple(Mask(ids[each], action) for each, action in (masks or {}).items()),
        predicates=msgspec.json.encode(predicates),
        salt=others.pop("salt", SALT),
        file_roots=others.pop("file_roots", (str(directory),)),
        **others,
    )


def task_from_pyiceberg(
    table: Any,
    *,
    columns: Sequence[str] | None = None,
    row_filter: Mapping[str, Any] | bool = True,
    masks: Iterable[Mask] = (),
    properties: Mapping[str, str] | None = None,
    file_roots: Sequence[str] = (),
    snapshot_id: int | None = None,
) -> ScanTask:
    """A task over the files that PyIceberg plans for a table, deletes included."""
    schema = table.schema()
    deletes: dict[tuple[str, int], DeleteFile] = {}
    files = []
    for task in table.scan(snapshot_id=snapshot_id).plan_files():
        found = [_delete_of(each) for each in task.delete_files]
        for each in found:
            deletes.setdefault((each.path, each.offset), each)
        places = tuple(list(deletes).index((each.path, each.offset)) for each in found)
        file = task.file
        files.append(
            DataFile(
                file.file_path, file.file_size_in_bytes, file.record_count, file.file_format.value, places
            )
        )
    ids = {field.name: field.field_id for field in schema.fields}
    return ScanTask(
        query_id="query",
        fragment_id="fragment",
        files=tuple(files),
        deletes=tuple(deletes.values()),
        schema=schema.model_dump_json().encode(),
        columns=tuple(ids[each] for each in (ids if columns is None else columns)),
        places=(table.location(),),
        row_filter=msgspec.json.encode(row_filter),
        masks=tuple(masks),
        salt=SALT,
        credentials=Credentials(properties=dict(properties or {})),
        file_roots=tuple(file_roots),
    )


def read_table(task: ScanTask) -> pa.Table:
    """What a governed scan gives. Without columns: a table of one, the numbers of rows of its batches."""
    batches = list(governed_batches(task, Unwatched(task.credentials)))
    if not task.columns:
        return pa.table({"rows": pa.array([batch.num_rows for batch in batches], pa.int64())})
    return pa.Table.from_batches(batches, schema=output_schema(task))


def read_rows(task: ScanTask) -> list[dict[str, Any]]:
    """What a governed scan gives, as dictionaries."""
    return list(read_table(task).to_pylist())


def reference(op: str, field_id: int, value: Any = None) -> dict[str, Any]:
    """A leaf of a filter: `reference("eq", 1, 5)`, `reference("in", 1, [1, 2])`, `reference("is-null", 1)`"""
    leaf: dict[str, Any] = {"type": op, "term": {"type": "reference", "id": field_id}}
    if value is not None:
        leaf["values" if isinstance(value, list) else "value"] = value
    return leaf


def _delete_of(found: Any) -> DeleteFile:
    is_vector = found.file_format.value.lower() == "puffin"
    kind = "vector" if is_vector else "equality" if found.content.value == 2 else "position"
    return DeleteFile(
        kind=kind,  # type: ignore[arg-type]
        path=found.file_path,
        size_bytes=found.file_size_in_bytes,
        format=found.file_format.value,
        equality_ids=tuple(found.equality_ids or ()),
        offset=getattr(found, "content_offset", None) or 0,
        length=getattr(found, "content_size_in_bytes", None) or 0,
        record_count=found.record_count,
    )
