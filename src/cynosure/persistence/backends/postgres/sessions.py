"""Sessions with one store: set-up, settings, and how a statement's failure is reported.

A maintainer must not break: settings of a session hold for its life (`server_settings`), and nothing else
changes a session outside a transaction. So no reset is needed between two users of a connection, which
would double the round trips.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

import asyncpg

from cynosure.common.errors import CynosureError, Misconfigured, NewerFormat, Unavailable
from cynosure.persistence.backends.postgres.address import Address
from cynosure.persistence.backends.postgres.faults import (
    DRIVER_ERRORS,
    is_lost_connection,
    never_set_up,
    translate_connect,
    translate_read,
    translate_write,
)
from cynosure.persistence.backends.postgres.pool import Connection, Pool, close_quietly

_READ_ATTEMPTS: Final = 3


class Layout(Protocol):
    """The tables of one kind of store, and their version in its table `store_format`."""

    @property
    def version(self) -> int:
        """The newest that this program knows."""
        ...

    @property
    def layout(self) -> tuple[str, ...]:
        """Statements that make the tables."""
        ...

    @property
    def greet(self) -> str:
        """Asks for the version of a store that is there."""
        ...


class Sessions:
    """The connections of one backend."""

    def __init__(self, address: Address, layout: Layout) -> None:
        self.address = address
        self._layout = layout
        self._pool: Pool | None = None
        self._is_closed = False

    async def setup(self) -> None:
        """Create schema and tables unless they are there."""
        self._refuse_if_closed()
        try:
            connection = await asyncpg.connect(**self._connect_arguments())
        except DRIVER_ERRORS as error:
            raise self._explain_connect(error) from _quotable(error)
        try:
            # Everything in one transaction that begins with a lock: racing set-ups run one after another.
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock($1)", lock_number(self.address.schema))
                await self._lay_out(connection)
        except DRIVER_ERRORS as error:
            # Doing it again does no harm, so even an unknown outcome can be reported as nothing applied.
            raise translate_read(error, self.address.place) from error
        finally:
            await close_quietly(connection)

    async def read(self, statement: str, *values: Any) -> list[Sequence[Any]]:
        """Run a statement that changes nothing. A connection that was lost while idle is replaced."""
        attempt = 1
        while True:
            try:
                return await self._run(statement, values)
            except DRIVER_ERRORS as error:
                if attempt == _READ_ATTEMPTS or not is_lost_connection(error):
                    raise translate_read(error, self.address.place) from error
            # What ended one session, a restart above all, has most likely ended the others.
            if self._pool is not None:
                self._pool.forget_idle()
            attempt += 1

    async def write(self, statement: str, *values: Any) -> bool:
        """Run a statement that changes something, once. Whether it returned a row."""
        try:
            return bool(await self._run(statement, values))
        except DRIVER_ERRORS as error:
            raise translate_write(error, self.address.place) from error

    async def write_many(self, statement: str, values: Sequence[tuple[Any, ...]]) -> list[Sequence[Any]]:
        """Run a statement once for each of `values`, in one round trip and one transaction.

        The rows that all of them returned.
        """
        try:
            if len(values) == 1:
                return await self._run(statement, values[0])
            return await self._run(statement, values, is_many=True)
        except DRIVER_ERRORS as error:
            raise translate_write(error, self.address.place) from error

    async def acquire(self) -> Connection:
        """A connection to a store of ours. Failing here, nothing was sent."""
        self._refuse_if_closed()
        if self._pool is None:
            # Here and not in the constructor: a pool belongs to the running loop.
            self._pool = Pool(self._connect, self.address.connections, self.address.connect_timeout_s)
        try:
            return await self._pool.acquire()
        except DRIVER_ERRORS as error:
            self._refuse_if_closed()
            raise self._explain_connect(error) from _quotable(error)

    def release(self, connection: Connection, *, is_sound: bool) -> None:
        """Give a connection back (`Pool.release`)."""
        if self._pool is not None:
            self._pool.release(connection, is_sound=is_sound)

    async def close(self) -> None:
        """Let running calls finish, then disconnect."""
        self._is_closed = True
        if self._pool is not None:
            await self._pool.close()

    # --- within ---------------------------------------------------------------------------------

    async def _run(
        self, statement: str, values: Sequence[Any], *, is_many: bool = False
    ) -> list[Sequence[Any]]:
        connection = await self.acquire()
        is_sound = False
        try:
            rows: list[Sequence[Any]] = await (
                connection.fetchmany(statement, values) if is_many else connection.fetch(statement, *values)
            )
            is_sound = True
        except asyncpg.PostgresError as error:
            # The server has answered, so the session is ready for the next statement; unless it ended.
            is_sound = not is_lost_connection(error)
            raise
        finally:
            self.release(connection, is_sound=is_sound)
        return rows

    async def _connect(self) -> Connection:
        connection = await asyncpg.connect(**self._connect_arguments())
        try:
            self._check_version(await connection.fetchval(self._layout.greet))
        except BaseException:
            await close_quietly(connection)
            raise
        return connection

    def _connect_arguments(self) -> dict[str, Any]:
        address = self.address
        return {
            "dsn": address.url.reveal(),
            "timeout": address.connect_timeout_s,
            "command_timeout": address.command_timeout_s,
            "statement_cache_size": address.statement_cache_size,
            # A standby answers reads from the past.
            "target_session_attrs": "read-write",
            "server_settings": {
                "application_name": "cynosure",
                "default_transaction_isolation": "read committed",
                # The server gives up as well when this process is stopped or cut off.
                "statement_timeout": _milliseconds(address.command_timeout_s),
                "lock_timeout": _milliseconds(address.turn_timeout_s),
                "idle_in_transaction_session_timeout": _milliseconds(address.turn_timeout_s),
                # Plans are cached, and one made on an empty table must still be right on a full one.
                "enable_seqscan": "off",
                "enable_hashjoin": "off",
                "enable_mergejoin": "off",
                "jit": "off",
            },
        }

    def _check_version(self, version: int | None) -> None:
        if version is None:
            raise never_set_up(self.address.place)
        if version > self._layout.version:
            raise NewerFormat(
                "A newer version of Cynosure laid out this store",
                fix="Use that version, or name another schema.",
                place=self.address.place,
                format_version=version,
                known_version=self._layout.version,
            )

    async def _lay_out(self, connection: Connection) -> None:
        schema = self.address.schema
        if await connection.fetchval("SHOW server_encoding") != "UTF8":
            raise Misconfigured(
                "The database does not store text as UTF-8",
                fix="Create it with: createdb --encoding=UTF8 --template=template0",
                place=self.address.place,
            )
        if await connection.fetchval("SELECT to_regclass($1)", f'"{schema}".store_format'):
            self._check_version(await connection.fetchval(self._layout.greet))
            return
        # Asked first: CREATE SCHEMA IF NOT EXISTS needs a right even when there is nothing to create.
        if not await connection.fetchval("SELECT to_regnamespace($1)", f'"{schema}"'):
            await connection.execute(f'CREATE SCHEMA "{schema}"')
        if await connection.fetchval(
            "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace($1)", f'"{schema}"'
        ):
            raise Misconfigured(
                "The schema holds the tables of another program",
                fix="Name another one with schema= in the URL; this one was not touched.",
                place=self.address.place,
                schema=schema,
            )
        for statement in self._layout.layout:
            await connection.execute(statement)

    def _explain_connect(self, error: BaseException) -> CynosureError:
        return translate_connect(error, self.address.place)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise Unavailable("This database handle is closed", place=self.address.place)


def lock_number(*names: str) -> int:
    """The advisory lock of a thing. Two things that share a number merely wait for each other."""
    digest = hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _quotable(error: BaseException) -> BaseException | None:
    # The driver's complaints about a URL quote it; they must not come along as the cause.
    return None if isinstance(error, ValueError) else error


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
