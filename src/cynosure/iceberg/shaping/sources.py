"""Columns and transforms as requests name them: the column by its path, the transform by its text."""

import re
from typing import Final

from msgspec import Struct

from cynosure.common.errors import BadInput
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.transforms import IDENTITY, can_apply, find_fault
from cynosure.iceberg.types import StructType

_WITH_WIDTH: Final = re.compile(r"(bucket|truncate)\[(\d{1,10})\]", re.ASCII)
_OF_TIME: Final = frozenset({"year", "month", "day", "hour"})
_KNOWN: Final = _OF_TIME | {IDENTITY}


class Source(Struct, frozen=True):
    """A value computed from a column."""

    column_id: int
    column: str
    transform: str

    @property
    def kind(self) -> str:
        """What there can be one of for each column: two units of time would say the same twice."""
        return "time" if self.transform in _OF_TIME else self.transform

    def make_name(self) -> str:
        """What other implementations call the value when nobody says how."""
        if self.transform == IDENTITY:
            return self.column
        match = _WITH_WIDTH.fullmatch(self.transform)
        if match is None:
            return f"{self.column}_{self.transform}"
        return f"{self.column}_{'trunc' if match[1] == 'truncate' else match[1]}_{match[2]}"


def check_transform(transform: str, *, field: str) -> str:
    """The canonical text of a transform that this version knows; others are only carried, never chosen."""
    match = _WITH_WIDTH.fullmatch(transform)
    fault = find_fault(transform)
    if fault is None and match is not None:
        return f"{match[1]}[{int(match[2])}]"
    if fault is None and transform in _KNOWN:
        return transform
    raise BadInput(
        fault or "There is no such transform",
        field=field,
        fix="Send identity, year, month, day, hour, bucket[N] or truncate[N].",
        transform=transform[:100],
    )


def find_source(schema: Schema, column: str, transform: str, *, at: str) -> Source:
    """The column of this path, if it can be transformed so. `at` is the field's place in the request."""
    found = schema.ids_by_path.get(column)
    if found is None:
        raise InvalidUpdate(
            "The table has no such column",
            field=f"{at}.source",
            fix="Name a column of the current schema, with dots between a struct and its fields.",
            source=column,
        )
    place = schema.places[found]
    if any(not isinstance(outer.type, StructType) for outer in place.around):
        raise InvalidUpdate(
            "The column is inside a list or map, and has no single value for a row",
            field=f"{at}.source",
            fix="Name a column that is in structs only.",
            source=column,
        )
    if not can_apply(transform, place.field.type):
        raise InvalidUpdate(
            "The transform does not apply to the column's type",
            field=f"{at}.transform",
            fix="Choose a transform that the Iceberg specification allows for this type.",
            transform=transform,
            source=column,
            type=str(place.field.type),
        )
    return Source(found, column, transform)
