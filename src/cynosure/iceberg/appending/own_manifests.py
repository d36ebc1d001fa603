"""What a client's snapshot itself adds, and whether its manifests can be used as they are.

Clients that merge manifests copy the table's older entries into their own. Those stay where they are: only
entries that the snapshot added are carried to a newer state.

A manifest is looked at with its numbers still open: read it with the line that `opened` makes. Read with the
client's own line, numbers that the file has and numbers that it inherits could not be told apart.

A maintainer must not break: a number that a client wrote for an older state never reaches a newer one. With
an old sequence number, deletes of other commits would apply to rows that came after them.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate, islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cynosure.iceberg.manifests.columns import Column, Constant
from cynosure.iceberg.manifests.content_file import Entry, Status
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestContent, ManifestFile
from cynosure.iceberg.manifests.packing import pack_ints
from cynosure.iceberg.manifests.write_manifest import UNASSIGNED

_OPEN_ROW_ID: Final = 2**62
"""Stands for a first row id that a list has yet to set. No table has numbered so many rows."""


class NotAnAppend(Struct, frozen=True):
    """Why a snapshot does something else than it says, so that it stays where its client put it."""

    reason: str


def find_own(
    listed: Sequence[ManifestFile], snapshot_id: int, *, spec_ids: Collection[int]
) -> tuple[ManifestFile, ...] | NotAnAppend:
    """The data manifests that a snapshot added, from its list. `spec_ids` are the specs that the table has.

    Clients merge manifests of delete files too when they append. Such a manifest has nothing that is new, and
    the deletes stay where the table has them.
    """
    own = []
    for one in listed:
        if one.added_snapshot_id != snapshot_id:
            continue
        if one.deleted_files or one.deleted_rows:
            return NotAnAppend("the snapshot removes files")
        if one.content is not ManifestContent.DATA:
            if one.added_files != 0:
                return NotAnAppend("the snapshot adds delete files")
            continue
        if one.key_metadata is not None:
            return NotAnAppend("a manifest of the snapshot is encrypted")
        if one.spec_id not in spec_ids:
            return NotAnAppend("the table does not have the partition spec of a manifest any more")
        if one.added_files is None or one.added_rows is None:
            return NotAnAppend("the manifest list does not say what a manifest adds")
        own.append(one)
    if len({one.path for one in own}) < len(own):
        return NotAnAppend("the snapshot lists a manifest twice")
    return tuple(own)


def find_difference(
    listed: Sequence[ManifestFile], parent: Sequence[ManifestFile], snapshot_id: int
) -> NotAnAppend | None:
    """Whether a snapshot lists anything but its parent's files and its own; None when it does not.

    A client that left files of the parent out, or took in manifests from elsewhere, would get something else
    than it sent if only its own manifests were carried.
    """
    known = {one.path for one in parent}
    kept = {one.path for one in listed if one.added_snapshot_id != snapshot_id}
    if not kept <= known:
        return NotAnAppend("the snapshot lists a manifest that is neither its own nor its parent's")
    for content in ManifestContent:
        gone = [one for one in parent if one.path not in kept and one.content is content]
        own = [one for one in listed if one.added_snapshot_id == snapshot_id and one.content is content]
        # A list of version 1 may not say how many files there are.
        live = [count for one in gone for count in (one.added_files, one.existing_files)]
        copied = [one.existing_files for one in own]
        if None not in (*live, *copied) and sum(filter(None, live)) != sum(filter(None, copied)):
            return NotAnAppend("the snapshot leaves out files of its parent")
    return None


def opened(listed: ManifestFile, *, format_version: int) -> ManifestFile:
    """The line with which a manifest is read so that its open numbers can be seen."""
    if format_version == 1:
        # Nothing is open: there are no numbers.
        return replace(listed, sequence_number=0, min_sequence_number=0, first_row_id=None)
    return replace(carried(listed), first_row_id=_OPEN_ROW_ID)


def carried(listed: ManifestFile) -> ManifestFile:
    """The line of a manifest that can be used as it is, for a list that sets its numbers."""
    return replace(listed, sequence_number=UNASSIGNED, min_sequence_number=UNASSIGNED, first_row_id=None)


def numbered(manifest: Manifest, listed: ManifestFile) -> Manifest:
    """A manifest that is used as it is, as it reads with its line in the new list."""
    sequence_number = Constant(listed.sequence_number, manifest.count)
    first_row_ids: Column[int] = Constant(None, manifest.count)
    if listed.first_row_id is not None:
        ids = accumulate(manifest.record_counts, initial=listed.first_row_id)
        first_row_ids = pack_ints(list(islice(ids, manifest.count)))
    return replace(
        manifest,
        sequence_numbers=sequence_number,
        file_sequence_numbers=sequence_number,
        first_row_ids=first_row_ids,
    )


def find_fault(manifest: Manifest, snapshot_id: int) -> NotAnAppend | None:
    """What a manifest, read with `opened`, has that no append has."""
    if manifest.is_deletes:
        return NotAnAppend("the snapshot adds delete files")
    found = _count(manifest.statuses)
    if found[Status.DELETED]:
        return NotAnAppend("the snapshot removes files")
    if found[Status.ADDED] != sum(_is_added(manifest, snapshot_id)):
        return NotAnAppend("a manifest has files that another snapshot added")
    return None


def needs_rewrite(
    manifest: Manifest, snapshot_id: int, *, format_version: int, listed: ManifestFile | None = None
) -> bool:
    """Whether a manifest, read with `opened`, must be written again to go into a list of this version.

    It must when it has entries that are not new in this snapshot, or numbers of its own, or when its line in
    the client's list counts its rows wrongly: row ids and totals are made from these counts.
    """
    if listed is not None and (listed.added_files, listed.added_rows) != (
        manifest.count,
        sum(filter(None, manifest.record_counts)),
    ):
        return True
    if manifest.format_version > format_version or manifest.format_version == 1 < format_version:
        return True
    if not all(_is_added(manifest, snapshot_id)):
        return True
    if format_version == 1:
        return False
    if _count(manifest.sequence_numbers)[UNASSIGNED] != manifest.count:
        return True
    if _count(manifest.file_sequence_numbers)[UNASSIGNED] != manifest.count:
        return True
    next_id = _OPEN_ROW_ID
    for first, records in zip(manifest.first_row_ids, manifest.record_counts, strict=True):
        if first != next_id:
            return True
        next_id += records or 0
    return False


def added_entries(manifest: Manifest, snapshot_id: int) -> list[Entry]:
    """The files that a snapshot added, with open numbers: for a manifest that is written again."""
    added = _is_added(manifest, snapshot_id)
    return [added_entry(manifest, row, snapshot_id) for row, is_added in enumerate(added) if is_added]


def added_entry(manifest: Manifest, row: int, snapshot_id: int) -> Entry:
    """One file as the snapshot that adds it writes it."""
    return Entry(Status.ADDED, snapshot_id, None, None, replace(manifest.file(row), first_row_id=None))


def _is_added(manifest: Manifest, snapshot_id: int) -> list[bool]:
    return [
        status == Status.ADDED and id_ == snapshot_id
        for status, id_ in zip(manifest.statuses, manifest.snapshot_ids, strict=True)
    ]


def _count(column: Column[int]) -> Counter[int | None]:
    if isinstance(column, Constant):
        return Counter({column.value: len(column)})
    return Counter(column)
