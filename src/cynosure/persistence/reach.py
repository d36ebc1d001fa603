"""Everything that can be reached from commits, exactly.

The walk knows three things: a commit holds indexes and runs of keys, an index has nodes and values, and any
other object's envelope names the objects it needs. So it needs no knowledge of application types, installed
or not. Ids are unique across a store, and derived objects (parts, say) share their owner's id: marking
ids is enough.

Must not break: when an object cannot be read, the walk raises or reports; it never leaves things
unmarked in silence.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from pyroaring import BitMap64

from cynosure.common.errors import CynosureError, MissingObject
from cynosure.persistence.commit.key_log import KEY_RUN
from cynosure.persistence.commit.records import COMMIT, NO_COMMIT, Commit, CommitRecord, Holds
from cynosure.persistence.index import Index, Node, links
from cynosure.persistence.index_nodes import INDEX_NODE
from cynosure.persistence.objects import ObjRef, open_envelope, unseal
from cynosure.persistence.spi import ObjId, ObjKey
from cynosure.persistence.store import Store

Problem = Callable[[ObjKey, CynosureError], None]
Pace = Callable[[int], Awaitable[None]]
"""Called with a number of rows before they are read; may wait."""


async def _no_pace(rows: int) -> None:
    return


def raise_problem(key: ObjKey, error: CynosureError) -> None:
    """The default for what cannot be read: stop."""
    raise error


class Reach:
    """Marks what commits of one scope can reach. Marks accumulate over calls."""

    def __init__(self, store: Store, *, on_problem: Problem = raise_problem, pace: Pace = _no_pace) -> None:
        self.store = store
        self.marked: Any = BitMap64()
        """Ids of everything reached."""
        self._on_problem = on_problem
        self._pace = pace

    async def mark_commit(self, commit_id: ObjId) -> CommitRecord | None:
        """Mark one commit's whole state, but not its ancestors. `None` when it cannot be read."""
        if commit_id == NO_COMMIT:
            return None
        is_new = commit_id not in self.marked
        self.marked.add(commit_id)
        commit = await self._load_commit(commit_id)
        if commit is None or not is_new:
            return commit.record if commit else None
        record = commit.record
        trees: list[tuple[Index, Holds]] = []
        key_runs: list[ObjRef] = []
        try:
            trees += [(commit.index(name), stored.holds) for name, stored in record.indexes.items()]
            key_runs = [ObjRef(run.id, KEY_RUN.name) for run in commit.key_log.runs]
        except CynosureError as error:
            self._on_problem(self.store.key(COMMIT, commit_id), error)
        for index, holds in trees:
            await self._mark_index(index, holds)
        await self._mark_objects(key_runs)
        return record

    async def exists(self, commit_id: ObjId) -> bool:
        """Whether a commit is in the database."""
        return (await self.store.backend.fetch([self.store.key(COMMIT, commit_id)]))[0] is not None

    async def _load_commit(self, commit_id: ObjId) -> Commit | None:
        for key, blob in await self._read_rows([self.store.key(COMMIT, commit_id)]):
            try:
                return unseal(COMMIT, key, blob)[0]
            except CynosureError as error:
                self._on_problem(key, error)
        return None

    async def _mark_index(self, index: Index, holds: Holds) -> None:
        children, values = links(index)
        while True:
            if holds == "objects":
                await self._mark_objects(ObjRef.unpack(value) for value in values)
            fresh = [child for child in children if child not in self.marked]
            if not fresh:
                return
            self.marked.update(fresh)
            children, values = [], []
            for node in await self._load_nodes(fresh):
                below = links(node)
                children += below.children
                values += below.values

    async def _load_nodes(self, ids: list[ObjId]) -> list[Node]:
        """Read past the cache: a walk over everything must not push out what requests use."""
        nodes: list[Node] = []
        for key, blob in await self._read_rows([self.store.key(INDEX_NODE, node_id) for node_id in ids]):
            try:
                nodes.append(unseal(INDEX_NODE, key, blob)[0])
            except CynosureError as error:
                self._on_problem(key, error)
        return nodes

    async def _mark_objects(self, refs: Iterable[ObjRef]) -> None:
        pending = {ref for ref in refs if ref.id not in self.marked}
        self.marked.update(ref.id for ref in pending)
        keys = [ObjKey(self.store.realm, self.store.catalog, ref.type, ref.id) for ref in sorted(pending)]
        while keys:
            further: list[ObjKey] = []
            for key, blob in await self._read_rows(keys):
                try:
                    envelope = open_envelope(key, blob)
                except CynosureError as error:
                    self._on_problem(key, error)
                    continue
                for ref in envelope.refs:
                    if ref.id not in self.marked:
                        self.marked.add(ref.id)
                        further.append(key._replace(type=ref.type, id=ref.id))
            keys = further

    async def _read_rows(self, keys: list[ObjKey]) -> list[tuple[ObjKey, bytes]]:
        found: list[tuple[ObjKey, bytes]] = []
        batch = self.store.backend.limits.fetch_batch
        for at in range(0, len(keys), batch):
            chunk = keys[at : at + batch]
            await self._pace(len(chunk))
            for key, row in zip(chunk, await self.store.backend.fetch(chunk), strict=True):
                try:
                    if row is None:
                        raise _missing(key)
                    found.append((key, (await self.store.whole(row)).blob))
                except CynosureError as error:
                    self._on_problem(key, error)
        return found


def _missing(key: ObjKey) -> MissingObject:
    return MissingObject(
        "A reachable object is not in the database",
        fix="Restore the database from a backup, or reset to a complete recent head.",
        realm=key.realm,
        catalog=key.catalog,
        type=key.type,
        id=key.id,
    )
