"""The chain of commits, newest first, and the state at any point of it.

Must not break: the chain ends where history was collected; that is an end, not damage.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from msgspec import Struct

from cynosure.common.errors import Expired, NotFound
from cynosure.persistence.commit.records import COMMIT, NO_COMMIT, CommitRecord
from cynosure.persistence.commit.view import State
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store


class LogEntry(Struct, frozen=True):
    """One commit of the chain."""

    id: ObjId
    record: CommitRecord


async def walk_log(store: Store, head: ObjId) -> AsyncGenerator[LogEntry, None]:
    """Commits from `head` back to the beginning, or to where history was collected."""
    if head == NO_COMMIT:
        return
    commit = await store.load(COMMIT, head)
    yield LogEntry(head, commit.record)
    while commit.record.parents:
        parent = commit.record.parents[0]
        found = await store.find(COMMIT, parent)
        if found is None:
            return
        commit = found
        yield LogEntry(parent, commit.record)


async def state_at_time(store: Store, head: ObjId, time_us: int) -> State:
    """The state that was current at `time_us`."""
    oldest_us, is_beginning = None, True
    async with aclosing(walk_log(store, head)) as entries:
        async for entry in entries:
            if entry.record.time_us <= time_us:
                return await State.load(store, entry.id)
            oldest_us, is_beginning = entry.record.time_us, not entry.record.parents
    if is_beginning:
        return await State.load(store, NO_COMMIT)
    raise Expired(
        "History does not reach back that far",
        fix="Choose a later time, or raise persistence.gc.history_retention for the future.",
        asked_us=time_us,
        oldest_us=oldest_us,
    )


async def state_at_commit(store: Store, head: ObjId, commit_id: ObjId) -> State:
    """The state at a commit of this chain; `NotFound` when it is not in the retained chain."""
    state, _ = await find_in_log(store, head, commit_id)
    return state


async def find_in_log(store: Store, head: ObjId, commit_id: ObjId) -> tuple[State, int | None]:
    """As `state_at_commit`, and when the next commit took its place; `None` for the head itself."""
    target = await store.find(COMMIT, commit_id)
    replaced_us: int | None = None
    if target is not None:
        async with aclosing(walk_log(store, head)) as entries:
            async for entry in entries:
                if entry.id == commit_id:
                    return State(store, commit_id, target), replaced_us
                if entry.record.sequence <= target.record.sequence:
                    break
                replaced_us = entry.record.time_us
    raise NotFound(
        "No such commit in the history of this reference",
        fix="Take a commit id from 'cynosure store log'.",
        commit=commit_id,
    )
