"""Which standard commits are appends that may be placed on a newer state of the table.

A maintainer must not break: the rules here are a list of what is known to be safe. A commit that says
anything more than "these files too" is not an append, and its client must see the conflict.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cynosure.iceberg.document import Document
from cynosure.iceberg.metadata.table import MIN_VERSION_OF_ROW_LINEAGE, TableMetadata
from cynosure.iceberg.requirements import AssertRefSnapshotId, AssertTableUuid, TableRequirement
from cynosure.iceberg.snapshots import Snapshot, read_snapshot
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.updates.snapshots import AddSnapshot, SetSnapshotRef

APPEND: Final = "append"
OFFSETS: Final = ("kafka.connect.", "flink.", "spark.sql.streaming.", "redpanda.")
"""How the summary's entries begin in which engines note how far they have read. Such an engine looks there
before it tries again, and would add the same rows twice if somebody else tried for it."""
PUBLISHED: Final = ("source-snapshot-id", "published-wap-id", "wap.id")
"""Entries of a snapshot that publishes another one: the client checks that nobody else has published it."""
_REMOVED: Final = ("deleted-", "removed-", "added-delete-", "added-position-", "added-equality-", "added-dvs")
"""How the counts of what no append does begin."""


class AppendCommit(Struct, frozen=True):
    """A commit of a client that adds files to a branch, and does nothing else."""

    snapshot: Document[Snapshot]
    ref: SetSnapshotRef
    expected: int | None
    """Where the client says that the branch is; None when it says that there is none, or nothing."""
    others: tuple[TableRequirement, ...]
    """The requirements that hold for a commit that is moved, too."""
    is_asserted: bool = False
    """Whether the client says where the branch is."""

    @property
    def branch(self) -> str:
        """The branch that gets the files."""
        return self.ref.ref_name


def read_append(
    requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
) -> AppendCommit | None:
    """The append that a commit is; None for every other one."""
    if len(updates) != 2:
        return None
    added, moved = updates
    if not isinstance(added, AddSnapshot) or not isinstance(moved, SetSnapshotRef) or moved.type != "branch":
        return None
    asserted = [one for one in requirements if isinstance(one, AssertRefSnapshotId)]
    others = tuple(one for one in requirements if isinstance(one, AssertTableUuid))
    if len(asserted) + len(others) != len(requirements) or len(asserted) > 1:
        return None
    if asserted and asserted[0].ref != moved.ref_name:
        return None
    snapshot = read_snapshot(added.snapshot)
    if snapshot.value.snapshot_id != moved.snapshot_id or not _only_adds(snapshot.value.summary or {}):
        return None
    expected = asserted[0].snapshot_id if asserted else None
    return AppendCommit(snapshot, moved, expected, others, is_asserted=bool(asserted))


def find_refusal(append: AppendCommit, metadata: TableMetadata) -> str | None:
    """Why an append cannot be placed on this state of the table; None when it can."""
    snapshot = append.snapshot.value
    if snapshot.snapshot_id in metadata.snapshots:
        # The client tries again what has been done, or took an id that is not its own.
        return "the table has a snapshot with this id already"
    if snapshot.manifest_list is None or snapshot.key_id is not None:
        return "the snapshot has no manifest list that the catalog can read"
    if snapshot.schema_id is not None and metadata.find_schema(snapshot.schema_id) is None:
        return "the table does not have the schema of the snapshot any more"
    if (metadata.format_version > 1) != (snapshot.sequence_number > 0):
        return "the snapshot was made for another format version"
    if metadata.format_version >= MIN_VERSION_OF_ROW_LINEAGE and snapshot.first_row_id is None:
        return "the snapshot was made for another format version"
    return _find_refusal_of_branch(append, metadata)


def _find_refusal_of_branch(append: AppendCommit, metadata: TableMetadata) -> str | None:
    wanted, found = append.ref, metadata.find_ref(append.branch)
    if found is None:
        if append.expected is not None:
            return "the branch is gone"
        if append.snapshot.value.parent_snapshot_id is not None:
            # A new branch begins at the snapshot that the client chose, not at one that we choose.
            return "the branch is new and begins at a snapshot of the client's choice"
        if wanted.min_snapshots_to_keep or wanted.max_snapshot_age_ms or wanted.max_ref_age_ms:
            return "the branch is new and has settings"
        return None
    if found.type != "branch":
        return "there is a tag of that name"
    if append.is_asserted and append.snapshot.value.parent_snapshot_id != append.expected:
        # Then the branch was to get the files of that parent, too, wherever it comes from.
        return "the snapshot was made from another state than the commit asserts"
    pairs = (
        (wanted.min_snapshots_to_keep, found.min_snapshots_to_keep),
        (wanted.max_snapshot_age_ms, found.max_snapshot_age_ms),
        (wanted.max_ref_age_ms, found.max_ref_age_ms),
    )
    if any(mine is not None and mine != theirs for mine, theirs in pairs):
        return "the commit changes how long the branch keeps snapshots"
    return None


def _only_adds(summary: dict[str, str]) -> bool:
    if summary.get("operation") != APPEND or any(key in summary for key in PUBLISHED):
        return False
    # A count that is no number says something we do not understand.
    return not any(
        key.startswith(OFFSETS) or (key.startswith(_REMOVED) and value.strip() != "0")
        for key, value in summary.items()
    )
