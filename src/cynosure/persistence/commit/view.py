"""States as a request sees them: committed, drafted, and with its reads remembered.

`prepare` is given a `View` and may only learn about the state through it. A `Tracked` view remembers
every answer, so the commit phase can ask the same questions of the newest state: if all answers are
the same, what was prepared still holds, and nobody has to list by hand what it depended on.

Must not break: an answer given to `prepare` that is not remembered could be stale in the commit.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from cynosure.persistence.commit.records import COMMIT, NO_COMMIT, Commit, empty_commit
from cynosure.persistence.index_nodes import NodeCache
from cynosure.persistence.objects import ObjectType, ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject, Store

T = TypeVar("T")
Entries = list[tuple[bytes, bytes]]


class View(Protocol):
    """What may be asked of a state."""

    @property
    def committed(self) -> "State":
        """The committed state below. Answers it gives are not remembered: exclusive requests only."""
        ...

    async def find(self, index: str, key: bytes) -> bytes | None:
        """Value of a key, or `None`."""
        ...

    async def scan(
        self, index: str, *, prefix: bytes = b"", start: bytes = b"", end: bytes | None = None, limit: int
    ) -> Entries:
        """Up to `limit` entries in key order: those with `prefix`, from `start`, before `end`."""
        ...

    async def load_many(self, object_type: ObjectType[T], ids: Sequence[ObjId]) -> list[T]:
        """The objects that entries point to, also those that are only drafted."""
        ...


async def find_object(view: View, index: str, key: bytes, object_type: ObjectType[T]) -> T | None:
    """The object an index entry points to; `None` when there is no entry of this type."""
    value = await view.find(index, key)
    if value is None:
        return None
    ref = ObjRef.unpack(value)
    if ref.type != object_type.name:
        return None
    return (await view.load_many(object_type, [ref.id]))[0]


class State:
    """The state at one commit. Immutable."""

    def __init__(self, store: Store, commit_id: ObjId, commit: Commit) -> None:
        self.store = store
        self.commit_id = commit_id
        self.commit = commit
        self.nodes = NodeCache(store)

    @property
    def committed(self) -> "State":
        """See `View.committed`."""
        return self

    @classmethod
    async def load(cls, store: Store, commit_id: ObjId) -> "State":
        """Read the state at a commit."""
        if commit_id == NO_COMMIT:
            return cls(store, NO_COMMIT, empty_commit())
        return cls(store, commit_id, await store.load(COMMIT, commit_id))

    async def find(self, index: str, key: bytes) -> bytes | None:
        """See `View.find`."""
        return await self.commit.index(index).find(self.nodes, key)

    async def scan(
        self, index: str, *, prefix: bytes = b"", start: bytes = b"", end: bytes | None = None, limit: int
    ) -> Entries:
        """See `View.scan`."""
        tree = self.commit.index(index)
        return await tree.scan(self.nodes, prefix=prefix, start=start, end=end, limit=limit)

    async def load_many(self, object_type: ObjectType[T], ids: Sequence[ObjId]) -> list[T]:
        """See `View.load_many`."""
        return await self.store.load_many(object_type, ids)


class _Range(Struct, frozen=True):
    index: str
    prefix: bytes
    start: bytes
    end: bytes | None
    limit: int
    entries: Entries

    def covers(self, key: bytes) -> bool:
        if not key.startswith(self.prefix) or key < self.start:
            return False
        if self.end is not None and key >= self.end:
            return False
        # A full answer says nothing about what comes after its last entry.
        return len(self.entries) < self.limit or key <= self.entries[-1][0]


class Reads(Struct):
    """The questions a request asked and the answers it got."""

    points: dict[tuple[str, bytes], bytes | None]
    ranges: list[_Range]


class Tracked:
    """A view that remembers what it was asked."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.reads = Reads(points={}, ranges=[])

    @property
    def committed(self) -> State:
        """See `View.committed`."""
        return self._view.committed

    async def find(self, index: str, key: bytes) -> bytes | None:
        """See `View.find`."""
        value = await self._view.find(index, key)
        self.reads.points[(index, key)] = value
        return value

    async def scan(
        self, index: str, *, prefix: bytes = b"", start: bytes = b"", end: bytes | None = None, limit: int
    ) -> Entries:
        """See `View.scan`."""
        entries = await self._view.scan(index, prefix=prefix, start=start, end=end, limit=limit)
        self.reads.ranges.append(_Range(index, prefix, start, end, limit, entries))
        return entries

    async def load_many(self, object_type: ObjectType[T], ids: Sequence[ObjId]) -> list[T]:
        """See `View.load_many`. Not remembered: an id means the same object for ever."""
        return await self._view.load_many(object_type, ids)


