"""Another sort order: fields by column name, transform and direction; the id chosen by the table."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.shaping.sources import check_transform, find_source
from cynosure.iceberg.sorting import UNSORTED_ID
from cynosure.iceberg.transforms import IDENTITY
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.updates.draft import LAST_ADDED
from cynosure.iceberg.updates.shape import AddSortOrder, SetDefaultSortOrder


class NewSortField(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True, omit_defaults=True):
    """A value to sort rows by."""

    source: str
    """The column, with dots between the names of structs and their fields."""
    transform: str = IDENTITY
    """`identity`, `year`, `month`, `day`, `hour`, `bucket[N]` or `truncate[N]`."""
    direction: Literal["asc", "desc"] = "asc"
    null_order: Literal["nulls-first", "nulls-last"] | None = None
    """Left out: first when ascending, last when descending."""


def read_sort_fields(fields: Sequence[NewSortField], *, field: str = "fields") -> list[NewSortField]:
    """Refuse what no table could get; the fields with nothing left open."""
    return [
        NewSortField(
            one.source,
            check_transform(one.transform, field=f"{field}[{at}].transform"),
            one.direction,
            one.null_order or ("nulls-first" if one.direction == "asc" else "nulls-last"),
        )
        for at, one in enumerate(fields)
    ]


def set_sort_order(
    base: TableMetadata, fields: Sequence[NewSortField], *, field: str = "fields"
) -> list[TableUpdate]:
    """What makes this the order of this state of the table. No fields: not sorted."""
    schema = base.current_schema()
    seen: set[tuple[int, str]] = set()
    made: list[dict[str, Any]] = []
    for at, one in enumerate(fields):
        source = find_source(schema, one.source, one.transform, at=f"{field}[{at}]")
        key = (source.column_id, source.transform)
        if key in seen:
            raise InvalidUpdate(
                "Rows are sorted by this value already, so the field would never decide",
                field=f"{field}[{at}]",
                fix="Leave it out.",
                source=one.source,
            )
        seen.add(key)
        made.append(
            {
                "transform": source.transform,
                "source-id": source.column_id,
                "direction": one.direction,
                "null-order": one.null_order,
            }
        )
    order = Raw(msgspec.json.encode({"order-id": UNSORTED_ID, "fields": made}))
    return [AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED)]
