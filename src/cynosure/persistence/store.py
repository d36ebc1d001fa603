"""Typed objects of one realm and catalog, over any backend, through the cache.

Two kinds of objects, two sets of verbs. *Immutable* ones are written once under a new id and cached
for ever (`load`, `find`, `write`). *Updateable* ones (leases, tasks, pins) are compared and swapped by
version token and read from the database (`fetch`, `scan`, `insert`, `swap`,
`delete_if`; many of them with one call of the database: `batching.py`).

Must not break: an unknown outcome of `insert` or `swap` is settled before it is reported (`settling.py`),
which is safe because the row carries a token nobody else can have written.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from cynosure.common.clock import Clock
from cynosure.common.errors import MissingObject, TooLarge
from cynosure.persistence import parts
from cynosure.persistence.cache import ABSENT, ObjectCache
from cynosure.persistence.objects import ObjectType, seal, seal_sized, unseal
from cynosure.persistence.settling import settle
from cynosure.persistence.spi import (
    Backend,
    CatalogId,
    DeleteIf,
    Insert,
    ObjId,
    ObjKey,
    RealmId,
    Row,
    RowHead,
    Swap,
)

T = TypeVar("T")


class Versioned(NamedTuple, Generic[T]):
    """An updateable object as read: hand it back to `swap` or `delete_if`."""

    id: ObjId
    value: T
    token: str
    created_us: int


class NewObject(NamedTuple):
    """An immutable object that is not written yet."""

    type: ObjectType[Any]
    id: ObjId
    value: Any


class Encoded(NamedTuple):
    """An immutable object and the rows that will hold it."""

    new: NewObject
    rows: list[Row]
    payload_bytes: int


class Store:
    """The typed facade of one (realm, catalog). Cheap to make; shares backend and cache."""

    def __init__(
        self,
        backend: Backend,
        cache: ObjectCache,
        clock: Clock,
        rng: Random,
        *,
        realm: RealmId,
        catalog: CatalogId,
    ) -> None:
        self.backend = backend
        self.realm = realm
        self.catalog = catalog
        self._cache = cache
        self._clock = clock
        self._rng = rng
        self._tokens = ""
        self._token_number = 0

    def key(self, object_type: ObjectType[Any], obj_id: ObjId) -> ObjKey:
        """Row key of an object in this scope."""
        return ObjKey(self.realm, self.catalog, object_type.name, obj_id)

    # --- immutable objects ----------------------------------------------------------------------

    def get(self, object_type: ObjectType[T], obj_id: ObjId) -> T | None:
        """From memory only."""
        value: Any = self._cache.get((self.realm, self.catalog, object_type.name, obj_id))
        return None if value is ABSENT else value

    async def find(self, object_type: ObjectType[T], obj_id: ObjId) -> T | None:
        """From memory or the database; `None` when no such object exists."""
        known: Any = self._cache.get((self.realm, self.catalog, object_type.name, obj_id))
        if known is not None:
            return None if known is ABSENT else known
        return (await self._fetch_all(object_type, [obj_id]))[0]

    async def load(self, object_type: ObjectType[T], obj_id: ObjId) -> T:
        """As `find`, for an object that must exist: `MissingObject` when it does not."""
        value = await self.find(object_type, obj_id)
        if value is None:
            raise self._missing(object_type, obj_id)
        return value

    async def find_many(self, object_type: ObjectType[T], ids: Sequence[ObjId]) -> list[T | None]:
        """As `find` for many, with as few round trips as the backend allows."""
        found: dict[ObjId, T | None] = {}
        wanted: list[ObjId] = []
        for obj_id in ids:
            known: Any = self._cache.get((self.realm, self.catalog, object_type.name, obj_id))
            if known is None:
                wanted.append(obj_id)
            else:
                found[obj_id] = None if known is ABSENT else known
        fetched = await self._fetch_all(object_type, wanted)
        found.update(zip(wanted, fetched, strict=True))
        return [found[obj_id] for obj_id in ids]

    async def load_many(self, object_type: ObjectType[T], ids: Sequence[ObjId]) -> list[T]:
        """As `load` for many."""
        if len(ids) == 1:  # the common case, which needs none of the bookkeeping
            return [await self.load(object_type, ids[0])]
        values = await self.find_many(object_type, ids)
        for obj_id, value in zip(ids, values, strict=True):
            if value is None:
                raise self._missing(object_type, obj_id)
        return [value for value in values if value is not None]

    def encode(self, new: NewObject) -> Encoded:
        """Encode an immutable object into its row, or rows when it exceeds the backend's limit."""
        blob, payload_bytes = seal_sized(new.type, new.value)
        row = Row(self.key(new.type, new.id), blob, created_us=self._clock.now_us())
        return Encoded(new, parts.split(row, self.backend.limits.row_bytes), payload_bytes)

    async def write(self, objects: Sequence[NewObject]) -> None:
        """Write immutable objects. Harmless to repeat; unreachable until a commit points to them."""
        rows = [row for new in objects for row in self.encode(new).rows]
        if rows:
            await self.backend.write(rows)
        for new in objects:
            if new.type.negative_cache_s:
                self._cache.discard(self.key(new.type, new.id))

    def remember(self, encoded: Encoded) -> None:
        """Put an object this process has just written into the cache."""
        new = encoded.new
        weight_bytes = new.type.codec.weigh(new.value, encoded.payload_bytes)
        self._cache.put((self.realm, self.catalog, new.type.name, new.id), new.value, weight_bytes)

    def admit_row(self, object_type: ObjectType[Any], row: Row) -> None:
        """Put a row someone else has read into the cache, unless it is there or only points to parts."""
        if self._cache.get(row.key) is None and not parts.part_keys(row):
            value, weight_bytes = unseal(object_type, row.key, row.blob)
            self._cache.put(row.key, value, weight_bytes)

    async def _fetch_all(self, object_type: ObjectType[T], ids: Sequence[ObjId]) -> list[T | None]:
        values: list[T | None] = []
        batch = self.backend.limits.fetch_batch
        for at in range(0, len(ids), batch):
            keys = [self.key(object_type, obj_id) for obj_id in ids[at : at + batch]]
            for key, row in zip(keys, await self.backend.fetch(keys), strict=True):
                if row is None:
                    if object_type.negative_cache_s:
                        self._cache.put(key, ABSENT, 0, expires_after_s=object_type.negative_cache_s)
                    values.append(None)
                    continue
                try:
                    whole = await self.whole(row)
                except MissingObject:
                    if (await self.backend.fetch([key]))[0] is not None:
                        raise
                    values.append(None)  # Collected between the two reads, and so gone, not damaged.
                    continue
                value, weight_bytes = unseal(object_type, key, whole.blob)
                if not object_type.is_mutable:
                    self._cache.put(key, value, weight_bytes)
                elif object_type.cache_s:
                    self._cache.put(key, value, weight_bytes, expires_after_s=object_type.cache_s)
                values.append(value)
        return values

    async def whole(self, row: Row) -> Row:
        """A row with its parts joined."""
        part_keys = parts.part_keys(row)
        if not part_keys:
            return row
        pieces: list[Row | None] = []
        batch = self.backend.limits.fetch_batch
        for at in range(0, len(part_keys), batch):
            pieces += await self.backend.fetch(part_keys[at : at + batch])
        return parts.join(row, pieces)

    def _missing(self, object_type: ObjectType[Any], obj_id: ObjId) -> MissingObject:
        return MissingObject(
            "A stored object is not in the database",
            fix="Run 'cynosure store check'; restore the database from a backup if it agrees.",
            realm=self.realm,
            catalog=self.catalog,
            type=object_type.name,
            id=obj_id,
        )

    # --- updateable objects ---------------------------------------------------------------------

    async def fetch(self, object_type: ObjectType[T], obj_id: ObjId) -> Versioned[T] | None:
        """Read an updateable object from the database itself."""
        row = (await self.backend.fetch([self.key(object_type, obj_id)]))[0]
        return None if row is None else _versioned(object_type, row)

    async def scan(self, object_type: ObjectType[T]) -> list[Versioned[T]]:
        """All updateable objects of one type in this scope, in the order of their ids.

        For types with few objects: leases, tasks, pins. Each object is as `fetch` gives it, not all of
        one instant.
        """
        found: list[Versioned[T]] = []
        first = self.key(object_type, ObjId(0))
        # A scan begins *after* a key, so the lowest id is asked for by name.
        keys, after = [first], first
        while keys:
            rows = await self.backend.fetch(keys)
            found += [_versioned(object_type, row) for row in rows if row is not None]
            heads = await self.backend.scan(after=after, limit=self.backend.limits.fetch_batch)
            keys = [head.key for head in heads if head.key[:3] == first[:3]]
            after = keys[-1] if keys else after
        return found

    async def scan_heads(
        self, object_type: ObjectType[Any], *, after: ObjId | None = None, limit: int | None = None
    ) -> list[RowHead]:
        """A page of this type's objects in this scope, by id and without their values; empty at the end.

        For types with many objects, of which most are not wanted: token and time of writing say enough to
        delete (`delete_each`) or leave them. `after` is the last id of the page before.
        """
        limit = self.backend.limits.fetch_batch if limit is None else limit
        heads: list[RowHead] = []
        if after is None:
            # A scan begins *after* a key, so the lowest id is asked for by name.
            after = ObjId(0)
            row = (await self.backend.fetch([self.key(object_type, after)]))[0]
            if row is not None:
                heads.append(RowHead(row.key, row.token, row.created_us, len(row.blob)))
        first = self.key(object_type, after)
        heads += await self.backend.scan(after=first, limit=limit)
        return [head for head in heads if head.key[:3] == first[:3]]

    async def insert(self, object_type: ObjectType[T], obj_id: ObjId, value: T) -> Versioned[T] | None:
        """Create an updateable object; `None` when it exists already."""
        write = self.to_insert(object_type, obj_id, value)
        try:
            won = await settle(self.backend, self._clock, self._rng, write)
        finally:
            self._cache.discard(write.key)
        return as_versioned(value, write) if won else None

    async def swap(self, object_type: ObjectType[T], old: Versioned[T], value: T) -> Versioned[T] | None:
        """Replace an updateable object; `None` when someone else changed it first."""
        write = self.to_swap(object_type, old, value)
        try:
            won = await settle(self.backend, self._clock, self._rng, write)
        finally:
            self._cache.discard(write.key)
        return as_versioned(value, write) if won else None

    async def delete_if(self, object_type: ObjectType[T], old: Versioned[T]) -> bool:
        """Delete an updateable object; `False` when someone else changed it first."""
        write = self.to_delete(object_type, old)
        try:
            return await self.backend.delete_if(write.key, write.expected_token)
        finally:
            self._cache.discard(write.key)

    async def delete_each(self, heads: Sequence[RowHead], *, is_relaxed: bool = False) -> int:
        """Delete the updateable objects that still are as `scan_heads` found them; how many those were.

        After `OutcomeUnknown` any of them may be gone.
        """
        deleted = 0
        batch = self.backend.limits.fetch_batch
        for at in range(0, len(heads), batch):
            writes = [DeleteIf(head.key, head.token) for head in heads[at : at + batch]]
            try:
                deleted += sum(await self.backend.write_each(writes, is_relaxed=is_relaxed))
            finally:
                for write in writes:
                    self._cache.discard(write.key)
        return deleted

    # --- updateable objects, written with others' (`batching.py`) ---------------------------------

    def to_insert(self, object_type: ObjectType[T], obj_id: ObjId, value: T) -> Insert:
        """The write that creates an updateable object."""
        return Insert(self._updateable_row(object_type, obj_id, value))

    def to_swap(self, object_type: ObjectType[T], old: Versioned[T], value: T) -> Swap:
        """The write that replaces an updateable object."""
        return Swap(self._updateable_row(object_type, old.id, value), old.token)

    def to_delete(self, object_type: ObjectType[T], old: Versioned[T]) -> DeleteIf:
        """The write that deletes an updateable object."""
        return DeleteIf(self.key(object_type, old.id), old.token)

    def forget(self, key: ObjKey) -> None:
        """Serve no longer from memory what was written without this store's verbs."""
        self._cache.discard(key)

    def _updateable_row(self, object_type: ObjectType[T], obj_id: ObjId, value: T) -> Row:
        blob = seal(object_type, value)
        if len(blob) > self.backend.limits.row_bytes:
            raise TooLarge(
                "An updateable object must fit into one row",
                field=object_type.name,
                fix="Keep large values in immutable objects and point to them.",
                bytes=len(blob),
                limit_bytes=self.backend.limits.row_bytes,
            )
        return Row(self.key(object_type, obj_id), blob, self._new_token(), self._clock.now_us())

    def _new_token(self) -> str:
        """A version token that nobody else writes, now or ever: random once, then counted."""
        if not self._tokens:
            self._tokens = f"{self._rng.getrandbits(96):024x}"
        self._token_number += 1
        return f"{self._tokens}{self._token_number:x}"


def as_versioned(value: T, write: Insert | Swap) -> Versioned[T]:
    """An updateable object as it is after this write of `value`."""
    row = write.row
    return Versioned(row.key.id, value, row.token, row.created_us)


def _versioned(object_type: ObjectType[T], row: Row) -> Versioned[T]:
    value, _ = unseal(object_type, row.key, row.blob)
    return Versioned(row.key.id, value, row.token, row.created_us)
