"""Retention at commit: a commit that adds a snapshot also lets go of those that the table's settings expire.

For tables (or whole catalogs) that ask for it with `cynosure.retention.enabled`. Which snapshots go is
decided by Iceberg's own settings (`history.expire.*`, branches, tags): `iceberg.retention`.

Must not break: only metadata is changed here. The files of snapshots that were let go are named in the change
feed and are removed later, by a task that checks what is still in use.
"""

from collections.abc import Sequence
from typing import Final

from cynosure.catalog.opened import OpenCatalog
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.retention import retained_snapshots
from cynosure.iceberg.updates import TableUpdate, apply_updates
from cynosure.iceberg.updates.snapshots import AddSnapshot, RemoveSnapshotRef, RemoveSnapshots

ENABLED: Final = "cynosure.retention.enabled"


def apply_retention(
    catalog: OpenCatalog, metadata: TableMetadata, updates: Sequence[TableUpdate], *, now_ms: int
) -> tuple[TableMetadata, tuple[int, ...]]:
    """The metadata without expired snapshots and refs, and the snapshots that went."""
    asked = metadata.properties.get(ENABLED, catalog.entity.properties.get(ENABLED, "false"))
    if asked.lower() != "true" or not any(isinstance(update, AddSnapshot) for update in updates):
        return metadata, ()
    kept = retained_snapshots(metadata, now_ms)
    if not kept.expired_refs and not kept.expired_snapshot_ids:
        return metadata, ()
    removals: list[TableUpdate] = [RemoveSnapshotRef(ref_name=name) for name in kept.expired_refs]
    if kept.expired_snapshot_ids:
        removals.append(RemoveSnapshots(snapshot_ids=list(kept.expired_snapshot_ids)))
    trimmed = apply_updates(metadata, removals, now_ms=now_ms, limits=catalog.limits)
    return trimmed, kept.expired_snapshot_ids
