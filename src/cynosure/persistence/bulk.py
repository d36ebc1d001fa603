"""The first content of an empty reference, in one commit of any size.

    bulk = await begin_bulk(persistence, key)
    await bulk.write(objects)                       as many times as needed
    await bulk.feed("names", sorted_entries)        as many times as needed, per index in ascending order
    await bulk.commit(principal, operation, feed)

Objects and index nodes are written as they come, so memory does not grow with their number; only the last
step makes them reachable. An interrupted load leaves rows that garbage collection removes.

Must not break: the reference is swapped from exactly what it was when the load began. Whoever commits
meanwhile wins, and a collection that begins meanwhile makes the load fail (it bumps the generation), so
nothing that was collected can become reachable.
"""

import asyncio
from collections.abc import Iterable, Sequence

from cynosure.common.errors import Conflict
from cynosure.common.retry import Backoff
from cynosure.persistence.commit.outcome import settle_swap
from cynosure.persistence.commit.recent_heads import add_recent
from cynosure.persistence.commit.records import (
    COMMIT,
    NO_COMMIT,
    PARENTS_KEPT,
    Change,
    Commit,
    CommitRecord,
    RequestRecord,
    StoredIndex,
)
from cynosure.persistence.commit.view import State
from cynosure.persistence.index import BulkLoad
from cynosure.persistence.index_nodes import INDEX_NODE
from cynosure.persistence.lifecycle import Persistence
from cynosure.persistence.references import INDEXES, target_of
from cynosure.persistence.spi import ObjId, Reference, RefKey, Row
from cynosure.persistence.store import NewObject

_WRITE_ROWS = 1_000


async def begin_bulk(persistence: Persistence, key: RefKey) -> "BulkCommit":
    """Begin to fill a reference; `Conflict` when it holds anything."""
    ref = await persistence.heads.load(key, is_fresh=True)
    state = await State.load(persistence.store(key.realm, key.catalog), ref.head)
    for index in INDEXES[key.name]:
        if await state.scan(index, limit=1):
            raise Conflict(
                "Only an empty reference can be filled at once",
                fix="Load into a new one.",
                reference=target_of(key),
                index=index,
            )
    return BulkCommit(persistence, ref, state)


class BulkCommit:
    """A reference being filled. Made by `begin_bulk`."""

    def __init__(self, persistence: Persistence, ref: Reference, state: State) -> None:
        self._persistence = persistence
        self._ref = ref
        self._parent = state.commit.record
        self._store = state.store
        self._limits = persistence.limits
        self._loads: dict[str, BulkLoad] = {}
        self._rows: list[Row] = []

    async def write(self, objects: Iterable[NewObject]) -> None:
        """Write immutable objects that entries point to."""
        for new in objects:
            self._rows += self._store.encode(new).rows
        if len(self._rows) >= _WRITE_ROWS:
            await self._flush()

    async def feed(self, index: str, entries: Iterable[tuple[bytes, bytes]]) -> None:
        """Add entries to an index, all above those that it got before."""
        load = self._loads.get(index)
        if load is None:
            load = self._loads[index] = BulkLoad(new_id=self._persistence.ids.next, limits=self._limits.index)
        await self.write([NewObject(INDEX_NODE, node_id, node) for node_id, node in load.feed(entries)])

    async def commit(self, principal: str, operation: str, feed: Sequence[Change]) -> ObjId:
        """Make everything visible at once. `Conflict` when the reference has changed: then nothing is."""
        ref, parent, persistence = self._ref, self._parent, self._persistence
        indexes = dict(parent.indexes)
        for name, load in self._loads.items():
            applied = load.finish()
            await self.write([NewObject(INDEX_NODE, node_id, node) for node_id, node in applied.nodes])
            indexes[name] = StoredIndex(holds=INDEXES[ref.key.name][name], data=applied.index.encode())
        await self._flush()
        record = CommitRecord(
            sequence=parent.sequence + 1,
            time_us=max(persistence.clock.now_us(), parent.time_us + 1),
            parents=(ref.head, *parent.parents[: PARENTS_KEPT - 1]) if ref.head != NO_COMMIT else (),
            indexes=indexes,
            requests=(RequestRecord(principal=principal, operation=operation, changes=tuple(feed)),),
            key_log=parent.key_log,
        )
        commit_id = persistence.ids.next()
        encoded = self._store.encode(NewObject(COMMIT, commit_id, Commit(record)))
        # Order: right before the swap; a load may take hours, its commit may not.
        backoff = Backoff(persistence.clock, persistence.rng, deadline_s=self._limits.deadline_s)
        sent_s = persistence.clock.monotonic_s()
        updated = ref._replace(head=commit_id, recent=add_recent(ref, self._limits.recent_heads))
        is_in_chain = await settle_swap(
            persistence.backend,
            self._store,
            backoff,
            expected=ref,
            updated=updated,
            sequence=record.sequence,
            rows=encoded.rows,
        )
        if not is_in_chain:
            raise Conflict(
                "The reference was changed while it was being filled; nothing was loaded",
                fix="Load again, into an empty one that nobody else writes to.",
                reference=target_of(ref.key),
            )
        persistence.heads.observe(updated, sent_s=sent_s)
        return commit_id

    async def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            await self._persistence.backend.write(rows)
        # A database in this process answers without waiting; others want to be served too.
        await asyncio.sleep(0)
