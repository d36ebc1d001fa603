"""Partition and sort transforms: their names, the types they apply to and make.

A maintainer must not break: a transform of an unknown name is carried, not refused, so that tables of newer
writers can be registered and served.
"""

import re
from typing import Final

from cynosure.iceberg.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    Type,
    is_primitive,
)

_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)
_INSTANTS: Final = (TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)
_BUCKETED: Final = (INT, LONG, DATE, TIME, STRING, UUID, BINARY, *_INSTANTS)
_TRUNCATED: Final = (INT, LONG, STRING, BINARY)

IDENTITY: Final = "identity"
VOID: Final = "void"


def find_fault(transform: str) -> str | None:
    """What is wrong with a transform's text, if it is one of the known transforms."""
    match = _WITH_WIDTH.fullmatch(transform)
    if match and not 0 < int(match[2]) < 2**31:
        return "The width of a transform is a positive 32-bit integer"
    if not match and transform.partition("[")[0] in ("bucket", "truncate"):
        return "The transform needs a width in brackets"
    return None


def can_apply(transform: str, type_: Type) -> bool:
    """Whether values of a type can be transformed so."""
    if transform == VOID:
        return True
    if not is_primitive(type_) or isinstance(type_, GeometryType | GeographyType):
        return False
    if transform.startswith("bucket["):
        return type_ in _BUCKETED or isinstance(type_, DecimalType | FixedType)
    if transform.startswith("truncate["):
        return type_ in _TRUNCATED or isinstance(type_, DecimalType)
    if transform in ("year", "month", "day"):
        return type_ == DATE or type_ in _INSTANTS
    if transform == "hour":
        return type_ in _INSTANTS
    return True


def result_type(transform: str, type_: Type) -> Type:
    """The type of what a transform makes from values of a type. An unknown one is carried as text."""
    name = transform.partition("[")[0]
    if name in (IDENTITY, VOID, "truncate"):
        return type_
    if name == "day":
        return DATE
    return INT if name in ("bucket", "year", "month", "hour") else STRING
