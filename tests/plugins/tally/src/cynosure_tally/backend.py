"""A backend around another one that counts calls by method."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from cynosure.persistence.open_backend import open_backend as open_any
from cynosure.persistence.spi import (
    Backend,
    ConditionalWrite,
    HeldRef,
    Limits,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
    RowHead,
)


class TallyBackend:
    """Adds counting, changes nothing."""

    def __init__(self, counted: Backend) -> None:
        self._counted = counted
        self.calls: Counter[str] = Counter()

    @property
    def limits(self) -> Limits:
        return self._counted.limits

    async def setup(self) -> None:
        self.calls["setup"] += 1
        await self._counted.setup()

    async def close(self) -> None:
        self.calls["close"] += 1
        await self._counted.close()

    async def fetch(self, keys: Sequence[ObjKey]) -> list[Row | None]:
        self.calls["fetch"] += 1
        return await self._counted.fetch(keys)

    async def write(self, rows: Sequence[Row]) -> None:
        self.calls["write"] += 1
        await self._counted.write(rows)

    async def insert(self, row: Row) -> bool:
        self.calls["insert"] += 1
        return await self._counted.insert(row)

    async def swap(self, row: Row, expected_token: str) -> bool:
        self.calls["swap"] += 1
        return await self._counted.swap(row, expected_token)

    async def delete_if(self, key: ObjKey, expected_token: str) -> bool:
        self.calls["delete_if"] += 1
        return await self._counted.delete_if(key, expected_token)

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        self.calls["write_each"] += 1
        return await self._counted.write_each(writes, is_relaxed=is_relaxed)

    async def delete(self, keys: Sequence[ObjKey]) -> None:
        self.calls["delete"] += 1
        await self._counted.delete(keys)

    async def scan(self, *, after: ObjKey | None, limit: int) -> list[RowHead]:
        self.calls["scan"] += 1
        return await self._counted.scan(after=after, limit=limit)

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        self.calls["fetch_refs"] += 1
        return await self._counted.fetch_refs(keys)

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None] | None:
        self.calls["fetch_refs_now"] += 1
        return self._counted.fetch_refs_now(keys)

    async def list_refs(self, realm: RealmId | None = None) -> list[Reference]:
        self.calls["list_refs"] += 1
        return await self._counted.list_refs(realm)

    async def insert_ref(self, ref: Reference) -> bool:
        self.calls["insert_ref"] += 1
        return await self._counted.insert_ref(ref)

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        self.calls["swap_ref"] += 1
        return await self._counted.swap_ref(expected, updated, rows)

    async def delete_ref(self, expected: Reference) -> bool:
        self.calls["delete_ref"] += 1
        return await self._counted.delete_ref(expected)

    def hold_ref(self, key: RefKey, head_type: str) -> AbstractAsyncContextManager[HeldRef] | None:
        return self._counted.hold_ref(key, head_type)


def open_backend(url: str, options: Mapping[str, str]) -> Backend:
    """`tally:URL`."""
    return TallyBackend(open_any(url.removeprefix("tally:"), options))
