"""A caller's batches in exactly the columns of a table.

Columns are matched by name. A type that holds nothing that the table's type does not hold is widened; text
and bytes may come in any of Arrow's layouts. An optional column that is missing becomes null, or the column's
default.

A maintainer must not break: a value is written as it is or refused with its column. No conversion rounds,
cuts, parses or shifts time zones, and no column of the caller is dropped.
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from cynosure.client.appending.arrow_types import is_stored, to_arrow_schema, to_arrow_type
from cynosure.common.errors import BadInput
from cynosure.iceberg import types
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.single_value import read_value
from cynosure.iceberg.types import DecimalType, FixedType, ListType, MapType, NestedField, StructType, Type

Convert = Callable[[pa.Array], pa.Array]
Make = Callable[[int], pa.Array]
"""Makes that many values."""

_INTS: Final = {
    types.INT: ("int8", "int16", "int32", "uint8", "uint16"),
    types.LONG: ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"),
}
_FLOATS: Final = {types.FLOAT: ("halffloat", "float"), types.DOUBLE: ("halffloat", "float", "double")}
_ZONED: Final = (types.TIMESTAMPTZ, types.TIMESTAMPTZ_NS)
_INSTANTS: Final = (types.TIMESTAMP, types.TIMESTAMP_NS, *_ZONED)


class Conformer:
    """From batches of one Arrow schema to batches of a table."""

    def __init__(self, schema: Schema, given: pa.Schema) -> None:
        """`BadInput` naming the column when the schemas do not fit."""
        self.schema = to_arrow_schema(schema)
        self._columns = _plan_fields(schema.fields, list(given), "")

    def conform(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows. `BadInput` naming the column of a value that does not fit."""
        arrays = [column(batch.columns, batch.num_rows, None) for column in self._columns]
        return pa.RecordBatch.from_arrays(
            [array for array in arrays if array is not None], schema=self.schema
        )


class _Column:
    """How one field of a struct is made from the struct's parts."""

    def __init__(
        self, field: NestedField, path: str, at: int | None, convert: Convert | None, make: Make | None
    ) -> None:
        self._field = field
        self._path = path
        self._at = at
        self._convert = convert
        self._make = make

    def __call__(self, parts: list[pa.Array], count: int, present: pa.Array | None) -> pa.Array | None:
        if self._at is None:
            return None if self._make is None else self._make(count)
        array = parts[self._at]
        if self._field.is_required and array.null_count:
            missing = array.is_null()
            if present is None or pc.any(pc.and_(missing, present)).as_py():
                _refuse("A value is missing in a required column", self._path, "Give a value for every row.")
        if self._convert is None:
            # Of unknown type: there is nothing but null, and nothing is written.
            if array.null_count < len(array):
                _refuse(
                    "A column of unknown type holds nothing but null", self._path, "Give it a type first."
                )
            return None
        try:
            return self._convert(array)
        except pa.ArrowInvalid as error:
            # Arrow's text quotes the value, which is the caller's data.
            raise BadInput(
                "A value would be changed by writing it",
                field=self._path,
                fix="Convert the column as you mean it first.",
                column_type=str(self._field.type),
                given_type=str(array.type),
            ) from error


def _plan_fields(fields: tuple[NestedField, ...], given: list[pa.Field], prefix: str) -> list[_Column]:
    names = [each.name for each in given]
    known = {field.name for field in fields}
    for name in names:
        if name not in known:
            _refuse(
                "The table has no such column",
                f"{prefix}{name}",
                "Add it to the table first, or leave it out.",
            )
        if names.count(name) > 1:
            _refuse("Two columns have the same name", f"{prefix}{name}", "Rename one of them.")
    columns = []
    for field in fields:
        path = f"{prefix}{field.name}"
        if field.name in names:
            at = names.index(field.name)
            convert = _plan(field.type, given[at].type, path) if is_stored(field) else None
            columns.append(_Column(field, path, at, convert, None))
        else:
            make = _plan_missing(field, path) if is_stored(field) else None
            columns.append(_Column(field, path, None, None, make))
    return columns


def _plan_missing(field: NestedField, path: str) -> Make:
    target = to_arrow_type(field.type, path)
    default = None if field.write_default is UNSET else field.write_default
    if default is None:
        if field.is_required:
            _refuse("A required column is missing", path, "Give the column.")
        return lambda count: pa.nulls(count, target)
    if not types.is_primitive(field.type):
        _refuse("This client cannot write the default of a nested column", path, "Give the column.")
    scalar = _make_scalar(read_value(field.type, default, field=f"{path}.write-default"), target)
    return lambda count: pa.repeat(scalar, count)


def _make_scalar(value: Any, target: pa.DataType) -> pa.Scalar:
    if pa.types.is_date(target):
        return pa.scalar(value, pa.int32()).cast(target)
    if pa.types.is_temporal(target):
        return pa.scalar(value, pa.int64()).cast(target)
    return pa.scalar(value, target)


