"""What Spark calls the types of `arrow_types.py`, and what it reckons with for them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from cynosure.iceberg.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    StructType,
    Type,
    children,
)


class SparkType(NamedTuple):
    """A type that has no others in it."""

    sql: str
    """In statements."""
    json: str
    """In the JSON of a schema."""
    row_bytes: int
    """What Spark reckons with."""


_PLAIN: Final[Mapping[Type, SparkType]] = {
    BOOLEAN: SparkType("boolean", "boolean", 1),
    INT: SparkType("int", "integer", 4),
    LONG: SparkType("bigint", "long", 8),
    FLOAT: SparkType("float", "float", 4),
    DOUBLE: SparkType("double", "double", 8),
    DATE: SparkType("date", "date", 4),
    TIMESTAMP: SparkType("timestamp_ntz", "timestamp_ntz", 8),
    TIMESTAMPTZ: SparkType("timestamp", "timestamp", 8),
    STRING: SparkType("string", "string", 20),
    BINARY: SparkType("binary", "binary", 100),
    UUID: SparkType("string", "string", 36),
}
_LARGE_DECIMAL: Final = 18


def find_plain(type_: Type) -> SparkType | None:
    """Spark's type of one that has no others in it; `None` when it has, or is not supported."""
    match type_:
        case DecimalType(precision, scale):
            name = f"decimal({precision},{scale})"
            return SparkType(name, name, 8 if precision <= _LARGE_DECIMAL else 16)
        case FixedType(length):
            return SparkType("binary", "binary", length)
    return _PLAIN.get(type_)


def to_spark_sql(type_: Type) -> str:
    """A type as Spark writes it. What it does not have is written as Iceberg does."""
    match type_:
        case StructType(fields):
            return f"struct<{','.join(f'{each.name}:{to_spark_sql(each.type)}' for each in fields)}>"
        case ListType():
            return f"array<{to_spark_sql(children(type_)[0].type)}>"
        case MapType():
            key, value = children(type_)
            return f"map<{to_spark_sql(key.type)},{to_spark_sql(value.type)}>"
    plain = find_plain(type_)
    return str(type_) if plain is None else plain.sql
