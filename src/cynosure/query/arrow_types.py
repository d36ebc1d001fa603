"""The types that governed batches have: of each Iceberg type, the one that all engines know.

    boolean int long float double date string binary   as they are
    timestamp, timestamptz      microseconds, the latter in UTC
    decimal(p, s)               128 bits
    uuid                        text of 36 characters, as Spark reads it
    fixed(n)                    binary
    struct, list, map           of these
    time, timestamps of nanoseconds, variant, geometry, geography, unknown: not read (`find_unsupported`)

A maintainer must not break: batches have exactly these types; nobody behind the scan casts.
"""

from typing import TYPE_CHECKING

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
    encode_type,
)

if TYPE_CHECKING:
    import pyarrow as pa

_PLAIN = frozenset({BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY, UUID})


def find_unsupported(type_: Type) -> str | None:
    """The first part of a type that is not read, as Iceberg names it."""
    if type_ in _PLAIN or isinstance(type_, DecimalType | FixedType):
        return None
    if not isinstance(type_, StructType | ListType | MapType):
        return str(encode_type(type_))
    return next(filter(None, (find_unsupported(each.type) for each in children(type_))), None)


def to_arrow(type_: Type) -> "pa.DataType":
    """The Arrow type of a supported type. All nested fields are nullable: a mask may make them so."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    match type_:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case FixedType():
            return pa.binary()
        case StructType(fields):
            return pa.struct([pa.field(each.name, to_arrow(each.type)) for each in fields])
        case ListType():
            [element] = children(type_)
            return pa.list_(pa.field("element", to_arrow(element.type)))
        case MapType():
            key, value = children(type_)
            return pa.map_(to_arrow(key.type), pa.field("value", to_arrow(value.type)))
    plain = {
        BOOLEAN: pa.bool_(),
        INT: pa.int32(),
        LONG: pa.int64(),
        FLOAT: pa.float32(),
        DOUBLE: pa.float64(),
        DATE: pa.date32(),
        TIMESTAMP: pa.timestamp("us"),
        TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
        STRING: pa.string(),
        BINARY: pa.binary(),
        UUID: pa.string(),
    }
    return plain[type_]  # type: ignore[index]  # everything else is not supported
