"""The updates of one request, applied in order.

A maintainer must not break: applying is pure. It changes neither the base nor anything shared with it, so a
request can be prepared again on another base after a lost race.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from cynosure.common.errors import BadInput
from cynosure.iceberg.document import compact_json
from cynosure.iceberg.errors import InvalidUpdate
from cynosure.iceberg.fragments import EMPTY
from cynosure.iceberg.limits import DEFAULT_LIMITS, SizeLimits
from cynosure.iceberg.metadata.check import check_default_ids
from cynosure.iceberg.metadata.table import (
    DEFAULT_FORMAT_VERSION,
    MAX_FORMAT_VERSION,
    MIN_VERSION_OF_ROW_LINEAGE,
    TableMetadata,
)
from cynosure.iceberg.updates import basics, shape, snapshots
from cynosure.iceberg.updates.draft import Draft

T = TypeVar("T")

TableUpdate = (
    basics.AssignUuid
    | basics.UpgradeFormatVersion
    | basics.SetLocation
    | basics.SetProperties
    | basics.RemoveProperties
    | basics.AddEncryptionKey
    | basics.RemoveEncryptionKey
    | shape.AddSchema
    | shape.SetCurrentSchema
    | shape.RemoveSchemas
    | shape.AddSpec
    | shape.SetDefaultSpec
    | shape.RemovePartitionSpecs
    | shape.AddSortOrder
    | shape.SetDefaultSortOrder
    | snapshots.AddSnapshot
    | snapshots.SetSnapshotRef
    | snapshots.RemoveSnapshotRef
    | snapshots.RemoveSnapshots
    | snapshots.SetStatistics
    | snapshots.RemoveStatistics
    | snapshots.SetPartitionStatistics
    | snapshots.RemovePartitionStatistics
)
"""Every update of a table that the protocol knows, told apart by `action`."""

_APPLY: Final[Mapping[type, Callable[[Draft, Any], None]]] = {
    basics.AssignUuid: basics.apply_assign_uuid,
    basics.UpgradeFormatVersion: basics.apply_upgrade_format_version,
    basics.SetLocation: basics.apply_set_location,
    basics.SetProperties: basics.apply_set_properties,
    basics.RemoveProperties: basics.apply_remove_properties,
    basics.AddEncryptionKey: basics.apply_add_encryption_key,
    basics.RemoveEncryptionKey: basics.apply_remove_encryption_key,
    shape.AddSchema: shape.apply_add_schema,
    shape.SetCurrentSchema: shape.apply_set_current_schema,
    shape.RemoveSchemas: shape.apply_remove_schemas,
    shape.AddSpec: shape.apply_add_spec,
    shape.SetDefaultSpec: shape.apply_set_default_spec,
    shape.RemovePartitionSpecs: shape.apply_remove_partition_specs,
    shape.AddSortOrder: shape.apply_add_sort_order,
    shape.SetDefaultSortOrder: shape.apply_set_default_sort_order,
    snapshots.AddSnapshot: snapshots.apply_add_snapshot,
    snapshots.SetSnapshotRef: snapshots.apply_set_snapshot_ref,
    snapshots.RemoveSnapshotRef: snapshots.apply_remove_snapshot_ref,
    snapshots.RemoveSnapshots: snapshots.apply_remove_snapshots,
    snapshots.SetStatistics: snapshots.apply_set_statistics,
    snapshots.RemoveStatistics: snapshots.apply_remove_statistics,
    snapshots.SetPartitionStatistics: snapshots.apply_set_partition_statistics,
    snapshots.RemovePartitionStatistics: snapshots.apply_remove_partition_statistics,
}


def decode_updates(json: bytes | Raw) -> list[TableUpdate]:
    """The updates of a request body, naming the position of the one that cannot be read."""
    body = compact_json(json, field="updates")
    try:
        return _UPDATES.decode(body)
    except msgspec.ValidationError as error:
        place = re.search(r" - at `\$(.*)`$", str(error))
        field = f"updates{place[1]}" if place else "updates"
        raise InvalidUpdate(
            "The update is unknown" if field.endswith(".action") else "The update is not valid",
            field=field,
            fix="Send updates as the REST catalog specification defines them.",
            problem=re.sub(r" - at `.*`$", "", str(error))[:200],
        ) from error


def apply_updates(
    base: TableMetadata | None,
    updates: Sequence[TableUpdate],
    *,
    now_ms: int,
    limits: SizeLimits = DEFAULT_LIMITS,
) -> TableMetadata:
    """The table after all updates; `base` itself when they change nothing.

    Without a base the updates create the table, and must bring all its parts.
    """
    version = _first_version(updates) if base is None else base.format_version
    draft = Draft(base, format_version=version, now_ms=now_ms, limits=limits)
    for at, update in enumerate(updates):
        try:
            _APPLY[type(update)](draft, update)
        except BadInput as error:
            raise _placed(error, f"updates[{at}].{error.field}") from error
    if base is not None and not draft.is_changed:
        return base
    metadata = _finish(draft)
    if draft.has_new_shape:
        try:
            check_default_ids(metadata)
        except BadInput as error:
            raise _placed(error, "updates") from error
    return metadata


def _placed(error: BadInput, field: str) -> InvalidUpdate:
    details = {name: value for name, value in error.details.items() if name != "field"}
    return InvalidUpdate(error.message, field=field, fix=error.fix, **details)


def _first_version(updates: Sequence[TableUpdate]) -> int:
    # The first upgrade says what a new table starts as, which may be older than our default. Whether it is a
    # version at all is checked when it is applied.
    for update in updates:
        if isinstance(update, basics.UpgradeFormatVersion):
            return min(update.format_version, MAX_FORMAT_VERSION)
    return DEFAULT_FORMAT_VERSION


def _finish(draft: Draft) -> TableMetadata:
    return TableMetadata(
        format_version=draft.format_version,
        table_uuid=_given(draft.table_uuid, "assign-uuid"),
        location=_given(draft.location, "set-location"),
        last_sequence_number=draft.last_sequence_number,
        last_updated_ms=draft.now_ms if draft.updated_ms is None else draft.updated_ms,
        last_column_id=draft.last_column_id,
        schemas=draft.schemas,
        current_schema_id=_given(draft.current_schema_id, "set-current-schema"),
        partition_specs=draft.partition_specs,
        default_spec_id=_given(draft.default_spec_id, "set-default-spec"),
        last_partition_id=draft.last_partition_id,
        sort_orders=draft.sort_orders,
        default_sort_order_id=_given(draft.default_sort_order_id, "set-default-sort-order"),
        properties=draft.properties,
        current_snapshot_id=draft.current_snapshot_id,
        snapshots=draft.snapshots,
        snapshot_log=snapshots.finished_snapshot_log(draft),
        metadata_log=EMPTY if draft.base is None else draft.base.metadata_log,
        refs=draft.refs,
        statistics=draft.statistics,
        partition_statistics=draft.partition_statistics,
        encryption_keys=draft.encryption_keys,
        next_row_id=draft.next_row_id if draft.format_version >= MIN_VERSION_OF_ROW_LINEAGE else None,
        unknown=draft.unknown,
    )


def _given(value: T | None, action: str) -> T:
    if value is None:
        raise InvalidUpdate(
            "The table to create lacks a part", field="updates", fix="Add the missing update.", missing=action
        )
    return value


_UPDATES: Final = msgspec.json.Decoder(list[TableUpdate])
