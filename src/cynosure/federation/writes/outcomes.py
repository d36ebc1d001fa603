"""Whether a change of a table is in what a remote has.

Must not break: `AGAIN` only where a second application is impossible: a snapshot has an id, and no table
takes the same one twice; or the remote has still the very version that the change was for.
"""

from msgspec import Struct, json

from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import CynosureError
from cynosure.federation.mirror.seen import is_same
from cynosure.federation.remote import RemoteTable
from cynosure.federation.writes.write import AGAIN, Again, Before
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.updates import apply_updates
from cynosure.iceberg.updates.basics import AssignUuid
from cynosure.iceberg.updates.snapshots import AddSnapshot


class _SnapshotId(Struct, rename="kebab"):
    snapshot_id: int


_DECODER = json.Decoder(_SnapshotId)


def judge_commit(change: TableChange, now: RemoteTable, before: Before) -> bool | Again | None:
    """Whether the change of an existing table was carried out: `True`, not (`AGAIN`), or `None`: unknown."""
    if before.uuid and now.uuid != before.uuid:
        return None
    wanted = _list_snapshots(change)
    if wanted:
        return all(now.metadata.snapshots.find(each) is not None for each in wanted) or AGAIN
    if before.uuid and is_same(before.tag, now.tag):
        return AGAIN
    return True if _changes_nothing(change, now.metadata) else None


def judge_creation(change: TableChange, now: RemoteTable) -> bool | None:
    """Whether a table that is there was created by this change; `None` when that cannot be told."""
    wanted = {each.uuid.lower() for each in change.updates if isinstance(each, AssignUuid)}
    return True if now.uuid in wanted else None


def _list_snapshots(change: TableChange) -> set[int]:
    return {
        _DECODER.decode(bytes(each.snapshot)).snapshot_id
        for each in change.updates
        if isinstance(each, AddSnapshot)
    }


def _changes_nothing(change: TableChange, metadata: TableMetadata) -> bool:
    """Whether the table is already as the change wants it."""
    try:
        return apply_updates(metadata, change.updates, now_ms=metadata.last_updated_ms) is metadata
    except CynosureError:
        return False
