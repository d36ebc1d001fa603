"""The snapshot of an append, and its list of manifests.

A maintainer must not break: everything that depends on where in the table's history a snapshot stands
(parent, sequence number, row ids, time, totals) is set here and nowhere else, so that the same files can be
placed on another state by asking again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.appending.request import APPEND
from cynosure.iceberg.appending.writing import find_codec
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.manifests.write_manifest import write_manifest_list
from cynosure.iceberg.metadata.table import MIN_VERSION_OF_ROW_LINEAGE, TableMetadata
from cynosure.iceberg.snapshots import Snapshot, decode_snapshot, decode_snapshot_log_entry
from cynosure.iceberg.updates.snapshots import AddSnapshot, SetSnapshotRef

_TOTALS: Final = {
    "total-data-files": "added-data-files",
    "total-records": "added-records",
    "total-files-size": "added-files-size",
    "total-delete-files": None,
    "total-position-deletes": None,
    "total-equality-deletes": None,
}
"""The totals of a summary, and what an append adds to each."""
_SET_HERE: Final = (
    "parent-snapshot-id",
    "sequence-number",
    "first-row-id",
    "added-rows",
    "key-id",
    "manifests",
)
"""Fields of a client's snapshot that are about the state which it was made for."""


class NewSnapshot(Struct, frozen=True, kw_only=True):
    """A snapshot that adds files, ready to be committed once its list is stored."""

    snapshot_id: int
    json: bytes
    list_path: str
    list_data: bytes
    listed: tuple[ManifestFile, ...]
    """The manifests as the list has them."""
    sequence_number: int
    """0 in format version 1."""
    added_files: int
    added_rows: int

    def as_updates(self, metadata: TableMetadata, branch: str) -> list[AddSnapshot | SetSnapshotRef]:
        """The updates that put it on a branch, whose settings stay."""
        ref = metadata.find_ref(branch)
        return [
            AddSnapshot(Raw(self.json)),
            SetSnapshotRef(
                ref_name=branch,
                type="branch",
                snapshot_id=self.snapshot_id,
                min_snapshots_to_keep=None if ref is None else ref.min_snapshots_to_keep,
                max_snapshot_age_ms=None if ref is None else ref.max_snapshot_age_ms,
                max_ref_age_ms=None if ref is None else ref.max_ref_age_ms,
            ),
        ]


def make_snapshot(
    metadata: TableMetadata,
    *,
    branch: str,
    snapshot_id: int,
    own: Sequence[ManifestFile],
    kept: Sequence[ManifestFile],
    list_path: str,
    summary: Mapping[str, str],
    template: bytes | None = None,
    added_size_bytes: int | None = None,
    now_ms: int,
) -> NewSnapshot:
    """The snapshot that adds `own` to a branch.

    `kept` are the other manifests that it lists: those of the branch's head, or what they were merged into.
    `template` is the client's snapshot: fields and entries of its summary stay that do not depend on the
    state of the table. Without a size, `added-files-size` is what client or caller say.
    """
    parent = find_head(metadata, branch)
    is_numbered = metadata.format_version > 1
    sequence_number = metadata.last_sequence_number + 1 if is_numbered else 0
    next_row_id = metadata.next_row_id or 0
    has_lineage = metadata.format_version >= MIN_VERSION_OF_ROW_LINEAGE
    data, listed, next_after = write_manifest_list(
        [*own, *kept],
        format_version=metadata.format_version,
        snapshot_id=snapshot_id,
        parent_snapshot_id=None if parent is None else parent.snapshot_id,
        sequence_number=sequence_number,
        next_row_id=next_row_id if has_lineage else None,
        codec=find_codec(metadata.properties),
    )
    added_files = sum(one.added_files or 0 for one in own)
    added_rows = sum(one.added_rows or 0 for one in own)
    client = None if template is None else decode_snapshot(template)
    entries = {**((client.summary if client else None) or {}), **summary, "operation": APPEND}
    entries |= {"added-data-files": str(added_files), "added-records": str(added_rows)}
    if added_size_bytes is not None:
        entries["added-files-size"] = str(added_size_bytes)
    fields: dict[str, Any] = {} if template is None else _FIELDS.decode(template)
    fields = {name: value for name, value in fields.items() if name not in _SET_HERE}
    fields |= {
        "snapshot-id": snapshot_id,
        "timestamp-ms": max(now_ms if client is None else client.timestamp_ms, _last_ms(metadata)),
        "manifest-list": list_path,
        "summary": _with_totals(entries, parent, len(own), len(kept)),
    }
    if client is None or client.schema_id is None:
        fields["schema-id"] = metadata.current_schema_id
    if parent is not None:
        fields["parent-snapshot-id"] = parent.snapshot_id
    if is_numbered:
        fields["sequence-number"] = sequence_number
    if has_lineage:
        fields |= {"first-row-id": next_row_id, "added-rows": (next_after or 0) - next_row_id}
    return NewSnapshot(
        snapshot_id=snapshot_id,
        json=msgspec.json.encode(fields),
        list_path=list_path,
        list_data=data,
        listed=listed,
        sequence_number=sequence_number,
        added_files=added_files,
        added_rows=added_rows,
    )


def find_head(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that a branch is at; None when there is no such branch."""
    ref = metadata.find_ref(branch)
    return None if ref is None else metadata.find_snapshot(ref.snapshot_id)


def _last_ms(metadata: TableMetadata) -> int:
    last = metadata.snapshot_log.last()
    logged = 0 if last is None else decode_snapshot_log_entry(last[1]).timestamp_ms
    return max(metadata.last_updated_ms, logged)


def _with_totals(
    entries: Mapping[str, str], parent: Snapshot | None, created: int, kept: int
) -> dict[str, str]:
    found = {name: value for name, value in entries.items() if name not in _TOTALS}
    before = dict.fromkeys(_TOTALS, "0") if parent is None else parent.summary or {}
    for total, added in _TOTALS.items():
        last, more = _read_count(before.get(total)), _read_count(found.get(added) if added else "0")
        # A total that the parent does not have could only be told by reading the whole table.
        if last is not None and more is not None:
            found[total] = str(last + more)
    counts = {"manifests-created": created, "manifests-kept": kept, "manifests-replaced": 0}
    return {**found, **{name: str(count) for name, count in counts.items() if name in found}}


def _read_count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else None


_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
