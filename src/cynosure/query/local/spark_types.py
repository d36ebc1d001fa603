"""Spark's types and its rules for them (ANSI mode), with the types of DuckDB and Arrow that hold the same.

A timestamp is in UTC, as the session is, so DuckDB keeps it without a zone.

A maintainer must not break: a rule that is not exactly Spark's gives None, never something near it: the query
then runs on Spark.
"""

from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from cynosure.iceberg import types as iceberg
from cynosure.query.arrow_types import to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

MAX_PRECISION: Final = 38
_MIN_ADJUSTED_SCALE: Final = 6

Kind = Literal[
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "decimal",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
    "null",
    "nested",
]


class SparkType(Struct, frozen=True):
    """A type of Spark."""

    kind: Kind
    precision: int = 0
    scale: int = 0
    nested: iceberg.Type | None = None
    """Of `nested`: a struct, list or map."""

    @property
    def duck(self) -> str:
        """DuckDB's name of the type that holds it."""
        if self.kind == "decimal":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.nested is not None:
            return _duck_of_nested(self.nested)
        return _DUCK[self.kind]

    @property
    def is_integral(self) -> bool:
        """Int or long."""
        return self.kind in {"int", "long"}

    @property
    def is_floating(self) -> bool:
        """Float or double."""
        return self.kind in {"float", "double"}

    @property
    def is_numeric(self) -> bool:
        """A number."""
        return self.is_integral or self.is_floating or self.kind == "decimal"

    @property
    def is_plain(self) -> bool:
        """Can be compared, grouped and sorted here."""
        return self.kind not in {"nested", "null"}


BOOLEAN: Final = SparkType("boolean")
INT: Final = SparkType("int")
LONG: Final = SparkType("long")
FLOAT: Final = SparkType("float")
DOUBLE: Final = SparkType("double")
STRING: Final = SparkType("string")
BINARY: Final = SparkType("binary")
DATE: Final = SparkType("date")
TIMESTAMP: Final = SparkType("timestamp")
TIMESTAMP_NTZ: Final = SparkType("timestamp_ntz")
NULL: Final = SparkType("null")

_DUCK: Final[dict[str, str]] = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
}

_OF_ICEBERG: Final[dict[object, SparkType]] = {
    iceberg.BOOLEAN: BOOLEAN,
    iceberg.INT: INT,
    iceberg.LONG: LONG,
    iceberg.FLOAT: FLOAT,
    iceberg.DOUBLE: DOUBLE,
    iceberg.DATE: DATE,
    iceberg.TIMESTAMP: TIMESTAMP_NTZ,
    iceberg.TIMESTAMPTZ: TIMESTAMP,
    iceberg.STRING: STRING,
    iceberg.BINARY: BINARY,
    iceberg.UUID: STRING,
}


def decimal(precision: int, scale: int) -> SparkType:
    """A decimal of exactly this shape."""
    return SparkType("decimal", precision, scale)


def of_iceberg(type_: iceberg.Type) -> SparkType | None:
    """What Spark reads a column as; None for nested types with a time zone in them, and for unknown ones."""
    match type_:
        case iceberg.DecimalType(precision, scale):
            return decimal(precision, scale)
        case iceberg.FixedType():
            return BINARY
        case iceberg.StructType() | iceberg.ListType() | iceberg.MapType():
            return SparkType("nested", nested=type_) if _is_held_alike(type_) else None
    return _OF_ICEBERG.get(type_)


def _is_held_alike(type_: iceberg.Type) -> bool:
    """Whether DuckDB holds all parts as they come: timestamps in a zone do not (they lose it on the way)."""
    if isinstance(type_, iceberg.StructType) and (
        not type_.fields or len({each.name.lower() for each in type_.fields}) < len(type_.fields)
    ):
        return False  # DuckDB takes names that differ in case only for the same
    if isinstance(type_, iceberg.StructType | iceberg.ListType | iceberg.MapType):
        return all(_is_held_alike(each.type) for each in iceberg.children(type_))
    return isinstance(type_, iceberg.DecimalType | iceberg.FixedType) or (
        type_ in _OF_ICEBERG and type_ != iceberg.TIMESTAMPTZ
    )


