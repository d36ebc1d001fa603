"""The executable specification of a backend: dictionaries, and nothing that is not in the contract.

Every call yields to the event loop before and after its effect, so that the interleavings and the
cancellations that a real database allows happen here as well; `fetch_refs_now` cannot, and is one instant
anyway. A maintainer must not break: between two yields a call is atomic, because nothing else runs.

`memory:` is a store of its own per handle; handles on `memory:NAME` share one for the life of the process.
"""

import asyncio
import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from cynosure.common.errors import Misconfigured, Unavailable
from cynosure.persistence import row_rules
from cynosure.persistence.backend_options import read_number, read_options
from cynosure.persistence.spi import (
    Backend,
    ConditionalWrite,
    DeleteIf,
    Insert,
    Limits,
    ObjKey,
    RealmId,
    Reference,
    RefKey,
    Row,
    RowHead,
    Swap,
)

ROW_BYTES: Final = 1 << 20


@dataclass
class MemoryStore:
    """What handles on the same name share."""

    rows: dict[ObjKey, Row] = field(default_factory=dict)
    refs: dict[RefKey, Reference] = field(default_factory=dict)
    is_set_up: bool = False


class MemoryBackend:
    """A store that lives and dies with this process."""

    def __init__(self, store: MemoryStore | None = None, *, row_bytes: int = ROW_BYTES) -> None:
        self._store = MemoryStore() if store is None else store
        self._limits = Limits(
            row_bytes=row_bytes, swap_carries_rows=True, is_shared=False, is_durable=False, is_local=True
        )
        self._is_closed = False

    @property
    def limits(self) -> Limits:
        return self._limits

    async def setup(self) -> None:
        self._refuse_if_closed()
        await asyncio.sleep(0)
        self._store.is_set_up = True

    async def close(self) -> None:
        self._is_closed = True

    # --- objects -------------------------------------------------------------------------------

    async def fetch(self, keys: Sequence[ObjKey]) -> list[Row | None]:
        row_rules.check_obj_keys(keys)
        await self._arrive()
        rows = [self._store.rows.get(key) for key in keys]
        await asyncio.sleep(0)
        return rows

    async def write(self, rows: Sequence[Row]) -> None:
        row_rules.check_immutable(rows, self._limits)
        await self._arrive()
        for row in rows:
            self._store.rows.setdefault(row.key, row)
            # Between any two rows, because the contract does not make them one.
            await asyncio.sleep(0)

    async def insert(self, row: Row) -> bool:
        row_rules.check_conditional(row, self._limits)
        await self._arrive()
        is_first = self._apply(Insert(row))
        await asyncio.sleep(0)
        return is_first

    async def swap(self, row: Row, expected_token: str) -> bool:
        row_rules.check_conditional(row, self._limits)
        row_rules.check_token(expected_token)
        await self._arrive()
        has_won = self._apply(Swap(row, expected_token))
        await asyncio.sleep(0)
        return has_won

    async def delete_if(self, key: ObjKey, expected_token: str) -> bool:
        row_rules.check_obj_keys((key,))
        row_rules.check_token(expected_token)
        await self._arrive()
        has_won = self._apply(DeleteIf(key, expected_token))
        await asyncio.sleep(0)
        return has_won

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        row_rules.check_each(writes, self._limits)
        await self._arrive()
        outcomes: list[bool] = []
        for write in writes:
            outcomes.append(self._apply(write))
            # As in `write`.
            await asyncio.sleep(0)
        return outcomes

    async def delete(self, keys: Sequence[ObjKey]) -> None:
        row_rules.check_obj_keys(keys)
        await self._arrive()
        for key in keys:
            self._store.rows.pop(key, None)
            await asyncio.sleep(0)

    async def scan(self, *, after: ObjKey | None, limit: int) -> list[RowHead]:
        row_rules.check_scan(after, limit)
        await self._arrive()
        rows = self._store.rows
        keys = heapq.nsmallest(limit, rows if after is None else (key for key in rows if key > after))
        heads = [RowHead(key, rows[key].token, rows[key].created_us, len(rows[key].blob)) for key in keys]
        await asyncio.sleep(0)
        return heads

    # --- references ----------------------------------------------------------------------------

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        row_rules.check_ref_keys(keys)
        await self._arrive()
        refs = [self._store.refs.get(key) for key in keys]
        await asyncio.sleep(0)
        return refs

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        row_rules.check_ref_keys(keys)
        self._refuse_if_closed()
        self._refuse_if_not_set_up()
        return [self._store.refs.get(key) for key in keys]

    async def list_refs(self, realm: RealmId | None = None) -> list[Reference]:
        if realm is not None:
            row_rules.check_realm(realm)
        await self._arrive()
        refs = self._store.refs
        found = [refs[key] for key in sorted(refs) if realm is None or key.realm == realm]
        await asyncio.sleep(0)
        return found

    async def insert_ref(self, ref: Reference) -> bool:
        row_rules.check_ref(ref)
        await self._arrive()
        is_first = ref.key not in self._store.refs
        if is_first:
            self._store.refs[ref.key] = ref
        await asyncio.sleep(0)
        return is_first

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        row_rules.check_move(expected, updated)
        row_rules.check_immutable(rows, self._limits)
        # Order: rows are readable before the reference leads to them. They stay when the swap is lost.
        await self.write(rows)
        await self._arrive()
        has_won = self._is_current(expected)
        if has_won:
            self._store.refs[updated.key] = updated
        await asyncio.sleep(0)
        return has_won

    async def delete_ref(self, expected: Reference) -> bool:
        row_rules.check_ref_keys((expected.key,))
        await self._arrive()
        has_won = self._is_current(expected)
        if has_won:
            del self._store.refs[expected.key]
        await asyncio.sleep(0)
        return has_won

    def hold_ref(self, key: RefKey, head_type: str) -> None:
        """Not offered: there is one process, and its commit loop has its own queue."""

    # --- within ---------------------------------------------------------------------------------

    def _apply(self, write: ConditionalWrite) -> bool:
        rows = self._store.rows
        current = rows.get(write.key)
        if isinstance(write, Insert):
            if current is None:
                rows[write.key] = write.row
            return current is None
        if current is None or current.token != write.expected_token:
            return False
        if isinstance(write, Swap):
            rows[write.key] = write.row
        else:
            del rows[write.key]
        return True

    async def _arrive(self) -> None:
        self._refuse_if_closed()
        await asyncio.sleep(0)
        self._refuse_if_not_set_up()

    def _is_current(self, expected: Reference) -> bool:
        current = self._store.refs.get(expected.key)
        if current is None:
            return False
        return current.head == expected.head and current.generation == expected.generation

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Unavailable("This database handle is closed")

    def _refuse_if_not_set_up(self) -> None:
        if not self._store.is_set_up:
            raise Misconfigured("The store was never set up", fix="Run `cynosure store init` on it.")


_named_stores: dict[str, MemoryStore] = {}


def open_backend(url: str, options: Mapping[str, str]) -> Backend:
    """`memory:` or `memory:NAME`; option `row_bytes` imitates a database with small rows."""
    name, _, query = url.removeprefix("memory:").partition("?")
    read = read_options(query, options, known={"row_bytes"})
    row_bytes = read_number(read, "row_bytes", ROW_BYTES, lowest=1, highest=ROW_BYTES)
    store = _named_stores.setdefault(name, MemoryStore()) if name else MemoryStore()
    return MemoryBackend(store, row_bytes=int(row_bytes))
