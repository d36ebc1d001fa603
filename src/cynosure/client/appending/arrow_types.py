"""Iceberg's types in Arrow, as they are written to Parquet.

A maintainer must not break: every column, element, key and value carries its field id. Readers find columns
by it and by nothing else, and a file without ids reads as nulls after the first rename.
"""

from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from cynosure.common.errors import BadInput
from cynosure.iceberg import types
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    children,
)

_ID: Final = b"PARQUET:field_id"
_PLAIN: Final = {
    types.BOOLEAN: pa.bool_(),
    types.INT: pa.int32(),
    types.LONG: pa.int64(),
    types.FLOAT: pa.float32(),
    types.DOUBLE: pa.float64(),
    types.DATE: pa.date32(),
    types.TIME: pa.time64("us"),
    types.TIMESTAMP: pa.timestamp("us"),
    types.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    types.TIMESTAMP_NS: pa.timestamp("ns"),
    types.TIMESTAMPTZ_NS: pa.timestamp("ns", "UTC"),
    types.STRING: pa.string(),
    types.UUID: pa.uuid(),
    types.BINARY: pa.binary(),
}


def to_arrow_schema(schema: Schema) -> pa.Schema:
    """The columns that are in files: all but those of unknown type, which Parquet files leave out."""
    return pa.schema([to_arrow_field(field, field.name) for field in schema.fields if is_stored(field)])


def is_stored(field: NestedField) -> bool:
    """Whether there is anything to write for a field."""
    return field.type != types.UNKNOWN


def to_arrow_field(field: NestedField, path: str) -> pa.Field:
    """A field with its id; `path` is its name with those around it."""
    return pa.field(
        field.name,
        to_arrow_type(field.type, path),
        nullable=not field.is_required,
        metadata={_ID: str(field.id).encode()},
    )


def to_arrow_type(type_: Type, path: str) -> pa.DataType:
    """A type; `BadInput` naming the column when this client cannot write it."""
    if isinstance(type_, types.Primitive) and type_ in _PLAIN:
        return _PLAIN[type_]
    if isinstance(type_, DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, FixedType):
        return pa.binary(type_.length)
    parts = [to_arrow_field(each, f"{path}.{each.name}") for each in children(type_) if is_stored(each)]
    if isinstance(type_, StructType) and parts:
        return pa.struct(parts)
    if isinstance(type_, ListType) and parts:
        return pa.list_(parts[0])
    if isinstance(type_, MapType) and len(parts) == 2:
        return pa.map_(*parts)
    raise BadInput(
        "This client cannot write columns of this type",
        field=path,
        fix="Append with an engine that can.",
        type=str(type_) if types.is_primitive(type_) or type_ == types.VARIANT else type(type_).__name__,
    )


def list_leaves(schema: Schema) -> list[tuple[str, NestedField, bool]]:
    """The columns of a Parquet file in their order: path, field, and whether a row has one value of it."""
    found: list[tuple[str, NestedField, bool]] = []

    def walk(fields: tuple[NestedField, ...], prefix: str, is_single: bool) -> None:
        for field in fields:
            if not is_stored(field):
                continue
            path = f"{prefix}{field.name}"
            parts = children(field.type)
            if parts:
                walk(parts, f"{path}.", is_single and isinstance(field.type, StructType))
            else:
                found.append((path, field, is_single))

    walk(schema.fields, "", True)
    return found


def to_plain_values(array: pa.Array, type_: Type) -> list[Any]:
    """Values as `iceberg.single_value` holds them: dates, times and timestamps as numbers since 1970."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    elif pa.types.is_temporal(array.type):
        array = array.cast(pa.int64())
    values: list[Any] = array.to_pylist()
    if type_ == types.UUID:
        return [None if each is None else UUID(bytes=each) for each in values]
    return values
