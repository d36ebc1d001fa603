"""Masked columns as expressions of Spark: the same values as `query.scan.masks` shows.

A maintainer must not break: an action that does not fit its column is an error before anything is read; and a
masked column has the type that it had.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cynosure.iceberg.schema import Schema
from cynosure.iceberg.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    FixedType,
    NestedField,
    StructType,
    Type,
)
from cynosure.query.errors import NotReadable
from cynosure.query.scan.masks import SHORTEST_SALT, fixed_value
from cynosure.query.scan_task import Mask, MaskAction
from cynosure.query.spark.native_filter import literal, quote

if TYPE_CHECKING:
    from pyspark.sql import Column

_TIMES: Final = frozenset({DATE, TIMESTAMP, TIMESTAMPTZ})
_OTHERS: Final = r"[^0-9(),.\-@]"
_SHOWN: Final = 4
_TO_THE_END: Final = 2**31 - 1


class Masks:
    """What is done to the columns of one table."""

    def __init__(self, masks: tuple[Mask, ...], schema: Schema, salt: bytes) -> None:
        self._actions: Mapping[int, MaskAction] = {mask.field_id: mask.action for mask in masks}
        self._salt = salt
        for id_ in self._actions:
            place = schema.places.get(id_)
            # A field that this schema does not have is not shown at all.
            if place and not all(isinstance(each.type, StructType) for each in place.around):
                raise NotReadable("A mask inside a list or map cannot be applied", column=place.path)

    def show(self, field: NestedField) -> "Column":
        """A top-level column as it is shown, under its name."""
        from pyspark.sql.functions import col  # noqa: PLC0415 - an extra

        value = col(quote(field.name))
        shown = self._show(field, value)
        return value if shown is value else shown.alias(field.name)

    def _show(self, field: NestedField, value: "Column") -> "Column":
        from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

        action = self._actions.get(field.id)
        if action is not None:
            masked = self._mask(action, field, value)
            if masked is None:
                raise NotReadable(
                    "A mask does not fit the type of its column", column=field.name, action=action
                )
            return masked
        if not isinstance(field.type, StructType) or not self._is_inside(field.type):
            return value
        parts = [self._show(each, value.getField(each.name)).alias(each.name) for each in field.type.fields]
        # A struct that is NULL stays so, whatever is masked in it.
        return f.when(value.isNotNull(), f.struct(*parts))

    def _is_inside(self, type_: StructType) -> bool:
        return any(
            each.id in self._actions or (isinstance(each.type, StructType) and self._is_inside(each.type))
            for each in type_.fields
        )

    def _mask(self, action: MaskAction, field: NestedField, value: "Column") -> "Column | None":
        from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

        match action:
            case "mask-to-fixed-value":
                fixed = fixed_value(field.type)
                return None if fixed is None else f.expr(literal(_plain(fixed, field.type), field.type))
            case "replace-with-null":
                # NULL of the column's own type, whatever that is; no row is looked at.
                return None if field.is_required else f.when(f.lit(False), value)
            case "truncate-to-year" | "truncate-to-month" if field.type in _TIMES:
                return _truncate(action.removeprefix("truncate-to-"), field.type, value)
        return self._mask_text(action, value) if field.type == STRING else None

    def _mask_text(self, action: MaskAction, value: "Column") -> "Column | None":
        from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

        match action:
            case "mask-alphanum":
                return _redact(value)
            case "show-first-4":
                rest = _redact(f.substring(value, _SHOWN + 1, _TO_THE_END))
                return f.concat(f.substring(value, 1, _SHOWN), rest)
            case "show-last-4":
                rest = _redact(f.substring(value, f.lit(1), f.length(value) - f.lit(_SHOWN)))
                return f.concat(rest, f.right(value, f.lit(_SHOWN)))
            case "sha-256-global":
                return f.sha2(value.cast("binary"), 256)
            case "sha-256-query-local":
                if len(self._salt) < SHORTEST_SALT:
                    raise NotReadable("A statement's salt is too short to hash values with")
                salt = f.expr(literal(self._salt, BINARY))
                return f.sha2(f.concat(salt, value.cast("binary")), 256)
        return None


def _plain(value: Any, type_: Type) -> Any:
    return bytes(value) if isinstance(type_, FixedType) else value


def _truncate(unit: str, type_: Type, value: "Column") -> "Column":
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    if type_ == DATE:
        return f.trunc(value, unit)
    shown = f.date_trunc(unit, value)
    return shown.cast("timestamp_ntz") if type_ == TIMESTAMP else shown


def _redact(value: "Column") -> "Column":
    from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

    # Digits second: the letters that the first step writes must not be looked at again.
    return f.regexp_replace(f.regexp_replace(value, _OTHERS, "x"), "[0-9]", "n")
