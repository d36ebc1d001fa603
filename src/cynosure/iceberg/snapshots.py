"""Snapshots, references to them, and the two logs.

A maintainer must not break: these structs are views. A snapshot's JSON stays as the client sent it, and is
never encoded again from here.
"""

from functools import partial
from typing import Final, Literal

import msgspec
from msgspec import Raw, Struct

from cynosure.iceberg.document import Document, Int32, Int64, compact_json, decode_json

MAIN: Final = "main"
"""The branch that `current-snapshot-id` follows."""


class Snapshot(Struct, frozen=True, rename="kebab"):
    """The state of a table at some time."""

    snapshot_id: Int64
    timestamp_ms: Int64
    parent_snapshot_id: Int64 | None = None
    sequence_number: Int64 = 0
    """Format version 1 has none; 0 then."""
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    """Format version 1 may list manifests here instead of in a file."""
    summary: dict[str, str] | None = None
    schema_id: Int32 | None = None
    first_row_id: Int64 | None = None
    added_rows: Int64 | None = None
    key_id: str | None = None
    """The encryption key of the manifest list."""


class SnapshotRef(Struct, frozen=True, rename="kebab"):
    """A branch or a tag."""

    snapshot_id: Int64
    type: Literal["branch", "tag"]
    min_snapshots_to_keep: Int32 | None = None
    max_snapshot_age_ms: Int64 | None = None
    max_ref_age_ms: Int64 | None = None


class SnapshotLogEntry(Struct, frozen=True, rename="kebab"):
    """When a snapshot became current."""

    timestamp_ms: Int64
    snapshot_id: Int64


class MetadataLogEntry(Struct, frozen=True, rename="kebab"):
    """A previous metadata file."""

    timestamp_ms: Int64
    metadata_file: str


def read_snapshot(raw: bytes | Raw, *, field: str = "snapshot") -> Document[Snapshot]:
    """A snapshot from JSON."""
    snapshot = Document(compact_json(raw, field=field), partial(decode_snapshot, field=field))
    _ = snapshot.value
    return snapshot


def decode_snapshot(json: bytes, *, field: str = "snapshot") -> Snapshot:
    """The typed view of a snapshot's JSON."""
    return decode_json(json, _SNAPSHOT, field=field)


def decode_ref(json: bytes, *, field: str = "ref") -> SnapshotRef:
    """The typed view of a reference's JSON."""
    return decode_json(json, _REF, field=field)


def decode_snapshot_log_entry(json: bytes, *, field: str = "snapshot-log") -> SnapshotLogEntry:
    """One entry of the snapshot log."""
    return decode_json(json, _SNAPSHOT_LOG_ENTRY, field=field)


def decode_metadata_log_entry(json: bytes, *, field: str = "metadata-log") -> MetadataLogEntry:
    """One entry of the metadata log."""
    return decode_json(json, _METADATA_LOG_ENTRY, field=field)


_SNAPSHOT: Final = msgspec.json.Decoder(Snapshot)
_REF: Final = msgspec.json.Decoder(SnapshotRef)
_SNAPSHOT_LOG_ENTRY: Final = msgspec.json.Decoder(SnapshotLogEntry)
_METADATA_LOG_ENTRY: Final = msgspec.json.Decoder(MetadataLogEntry)
