"""Columns as Hive and Glue note them beside a pointer: for people and engines that look there.

Nothing is read from them: what a table is, its metadata file says.
"""

from collections.abc import Mapping
from typing import Final

from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.types import DecimalType, FixedType, ListType, MapType, StructType, Type

_NAMES: Final[Mapping[str, str]] = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "time": "string",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with local time zone",
    "timestamp_ns": "timestamp",
    "timestamptz_ns": "timestamp with local time zone",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
}
_OTHER: Final = "string"
"""For types that Hive does not have."""


def describe_columns(metadata: TableMetadata) -> dict[str, str]:
    """The columns of a table's current schema, by name, in Hive's types."""
    return {field.name: _describe(field.type) for field in metadata.current_schema().fields}


def _describe(kind: Type) -> str:
    if isinstance(kind, StructType):
        return f"struct<{','.join(f'{each.name}:{_describe(each.type)}' for each in kind.fields)}>"
    if isinstance(kind, ListType):
        return f"array<{_describe(kind.element)}>"
    if isinstance(kind, MapType):
        return f"map<{_describe(kind.key)},{_describe(kind.value)}>"
    if isinstance(kind, DecimalType):
        return f"decimal({kind.precision},{kind.scale})"
    if isinstance(kind, FixedType):
        return "binary"
    return _NAMES.get(str(kind), _OTHER)
