"""Sort orders: typed values and the rules that bind one to a schema.

A maintainer must not break: order 0 is always "unsorted" and has no fields.
"""

from functools import partial
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import Document, Int32, compact_json, decode_json
from cynosure.iceberg.errors import InvalidMetadata
from cynosure.iceberg.schema import Schema
from cynosure.iceberg.transforms import VOID, can_apply, find_fault

UNSORTED_ID: Final = 0
FIRST_SORTED_ID: Final = 1
UNSORTED_JSON: Final = b'{"order-id":0,"fields":[]}'


class SortField(Struct, frozen=True, rename="kebab"):
    """One value by which rows are sorted."""

    transform: str
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]
    source_id: Int32 | None = None
    source_ids: tuple[Int32, ...] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """The columns the value is computed from."""
        return self.source_ids if self.source_id is None else (self.source_id,)


class SortOrder(Struct, frozen=True, rename="kebab"):
    """How writers sort rows."""

    fields: tuple[SortField, ...]
    order_id: Int32 = UNSORTED_ID


def read_order(raw: bytes | Raw, *, field: str = "sort-order") -> Document[SortOrder]:
    """An order from JSON, checked for everything that does not depend on a schema."""
    order = Document(compact_json(raw, field=field), partial(decode_order, field=field))
    for at, one in enumerate(order.value.fields):
        path = f"{field}.fields[{at}]"
        if not one.sources:
            raise InvalidMetadata(
                "A sort field needs a source", field=f"{path}.source-id", fix="Send the column's id."
            )
        if fault := find_fault(one.transform):
            raise InvalidMetadata(
                fault, field=f"{path}.transform", fix="Send e.g. bucket[16].", transform=one.transform
            )
    return order


def decode_order(json: bytes, *, field: str = "sort-order") -> SortOrder:
    """The typed view of an order's JSON."""
    return decode_json(json, _ORDER, field=field)


def check_order(order: SortOrder, schema: Schema, *, field: str = "sort-order") -> None:
    """Refuse an order whose columns are missing or cannot be sorted so."""
    for at, one in enumerate(order.fields):
        path = f"{field}.fields[{at}]"
        for source in one.sources:
            type_ = schema.find_type(source)
            if one.transform == VOID:
                continue
            if type_ is None:
                raise InvalidMetadata(
                    "The source column of a sort field does not exist",
                    field=f"{path}.source-id",
                    fix="Name a column of the current schema.",
                    source_id=source,
                )
            if not can_apply(one.transform, type_):
                raise InvalidMetadata(
                    "The transform does not apply to the column's type",
                    field=f"{path}.transform",
                    fix="Choose a transform that the Iceberg specification allows for this type.",
                    transform=one.transform,
                    type=str(type_),
                )


def same_order(one: SortOrder, other: SortOrder) -> bool:
    """Whether two orders sort in the same way."""
    return one.fields == other.fields


_ORDER: Final = msgspec.json.Decoder(SortOrder)
