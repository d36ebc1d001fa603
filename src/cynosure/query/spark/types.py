"""Spark's type of each Iceberg type, for batches with the types of `query.arrow_types`.

A maintainer must not break: both say the same of a column: Spark casts nothing that comes out of Python.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cynosure.iceberg.types import ListType, MapType, StructType, Type, children
from cynosure.query.arrow_types import to_arrow
from cynosure.query.engine import RelationColumn
from cynosure.query.spark_types import SparkType, find_plain
from cynosure.query.stream.frames import ROW_COLUMN

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_BYTES: Final = 8


def to_spark_type(type_: Type) -> Any:
    """As in the JSON of a Spark schema."""
    match type_:
        case StructType(fields):
            return {"type": "struct", "fields": [_field(each.name, each.type) for each in fields]}
        case ListType():
            [element] = children(type_)
            return {"type": "array", "elementType": to_spark_type(element.type), "containsNull": True}
        case MapType():
            key, value = children(type_)
            return {
                "type": "map",
                "keyType": to_spark_type(key.type),
                "valueType": to_spark_type(value.type),
                "valueContainsNull": True,
            }
    return _require_plain(type_).json


def to_spark_schema(columns: Sequence[RelationColumn]) -> dict[str, Any]:
    """The JSON of a relation's schema. All of it is nullable: a mask may make it so."""
    fields = [_field(each.name, each.type) for each in columns]
    if not fields:
        fields = [{"name": ROW_COLUMN, "type": "byte", "nullable": True, "metadata": {}}]
    return {"type": "struct", "fields": fields}


def to_arrow_columns(columns: Sequence[RelationColumn]) -> "pa.Schema":
    """Of a relation's batches; empty for a relation without columns."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return pa.schema([pa.field(each.name, to_arrow(each.type)) for each in columns])


def estimate_row_bytes(columns: Sequence[RelationColumn]) -> int:
    """What a row is reckoned with when Spark chooses between joins."""
    return _ROW_BYTES + sum(_estimate(each.type) for each in columns)


def _field(name: str, type_: Type) -> dict[str, Any]:
    return {"name": name, "type": to_spark_type(type_), "nullable": True, "metadata": {}}


def _estimate(type_: Type) -> int:
    if isinstance(type_, StructType | ListType | MapType):
        return sum(_estimate(each.type) for each in children(type_))
    return _require_plain(type_).row_bytes


def _require_plain(type_: Type) -> SparkType:
    plain = find_plain(type_)
    assert plain is not None  # noqa: S101 - what is not supported was refused before (`find_unsupported`)
    return plain
