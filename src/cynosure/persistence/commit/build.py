"""One commit object out of a draft: indexes applied, keys recorded, rows encoded.

Must not break: everything a commit points to is in `Built.objects` or was reachable before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cynosure.persistence.commit.recent_heads import add_recent
from cynosure.persistence.commit.recent_keys import add_keys
from cynosure.persistence.commit.records import (
    COMMIT,
    NO_COMMIT,
    PARENTS_KEPT,
    Change,
    Commit,
    CommitRecord,
    Holds,
    RequestRecord,
    StoredIndex,
)
from cynosure.persistence.commit.request import Joined, Prepared, Request
from cynosure.persistence.commit.view import Draft, State
from cynosure.persistence.ids import IdSource
from cynosure.persistence.index import IndexLimits
from cynosure.persistence.index_nodes import INDEX_NODE
from cynosure.persistence.spi import Reference
from cynosure.persistence.store import Encoded, NewObject


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """How the commit loop behaves; from `persistence.settings`."""

    index: IndexLimits
    deadline_s: float = 60.0
    key_lifetime_s: float = 35 * 60.0
    """Idempotency lifetime plus buffer."""
    recent_heads: int = 24
    group_requests: int = 256
    group_bytes: int = 4 * 1024 * 1024
    inline_prepare_s: float = 0.05
    """How long a request may be prepared inside a group before it leaves it."""


@dataclass(frozen=True, slots=True)
class Built:
    """A commit ready to be swapped in."""

    ref: Reference
    state: State
    objects: list[Encoded]
    """The commit itself, last, and the index nodes and runs of keys it needs."""


async def build_commit(
    draft: Draft,
    ref: Reference,
    members: Sequence[tuple[Request[Any], Prepared[Any]]],
    *,
    ids: IdSource,
    now_us: int,
    limits: CommitLimits,
    indexes: Mapping[str, Holds],
) -> Built:
    """Work a draft into a commit on top of `ref`. `indexes` says what each index of it holds."""
    parent = draft.state.commit
    commit_id = ids.next()
    time_us = max(now_us, parent.record.time_us + 1)
    nodes = draft.state.nodes
    new_nodes: list[NewObject] = []

    stored = dict(parent.record.indexes)
    decoded = parent.decoded()
    for name, changes in draft.changes.items():
        index = parent.index(name)  # Empty when an older version made the reference without it.
        applied = await index.apply(nodes, changes, new_id=ids.next, limits=limits.index)
        new_nodes += [NewObject(INDEX_NODE, node_id, node) for node_id, node in applied.nodes]
        decoded[name] = applied.index
        stored[name] = StoredIndex(holds=indexes[name], data=applied.index.encode())

    requests = tuple(_records(members))
    key_log, key_runs = await add_keys(
        parent,
        draft.state.store,
        [record.key_hash for record in requests if record.key_hash],
        commit_id=commit_id,
        now_us=time_us,
        lifetime_us=int(limits.key_lifetime_s * 1_000_000),
        new_id=ids.next,
    )

    record = CommitRecord(
        sequence=parent.record.sequence + 1,
        time_us=time_us,
        parents=(ref.head, *parent.record.parents[: PARENTS_KEPT - 1]) if ref.head != NO_COMMIT else (),
        indexes=stored,
        requests=requests,
        key_log=key_log.pack(),
    )
    commit = Commit(record, decoded, key_log)
    store = draft.state.store
    objects = [store.encode(new) for new in [*new_nodes, *key_runs, NewObject(COMMIT, commit_id, commit)]]
    updated = ref._replace(head=commit_id, recent=add_recent(ref, limits.recent_heads))
    return Built(updated, State(store, commit_id, commit), objects)


def _records(members: Sequence[tuple[Request[Any], Prepared[Any]]]) -> Iterator[RequestRecord]:
    for request, prepared in members:
        yield _record(request, prepared.feed, prepared.receipt)
        for joined in prepared.joined:
            yield _record(joined, joined.feed, joined.receipt)


def _record(request: Request[Any] | Joined, feed: Sequence[Change], receipt: bytes) -> RequestRecord:
    return RequestRecord(
        principal=request.principal,
        operation=request.operation,
        request_id=request.request_id,
        key_hash=request.key_hash,
        changes=tuple(feed),
        actor=request.actor,
        roles=request.roles,
        receipt=receipt if request.key_hash else b"",
    )
