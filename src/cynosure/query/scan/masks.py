"""Columns that are shown otherwise than they are: the nine actions of the Iceberg REST protocol.

    action                             of NULL   shows
    mask-to-fixed-value                replaced  one value of the type for all rows (`fixed_value`)
    replace-with-null                  NULL      NULL
    mask-alphanum                      NULL      0-9 as n, `( ) , . - @` as they are, all else as x
    show-first-4, show-last-4          NULL      four code points, the rest as mask-alphanum; up to four: all
    sha-256-global, …-query-local      NULL      lower-case hex of the UTF-8 text, the latter behind the salt
    truncate-to-year, …-to-month       NULL      the first moment of it, in UTC, also before 1970

Fixed values: false, 0, 0.0, `XXXXXXXX`, 1970-01-01 (midnight), zeros for uuid and fixed, empty binary.

A maintainer must not break: an action that does not fit its column is an error when the scan begins, before
any row is read; and a masked column has the type that it had.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cynosure.iceberg.schema import Schema
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
    NestedField,
    StructType,
    Type,
)
from cynosure.query.arrow_types import to_arrow
from cynosure.query.errors import NotReadable
from cynosure.query.scan_task import Mask, MaskAction

Masker = Callable[[pa.Array], pa.Array]

SHORTEST_SALT: Final = 16
"""Bytes of salt that `sha-256-query-local` needs: a shorter one could be guessed together with the value."""

_FIXED: Final[Mapping[Type, Any]] = {
    BOOLEAN: False,
    INT: 0,
    LONG: 0,
    FLOAT: 0.0,
    DOUBLE: 0.0,
    # What Iceberg's own reader shows: a masked text is not taken for an empty one.
    STRING: "XXXXXXXX",
    DATE: 0,
    TIMESTAMP: 0,
    TIMESTAMPTZ: 0,
    UUID: "00000000-0000-0000-0000-000000000000",
    BINARY: b"",
}
_TIMES: Final = frozenset({DATE, TIMESTAMP, TIMESTAMPTZ})
_OTHERS: Final = r"[^0-9(),.\-@]"
_TABLE: Final = bytes(
    ord("n") if chr(each).isdigit() else each if chr(each) in "(),.-@" else ord("x") for each in range(128)
).ljust(256, b"x")
_SHOWN: Final = 4
_DAY_US: Final = 86_400_000_000
_CYCLE_DAYS: Final = 146_097
"""Of 400 years, after which the calendar repeats itself."""


def make_maskers(
    masks: Iterable[Mask], schema: Schema, columns: Iterable[NestedField], salt: bytes
) -> dict[int, Masker]:
    """What is done to top-level columns, by their field id; nothing for those that are not masked."""
    actions = {mask.field_id: mask.action for mask in masks}
    for id_ in actions:
        place = schema.places.get(id_)
        # A field that this schema does not have is not shown at all.
        if place and not all(isinstance(each.type, StructType) for each in place.around):
            raise NotReadable("A mask inside a list or map cannot be applied", column=place.path)
    found = {}
    for column in columns:
        masker = _make(column, actions, salt)
        if masker is not None:
            found[column.id] = masker
    return found


def is_touched(field_id: int, masks: Iterable[Mask], schema: Schema) -> bool:
    """Whether a field, something around it or something inside it is masked."""
    place = schema.places[field_id]
    outer = {field_id, *(each.id for each in place.around)}
    for mask in masks:
        masked = schema.places.get(mask.field_id)
        if mask.field_id in outer or (masked and any(each.id == field_id for each in masked.around)):
            return True
    return False


def fixed_value(type_: Type) -> Any:
    """What `mask-to-fixed-value` shows, as Arrow takes it; `None` for types that have no such value."""
    match type_:
        case DecimalType():
            return Decimal(0)
        case FixedType(length):
            return bytes(length)
    return _FIXED.get(type_)


def _make(field: NestedField, actions: Mapping[int, MaskAction], salt: bytes) -> Masker | None:
    action = actions.get(field.id)
    if action is not None:
        masker = _make_action(action, field, salt)
        if masker is None:
            raise NotReadable("A mask does not fit the type of its column", column=field.name, action=action)
        return masker
    if not isinstance(field.type, StructType):
        return None
    parts = [_make(each, actions, salt) for each in field.type.fields]
    return _inside(parts) if any(parts) else None


def _make_action(action: MaskAction, field: NestedField, salt: bytes) -> Masker | None:
    match action:
        case "mask-to-fixed-value":
            value = fixed_value(field.type)
            return None if value is None else _replace(value, field.type)
        case "replace-with-null":
            return None if field.is_required else _replace(None, field.type)
        case "truncate-to-year" | "truncate-to-month" if field.type in _TIMES:
            return _truncate("year" if action == "truncate-to-year" else "month")
    if field.type != STRING:
        return None
    match action:
        case "mask-alphanum":
            return _redact
        case "show-first-4":
            return _show_first
        case "show-last-4":
            return _show_last
        case "sha-256-global":
            return _hash(b"")
        case "sha-256-query-local":
            if len(salt) < SHORTEST_SALT:
                raise NotReadable("A statement's salt is too short to hash values with")
            return _hash(salt)
    return None


def _inside(parts: list[Masker | None]) -> Masker:
    def mask(struct: pa.StructArray) -> pa.Array:
        # `field` does not look at nulls of the struct itself: they are put back with the mask.
        shown = [part or _as_it_is for part in parts]
        children = [part(struct.field(at)) for at, part in enumerate(shown)]
        return pa.StructArray.from_arrays(children, fields=list(struct.type), mask=struct.is_null())

    return mask


def _as_it_is(values: pa.Array) -> pa.Array:
    return values


def _replace(value: Any, type_: Type) -> Masker:
    def mask(values: pa.Array) -> pa.Array:
        arrow = to_arrow(type_)
        if value is None:
            return pa.nulls(len(values), arrow)
        return pa.repeat(pa.scalar(value, arrow), len(values))

    return mask


def _truncate(unit: str) -> Masker:
    def mask(values: pa.Array) -> pa.Array:
        is_date = pa.types.is_date32(values.type)
        number = pa.int32() if is_date else pa.int64()
        cycle = pa.scalar(_CYCLE_DAYS * (1 if is_date else _DAY_US), number)
        plain = values.view(number)
        # Arrow counts years in 16 bits, and says nothing where they are not enough.
        cycles = pc.multiply(pc.divide(plain, cycle), cycle)
        near = pc.subtract(plain, cycles).view(values.type)
        shown = pc.floor_temporal(near, unit=unit).cast(values.type).view(number)
        return pc.add_checked(shown, cycles).view(values.type)

    return mask


def _redact(values: pa.Array) -> pa.Array:
    validity, offsets, data = values.buffers()
    held = bytes(data) if data else b""
    if held.isascii():
        # A byte is a character: one table for all rows, which keep their places.
        shown = pa.py_buffer(held.translate(_TABLE))
        return pa.Array.from_buffers(
            values.type, len(values), [validity, offsets, shown], offset=values.offset
        )
    # Digits second: the letters that the first step writes must not be looked at again.
    kept = pc.replace_substring_regex(values, _OTHERS, "x")
    return pc.replace_substring_regex(kept, "[0-9]", "n")


def _show_first(values: pa.Array) -> pa.Array:
    rest = _redact(pc.utf8_slice_codeunits(values, _SHOWN))
    return pc.binary_join_element_wise(pc.utf8_slice_codeunits(values, 0, _SHOWN), rest, "")


def _show_last(values: pa.Array) -> pa.Array:
    rest = _redact(pc.utf8_slice_codeunits(values, 0, -_SHOWN))
    return pc.binary_join_element_wise(rest, pc.utf8_slice_codeunits(values, -_SHOWN), "")


def _hash(salt: bytes) -> Masker:
    begun = hashlib.sha256(salt)

    def digest(value: bytes) -> str:
        state = begun.copy()
        state.update(value)
        return state.hexdigest()

    def mask(values: pa.Array) -> pa.Array:
        # Each value once: columns that are worth hashing repeat.
        coded = values.dictionary_encode()
        texts = coded.dictionary.cast(pa.binary()).to_pylist()
        return pa.array(map(digest, texts), pa.string(), size=len(texts)).take(coded.indices)

    return mask
