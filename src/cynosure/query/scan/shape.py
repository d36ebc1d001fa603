"""A file's columns as the table has them now: found by field id, converted without any loss.

    file has the field (by id, or by the name mapping where it has no ids at all)   converted: promotion only
    it does not, and the partition says its value                                  that value
    it does not, and the field has an initial default                              the default
    it does not, and the field is optional                                         NULL
    anything else                                                                  `NotReadable`

A maintainer must not break: columns are never found by position, and by name only through the table's name
mapping. A type that does not promote to the table's is an error, whatever its values are.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec import UNSET, Struct

from cynosure.common.errors import BadInput
from cynosure.iceberg.shaping.name_mapping import MappedField
from cynosure.iceberg.single_value import read_value
from cynosure.iceberg.types import (
    UUID,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    children,
)
from cynosure.query.arrow_types import find_unsupported, to_arrow
from cynosure.query.errors import NotReadable
from cynosure.query.scan.primitives import Convert, find_conversion

_ID: Final = b"PARQUET:field_id"
_MAPPING: Final = msgspec.json.Decoder(list[MappedField])

Mapped = Sequence[MappedField] | None
"""What names mean in files without ids; `None`: the file has ids."""


class FileColumn(Struct, frozen=True):
    """Where a column of the table comes from, in one file."""

    field: NestedField
    position: int | None
    """In the file's schema; `None`: it is not there."""
    convert: Convert | None = None
    """None: it is what it must be already."""
    missing: Callable[[int], pa.Array] | None = None
    """Makes the column where the file does not have it."""

    def read(self, found: pa.Array) -> pa.Array:
        """The column, from what the file has."""
        return found if self.convert is None else self.convert(found)

    def fill(self, rows: int) -> pa.Array:
        """The column where the file does not have it."""
        if self.missing is None:
            raise AssertionError("the file has this column")
        return self.missing(rows)


def find_columns(
    wanted: Iterable[NestedField], file: pa.Schema, name_mapping: bytes, constants: Mapping[int, Any]
) -> list[FileColumn]:
    """Each wanted top-level column in a file. `NotReadable` where one cannot be had exactly."""
    mapped = None if any(map(_has_ids, file)) else _read_mapping(name_mapping)
    ids = _find_ids(file, mapped)
    return [_find_column(field, file, ids, mapped, constants) for field in wanted]


def make_value(type_: Type, json: Any, *, what: str) -> pa.Scalar:
    """A value of JSON as Arrow has it."""
    try:
        value = read_value(type_, json, field=what)
    except BadInput:
        raise NotReadable("A value of the table's metadata does not fit its column", what=what) from None
    return pa.scalar(_to_plain(type_, value), to_arrow(type_))


def _find_column(
    field: NestedField, file: pa.Schema, ids: Mapping[int, int], mapped: Mapped, constants: Mapping[int, Any]
) -> FileColumn:
    if unsupported := find_unsupported(field.type):
        raise NotReadable(
            "The column's type is not read by governed SQL",
            column=field.name,
            type=unsupported,
            fix="Leave the column out of the statement.",
        )
    at = ids.get(field.id)
    if at is not None:
        return FileColumn(field, at, _make_conversion(field, file.field(at), mapped))
    if field.id in constants:
        value = constants[field.id]
        if value is None:
            if field.is_required:
                raise _absent(field)
            return FileColumn(field, None, missing=_nulls(field.type))
        scalar = make_value(field.type, value, what="partition")
        return FileColumn(field, None, missing=lambda rows: pa.repeat(scalar, rows))
    return FileColumn(field, None, missing=_make_default(field))


def has_text(type_: pa.DataType) -> bool:
    """Whether a type is text, or has text in it."""
    return bool(pa.types.is_string(type_)) or any(has_text(each.type) for each in _parts(type_))


# Which field of a file is which.


def _has_ids(field: pa.Field) -> bool:
    return _get_id(field) is not None or any(map(_has_ids, _parts(field.type)))


def _get_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return int(text) if text is not None and int(text) >= 0 else None