def _plan(type_: Type, given: pa.DataType, path: str) -> Convert:
    """How to convert arrays of a given type; `BadInput` when they cannot be."""
    target = to_arrow_type(type_, path)
    if pa.types.is_null(given):
        return lambda array: pa.nulls(len(array), target)
    if pa.types.is_dictionary(given):
        decoded = _plan(type_, given.value_type, path)
        return lambda array: decoded(array.dictionary_decode())
    if isinstance(given, pa.BaseExtensionType) and type_ != types.UUID:
        stored = _plan(type_, given.storage_type, path)
        return lambda array: stored(array.storage)
    if isinstance(type_, StructType):
        return _plan_struct(type_, given, target, path)
    if isinstance(type_, ListType):
        return _plan_list(type_, given, target, path)
    if isinstance(type_, MapType):
        return _plan_map(type_, given, target, path)
    if not _fits(type_, given):
        _refuse(
            "The type does not fit the column",
            path,
            f"Convert the column to {target} first.",
            column_type=str(type_),
            given_type=str(given),
        )
    if given == target:
        return lambda array: array
    if type_ == types.UUID:
        return lambda array: pa.ExtensionArray.from_storage(target, array)
    return lambda array: array.cast(target, safe=True)


def _fits(type_: Type, given: pa.DataType) -> bool:
    """Whether values of an Arrow type are values of a primitive type, each as it is."""
    kinds = pa.types
    if type_ in _INTS or type_ in _FLOATS:
        return str(given) in (_INTS.get(type_) or _FLOATS[type_])
    if isinstance(type_, DecimalType):
        return bool(
            kinds.is_decimal(given)
            and given.scale <= type_.scale
            and given.precision - given.scale <= type_.precision - type_.scale
        )
    if isinstance(type_, FixedType):
        return bool(kinds.is_fixed_size_binary(given) and given.byte_width == type_.length)
    if type_ == types.UUID:
        return bool(given == pa.uuid() or (kinds.is_fixed_size_binary(given) and given.byte_width == 16))
    if type_ in _INSTANTS:
        return bool(kinds.is_timestamp(given) and (given.tz is not None) == (type_ in _ZONED))
    if type_ == types.STRING:
        return _is_one_of(given, pa.string(), pa.large_string(), pa.string_view())
    if type_ == types.BINARY:
        return bool(kinds.is_fixed_size_binary(given)) or _is_one_of(
            given, pa.binary(), pa.large_binary(), pa.binary_view()
        )
    if type_ == types.DATE:
        return bool(kinds.is_date(given))
    return bool(
        kinds.is_time(given) if type_ == types.TIME else type_ == types.BOOLEAN and given == pa.bool_()
    )


def _is_one_of(given: pa.DataType, *kinds: pa.DataType) -> bool:
    return given in kinds


def _plan_struct(type_: StructType, given: pa.DataType, target: pa.DataType, path: str) -> Convert:
    if not pa.types.is_struct(given):
        _refuse_nested(path, "a struct", given)
    columns = _plan_fields(type_.fields, list(given), f"{path}.")

    def convert(array: pa.Array) -> pa.Array:
        present = array.is_valid()
        parts = [array.field(at) for at in range(given.num_fields)]
        made = [column(parts, len(array), present) for column in columns]
        return pa.StructArray.from_arrays(
            [each for each in made if each is not None], fields=list(target), mask=array.is_null()
        )

    return convert


def _plan_list(type_: ListType, given: pa.DataType, target: pa.DataType, path: str) -> Convert:
    kinds = pa.types
    is_list = kinds.is_list(given) or kinds.is_large_list(given) or kinds.is_fixed_size_list(given)
    if not is_list and not kinds.is_list_view(given) and not kinds.is_large_list_view(given):
        _refuse_nested(path, "a list", given)
    element = NestedField(type_.element_id, "element", type_.element, type_.is_element_required)
    [column] = _plan_fields((element,), [given.value_field.with_name("element")], f"{path}.")

    def convert(array: pa.Array) -> pa.Array:
        # Flattened, so that neither slices nor null lists leave values behind.
        values = column([array.flatten()], 0, None)
        return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=array.is_null())

    return convert


def _plan_map(type_: MapType, given: pa.DataType, target: pa.DataType, path: str) -> Convert:
    if not pa.types.is_map(given):
        _refuse_nested(path, "a map", given)
    parts = types.children(type_)
    fields = [given.key_field.with_name("key"), given.item_field.with_name("value")]
    key, value = _plan_fields(parts, fields, f"{path}.")

    def convert(array: pa.Array) -> pa.Array:
        # Taken, so that keys and items begin with the first map and those of null maps are gone.
        whole = array.take(pa.array(range(len(array)), pa.int64()))
        pair = [whole.keys, whole.items]
        keys, items = key(pair, 0, None), value(pair, 0, None)
        return pa.MapArray.from_arrays(whole.offsets, keys, items, type=target, mask=whole.is_null())

    return convert


def _offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int32())
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])


def _refuse_nested(path: str, wanted: str, given: pa.DataType) -> NoReturn:
    _refuse("The type does not fit the column", path, f"Give {wanted}.", given_type=str(given))


def _refuse(message: str, column: str, fix: str, **details: Any) -> NoReturn:
    raise BadInput(message, field=column, fix=fix, **details)
