"""Updates of schemas, partition specs and sort orders.

A maintainer must not break: the table chooses ids. What equals something the table has gets the id of that,
so that repeating an update changes nothing; all else gets the next free id.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Raw, Struct

from cynosure.iceberg.document import Document, Int32
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.partitioning import PartitionSpec, check_spec, read_spec, same_spec, with_field_ids
from cynosure.iceberg.schema import check_schema, read_schema, same_schema
from cynosure.iceberg.sorting import (
    FIRST_SORTED_ID,
    UNSORTED_ID,
    check_order,
    read_order,
    same_order,
)
from cynosure.iceberg.updates.draft import LAST_ADDED, Draft

MAX_FIELD_ID: Final = 2**31 - 201
"""Larger ids are those of metadata columns. A table that reached it could never get another column."""


class AddSchema(Struct, frozen=True, rename="kebab", tag_field="action", tag="add-schema"):
    """Add a schema, without making it current."""

    schema: Raw
    last_column_id: Int32 | None = None
    """Sent by old clients; the table keeps count itself."""


def apply_add_schema(draft: Draft, update: AddSchema) -> None:
    """Also raises `last-column-id`, so that ids of dropped columns are never used again."""
    schema = read_schema(update.schema)
    check_schema(schema.value, format_version=draft.format_version, limits=draft.limits)
    if schema.value.highest_field_id > MAX_FIELD_ID:
        raise InvalidUpdate(
            "The field id is reserved for metadata columns",
            field="schema.fields",
            fix="Number new columns from last-column-id on.",
            id=schema.value.highest_field_id,
        )
    last_column_id = max(draft.last_column_id, schema.value.highest_field_id)
    if last_column_id != draft.last_column_id:
        draft.last_column_id = last_column_id
        draft.change()
    for one in draft.schemas:
        if same_schema(one, schema):
            draft.last_added_schema_id = one.value.schema_id
            return
    id_ = max((one.value.schema_id for one in draft.schemas), default=-1) + 1
    # The id is written even when it is the right one by default: readers need it in the list.
    draft.schemas = (*draft.schemas, schema.with_fields({"schema-id": id_}))
    draft.last_added_schema_id = id_
    draft.change_shape()


class SetCurrentSchema(Struct, frozen=True, rename="kebab", tag_field="action", tag="set-current-schema"):
    """Choose the schema that new data is written with."""

    schema_id: Int32


def apply_set_current_schema(draft: Draft, update: SetCurrentSchema) -> None:
    """-1 is the schema added last by this request."""
    id_ = _resolve(update.schema_id, draft.last_added_schema_id, field="schema-id")
    _check_known(id_, [one.value.schema_id for one in draft.schemas], field="schema-id")
    if id_ != draft.current_schema_id:
        draft.current_schema_id = id_
        draft.change_shape()


class RemoveSchemas(Struct, frozen=True, rename="kebab", tag_field="action", tag="remove-schemas"):
    """Remove schemas that nothing uses any more."""

    schema_ids: list[Int32]


def apply_remove_schemas(draft: Draft, update: RemoveSchemas) -> None:
    """The current schema stays."""
    doomed = _check_spared(update.schema_ids, draft.current_schema_id, field="schema-ids")
    kept = tuple([one for one in draft.schemas if one.value.schema_id not in doomed])
    if len(kept) != len(draft.schemas):
        draft.schemas = kept
        draft.change()


class AddSpec(Struct, frozen=True, tag_field="action", tag="add-spec"):
    """Add a partition spec, without making it the default."""

    spec: Raw


def apply_add_spec(draft: Draft, update: AddSpec) -> None:
    """Fields without an id get the one of the same field in another spec, else a new one."""
    spec = read_spec(update.spec)
    for one in draft.partition_specs:
        if same_spec(one.value, spec.value):
            draft.last_added_spec_id = one.value.spec_id
            return
    if draft.format_version == 1:
        spec = with_field_ids(spec)
    else:
        spec = with_field_ids(spec, known=_known_fields(draft.partition_specs), last=draft.last_partition_id)
    check_spec(spec.value, draft.current_schema(), format_version=draft.format_version)
    id_ = max((one.value.spec_id for one in draft.partition_specs), default=-1) + 1
    draft.partition_specs = (*draft.partition_specs, spec.with_fields({"spec-id": id_}))
    draft.last_partition_id = max(draft.last_partition_id, spec.value.highest_field_id)
    draft.last_added_spec_id = id_
    draft.change_shape()


def _known_fields(specs: Iterable[Document[PartitionSpec]]) -> dict[tuple[tuple[int, ...], str], int]:
    known: dict[tuple[tuple[int, ...], str], int] = {}
    for spec in specs:
        for field in spec.value.fields:
            key = (field.sources, field.transform)
            known[key] = max(known.get(key, 0), field.field_id or 0)
    return known


class SetDefaultSpec(Struct, frozen=True, rename="kebab", tag_field="action", tag="set-default-spec"):
    """Choose the spec that new data is written with."""

    spec_id: Int32


def apply_set_default_spec(draft: Draft, update: SetDefaultSpec) -> None:
    """-1 is the spec added last by this request."""
    id_ = _resolve(update.spec_id, draft.last_added_spec_id, field="spec-id")
    _check_known(id_, [one.value.spec_id for one in draft.partition_specs], field="spec-id")
    if id_ != draft.default_spec_id:
        draft.default_spec_id = id_
        draft.change_shape()


class RemovePartitionSpecs(
    Struct, frozen=True, rename="kebab", tag_field="action", tag="remove-partition-specs"
):
    """Remove specs that no file uses any more."""

    spec_ids: list[Int32]


def apply_remove_partition_specs(draft: Draft, update: RemovePartitionSpecs) -> None:
    """The default spec stays."""
    doomed = _check_spared(update.spec_ids, draft.default_spec_id, field="spec-ids")
    kept = tuple([one for one in draft.partition_specs if one.value.spec_id not in doomed])
    if len(kept) != len(draft.partition_specs):
        draft.partition_specs = kept
        draft.change()


class AddSortOrder(Struct, frozen=True, rename="kebab", tag_field="action", tag="add-sort-order"):
    """Add a sort order, without making it the default."""

    sort_order: Raw


def apply_add_sort_order(draft: Draft, update: AddSortOrder) -> None:
    """An order without fields is always number 0."""
    order = read_order(update.sort_order)
    for one in draft.sort_orders:
        if same_order(one.value, order.value):
            draft.last_added_order_id = one.value.order_id
            return
    check_order(order.value, draft.current_schema())
    if order.value.fields:
        highest = max((one.value.order_id for one in draft.sort_orders), default=UNSORTED_ID)
        id_ = max(highest + 1, FIRST_SORTED_ID)
    else:
        id_ = UNSORTED_ID
    draft.sort_orders = (*draft.sort_orders, order.with_fields({"order-id": id_}))
    draft.last_added_order_id = id_
    draft.change_shape()


class SetDefaultSortOrder(
    Struct, frozen=True, rename="kebab", tag_field="action", tag="set-default-sort-order"
):
    """Choose the order that new data is written in."""

    sort_order_id: Int32


def apply_set_default_sort_order(draft: Draft, update: SetDefaultSortOrder) -> None:
    """-1 is the order added last by this request."""
    id_ = _resolve(update.sort_order_id, draft.last_added_order_id, field="sort-order-id")
    _check_known(id_, [one.value.order_id for one in draft.sort_orders], field="sort-order-id")
    if id_ != draft.default_sort_order_id:
        draft.default_sort_order_id = id_
        draft.change_shape()


def _resolve(id_: int, last_added: int | None, *, field: str) -> int:
    if id_ != LAST_ADDED:
        return id_
    if last_added is None:
        raise InvalidUpdate(
            "-1 means what this request added last, and it added none",
            field=field,
            fix="Send the add update first, or name an id.",
        )
    return last_added


def _check_known(id_: int, known: list[int], *, field: str) -> None:
    if id_ not in known:
        raise InvalidUpdate("The table has none with this id", field=field, fix="Name one it has.", id=id_)


def _check_spared(doomed: list[int], spared: int | None, *, field: str) -> set[int]:
    if spared in doomed:
        raise InvalidUpdate(
            "What is in use cannot be removed", field=field, fix="Make another one current first.", id=spared
        )
    return {*doomed}
