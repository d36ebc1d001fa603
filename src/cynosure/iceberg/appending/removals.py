"""Removing snapshots beside appends.

Whoever expires snapshots asserts where every branch is, so each append that comes first would make it fail
and begin again. An append takes no snapshot away, so the assertion is met as long as the branch has only gone
forward since.

A maintainer must not break: a snapshot that a branch or tag names is never removed with the branch or tag
standing; whoever wants that removes the branch or tag as well, in the same commit.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from cynosure.iceberg.errors import RequirementFailed
from cynosure.iceberg.metadata.table import TableMetadata
from cynosure.iceberg.requirements import AssertRefSnapshotId, TableRequirement
from cynosure.iceberg.updates import TableUpdate
from cynosure.iceberg.updates.snapshots import (
    RemovePartitionStatistics,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetSnapshotRef,
)

_REMOVALS: Final = (RemoveSnapshots, RemoveStatistics, RemovePartitionStatistics)
_MOST_STEPS: Final = 10_000
"""How far back an earlier head of a branch is looked for."""


def relax(
    metadata: TableMetadata, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
) -> Sequence[TableRequirement]:
    """The requirements, less those that an append cannot have broken for a commit that removes snapshots."""
    if not updates or not all(isinstance(one, _REMOVALS) for one in updates):
        return requirements
    passed: dict[str, frozenset[int]] = {}
    return [one for one in requirements if not _went_forward(metadata, one, passed)]


def _went_forward(
    metadata: TableMetadata, requirement: TableRequirement, passed: dict[str, frozenset[int]]
) -> bool:
    """`passed` keeps where branches have been: a request may assert thousands of things about one."""
    if not isinstance(requirement, AssertRefSnapshotId) or requirement.snapshot_id is None:
        return False
    found = metadata.find_ref(requirement.ref)
    if found is None or found.type != "branch":
        return False
    if requirement.snapshot_id != found.snapshot_id and requirement.ref not in passed:
        passed[requirement.ref] = frozenset(_ancestors(metadata, found.snapshot_id))
    return requirement.snapshot_id in passed.get(requirement.ref, (found.snapshot_id,))


def _ancestors(metadata: TableMetadata, snapshot_id: int) -> Iterator[int]:
    at: int | None = snapshot_id
    for _ in range(_MOST_STEPS):
        if at is None:
            return
        yield at
        snapshot = metadata.find_snapshot(at)
        at = None if snapshot is None else snapshot.parent_snapshot_id


def check_removals(metadata: TableMetadata, updates: Sequence[TableUpdate]) -> None:
    """Refuse to remove a snapshot that a branch or tag names which the commit leaves where it is."""
    doomed = {id_ for one in updates if isinstance(one, RemoveSnapshots) for id_ in one.snapshot_ids}
    if not doomed:
        return
    needed = {name: (ref.value.type, ref.value.snapshot_id) for name, ref in metadata.refs.items()}
    for one in updates:
        if isinstance(one, SetSnapshotRef):
            needed[one.ref_name] = (one.type, one.snapshot_id)
        elif isinstance(one, RemoveSnapshotRef):
            needed.pop(one.ref_name, None)
    for name, (type_, snapshot_id) in needed.items():
        if snapshot_id in doomed:
            raise RequirementFailed(
                f"snapshot {snapshot_id} cannot be removed, {type_} {name} needs it",
                fix=f"Remove the {type_} in the same commit, or keep the snapshot.",
            )
