"""Records of keys in the store: every step is one compare-and-swap of one row.

All are in one scope of the store, whatever their realm, so that one scan finds those that have expired, also
of realms that are gone.

Must not break: what a holder writes goes through its `Held`, one at a time, so that its own renewal never
makes it lose its own outcome. Who else changed the row has taken the request over.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from msgspec import Struct

from cynosure.common.clock import Clock
from cynosure.common.errors import CorruptObject
from cynosure.idempotency import record as records
from cynosure.idempotency.record import PART, RECORD, Part, Record
from cynosure.idempotency.settings import IdempotencySettings
from cynosure.persistence.batching import Batcher
from cynosure.persistence.ids import IdSource
from cynosure.persistence.ids.snowflake import named_id
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import Store, Versioned

_SLOTS: Final = 4
"""Rows a key may be in: ids are shorter than hashes, so two keys may want the same one."""
_PATH_CHARS: Final = 1_000
"""Of the path, which only tells operators what it was about: names are checked after the reservation."""
_INLINE_BYTES: Final = 64 * 2**10
_US: Final = 1_000_000


class Claim(Struct, frozen=True):
    """A request with a key, before anything is known of it."""

    key: str
    """The text of the header. Never stored."""
    key_hash: str
    payload_hash: str
    realm: str
    method: str
    path: str
    principal: str
    is_commit: bool = False
    """To such a request 409 would mean that its changes were refused for good."""

    def __repr__(self) -> str:
        # The text must not get into a log with whatever holds this.
        return f"Claim({self.key_hash[:8]})"


class Held:
    """A reservation that this process has: nobody else executes the request until its lease is out."""

    __slots__ = ("current", "is_lost", "lock")

    def __init__(self, current: Versioned[Record]) -> None:
        self.current = current
        self.is_lost = False
        """Somebody else has changed the record."""
        self.lock = asyncio.Lock()

    @property
    def record(self) -> Record:
        """As this process wrote it last."""
        return self.current.value

    async def replace(
        self, batcher: Batcher, store: Store, change: records.Next, *, is_relaxed: bool
    ) -> bool:
        """Put what `change` makes of the record in its place; `False` when it has been taken over."""
        async with self.lock:
            if self.is_lost:
                return False
            value = change(self.current.value)
            if value is self.current.value:
                return True
            won = await batcher.swap(store, RECORD, self.current, value, is_relaxed=is_relaxed)
            if won is None:
                self.is_lost = True
                return False
            self.current = won
            return True

    async def remove(self, batcher: Batcher, store: Store) -> None:
        """Remove the record, unless it has been taken over."""
        async with self.lock:
            if not self.is_lost:
                await batcher.delete_if(store, RECORD, self.current)
                self.is_lost = True


class Reservations:
    """All records of a store, as one process uses them."""

    def __init__(
        self,
        store: Store,
        batcher: Batcher,
        ids: IdSource,
        clock: Clock,
        settings: IdempotencySettings,
        *,
        holder: str,
    ) -> None:
        self._store = store
        self._batcher = batcher
        # A reservation may be lost together with whoever made it, and only then: otherwise another attempt
        # would not know that there is one to be fenced off.
        self._is_relaxed = store.backend.limits.is_local
        self._ids = ids
        self._clock = clock
        self._holder = holder
        self._kept_us = int(settings.kept.total_seconds() * _US)
        self._lease_us = int(settings.lease.total_seconds() * _US)

    async def reserve(self, claim: Claim) -> Held | Versioned[Record]:
        """A new reservation, or the record that there is for the key."""
        fresh = self._fresh(claim)
        for slot in range(_SLOTS):
            slot_id = _slot_id(claim.key_hash, slot)
            won = await self._batcher.insert(self._store, RECORD, slot_id, fresh, is_relaxed=self._is_relaxed)
            if won is not None:
                return Held(won)
            found = await self._store.fetch(RECORD, slot_id)
            if found is None:
                return await self.reserve(claim)  # Removed in between, because it had expired.
            if found.value.key_hash == claim.key_hash:
                return found
        raise CorruptObject("Too many keys have the same id", key_hash=claim.key_hash)

    async def take_over(self, found: Versioned[Record]) -> Held | None:
        """The next attempt at a request whose holder gave up or is dead; `None` when another was faster."""
        value = records.taken_over(
            found.value, holder=self._holder, now_us=self._clock.now_us(), lease_us=self._lease_us
        )
        return await self._swap(found, value)

    async def begin_anew(self, claim: Claim, found: Versioned[Record]) -> Held | None:
        """Put a new record in the place of one that has expired; `None` when another was faster.

        It counts as a further attempt: nobody knows what the earlier one may still do.
        """
        fresh = self._fresh(claim)
        now_us = fresh.updated_us
        value = records.taken_over(fresh, holder=self._holder, now_us=now_us, lease_us=self._lease_us)
        return await self._swap(found, value)

    async def renew(self, held: Held) -> bool:
        """Hold it for another lease; `False` when it has been taken over."""
        now_us = self._clock.now_us()
        return await held.replace(
            self._batcher,
            self._store,
            lambda record: records.renewed(record, now_us=now_us, lease_us=self._lease_us),
            is_relaxed=True,
        )

    async def release(self, held: Held) -> None:
        """Let others try at once."""
        now_us = self._clock.now_us()
        await held.replace(
            self._batcher,
            self._store,
            lambda record: records.released(record, now_us=now_us),
            is_relaxed=True,
        )

    async def forget(self, held: Held) -> None:
        """Remove the record: the key is not this request's, or nothing was decided for it."""
        await held.remove(self._batcher, self._store)

    async def finalize_in_chain(self, outcomes: Sequence[tuple[Held, int]]) -> None:
        """Note of each that its outcome, of this status, is in the chain.

        It may be lost with the machine: whoever repeats the request finds the key in the chain all the same.
        """
        now_us = self._clock.now_us()
        async with AsyncExitStack() as stack:
            changes: list[tuple[Versioned[Record], Record]] = []
            ours: list[Held] = []
            for held, status in outcomes:
                # Nearly always free: only a renewal may still be on its way.
                await stack.enter_async_context(held.lock)
                if not held.is_lost:
                    record = records.finalized(held.record, now_us=now_us, status=status, is_in_chain=True)
                    changes.append((held.current, record))
                    ours.append(held)
            written = await self._batcher.swap_all(self._store, RECORD, changes, is_relaxed=True)
            for held, won in zip(ours, written, strict=True):
                held.is_lost = won is None
                held.current = won or held.current

    async def finalize(self, held: Held, status: int, sealed: bytes) -> bool:
        """Store an outcome that is nowhere else; `False` when the request has been taken over.

        Durable when it returns: what is answered after it can be answered again.
        """
        parts: tuple[ObjId, ...] = ()
        if len(sealed) > _INLINE_BYTES:
            parts, sealed = await self._write_parts(sealed), b""
        now_us = self._clock.now_us()

        def change(record: Record) -> Record:
            return records.finalized(
                record, now_us=now_us, status=status, is_in_chain=False, sealed=sealed, parts=parts
            )

        return await held.replace(self._batcher, self._store, change, is_relaxed=False)

    async def load_sealed(self, record: Record) -> bytes:
        """The sealed answer of a finalized record."""
        if not record.parts:
            return record.sealed
        found = [await self._store.fetch(PART, part_id) for part_id in record.parts]
        if any(each is None for each in found):
            raise CorruptObject("A stored answer is not complete", key_hash=record.key_hash)
        return b"".join(each.value.data for each in found if each is not None)

    async def _write_parts(self, sealed: bytes) -> tuple[ObjId, ...]:
        # Half of the limit: the envelope needs a little, and nothing is gained by filling rows.
        size = max(1, self._store.backend.limits.row_bytes // 2)
        ids = []
        for at in range(0, len(sealed), size):
            part_id = self._ids.next()
            part = Part(data=sealed[at : at + size])
            await self._batcher.insert(self._store, PART, part_id, part)
            ids.append(part_id)
        return tuple(ids)

    async def _swap(self, found: Versioned[Record], value: Record) -> Held | None:
        won = await self._batcher.swap(self._store, RECORD, found, value, is_relaxed=self._is_relaxed)
        return None if won is None else Held(won)

    def _fresh(self, claim: Claim) -> Record:
        now_us = self._clock.now_us()
        return Record(
            key_hash=claim.key_hash,
            realm=claim.realm,
            method=claim.method,
            path=claim.path[:_PATH_CHARS],
            principal=claim.principal,
            payload_hash=claim.payload_hash,
            created_us=now_us,
            updated_us=now_us,
            expires_us=now_us + self._kept_us,
            holder=self._holder,
            lease_until_us=now_us + self._lease_us,
        )


def _slot_id(key_hash: str, slot: int) -> ObjId:
    # The hash is as good as that of a name: the first row is nearly always the only one.
    return ObjId(int(key_hash[:15], 16)) if slot == 0 else named_id(f"{key_hash}/{slot}")
