"""Connections to the database of a SQL catalog, and what its errors mean.

A maintainer must not break: every value that the driver would otherwise take from `PG*` variables,
`~/.pgpass`, `~/.postgresql` or a service file is given to it. And an error of a change is `OutcomeUnknown`,
unless the server itself said that the statement failed.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import asyncpg

from cynosure.catalog.connection import Connection, ConnectionSecrets, Password
from cynosure.common.errors import CynosureError, OutcomeUnknown
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.remotes import failures as why
from cynosure.federation.remotes.transport import make_context
from cynosure.federation.remotes.urls import is_this_host
from cynosure.federation.settings import FederationSettings

MOST_ROWS: Final = 10_000
MOST_CHARACTERS: Final = 4_096
"""Of one text. PyIceberg's tables have room for 1,000."""
_DEFAULT_PORT: Final = 5432
_CONNECTIONS: Final = 4
_IDLE_S: Final = 30.0
_DRIVER_ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
# Classes of errors that the server reports for a statement that it gave up. Not here: connections (08), the
# server's end (57), failures of the system and inside of it (58, XX): those can follow a change.
_FAILED_FOR_SURE: Final = frozenset(
    {"0A", "22", "23", "25", "26", "28", "3D", "3F", "40", "42", "53", "54", "55"}
)
_COMPLETION_UNKNOWN: Final = "40003"
_NO_TABLE: Final = "42P01"
_BUSY: Final = frozenset({"40", "53", "55", "57", "58", "08", "XX"})
_OF_ONE: Final = frozenset({"40", "55", "57014", "XX"})
"""By class, or code: what a server says of one statement, and not that it is there for nobody."""
_CONNECTIONS_CLASS: Final = "08"
_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403
_REFUSALS: Final = {
    "28": (_FORBIDDEN, why.NOT_LET_IN),
    "42501": (_FORBIDDEN, why.NOT_ALLOWED),
    "3D": (_BAD_REQUEST, why.NO_DATABASE),
}
"""By code, or its class."""


class Database:
    """One database, by one user."""

    def __init__(
        self, connection: Connection, secrets: ConnectionSecrets, settings: FederationSettings, name: str
    ) -> None:
        authentication = connection.authentication
        if not isinstance(authentication, Password) or secrets.password is None:
            raise RemoteUnavailable(name, reason="the connection has no user or password")
        parts = urlsplit(connection.uri)
        self._host, self._port = parts.hostname or "", parts.port or _DEFAULT_PORT
        self._database = unquote(parts.path.strip("/"))
        if not self._host or not self._database:
            raise RemoteUnavailable(name, reason="the connection names no host or database")
        self._user = authentication.user
        self._password = secrets.password
        self._is_here = is_this_host(self._host)
        """Then nobody listens on the way, and there need not be TLS."""
        self._settings = settings
        self._name = name
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()

    async def fetch(self, statement: str, *values: Any) -> Sequence[Any]:
        """The rows of what changes nothing.

        `RemoteMisbehaved` for more of them, or longer texts, than a catalog has. The statement sees to it
        that no more than one row and one character too many are sent.
        """
        try:
            async with self._connection() as connection:
                rows: Sequence[Any] = await connection.fetch(statement, *values)
        except _DRIVER_ERRORS as error:
            raise self._translate(error) from error
        if len(rows) > MOST_ROWS or any(
            len(str(value or "")) > MOST_CHARACTERS for row in rows for value in row
        ):
            raise RemoteMisbehaved(self._name, problem="rows or texts beyond what a catalog has")
        return rows

    async def change(self, statement: str, *values: Any, taken: CynosureError | None = None) -> int:
        """How many rows one statement changed. `taken` is raised when a key is there already."""
        async with self._changing(taken) as connection:
            done: str = await connection.execute(statement, *values)
            return int(done.rpartition(" ")[2])

    @asynccontextmanager
    async def changing(self, *, taken: CynosureError | None = None) -> AsyncIterator[Any]:
        """A connection in a transaction, which ends with the block."""
        async with self._changing(taken) as connection, connection.transaction():
            yield connection

    @asynccontextmanager
    async def _changing(self, taken: CynosureError | None) -> AsyncIterator[Any]:
        has_begun = False
        try:
            async with self._connection() as connection:
                has_begun = True
                yield connection
        except asyncpg.UniqueViolationError as error:
            raise taken or self._translate(error) from error
        except _DRIVER_ERRORS as error:
            code = getattr(error, "sqlstate", None) or ""
            is_refused = code[:2] in _FAILED_FOR_SURE and code != _COMPLETION_UNKNOWN
            if is_refused or not has_begun:
                raise self._translate(error) from error
            raise OutcomeUnknown(
                "The remote catalog did not say whether it made the change",
                catalog=self._name,
                reason=type(error).__name__,
                **_status(code),
            ) from error

    async def close(self) -> None:
        """End the connections."""
        if self._pool is not None:
            self._pool.terminate()
            self._pool = None

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        pool = await self._open()
        async with pool.acquire(timeout=self._settings.timeout.total_seconds()) as connection:
            yield connection

    async def _open(self) -> asyncpg.Pool:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    **self._options(await self._choose_tls()),
                    min_size=0,
                    max_size=_CONNECTIONS,
                    max_inactive_connection_lifetime=_IDLE_S,
                )
            return self._pool

    def _options(self, tls: ssl.SSLContext | None) -> dict[str, Any]:
        return {
            "host": self._host,
            "port": self._port,
            "user": self._user,
            "password": self._password.reveal(),
            "database": self._database,
            "ssl": tls or False,
            "direct_tls": False,
            "target_session_attrs": "any",
            "krbsrvname": "postgres",
            "gsslib": "gssapi",
            "timeout": self._settings.connect_timeout.total_seconds(),
            "command_timeout": self._settings.timeout.total_seconds(),
            "statement_cache_size": 0,
        }

    async def _choose_tls(self) -> ssl.SSLContext | None:
        """`None` on this machine; and elsewhere only where it is allowed and the server has no TLS."""
        if self._is_here:
            return None
        # Reads the certificates of all authorities, once per process.
        context = await asyncio.to_thread(make_context, self._settings.ca_file)
        if not self._settings.allow_insecure:
            return context
        try:
            connection = await asyncpg.connect(**self._options(context))
        except _DRIVER_ERRORS as error:
            return None if _is_without_tls(error) else context
        await connection.close()
        return context

    def _translate(self, error: BaseException) -> CynosureError:
        """An error of what cannot have changed anything."""
        code = getattr(error, "sqlstate", None) or ""
        if code == _NO_TABLE:
            return RemoteMisbehaved(self._name, problem=why.NO_TABLES)
        if not code or code[:2] in _BUSY:
            has_no_tls = _is_without_tls(error) and not self._is_here
            is_cut_off = code[:2] == _CONNECTIONS_CLASS or type(error) is ConnectionError
            reason = why.NO_TLS if has_no_tls else why.CUT_OFF if is_cut_off else why.name_failure(error)
            unavailable = RemoteUnavailable(self._name, reason=reason)
            unavailable.details.update(_status(code))
            return unavailable
        status, reason = _REFUSALS.get(code) or _REFUSALS.get(code[:2]) or (_BAD_REQUEST, why.NOT_ALLOWED)
        return RemoteRefused(self._name, status=status, reason=reason)


def _status(code: str) -> dict[str, str]:
    return {"status": code} if code in _OF_ONE or code[:2] in _OF_ONE else {}


def _is_without_tls(error: BaseException) -> bool:
    # The driver says it by a bare `ConnectionError`, before anything was sent.
    return type(error) is ConnectionError
