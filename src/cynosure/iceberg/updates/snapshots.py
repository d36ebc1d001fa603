"""Updates of snapshots, branches, tags and statistics.

A maintainer must not break: nothing here decodes a snapshot that the request does not bring. Snapshots are
added, found and dropped by id.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import Document, Int32, Int64, compact_json
from cynosure.iceberg.errors import InvalidUpdate, StaleSnapshot
from cynosure.iceberg.fragments import Fragments
from cynosure.iceberg.metadata.check import CLOCK_TOLERANCE_MS
from cynosure.iceberg.metadata.table import MIN_VERSION_OF_ROW_LINEAGE
from cynosure.iceberg.snapshots import (
    MAIN,
    Snapshot,
    SnapshotRef,
    decode_ref,
    decode_snapshot_log_entry,
    read_snapshot,
)
from cynosure.iceberg.statistics import decode_partition_statistics, decode_statistics
from cynosure.iceberg.updates.draft import Draft


class AddSnapshot(Struct, frozen=True, tag_field="action", tag="add-snapshot"):
    """Add a snapshot, without moving a branch to it."""

    snapshot: Raw


def apply_add_snapshot(draft: Draft, update: AddSnapshot) -> None:
    """Checks that the snapshot was made for this state of the table."""
    document = read_snapshot(update.snapshot)
    snapshot = document.value
    _check_new_snapshot(draft, snapshot)
    draft.snapshots = draft.snapshots.append(snapshot.snapshot_id, document.json)
    draft.added_snapshots[snapshot.snapshot_id] = snapshot
    draft.updated_ms = snapshot.timestamp_ms
    draft.last_sequence_number = max(draft.last_sequence_number, snapshot.sequence_number)
    if draft.format_version >= MIN_VERSION_OF_ROW_LINEAGE:
        draft.next_row_id = _next_row_id(draft, snapshot)
    draft.change()


def _check_new_snapshot(draft: Draft, snapshot: Snapshot) -> None:
    if not (draft.schemas and draft.partition_specs and draft.sort_orders):
        raise InvalidUpdate(
            "A snapshot needs a schema, a partition spec and a sort order",
            field="action",
            fix="Send add-schema, add-spec and add-sort-order before add-snapshot.",
        )
    if snapshot.snapshot_id < 0:
        # -1 is how "no current snapshot" is written.
        raise InvalidUpdate(
            "A snapshot id is not negative",
            field="snapshot.snapshot-id",
            fix="Choose another id.",
            id=snapshot.snapshot_id,
        )
    if snapshot.snapshot_id in draft.snapshots:
        raise InvalidUpdate(
            "The table has a snapshot with this id already",
            field="snapshot.snapshot-id",
            fix="Choose another id.",
            id=snapshot.snapshot_id,
        )
    if len(draft.snapshots) >= draft.limits.max_snapshots:
        raise InvalidUpdate(
            "The table has too many snapshots",
            field="snapshot",
            fix="Expire snapshots first.",
            limit=draft.limits.max_snapshots,
        )
    if snapshot.manifest_list is None and snapshot.manifests is None:
        raise InvalidUpdate(
            "A snapshot needs a manifest list", field="snapshot.manifest-list", fix="Send its location."
        )
    number, last = snapshot.sequence_number, draft.last_sequence_number
    if draft.format_version == 1:
        if number != 0:
            raise InvalidUpdate(
                "Format version 1 has no sequence numbers",
                field="snapshot.sequence-number",
                fix="Leave it out.",
                sequence_number=number,
            )
    elif number <= last and snapshot.parent_snapshot_id is not None:
        raise StaleSnapshot(
            f"Cannot add snapshot with sequence number {number} older than last sequence number {last}",
            fix="Refresh the table and try again.",
        )
    _check_time(draft, snapshot.timestamp_ms, field="snapshot.timestamp-ms")


def _check_time(draft: Draft, time_ms: int, *, field: str) -> None:
    latest = 0 if draft.base is None else draft.base.last_updated_ms
    last = draft.snapshot_log.last()
    if last is not None:
        latest = max(latest, decode_snapshot_log_entry(last[1]).timestamp_ms)
    if time_ms < latest - CLOCK_TOLERANCE_MS:
        raise InvalidUpdate(
            "The snapshot is older than the table's last change",
            field=field,
            fix="Set the clock of the writing machine.",
            timestamp_ms=time_ms,
            last_updated_ms=latest,
        )


def _next_row_id(draft: Draft, snapshot: Snapshot) -> int:
    first, added = snapshot.first_row_id, snapshot.added_rows
    if first is None or added is None or added < 0 or first + added >= 2**63:
        raise InvalidUpdate(
            "A snapshot of format version 3 says which row ids it assigns",
            field="snapshot.first-row-id",
            fix="Send first-row-id and added-rows.",
        )
    if first < draft.next_row_id:
        raise StaleSnapshot(
            f"Cannot add a snapshot, first-row-id is behind table next-row-id: {first} < {draft.next_row_id}",
            fix="Refresh the table and try again.",
        )
    # Beyond every id the snapshot assigned, also when it left a gap.
    return first + added


class SetSnapshotRef(Struct, frozen=True, rename="kebab", tag_field="action", tag="set-snapshot-ref"):
    """Create a branch or tag, or move an existing one."""

    ref_name: str
    type: Literal["branch", "tag"]
    snapshot_id: Int64
    min_snapshots_to_keep: Int32 | None = None
    max_snapshot_age_ms: Int64 | None = None
    max_ref_age_ms: Int64 | None = None


def apply_set_snapshot_ref(draft: Draft, update: SetSnapshotRef) -> None:
    """Moving main also moves the current snapshot and is logged."""
    name, snapshot_id = update.ref_name, update.snapshot_id
    ref = _checked_ref(update)
    existing = draft.refs.get(name)
    if existing is not None and existing.value == ref:
        return
    added = draft.added_snapshots.get(snapshot_id)
    if added is not None:
        draft.updated_ms = added.timestamp_ms
    elif snapshot_id not in draft.snapshots:
        raise InvalidUpdate(
            "The snapshot does not exist",
            field="snapshot-id",
            fix="Send add-snapshot first, or name a snapshot of the table.",
            ref=name,
            snapshot_id=snapshot_id,
        )
    if name == MAIN:
        _move_main(draft, snapshot_id, is_added=added is not None)
    draft.refs = {**draft.refs, name: _ref_document(ref, existing)}
    draft.change()


def _checked_ref(update: SetSnapshotRef) -> SnapshotRef:
    problem = field = None
    if not update.ref_name:
        problem, field = "A branch or tag needs a name", "ref-name"
    elif update.ref_name == MAIN and update.type != "branch":
        problem, field = "main is a branch", "type"
    elif update.type == "tag" and update.min_snapshots_to_keep is not None:
        problem, field = "A tag keeps exactly one snapshot", "min-snapshots-to-keep"
    elif update.type == "tag" and update.max_snapshot_age_ms is not None:
        problem, field = "A tag keeps exactly one snapshot", "max-snapshot-age-ms"
    for name in ("min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"):
        value = getattr(update, name)
        if value is not None and value <= 0:
            problem, field = "The value must be greater than 0", name.replace("_", "-")
    if problem is not None and field is not None:
        raise InvalidUpdate(problem, field=field, fix="Correct it or leave it out.", ref=update.ref_name)
    return SnapshotRef(
        snapshot_id=update.snapshot_id,
        type=update.type,
        min_snapshots_to_keep=update.min_snapshots_to_keep,
        max_snapshot_age_ms=update.max_snapshot_age_ms,
        max_ref_age_ms=update.max_ref_age_ms,
    )


def _move_main(draft: Draft, snapshot_id: int, *, is_added: bool) -> None:
    if draft.updated_ms is None:
        draft.updated_ms = draft.now_ms
    _check_time(draft, draft.updated_ms, field="snapshot-id")
    draft.current_snapshot_id = snapshot_id
    entry = b'{"timestamp-ms":%d,"snapshot-id":%d}' % (draft.updated_ms, snapshot_id)
    draft.snapshot_log = draft.snapshot_log.append(snapshot_id, entry)
    if is_added:
        draft.main_heads.append(snapshot_id)


_REF_FIELDS: Final = tuple(name.replace("_", "-") for name in SnapshotRef.__struct_fields__)


def _ref_document(ref: SnapshotRef, existing: Document[SnapshotRef] | None) -> Document[SnapshotRef]:
    fields: dict[str, Any] = {}
    if existing is not None:
        # A client that moves a branch does not know what a newer one noted on it.
        fields = msgspec.json.decode(existing.json)
        for name in _REF_FIELDS:
            fields.pop(name, None)
    known = {
        wire: value
        for wire, value in zip(_REF_FIELDS, msgspec.structs.astuple(ref), strict=True)
        if value is not None
    }
    return Document(msgspec.json.encode({**known, **fields}), decode_ref)


class RemoveSnapshotRef(Struct, frozen=True, rename="kebab", tag_field="action", tag="remove-snapshot-ref"):
    """Remove a branch or tag; its snapshots stay."""

    ref_name: str


def apply_remove_snapshot_ref(draft: Draft, update: RemoveSnapshotRef) -> None:
    """A table without main has no current snapshot."""
    if update.ref_name not in draft.refs:
        return
    draft.refs = {name: ref for name, ref in draft.refs.items() if name != update.ref_name}
    if update.ref_name == MAIN:
        draft.current_snapshot_id = None
    draft.change()


class RemoveSnapshots(Struct, frozen=True, rename="kebab", tag_field="action", tag="remove-snapshots"):
    """Remove snapshots with their statistics, and branches and tags that name them."""

    snapshot_ids: list[Int64]


def apply_remove_snapshots(draft: Draft, update: RemoveSnapshots) -> None:
    """Ids that the table does not have are ignored: another request may have removed them."""
    doomed = {*update.snapshot_ids}
    snapshots = draft.snapshots.without(doomed)
    if snapshots is draft.snapshots:
        return
    draft.snapshots = snapshots
    draft.statistics = draft.statistics.without(doomed)
    draft.partition_statistics = draft.partition_statistics.without(doomed)
    draft.refs = {name: ref for name, ref in draft.refs.items() if ref.value.snapshot_id not in doomed}
    if MAIN not in draft.refs:
        draft.current_snapshot_id = None
    draft.added_snapshots = {id_: one for id_, one in draft.added_snapshots.items() if id_ not in doomed}
    draft.removed_snapshots = True
    draft.change()


class SetStatistics(Struct, frozen=True, rename="kebab", tag_field="action", tag="set-statistics"):
    """Name the statistics file of a snapshot."""

    statistics: Raw
    snapshot_id: Int64 | None = None
    """Sent by old clients; the statistics say it too."""


def apply_set_statistics(draft: Draft, update: SetStatistics) -> None:
    """Replaces what the snapshot had."""
    json = compact_json(update.statistics, field="statistics")
    snapshot_id = decode_statistics(json).snapshot_id
    if update.snapshot_id not in (None, snapshot_id):
        raise InvalidUpdate(
            "The statistics are about another snapshot",
            field="snapshot-id",
            fix="Leave snapshot-id out.",
            snapshot_id=snapshot_id,
        )
    draft.statistics = _replaced(draft.statistics, snapshot_id, json)
    draft.change()


class RemoveStatistics(Struct, frozen=True, rename="kebab", tag_field="action", tag="remove-statistics"):
    """Forget the statistics file of a snapshot."""

    snapshot_id: Int64


def apply_remove_statistics(draft: Draft, update: RemoveStatistics) -> None:
    """Statistics that are not there are ignored."""
    kept = draft.statistics.without((update.snapshot_id,))
    if kept is not draft.statistics:
        draft.statistics = kept
        draft.change()


class SetPartitionStatistics(
    Struct, frozen=True, rename="kebab", tag_field="action", tag="set-partition-statistics"
):
    """Name the partition statistics file of a snapshot."""

    partition_statistics: Raw


def apply_set_partition_statistics(draft: Draft, update: SetPartitionStatistics) -> None:
    """Replaces what the snapshot had."""
    json = compact_json(update.partition_statistics, field="partition-statistics")
    snapshot_id = decode_partition_statistics(json).snapshot_id
    draft.partition_statistics = _replaced(draft.partition_statistics, snapshot_id, json)
    draft.change()


class RemovePartitionStatistics(
    Struct, frozen=True, rename="kebab", tag_field="action", tag="remove-partition-statistics"
):
    """Forget the partition statistics file of a snapshot."""

    snapshot_id: Int64


def apply_remove_partition_statistics(draft: Draft, update: RemovePartitionStatistics) -> None:
    """Statistics that are not there are ignored."""
    kept = draft.partition_statistics.without((update.snapshot_id,))
    if kept is not draft.partition_statistics:
        draft.partition_statistics = kept
        draft.change()


def _replaced(fragments: Fragments, key: int, json: bytes) -> Fragments:
    return fragments.without((key,)).append(key, json)


def finished_snapshot_log(draft: Draft) -> Fragments:
    """The log as it stays after the request.

    Heads of main that the request itself replaced never were visible, so they go. History before a snapshot
    that is gone goes too: with a gap in it, time travel would find a snapshot that was not current then.
    """
    log = draft.snapshot_log
    passed = {head for head in draft.main_heads if head != draft.current_snapshot_id}
    if draft.removed_snapshots:
        keys = [*log.keys()]
        missing = {*keys} - {*draft.snapshots.keys()}
        if missing:
            gap = next(at for at in range(len(keys) - 1, -1, -1) if keys[at] in missing)
            log = log.keep_last(len(keys) - gap - 1)
    return log.without(passed) if passed else log