def _parts(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    if _is_list(type_):
        return [type_.value_field]
    return list(type_) if pa.types.is_struct(type_) else []


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _read_mapping(json: bytes) -> Sequence[MappedField]:
    if not json:
        raise NotReadable(
            "A file of the table has no field ids, and the table no mapping of names",
            fix="Set schema.name-mapping.default, or rewrite the file.",
        )
    try:
        return _MAPPING.decode(json)
    except (msgspec.DecodeError, RecursionError):
        raise NotReadable(
            "The table's mapping of names cannot be read", fix="Correct schema.name-mapping.default."
        ) from None


def _find_ids(fields: Iterable[pa.Field], mapped: Mapped) -> dict[int, int]:
    """Places of fields by their id."""
    found: dict[int, int] = {}
    for at, field in enumerate(fields):
        if mapped is None:
            id_ = _get_id(field)
        else:
            match = _find_mapped(field.name, mapped)
            id_ = match.field_id if match else None
        if id_ is None:
            continue
        if id_ in found:
            raise NotReadable("Two columns of a file are the same field", field_id=id_)
        found[id_] = at
    return found


def _find_mapped(name: str, mapped: Sequence[MappedField]) -> MappedField | None:
    return next((each for each in mapped if name in each.names), None)


def _inner(name: str, mapped: Mapped) -> Mapped:
    if mapped is None:
        return None
    match = _find_mapped(name, mapped)
    return match.fields if match else []


# Conversions.


def _make_conversion(wanted: NestedField, found: pa.Field, mapped: Mapped) -> Convert | None:
    inside = _inner(found.name, mapped)
    match wanted.type:
        case StructType(fields):
            if pa.types.is_struct(found.type):
                return _make_struct(fields, found.type, to_arrow(wanted.type), inside)
        case ListType():
            if _is_list(found.type):
                return _make_list(wanted.type, found.type, inside)
        case MapType():
            if pa.types.is_map(found.type):
                return _make_map(wanted.type, found.type, inside)
        case _:
            return find_conversion(wanted, found)
    raise NotReadable(
        "A file has another type than its table", column=wanted.name, type=str(found.type)[:100]
    )


def _make_struct(
    fields: Sequence[NestedField], found: pa.DataType, target: pa.DataType, mapped: Mapped
) -> Convert | None:
    ids = _find_ids(found, mapped)
    parts = [_find_column(each, found, ids, mapped, {}) for each in fields]
    is_same = [part.position for part in parts] == list(range(found.num_fields))
    if is_same and all(part.convert is None for part in parts) and target == found:
        return None

    def convert(struct: pa.Array) -> pa.Array:
        made = [
            part.fill(len(struct)) if part.position is None else part.read(struct.field(part.position))
            for part in parts
        ]
        if not made:
            return struct.cast(target) if not found.num_fields else _empty_structs(struct, target)
        return pa.StructArray.from_arrays(made, fields=list(target), mask=struct.is_null())

    return convert


def _empty_structs(struct: pa.Array, target: pa.DataType) -> pa.Array:
    validity = struct.is_valid().buffers()[1]
    return pa.Array.from_buffers(target, len(struct), [validity])


def _make_list(wanted: ListType, found: pa.DataType, mapped: Mapped) -> Convert | None:
    target = to_arrow(wanted)
    [element] = children(wanted)
    part = _make_inner(element, found.value_field, "element", mapped)
    if part is None and found == target:
        return None

    def convert(values: pa.Array) -> pa.Array:
        # A large list has offsets of 64 bits; batches are far below what 32 bits reach.
        if pa.types.is_large_list(values.type):
            values = values.cast(pa.list_(values.type.value_field))
        inner = part(values.values) if part else values.values
        return _rebuild(values, target, inner)

    return convert


def _make_map(wanted: MapType, found: pa.DataType, mapped: Mapped) -> Convert | None:
    target = to_arrow(wanted)
    key, value = children(wanted)
    key_part = _make_inner(key, found.key_field, "key", mapped)
    value_part = _make_inner(value, found.item_field, "value", mapped)
    if key_part is None and value_part is None and found == target:
        return None

    def convert(values: pa.Array) -> pa.Array:
        keys = key_part(values.keys) if key_part else values.keys
        items = value_part(values.items) if value_part else values.items
        entries = pa.StructArray.from_arrays([keys, items], fields=[target.key_field, target.item_field])
        return _rebuild(values, target, entries)

    return convert


def _rebuild(values: pa.Array, target: pa.DataType, inner: pa.Array) -> pa.Array:
    """The same lists around other elements; the place in their buffers stays."""
    kept = values.buffers()[:2]
    return pa.Array.from_buffers(target, len(values), kept, offset=values.offset, children=[inner])


def _make_inner(wanted: NestedField, found: pa.Field, name: str, mapped: Mapped) -> Convert | None:
    """Of an element, key or value: there is one always, and it must be the same field."""
    if mapped is None:
        is_same = _get_id(found) in (None, wanted.id)
        inside = None
    else:
        match = _find_mapped(name, mapped)
        is_same = match is not None and match.field_id == wanted.id
        inside = mapped
    if not is_same:
        raise NotReadable("A file has another field inside a list or map than its table", column=wanted.name)
    return _make_conversion(wanted, found.with_name(name), inside)


# What files do not have.


def _make_default(field: NestedField) -> Callable[[int], pa.Array]:
    default = None if field.initial_default is UNSET else field.initial_default
    if default is None:
        if field.is_required:
            raise _absent(field)
        return _nulls(field.type)
    if isinstance(field.type, StructType):
        # Says that the struct is there; its fields have defaults of their own.
        parts = [_make_default(each) for each in field.type.fields]
        fields = list(to_arrow(field.type))
        return lambda rows: pa.StructArray.from_arrays([part(rows) for part in parts], fields=fields)
    scalar = make_value(field.type, default, what="initial-default")
    return lambda rows: pa.repeat(scalar, rows)


def _nulls(type_: Type) -> Callable[[int], pa.Array]:
    arrow = to_arrow(type_)
    return lambda rows: pa.nulls(rows, arrow)


def _absent(field: NestedField) -> NotReadable:
    return NotReadable("A file has no values of a required column", column=field.name)


def _to_plain(type_: Type, value: Any) -> Any:
    if value is None:
        return None
    match type_:
        case StructType(fields):
            return {each.name: _to_plain(each.type, value.get(each.id)) for each in fields}
        case ListType(_, element, _):
            return [_to_plain(element, each) for each in value]
        case MapType():
            return [(_to_plain(type_.key, key), _to_plain(type_.value, each)) for key, each in value]
    return str(value) if type_ == UUID else value
