"""The PostgreSQL backend: one statement, so one round trip and at most one disk flush, per call."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from cynosure.persistence import row_rules
from cynosure.persistence.backends.postgres.address import Address
from cynosure.persistence.backends.postgres.sessions import Sessions
from cynosure.persistence.backends.postgres.statements import Statements
from cynosure.persistence.backends.postgres.turns import Turns
from cynosure.persistence.backends.postgres.values import (
    to_each,
    to_obj_columns,
    to_ref,
    to_ref_values,
    to_row_columns,
    to_swap,
)
from cynosure.persistence.spi import (
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

ROW_BYTES: Final = 1 << 20
_MESSAGE_BYTES: Final = 16 << 20
"""About how much `write` sends in one statement."""
_LIMITS: Final = Limits(row_bytes=ROW_BYTES, swap_carries_rows=True, is_shared=True, is_durable=True)


class PostgresBackend:
    """One schema of a PostgreSQL database."""

    def __init__(self, address: Address) -> None:
        self._place = f"{address.place}, schema {address.schema}"
        self._statements = Statements(address.schema)
        self._sessions = Sessions(address, self._statements)
        self._turns = Turns(self._sessions, self._statements)

    @property
    def limits(self) -> Limits:
        return _LIMITS

    def __repr__(self) -> str:
        return f"PostgresBackend({self._place!r})"

    async def setup(self) -> None:
        await self._sessions.setup()

    async def close(self) -> None:
        await self._sessions.close()

    # --- objects -------------------------------------------------------------------------------

    async def fetch(self, keys: Sequence[ObjKey]) -> list[Row | None]:
        row_rules.check_obj_keys(keys)
        if len(keys) == 1:
            # The common case, for which the general statement measured 1.4 times the CPU.
            rows = await self._sessions.read(self._statements.fetch_one, *keys[0])
            return [Row(keys[0], *rows[0])] if rows else [None]
        found: list[Row | None] = [None] * len(keys)
        if keys:
            for at, *columns in await self._sessions.read(self._statements.fetch, *to_obj_columns(keys)):
                found[at - 1] = Row(keys[at - 1], *columns)
        return found

    async def write(self, rows: Sequence[Row]) -> None:
        row_rules.check_immutable(rows, _LIMITS)
        for chunk in _chunks(rows):
            await self._sessions.write(self._statements.write, *to_row_columns(chunk))

    async def insert(self, row: Row) -> bool:
        row_rules.check_conditional(row, _LIMITS)
        return await self._sessions.write(
            self._statements.insert, *row.key, row.blob, row.token, row.created_us
        )

    async def swap(self, row: Row, expected_token: str) -> bool:
        row_rules.check_conditional(row, _LIMITS)
        row_rules.check_token(expected_token)
        return await self._sessions.write(
            self._statements.swap, *row.key, row.blob, row.token, row.created_us, expected_token
        )

    async def delete_if(self, key: ObjKey, expected_token: str) -> bool:
        row_rules.check_obj_keys((key,))
        row_rules.check_token(expected_token)
        return await self._sessions.write(self._statements.delete_if, *key, expected_token)

    async def write_each(self, writes: Sequence[ConditionalWrite], *, is_relaxed: bool = False) -> list[bool]:
        row_rules.check_each(writes, _LIMITS)
        outcomes = [False] * len(writes)
        if writes:
            statements = self._statements.write_each_relaxed if is_relaxed else self._statements.write_each
            for row in await self._sessions.write_many(*to_each(statements, writes)):
                outcomes[row[0]] = True
        return outcomes

    async def delete(self, keys: Sequence[ObjKey]) -> None:
        row_rules.check_obj_keys(keys)
        if keys:
            await self._sessions.write(self._statements.delete, *to_obj_columns(keys))

    async def scan(self, *, after: ObjKey | None, limit: int) -> list[RowHead]:
        row_rules.check_scan(after, limit)
        if after is None:
            rows = await self._sessions.read(self._statements.scan_first, limit)
        else:
            rows = await self._sessions.read(self._statements.scan, limit, *after)
        return [RowHead(ObjKey(*row[:4]), *row[4:]) for row in rows]

    # --- references ----------------------------------------------------------------------------

    async def fetch_refs(self, keys: Sequence[RefKey]) -> list[Reference | None]:
        row_rules.check_ref_keys(keys)
        if len(keys) == 1:
            rows = await self._sessions.read(self._statements.fetch_ref, *keys[0])
            return [to_ref(keys[0], rows[0])] if rows else [None]
        found: list[Reference | None] = [None] * len(keys)
        if keys:
            columns = [key.realm for key in keys], [key.catalog for key in keys], [key.name for key in keys]
            for at, *row in await self._sessions.read(self._statements.fetch_refs, *columns):
                found[at - 1] = to_ref(keys[at - 1], row)
        return found

    def fetch_refs_now(self, keys: Sequence[RefKey]) -> None:
        """Not offered: every read is a round trip."""

    async def list_refs(self, realm: RealmId | None = None) -> list[Reference]:
        if realm is not None:
            row_rules.check_realm(realm)
        rows = await self._sessions.read(self._statements.list_refs, realm)
        return [to_ref(RefKey(*row[:3]), row[3:]) for row in rows]

    async def insert_ref(self, ref: Reference) -> bool:
        row_rules.check_ref(ref)
        return await self._sessions.write(self._statements.insert_ref, *to_ref_values(ref))

    async def swap_ref(self, expected: Reference, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        row_rules.check_move(expected, updated)
        row_rules.check_immutable(rows, _LIMITS)
        statement, values = to_swap(self._statements, expected, updated, rows)
        return await self._sessions.write(statement, *values)

    async def delete_ref(self, expected: Reference) -> bool:
        row_rules.check_ref_keys((expected.key,))
        return await self._sessions.write(
            self._statements.delete_ref, *expected.key, expected.head, expected.generation
        )

    def hold_ref(self, key: RefKey, head_type: str) -> AbstractAsyncContextManager[HeldRef]:
        return self._turns.take(key, head_type)


def _chunks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    chunk: list[Row] = []
    chunk_bytes = 0
    for row in rows:
        chunk.append(row)
        chunk_bytes += len(row.blob)
        if chunk_bytes >= _MESSAGE_BYTES:
            yield chunk
            chunk, chunk_bytes = [], 0
    if chunk:
        yield chunk
