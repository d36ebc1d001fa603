"""What follows from the restrictions of a principal for one version of a table.

Must not break: whatever does not fit the table as it is now hides the whole of it.
"""

from typing import Final

from msgspec import Struct

from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.policies.attached import Attached
from cynosure.catalog.restrictions.in_force import FilterInEffect, InEffect, MaskInEffect
from cynosure.catalog.restrictions.types import read_ids, read_mapping_id
from cynosure.common.errors import BadInput
from cynosure.iceberg.expressions.nodes import FALSE, TRUE, Expression
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.restrictions.actions import Action
from cynosure.iceberg.restrictions.binding import bind_filter, check_mapping, find_ids
from cynosure.iceberg.restrictions.masking import find_fields, find_places, mask_columns
from cynosure.iceberg.restrictions.resolving import both
from cynosure.iceberg.restrictions.wire import ReadRestrictions
from cynosure.iceberg.schema import Schema

_MOST_KEPT: Final = 1_024


class DoesNotFit(Struct, frozen=True):
    """A policy that cannot be applied to a table as it is."""

    policy: Identifier
    why: str


def find_restrictions(in_force: InEffect, metadata: TableMetadata) -> ReadRestrictions | DoesNotFit | None:
    """What a reader of this version has to apply; `None` when nothing of it is restricted."""
    if in_force.not_understood:
        return DoesNotFit(in_force.not_understood[0].path, "this version does not understand it")
    schema = metadata.current_schema()
    row_filter: Expression = TRUE
    for each in in_force.filters:
        bound = _find_unfit_mapping(each, in_force, schema) or _bind(each, schema)
        if isinstance(bound, DoesNotFit):
            return bound
        row_filter = both(row_filter, bound)
    projections = _mask(in_force.masks, schema, metadata)
    if isinstance(projections, DoesNotFit):
        return projections
    mapped_by: tuple[str, ...] = ()
    if row_filter != FALSE:
        mapped_by = tuple(str(each.attached.path) for each in in_force.filters if each.mapped is not None)
    found = ReadRestrictions(row_filter, projections, _name_policies(in_force, metadata), mapped_by)
    return found or None


class RecentlyEffective:
    """What was found out, for the readers and tables of late. Bounded by number; an entry is small."""

    def __init__(self) -> None:
        self._found: dict[object, ReadRestrictions | DoesNotFit | None] = {}

    def get(self, in_force: InEffect, table: ManagedTable) -> ReadRestrictions | DoesNotFit | None:
        """`find_restrictions`, remembered by all that it follows from."""
        policies = [
            (each.policy.id, each.policy.version, each.target_id, bytes(each.mapping.detail))
            for each in in_force.policies
        ]
        mapping_tables = [
            (path, None if each is None else (each.state.id, each.state_id))
            for path, each in in_force.mapping_tables.items()
        ]
        key = (table.state_id, in_force.asking.reader, *policies, *mapping_tables)
        if key not in self._found:
            if len(self._found) >= _MOST_KEPT:
                self._found.clear()
            self._found[key] = find_restrictions(in_force, table.metadata)
        return self._found[key]


def _find_unfit_mapping(each: FilterInEffect, in_force: InEffect, schema: Schema) -> DoesNotFit | None:
    """Whether the mapping table that a filter asks is not the one it was, or has not what is asked."""
    mapped = each.mapped
    if mapped is None:
        return None
    table = in_force.mapping_tables.get(mapped.table)
    if table is None:
        why = f"mapping table {mapped.table_name} is not there, or not imported yet"
        return DoesNotFit(each.attached.path, why)
    if table.state.id != read_mapping_id(each.attached.mapping.detail):
        return DoesNotFit(
            each.attached.path,
            f"mapping table {mapped.table_name} is not the one it was attached with; attach the policy again",
        )
    try:
        check_mapping(mapped, schema, table.metadata.current_schema(), field="filter")
    except BadInput as error:
        return _misfit(each.attached, error)
    return None


def _name_policies(in_force: InEffect, metadata: TableMetadata) -> tuple[str, ...]:
    """What restricts here: a mask only where the table has one of its columns, or once had."""
    schemas = [one.value for one in metadata.schemas]
    named = [each.attached.path for each in in_force.filters]
    named += [
        each.attached.path
        for each in in_force.masks
        if any(find_fields(name, schemas) for name in each.content.columns)
    ]
    return tuple(dict.fromkeys(str(path) for path in named))


def _bind(each: FilterInEffect, schema: Schema) -> Expression | DoesNotFit:
    field = "filter"
    try:
        ids = find_ids(each.content.mentioned.columns, schema, field=field)
        bound = bind_filter(each.filter, schema, field=field)
    except BadInput as error:
        return _misfit(each.attached, error)
    return _compare(each.attached, {name: (id_,) for name, id_ in ids.items()}) or bound.expression


def _mask(
    masks: tuple[MaskInEffect, ...], schema: Schema, metadata: TableMetadata
) -> dict[int, Action] | DoesNotFit:
    for each in masks:
        now = {
            name: tuple(place.field.id for place in find_places(name, schema))
            for name in each.content.columns
        }
        misfit = _compare(each.attached, now)
        if misfit is not None:
            return misfit
    older = [one.value for one in reversed(metadata.schemas) if one.value is not schema]
    found: dict[int, Action] = {}
    try:
        # Each by itself first, so that it is known which one does not fit.
        for each in masks:
            found = mask_columns([each.content.columns], schema, older, field="columns")
        if len(masks) > 1:
            found = mask_columns([each.content.columns for each in masks], schema, older, field="columns")
    except BadInput as error:
        return _misfit(each.attached, error)
    return found


def _compare(attached: Attached, now: dict[str, tuple[int, ...]]) -> DoesNotFit | None:
    """Whether columns are the fields that they were when the policy was attached to the table."""
    kept = read_ids(attached.mapping.detail)
    if kept is None:
        return None
    for name, ids in now.items():
        if kept.get(name) != ids:
            return DoesNotFit(attached.path, f"column {name} is not the one it was attached to")
    return None


def _misfit(attached: Attached, error: BadInput) -> DoesNotFit:
    column = error.details.get("column")
    return DoesNotFit(attached.path, error.message if column is None else f"{error.message}: {column}")
