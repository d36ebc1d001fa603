"""What Iceberg's reader would read otherwise than our scan. It is read by our scan, on Spark all the same.

    a name mapping          files of other writers than Iceberg's. It takes any timestamp for microseconds, so
                            that rows pass a filter that they must not pass, and unsigned numbers for none
    equality deletes by     it keeps the last value of a file of deletes only: deleted rows come back
    `fixed`
    dates that became       it fails on files of before
    timestamps
    names of Iceberg's      it refuses the table
    own columns

A maintainer must not break: what is read natively has the very rows that our scan gives.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from cynosure.iceberg.schema import Schema, decode_schema
from cynosure.iceberg.types import DATE, TIMESTAMP, FixedType
from cynosure.query.engine import Relation
from cynosure.query.scan_task import ScanTask

_RESERVED: Final = frozenset(
    {
        "_change_ordinal",
        "_change_type",
        "_commit_snapshot_id",
        "_deleted",
        "_file",
        "_last_updated_sequence_number",
        "_partition",
        "_pos",
        "_row_id",
        "_spec_id",
    }
)
_FIRST_WITH_OLD_DATES: Final = 3
"""The format version that lets dates become timestamps."""


def find_native(relation: Relation) -> ScanTask | None:
    """One of a relation's tasks, if Iceberg's reader gives the same rows as our scan."""
    task = next(iter(relation.fragments), None)
    if relation.table is None or not isinstance(task, ScanTask) or task.name_mapping:
        return None
    schema = decode_schema(task.schema)
    if any(field.name in _RESERVED for field in schema.fields):
        return None
    tasks = (each for each in relation.fragments if isinstance(each, ScanTask))
    if _has_fixed_deletes(tasks, schema) or _has_old_dates(relation.table.metadata, schema):
        return None
    return task


def _has_fixed_deletes(tasks: Iterable[ScanTask], schema: Schema) -> bool:
    ids = {id_ for task in tasks for delete in task.deletes for id_ in delete.equality_ids}
    return any(id_ in ids and isinstance(place.field.type, FixedType) for id_, place in schema.places.items())


def _has_old_dates(metadata: dict[str, Any], schema: Schema) -> bool:
    if metadata.get("format-version", 1) < _FIRST_WITH_OLD_DATES:
        return False
    times = {id_ for id_, place in schema.places.items() if place.field.type == TIMESTAMP}
    schemas = metadata.get("schemas") or () if times else ()
    earlier = (decode_schema(msgspec.json.encode(each)).places for each in schemas)
    return any(each[id_].field.type == DATE for each in earlier for id_ in times & each.keys())
