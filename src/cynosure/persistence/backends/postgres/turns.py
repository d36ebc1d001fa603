"""Turns at a contended reference, shared between processes by an advisory lock.

Why not SELECT ... FOR UPDATE: a row lock stops writers that did not ask for a turn; those who waited for it
come in no order; and what such a statement read beside the row (the head's object) is of the time
before it waited. An advisory lock queues in order, excludes only who asks, and the read comes after it.

A maintainer must not break: the lock belongs to a transaction, so it ends with that, with the connection,
and by the server's own clock when the holder keeps it too long (`idle_in_transaction_session_timeout`).
The transaction changes nothing: the holder swaps on another connection, one statement and one flush each.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from cynosure.common.errors import Unavailable
from cynosure.persistence.backends.postgres.faults import DRIVER_ERRORS, translate_read
from cynosure.persistence.backends.postgres.pool import Connection
from cynosure.persistence.backends.postgres.sessions import Sessions, lock_number
from cynosure.persistence.backends.postgres.statements import Statements
from cynosure.persistence.backends.postgres.values import to_ref
from cynosure.persistence.spi import ObjKey, Reference, RefKey, Row


class Turn(NamedTuple):
    """One turn; `HeldRef` of the contract."""

    current: Reference | None
    head_row: Row | None


class Turns:
    """The turns of one process."""

    def __init__(self, sessions: Sessions, statements: Statements) -> None:
        self._sessions = sessions
        self._statements = statements
        # Those who wait for a turn keep a connection each; the other half stays for everything else.
        self._places = asyncio.Semaphore(sessions.address.connections // 2)

    @asynccontextmanager
    async def take(self, key: RefKey, head_type: str) -> AsyncIterator[Turn]:
        """Wait for the turn, then read the reference and its head."""
        address = self._sessions.address
        try:
            async with asyncio.timeout(address.turn_timeout_s):
                await self._places.acquire()
        except TimeoutError as error:
            raise Unavailable(
                "Too many turns at references are taken at once", place=address.place
            ) from error
        try:
            connection = await self._sessions.acquire()
            has_begun = False
            try:
                turn = await self._begin(connection, key, head_type)
                has_begun = True
                yield turn
            finally:
                # Shielded: a cancelled holder must not keep the lock.
                await asyncio.shield(self._end(connection, has_begun=has_begun))
        finally:
            self._places.release()

    async def _begin(self, connection: Connection, key: RefKey, head_type: str) -> Turn:
        number = lock_number(self._sessions.address.schema, *key)
        try:
            # Two statements in one message. The read is a third, because its snapshot must be taken
            # after the lock was had.
            await connection.execute(f"BEGIN; SELECT pg_advisory_xact_lock({number})")
            row = await connection.fetchrow(self._statements.fetch_held, *key, head_type)
        except DRIVER_ERRORS as error:
            raise translate_read(error, self._sessions.address.place) from error
        current = head_row = None
        if row is not None:
            current = to_ref(key, row[:4])
            if row[4] is not None:
                head_row = Row(ObjKey(key.realm, key.catalog, head_type, current.head), *row[4:])
        return Turn(current, head_row)

    async def _end(self, connection: Connection, *, has_begun: bool) -> None:
        # A beginning that was cut off leaves the session in a state that is anybody's guess.
        is_sound = has_begun
        try:
            if not connection.is_closed():
                await connection.execute("ROLLBACK")
        except DRIVER_ERRORS:
            is_sound = False
        finally:
            self._sessions.release(connection, is_sound=is_sound)
