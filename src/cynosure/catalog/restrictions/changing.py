"""Changes of a table's columns that would take a restriction away from what it is about.

A column that a policy names cannot be renamed, dropped, made anew or given a type that the policy does not
fit, by whoever it is, as long as the policy is attached. Otherwise a mask would end up on an empty column of
the same name, and its data in another.

Must not break: a table on which a policy did not fit before can be changed; else it could not be corrected.
"""

from collections.abc import Iterable

from cynosure.catalog.errors import RestrictedColumn
from cynosure.catalog.policies.attached import Attached
from cynosure.catalog.restrictions.types import find_current_ids, read_content
from cynosure.common.errors import BadInput
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.restrictions.binding import find_ids
from cynosure.iceberg.restrictions.contents import ColumnMask, RowFilter
from cynosure.iceberg.restrictions.masking import Masks, check_masks, find_fields, find_places
from cynosure.iceberg.schema import Schema


def is_about_columns(before: TableMetadata, after: TableMetadata) -> bool:
    """Whether anything about columns is different."""
    return after.schemas is not before.schemas or after.current_schema_id != before.current_schema_id


def check_columns(attached: Iterable[Attached], before: TableMetadata, after: TableMetadata) -> None:
    """Refuse a change that one of these policies would not survive."""
    for each in attached:
        content = read_content(each.policy.type, each.policy.content)
        if isinstance(content, RowFilter):
            _check_filter(each, content, before.current_schema(), after.current_schema())
        elif isinstance(content, ColumnMask):
            for name in content.columns:
                _check_mask(each, content, name, before, after)


def _check_filter(each: Attached, content: RowFilter, before: Schema, after: Schema) -> None:
    for name in content.mentioned.columns:
        try:
            was = find_ids([name], before, field="filter")
        except BadInput:
            continue
        try:
            still = find_ids([name], after, field="filter") == was
        except BadInput:
            still = False
        if not still:
            raise RestrictedColumn(str(each.path), column=name)
    if _fits(content, before) and not _fits(content, after):
        raise RestrictedColumn(str(each.path), column=", ".join(content.mentioned.columns))


def _check_mask(
    each: Attached, content: ColumnMask, name: str, before: TableMetadata, after: TableMetadata
) -> None:
    was, now = before.current_schema(), after.current_schema()
    old_ids, new_ids = ({place.field.id for place in find_places(name, one)} for one in (was, now))
    # Fields that once had the name are masked as well; so they stay, as long as they are there at all.
    ever_before, ever_after = (
        find_fields(name, [one.value for one in metadata.schemas]) for metadata in (before, after)
    )
    lost = (ever_before & now.places.keys()) - ever_after
    if (old_ids and old_ids != new_ids) or lost:
        raise RestrictedColumn(str(each.path), column=name)
    mask = {name: content.columns[name]}
    if old_ids and _fits_mask(mask, was) and not _fits_mask(mask, now):
        raise RestrictedColumn(str(each.path), column=name)


def _fits(content: RowFilter, schema: Schema) -> bool:
    try:
        find_current_ids(content, schema)
    except BadInput:
        return False
    return True


def _fits_mask(mask: Masks, schema: Schema) -> bool:
    try:
        check_masks(mask, schema, field="columns")
    except BadInput:
        return False
    return True
