"""Which manifests an append makes one of, so that a table of many small appends is planned fast.

The rules are those of Iceberg's own writers, and so are the table properties that set them.

A maintainer must not break: merging changes where a file is listed and nothing else. Its status, sequence
numbers and row ids are what they were.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from cynosure.iceberg.appending.own_manifests import added_entry
from cynosure.iceberg.appending.writing import spec_types
from cynosure.iceberg.manifests.content_file import Entry, Status
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.properties import get_int

ENABLED: Final = "commit.manifest-merge.enabled"
MIN_COUNT: Final = "commit.manifest.min-count-to-merge"
TARGET_BYTES: Final = "commit.manifest.target-size-bytes"
_DEFAULT_COUNT: Final = 100
_DEFAULT_BYTES: Final = 8 * 1024 * 1024


def choose_merges(
    metadata: TableMetadata, new: Sequence[ManifestFile], kept: Sequence[ManifestFile]
) -> list[tuple[ManifestFile, ...]]:
    """All manifests of the next snapshot, in order; those of a group of several become one manifest.

    `new` are those that the append adds, `kept` those of the branch's head. Of these, the ones in which
    nothing is left but removed files are not in a next snapshot.
    """
    everything = [*new, *(one for one in kept if one.has_live_files)]
    if not new or metadata.properties.get(ENABLED, "true").lower() == "false":
        return [(one,) for one in everything]
    target = max(1, get_int(metadata.properties, TARGET_BYTES, _DEFAULT_BYTES))
    least = get_int(metadata.properties, MIN_COUNT, _DEFAULT_COUNT)
    groups: dict[int, list[ManifestFile]] = {}
    for one in everything:
        if one.content is ManifestContent.DATA:
            groups.setdefault(one.spec_id, []).append(one)
    arranged: list[tuple[ManifestFile, ...]] = []
    can_write = _writable_specs(metadata)
    for spec_id in sorted(groups, reverse=True):
        for group in _pack(groups[spec_id], target):
            is_newest = new[0] in group
            if spec_id not in can_write or (is_newest and len(group) < least) or _has_keys(group):
                arranged += [(one,) for one in group]
            else:
                arranged.append(tuple(group))
    return [*arranged, *((one,) for one in everything if one.content is not ManifestContent.DATA)]


def _pack(manifests: Sequence[ManifestFile], target: int) -> list[list[ManifestFile]]:
    # From the oldest on, so that the group which is not full is the newest, and grows the next time.
    groups: list[list[ManifestFile]] = []
    size = 0
    for one in reversed(manifests):
        if groups and size + one.length <= target:
            groups[-1].append(one)
            size += one.length
        else:
            groups.append([one])
            size = one.length
    return [group[::-1] for group in reversed(groups)]


def _has_keys(group: Sequence[ManifestFile]) -> bool:
    return any(one.key_metadata is not None for one in group)


def _writable_specs(metadata: TableMetadata) -> set[int]:
    specs = [one.value for one in metadata.partition_specs]
    return {spec.spec_id for spec in specs if None not in spec_types(metadata, spec)}


def merged_entries(manifests: Sequence[Manifest], snapshot_id: int) -> Iterator[Entry]:
    """The entries of the manifest that several become, for the snapshot that merges them.

    What older snapshots removed is history that readers of those snapshots find in the old manifests.
    """
    for manifest in manifests:
        for row in range(manifest.count):
            status = manifest.statuses[row]
            if status == Status.DELETED:
                continue
            if status == Status.ADDED and manifest.snapshot_ids[row] == snapshot_id:
                yield added_entry(manifest, row, snapshot_id)
            else:
                yield replace(manifest.entry(row), status=Status.EXISTING)
