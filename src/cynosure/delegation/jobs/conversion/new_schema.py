"""Columns of Parquet files as columns of a table.

A maintainer must not break: a column is taken only if every reader of Iceberg reads it as what it is. All
others are refused with their name, before anything is made.
"""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, Final

import pyarrow as pa

from cynosure.delegation.jobs.conversion.found_files import refuse
from cynosure.iceberg import types
from cynosure.iceberg.types import (
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    can_promote,
    children,
)

_MAX_PRECISION: Final = 38
_PLAIN: Final[tuple[tuple[Any, Type], ...]] = (
    (pa.types.is_boolean, types.BOOLEAN),
    (pa.types.is_int8, types.INT),
    (pa.types.is_int16, types.INT),
    (pa.types.is_int32, types.INT),
    (pa.types.is_uint8, types.INT),
    (pa.types.is_uint16, types.INT),
    (pa.types.is_int64, types.LONG),
    (pa.types.is_float32, types.FLOAT),
    (pa.types.is_float64, types.DOUBLE),
    (pa.types.is_date32, types.DATE),
    (pa.types.is_string, types.STRING),
    (pa.types.is_large_string, types.STRING),
    (pa.types.is_binary, types.BINARY),
    (pa.types.is_large_binary, types.BINARY),
)

Columns = dict[str, Type]
"""Top-level columns in their order; ids are 0."""


def read_columns(schema: pa.Schema, path: str) -> Columns:
    """The columns of one file; `JobFailed` names the one that cannot be."""
    found: Columns = {}
    for each in schema:
        if each.name in found:
            raise refuse("A file has two columns of the same name", path=path, column=each.name)
        found[each.name] = _read(each.type, each.name, path)
    return found


def merge(into: Columns, found: Mapping[str, Type], path: str) -> None:
    """Add the columns of another file; one that is there must be the same, or become it."""
    for name, type_ in found.items():
        known = into.get(name, type_)
        if known != type_ and can_promote(known, type_):
            known = type_
        elif known != type_ and not can_promote(type_, known):
            raise refuse(
                "A column has different types in different files",
                path=path,
                column=name,
                found=str(type_),
                others=str(known),
            )
        into[name] = known


def number(columns: Mapping[str, Type]) -> tuple[NestedField, ...]:
    """Columns with ids of their own, none of them required."""
    ids = count(1)
    # Those of the first level come first, as Iceberg numbers them.
    own = [next(ids) for _ in columns]

    def renew(type_: Type) -> Type:
        match type_:
            case StructType(fields=fields):
                numbers = [next(ids) for _ in fields]
                return StructType(
                    tuple(
                        NestedField(id_, each.name, renew(each.type), False)
                        for id_, each in zip(numbers, fields, strict=True)
                    )
                )
            case ListType(element=element):
                return ListType(next(ids), renew(element), False)
            case MapType(key=key, value=value):
                key_id, value_id = next(ids), next(ids)
                return MapType(key_id, renew(key), value_id, renew(value), False)
        return type_

    return tuple(
        NestedField(id_, name, renew(type_), False)
        for id_, (name, type_) in zip(own, columns.items(), strict=True)
    )


def same_shape(one: Type, other: Type) -> bool:
    """Whether two types are one but for ids and what is required; or the first can become the second."""
    first, second = children(one), children(other)
    if not first and not second:
        return one == other or can_promote(one, other)
    return (
        type(one) is type(other)
        and [each.name for each in first] == [each.name for each in second]
        and all(same_shape(a.type, b.type) for a, b in zip(first, second, strict=True))
    )


def map_names(fields: Iterable[NestedField]) -> list[dict[str, Any]]:
    """The name mapping of these columns: readers find them in files without ids by it."""
    return [
        {
            "field-id": each.id,
            "names": [each.name],
            **({"fields": map_names(parts)} if (parts := children(each.type)) else {}),
        }
        for each in fields
    ]


def _read(type_: pa.DataType, column: str, path: str) -> Type:
    for is_this, plain in _PLAIN:
        if is_this(type_):
            return plain
    if pa.types.is_decimal(type_) and type_.precision <= _MAX_PRECISION and type_.scale >= 0:
        return DecimalType(type_.precision, type_.scale)
    if pa.types.is_fixed_size_binary(type_):
        return FixedType(type_.byte_width)
    if pa.types.is_time64(type_) and type_.unit == "us":
        return types.TIME
    if pa.types.is_timestamp(type_) and type_.unit in ("ms", "us"):
        return types.TIMESTAMP if type_.tz is None else types.TIMESTAMPTZ
    if pa.types.is_dictionary(type_):
        return _read(type_.value_type, column, path)
    if pa.types.is_struct(type_) and type_.num_fields:
        return StructType(
            tuple(
                NestedField(0, each.name, _read(each.type, f"{column}.{each.name}", path), False)
                for each in type_
            )
        )
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return ListType(0, _read(type_.value_type, f"{column}.element", path), False)
    if pa.types.is_map(type_):
        key = _read(type_.key_type, f"{column}.key", path)
        return MapType(0, key, 0, _read(type_.item_type, f"{column}.value", path), False)
    raise refuse(
        "A column has a type that tables do not have",
        path=path,
        column=column,
        type=str(type_),
        fix="Write it as another type; timestamps with microseconds, whole numbers with a sign.",
    )
