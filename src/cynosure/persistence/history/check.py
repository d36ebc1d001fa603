"""Proof that a store is whole: everything reachable is there, decodes, and hangs together.

Reports problems instead of stopping at the first, and changes nothing.
"""

from typing import Any

from msgspec import Struct

from cynosure.common.errors import CynosureError
from cynosure.persistence.commit.records import COMMIT, NO_COMMIT
from cynosure.persistence.reach import Pace, Reach
from cynosure.persistence.references import target_of
from cynosure.persistence.spi import ObjId, ObjKey, Reference
from cynosure.persistence.store import Store


class CheckReport(Struct, frozen=True):
    """What a check of one reference found."""

    reference: str
    commits: int
    objects: int
    problems: tuple[str, ...]


async def check_commit(store: Store, commit_id: ObjId, *, most: int = 100) -> list[str]:
    """Problems in the state at one commit, at most about `most`."""
    problems: list[str] = []
    reach = Reach(store, on_problem=_collect(problems, most))
    await reach.mark_commit(commit_id)
    return problems


async def check_reference(
    store: Store, ref: Reference, *, pace: Pace | None = None, most: int = 100
) -> CheckReport:
    """Check the head, the recent heads and the whole chain below the head."""
    problems: list[str] = []
    options: dict[str, Any] = {} if pace is None else {"pace": pace}
    reach = Reach(store, on_problem=_collect(problems, most), **options)
    commits = 0
    commit_id: ObjId | None = ref.head if ref.head != NO_COMMIT else None
    expected: int | None = None
    while commit_id is not None:
        record = await _find_record(store, commit_id, problems, is_head=commit_id == ref.head)
        if record is None:
            break
        if expected is not None and record.sequence != expected:
            problems.append(f"commit {commit_id}: sequence {record.sequence}, expected {expected}")
        await reach.mark_commit(commit_id)
        commits += 1
        expected = record.sequence - 1
        commit_id = record.parents[0] if record.parents else None
    for head in ref.recent:
        await reach.mark_commit(head)
    return CheckReport(
        reference=target_of(ref.key),
        commits=commits,
        objects=len(reach.marked),
        problems=tuple(problems[:most]),
    )


async def _find_record(store: Store, commit_id: ObjId, problems: list[str], *, is_head: bool) -> Any:
    try:
        commit = await store.find(COMMIT, commit_id)
    except CynosureError as error:
        problems.append(f"commit {commit_id}: {error}")
        return None
    if commit is None:
        if is_head:
            problems.append(f"commit {commit_id}: the head is not in the database")
        return None  # Below the head: collected history.
    return commit.record


def _collect(problems: list[str], most: int) -> Any:
    def note(key: ObjKey, error: CynosureError) -> None:
        if len(problems) < most:
            problems.append(f"{key.type} {key.id}: {error}")

    return note
