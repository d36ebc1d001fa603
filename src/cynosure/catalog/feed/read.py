"""One page of the change feed.

Must not break: every change of every commit is told exactly once to a reader who follows its cursors, in the
order of the commits, whatever the size of the pages.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.feed.cursor import Cursor, expired, open_cursor, seal_cursor
from cynosure.catalog.feed.watch import wait_for_commit
from cynosure.catalog.names import is_namespace_key, path_of
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import COMMIT, Base, Change, Commit, RequestRecord
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.history.chain import Chain

MAX_CHANGES: Final = 1_000
MAX_WAIT_S: Final = 60.0
_COMMITS_AT_ONCE: Final = 256


class FeedChange(Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One change, as readers see it."""

    sequence: int
    """Counts the commits of the catalog. Changes of one commit happened at once."""
    time_ms: int
    kind: str
    """What happened: `table-created`, `table-updated`, `namespace-dropped` …"""
    entity_id: str
    """Stable: kept by renames. Empty where a whole catalog was restored."""
    namespace: tuple[str, ...]
    name: str | None
    """`None` for namespaces."""
    principal: str
    operation: str
    request_id: str = ""
    expired_snapshots: tuple[str, ...] = ()
    """Snapshots that retention let go in the same commit; their files are not removed yet."""
    target_kind: str = ""
    target: str = ""
    """What a policy was attached to or detached from."""


class FeedPage(Struct, frozen=True, rename="kebab"):
    """Changes, and where to go on."""

    changes: Sequence[FeedChange]
    cursor: str
    has_more: bool
    """Whether there are more changes already."""


class _Detail(Struct, frozen=True):
    id: int = 0
    path: tuple[str, ...] = ()
    expired: tuple[int, ...] = ()
    on_kind: str = ""
    on: str = ""


async def read_changes(
    catalog: OpenCatalog, caller: Caller, *, start: str = "now", limit: int = 100, wait_s: float = 0.0
) -> FeedPage:
    """Changes after `start`: a cursor, `now` or `oldest`. Waits up to `wait_s` when there are none."""
    if not 1 <= limit <= MAX_CHANGES:
        raise BadInput(
            "The number of changes is out of range", field="limit", fix=f"Choose 1 to {MAX_CHANGES}."
        )
    if not 0 <= wait_s <= MAX_WAIT_S:
        raise BadInput(
            "The time to wait is out of range", field="wait", fix=f"Choose 0 to {MAX_WAIT_S:.0f} seconds."
        )
    base = await catalog.committer.read()
    await catalog.authorize(base.state, caller, ops.READ_CHANGES, catalog.target())
    chain = catalog.shared.persistence.chain(catalog.committer.key)
    if start == "now":
        cursor = Cursor(base.state.commit.record.sequence, base.ref.head)
    elif start == "oldest":
        cursor = await _oldest(catalog, chain, base)
    else:
        cursor = open_cursor(catalog, start)
    if wait_s and base.ref.head == cursor.commit:
        shared = catalog.shared
        clock = shared.persistence.clock
        base = await wait_for_commit(catalog.committer, clock, shared.watching, cursor.commit, wait_s)
        # Again: the right may have been taken away meanwhile.
        await catalog.authorize(base.state, caller, ops.READ_CHANGES, catalog.target())
    return await _page(catalog, chain, base, cursor, limit)


async def _oldest(catalog: OpenCatalog, chain: Chain, base: Base) -> Cursor:
    await chain.extend(base, 1)
    # The oldest ids may name commits that have been collected: parents are named longer than they live.
    for sequence in range(chain.oldest, base.state.commit.record.sequence + 1):
        commit_id = chain.find(sequence)
        if commit_id is not None and await catalog.store.find(COMMIT, commit_id) is not None:
            before = chain.find(sequence - 1)
            return Cursor(sequence - 1, before if before is not None else NO_COMMIT)
    return Cursor(base.state.commit.record.sequence, base.ref.head)


async def _page(catalog: OpenCatalog, chain: Chain, base: Base, cursor: Cursor, limit: int) -> FeedPage:
    newest = base.state.commit.record.sequence
    await chain.extend(base, cursor.sequence)
    known = chain.find(cursor.sequence)
    if cursor.sequence > newest or (known is not None and known != cursor.commit):
        raise expired()  # The catalog was reset to an earlier state: this place is in no history.
    changes: list[FeedChange] = []
    at, skip = cursor, cursor.skip
    while at.sequence < newest and len(changes) < limit:
        ids = chain.slice(at.sequence + 1, min(_COMMITS_AT_ONCE, limit - len(changes)))
        if not ids:
            raise expired()
        commits: list[Commit | None] = await catalog.store.find_many(COMMIT, ids)
        for commit_id, commit in zip(ids, commits, strict=True):
            if commit is None:
                raise expired()
            record = commit.record
            told = [
                _to_feed(record.sequence, record.time_us, request, change)
                for request in record.requests
                for change in request.changes
            ]
            room = limit - len(changes)
            changes += told[skip : skip + room]
            if skip + room < len(told):
                at = Cursor(at.sequence, at.commit, skip + room)
                break
            at, skip = Cursor(record.sequence, commit_id), 0
        if at.skip and len(changes) >= limit:
            break
    return FeedPage(changes, seal_cursor(catalog, at), at.sequence < newest)


def _decode_detail(change: Change) -> _Detail:
    try:
        detail = msgspec.msgpack.decode(change.detail, type=_Detail | None)
    except msgspec.ValidationError:
        detail = None
    if (detail is None or not detail.path) and change.index == "names":
        # A restore of the whole catalog to an earlier time lists entries by their keys only.
        return _Detail(path=path_of(change.key))
    return detail or _Detail()


def _to_feed(sequence: int, time_us: int, request: RequestRecord, change: Change) -> FeedChange:
    detail = _decode_detail(change)
    is_namespace = is_namespace_key(change.key)
    return FeedChange(
        sequence=sequence,
        time_ms=time_us // 1000,
        kind=change.kind,
        entity_id=str(detail.id) if detail.id else "",
        namespace=detail.path if is_namespace else detail.path[:-1],
        name=None if is_namespace or not detail.path else detail.path[-1],
        principal=request.principal,
        operation=request.operation,
        request_id=request.request_id,
        expired_snapshots=tuple(str(each) for each in detail.expired),
        target_kind=detail.on_kind,
        target=detail.on,
    )
