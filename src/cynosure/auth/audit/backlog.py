"""The commits of one reference that have not been told yet, oldest first.

Must not break: what cannot be read any more is a step of its own, a gap; nothing is passed over in silence.
Where in doubt (a disaster reset), commits are told again rather than not at all.
"""

from collections.abc import AsyncGenerator
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from cynosure.auth.audit.events import StoredEvent
from cynosure.auth.audit.told import DroppedCatalog, Source, list_dropped, tell_commit, tell_gap
from cynosure.persistence.commit import COMMIT, Base, State
from cynosure.persistence.commit.records import NO_COMMIT
from cynosure.persistence.history.chain import Chain
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.spi import ObjId, Reference
from cynosure.persistence.store import Store

_COMMITS_AT_ONCE: Final = 64
COLLECTED = "History was collected before these changes were told"
RESET = "The reference was reset to an earlier state; these changes are no longer part of it"
REMOVED = "The catalog was removed before its last changes were told"


class Position(Struct, frozen=True, array_like=True):
    """How far a reference has been told."""

    sequence: int = 0
    commit: ObjId = NO_COMMIT
    catalog: str = ""
    """Name of its catalog, for the time when it is not listed any more."""
    is_settled: bool = False
    """Told up to its head after its catalog was dropped: nothing can follow."""

    def encode(self) -> bytes:
        """As an index value."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, value: bytes | None) -> "Position":
        """From an index value; the beginning when there is none."""
        return cls() if value is None else msgspec.msgpack.decode(value, type=cls)


class Step(NamedTuple):
    """One commit, or a gap."""

    time_us: int
    sequence: int
    """Everything up to this commit has been told with this step."""
    commit: ObjId
    events: list[StoredEvent]
    dropped: list[DroppedCatalog]


async def read_backlog(
    persistence: Persistence, source: Source, ref: Reference, since: Position
) -> AsyncGenerator[Step, None]:
    """What was committed after `since`, up to the head of `ref`."""
    store = persistence.store(ref.key.realm, ref.key.catalog)
    base = Base(ref, await State.load(store, ref.head))
    newest = base.state.commit.record.sequence
    # Of its own, and not the one that readers of the change feed share: it is gone over once.
    chain = Chain(store)
    await chain.extend(base, max(since.sequence, 1))
    now_us = persistence.clock.now_us()
    at = since.sequence
    known = chain.find(at)
    is_other = NO_COMMIT not in (since.commit, known or NO_COMMIT) and known != since.commit
    if at > newest or is_other:
        await chain.extend(base, 1)
        at = await _find_common(store, chain, since)
        lost = tell_gap(source, at + 1, since.sequence, now_us, RESET)
        yield Step(now_us, at, chain.find(at) or NO_COMMIT, [lost], [])
    look = at + 1
    while look <= newest:
        # The chain begins where commits are still named, which may be later; those named may be gone as well.
        look = max(look, chain.oldest)
        ids = chain.slice(look, _COMMITS_AT_ONCE)
        found = await store.find_many(COMMIT, ids)
        for sequence, (commit_id, commit) in enumerate(zip(ids, found, strict=True), look):
            if commit is None:
                continue
            if sequence > at + 1:
                gap = tell_gap(source, at + 1, sequence - 1, now_us, COLLECTED)
                yield Step(now_us, sequence - 1, chain.find(sequence - 1) or NO_COMMIT, [gap], [])
            record = commit.record
            dropped = list_dropped(record) if source.key.name == "catalogs" else []
            yield Step(record.time_us, sequence, commit_id, tell_commit(source, record), dropped)
            at = sequence
        look += len(ids)


async def _find_common(store: Store, chain: Chain, since: Position) -> int:
    """The newest commit up to `since` that the chain holds; 0 when there is none, or none is known."""
    sequence, commit_id = since.sequence, since.commit
    while sequence > 0:
        commit = await store.find(COMMIT, commit_id)
        if commit is None or not commit.record.parents:
            return 0
        for parent in commit.record.parents:
            sequence -= 1
            if chain.find(sequence) == parent:
                return sequence
            commit_id = parent
    return 0