class Standing(Enum):
    """How prepared work relates to a draft."""

    HOLDS = auto()
    STALE = auto()
    """The committed state under the draft answers differently."""
    OVERTAKEN = auto()
    """A request earlier in the same draft changed an answer."""


class Overlay:
    """A view with changes on top that are not committed yet.

    A request that does several things in order lets each see what the ones before it did.
    """

    def __init__(self, below: View) -> None:
        self._below = below
        self.changes: dict[str, dict[bytes, bytes | None]] = {}
        self._sorted: dict[str, list[bytes]] = {}
        self._objects: dict[tuple[str, ObjId], Any] = {}

    @property
    def committed(self) -> State:
        """See `View.committed`."""
        return self._below.committed

    def add(
        self, changes: Mapping[str, Mapping[bytes, bytes | None]], objects: Sequence[NewObject] = ()
    ) -> None:
        """Put a request's changes on top, and the objects they point to."""
        for new in objects:
            self._objects[(new.type.name, new.id)] = new.value
        for index, entries in changes.items():
            if entries:
                self.changes.setdefault(index, {}).update(entries)
                self._sorted.pop(index, None)

    async def find(self, index: str, key: bytes) -> bytes | None:
        """See `View.find`."""
        drafted = self.changes.get(index)
        if drafted is not None and key in drafted:
            return drafted[key]
        return await self._below.find(index, key)

    async def scan(
        self, index: str, *, prefix: bytes = b"", start: bytes = b"", end: bytes | None = None, limit: int
    ) -> Entries:
        """See `View.scan`."""
        wanted = _Range(index, prefix, start, end, limit, [])
        drafted = self.changes.get(index, {})
        keys = self._sorted.get(index)
        if keys is None:
            keys = self._sorted[index] = sorted(drafted)
        overlay = [key for key in keys[bisect_left(keys, max(prefix, start)) :] if wanted.covers(key)]
        removed = sum(drafted[key] is None for key in overlay)
        base = await self._below.scan(index, prefix=prefix, start=start, end=end, limit=limit + removed)
        merged = dict(base)
        for key in overlay:
            value = drafted[key]
            if value is None:
                merged.pop(key, None)
            else:
                merged[key] = value
        return sorted(merged.items())[:limit]

    async def load_many(self, object_type: ObjectType[T], ids: Sequence[ObjId]) -> list[T]:
        """See `View.load_many`."""
        name = object_type.name
        committed = [obj_id for obj_id in ids if (name, obj_id) not in self._objects]
        loaded = dict(zip(committed, await self._below.load_many(object_type, committed), strict=True))
        return [loaded[obj_id] if obj_id in loaded else self._objects[(name, obj_id)] for obj_id in ids]


class Draft(Overlay):
    """A committed state with the changes of a group on top."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.state = state

    async def standing(self, reads: Reads, prepared_on: ObjId | None) -> Standing:
        """Whether the answers in `reads` are still the same.

        `prepared_on` is the commit they were given on, or `None` when they were given on a draft.
        """
        is_same_base = prepared_on == self.state.commit_id
        if not is_same_base and not await self._base_agrees(reads):
            return Standing.STALE
        if self.changes and not await self._draft_agrees(reads):
            return Standing.OVERTAKEN
        return Standing.HOLDS

    async def _base_agrees(self, reads: Reads) -> bool:
        for (index, key), value in reads.points.items():
            if await self.state.find(index, key) != value:
                return False
        for asked in reads.ranges:
            entries = await self.state.scan(
                asked.index, prefix=asked.prefix, start=asked.start, end=asked.end, limit=asked.limit
            )
            if entries != asked.entries:
                return False
        return True

    async def _draft_agrees(self, reads: Reads) -> bool:
        for (index, key), value in reads.points.items():
            drafted = self.changes.get(index)
            if drafted is not None and key in drafted and drafted[key] != value:
                return False
        return not any(
            asked.covers(key) for asked in reads.ranges for key in self.changes.get(asked.index, ())
        )
