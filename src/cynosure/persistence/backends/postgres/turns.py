"""Turns at a contended reference, shared between processes by an advisory lock.

Why not SELECT ... FOR UPDATE: a row lock stops writers that did not ask for a turn; those who waited for it
come in no order; and what such a statement read beside the row (the head's object) is of the time
before it waited. An advisory lock queues in order, excludes only who asks, and the read comes after it.

A maintainer must not break: the lock belongs to a transaction, so it ends with COMMIT, with the connection,
and by the server's own clock when the holder stops answering (`idle_in_transaction_session_timeout`).
Nothing is applied before COMMIT is sent.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from cynosure.common.errors import BadInput, Unavailable
from cynosure.persistence import row_rules
from cynosure.persistence.backends.postgres.faults import DRIVER_ERRORS, translate_read, translate_write
from cynosure.persistence.backends.postgres.pool import Connection
from cynosure.persistence.backends.postgres.sessions import Sessions, lock_number
from cynosure.persistence.backends.postgres.statements import Statements
from cynosure.persistence.backends.postgres.values import to_ref, to_swap
from cynosure.persistence.spi import Limits, ObjKey, Reference, RefKey, Row


class Turn:
    """One turn; `HeldRef` of the contract."""

    def __init__(
        self,
        connection: Connection,
        statements: Statements,
        limits: Limits,
        place: str,
        current: Reference | None,
        head_row: Row | None,
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._limits = limits
        self._place = place
        self._current = current
        self._head_row = head_row
        self._is_used = False
        self.is_over = False
        self.is_committed = False
        self.is_cut_off = False
        """A statement of it did not run to its end, so the state of the session is anybody's guess."""

    @property
    def current(self) -> Reference | None:
        """The reference as read when the turn began."""
        return self._current

    @property
    def head_row(self) -> Row | None:
        """The head's row, read together with the reference."""
        return self._head_row

    async def swap(self, updated: Reference, rows: Sequence[Row] = ()) -> bool:
        """Move the reference and end the transaction; the lock is free when this returns `True`."""
        if self._is_used:
            raise BadInput("A turn moves its reference once", field="swap", fix="Take another turn.")
        if self._current is None:
            return False
        row_rules.check_move(self._current, updated)
        row_rules.check_immutable(rows, self._limits)
        if self.is_over or self._connection.is_closed():
            raise Unavailable("The turn at this reference is over", place=self._place)
        self._is_used = True
        statement, values = to_swap(self._statements, self._current, updated, rows)
        self.is_cut_off = True
        try:
            if not await self._connection.fetchval(statement, *values):
                self.is_cut_off = False
                return False
        except DRIVER_ERRORS as error:
            raise translate_read(error, self._place) from error
        try:
            ending = await self._connection.execute("COMMIT")
        except DRIVER_ERRORS as error:
            raise translate_write(error, self._place) from error
        if ending != "COMMIT":
            raise Unavailable("The database rolled the change back", place=self._place)
        self.is_committed, self.is_cut_off = True, False
        return True


class Turns:
    """The turns of one process."""

    def __init__(self, sessions: Sessions, statements: Statements, limits: Limits) -> None:
        self._sessions = sessions
        self._statements = statements
        self._limits = limits
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
            turn: Turn | None = None
            try:
                turn = await self._begin(connection, key, head_type)
                yield turn
            finally:
                if turn is not None:
                    turn.is_over = True
                # Shielded: a cancelled holder must not keep the lock.
                await asyncio.shield(self._end(connection, turn))
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
        return Turn(
            connection, self._statements, self._limits, self._sessions.address.place, current, head_row
        )

    async def _end(self, connection: Connection, turn: Turn | None) -> None:
        # Losers come again at once; a new connection each would take longer than the whole turn.
        is_sound = turn is not None and not turn.is_cut_off
        try:
            if not (turn and turn.is_committed) and not connection.is_closed():
                # Also after a COMMIT that was cut off: if it did run, this does nothing.
                await connection.execute("ROLLBACK")
        except DRIVER_ERRORS:
            is_sound = False
        finally:
            self._sessions.release(connection, is_sound=is_sound)