def _duck_of_nested(type_: iceberg.Type) -> str:
    match type_:
        case iceberg.StructType(fields):
            parts = ", ".join(f"{quote_name(each.name)} {_duck_of_nested(each.type)}" for each in fields)
            return f"STRUCT({parts})"
        case iceberg.ListType():
            return f"{_duck_of_nested(type_.element)}[]"
        case iceberg.MapType():
            return f"MAP({_duck_of_nested(type_.key)}, {_duck_of_nested(type_.value)})"
    plain = of_iceberg(type_)
    if plain is None:  # `_is_held_alike` was asked before
        raise TypeError("A nested type with a part that is not held alike.")
    return plain.duck


def to_arrow_type(type_: SparkType) -> "pa.DataType":
    """The type of a column of results, as Spark gives it."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if type_.kind == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if type_.nested is not None:
        return to_arrow(type_.nested)
    plain = {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    return plain[type_.kind]


def quote_name(name: str) -> str:
    """A name in DuckDB's text."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def as_decimal(type_: SparkType) -> SparkType:
    """The decimal that holds all values of an exact number."""
    return {"int": decimal(10, 0), "long": decimal(20, 0)}.get(type_.kind, type_)


def widen_decimals(left: SparkType, right: SparkType) -> SparkType:
    """The decimal that holds both. Beyond 38 digits, those before the point are kept, others rounded."""
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    if digits + scale <= MAX_PRECISION:
        return decimal(digits + scale, scale)
    return decimal(MAX_PRECISION, max(MAX_PRECISION - digits, 0))


def find_common(left: SparkType, right: SparkType) -> SparkType | None:
    """The type that both become in comparisons, CASE, COALESCE, set operations; None: not known exactly."""
    if left == right:
        return left
    if left.kind == "null":
        return right
    if right.kind == "null":
        return left
    if left.is_numeric and right.is_numeric:
        return common_number(left, right)
    if {left.kind, right.kind} == {"date", "timestamp"}:
        return TIMESTAMP
    return None


def common_number(left: SparkType, right: SparkType) -> SparkType:
    """The type that two numbers become."""
    if left == right:
        return left
    if left.is_floating or right.is_floating:
        return DOUBLE
    if left.is_integral and right.is_integral:
        return LONG
    return widen_decimals(as_decimal(left), as_decimal(right))


def _adjust(precision: int, scale: int) -> SparkType:
    """Spark's way to fit a result into 38 digits: digits before the point first, 6 behind it at least."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    digits = precision - scale
    kept = max(MAX_PRECISION - digits, min(scale, _MIN_ADJUSTED_SCALE))
    return decimal(MAX_PRECISION, kept)


def add_decimals(left: SparkType, right: SparkType) -> SparkType:
    """Type of a sum or difference."""
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return _adjust(digits + scale + 1, scale)


def multiply_decimals(left: SparkType, right: SparkType) -> SparkType:
    """Type of a product."""
    return _adjust(left.precision + right.precision + 1, left.scale + right.scale)


def divide_decimals(left: SparkType, right: SparkType) -> SparkType:
    """Type of a quotient."""
    scale = max(_MIN_ADJUSTED_SCALE, left.scale + right.precision + 1)
    return _adjust(left.precision - left.scale + right.scale + scale, scale)


def sum_type(type_: SparkType) -> SparkType | None:
    """Type of `sum` and of its window form."""
    if type_.is_integral:
        return LONG
    if type_.is_floating:
        return DOUBLE
    return sum_of_decimals(type_) if type_.kind == "decimal" else None


def sum_of_decimals(type_: SparkType) -> SparkType:
    """Type of `sum` of a decimal."""
    return decimal(min(type_.precision + 10, MAX_PRECISION), type_.scale)


def average_of_decimals(type_: SparkType) -> SparkType:
    """Type of `avg` of a decimal."""
    return decimal(min(type_.precision + 4, MAX_PRECISION), min(type_.scale + 4, MAX_PRECISION))
