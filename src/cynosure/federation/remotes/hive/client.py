"""Requests to a Hive Metastore.

A maintainer must not break: a connection is used again only if its last answer was read to the end, and never
for a change, because a server that closed it meanwhile would leave the outcome open. A change whose request
may have left is `OutcomeUnknown`.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from cynosure.common.clock import Clock
from cynosure.common.errors import OutcomeUnknown
from cynosure.federation.errors import RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.remotes.failures import (
    NO_ANSWER,
    NOT_ALLOWED,
    NOT_REACHED,
    NOT_UNDERSTOOD,
    name_failure,
)
from cynosure.federation.remotes.hive.thrift import BadThrift, Decoder, Fields, Reply, encode_call
from cynosure.federation.settings import FederationSettings

_DEFAULT_PORT: Final = 9083
_KEPT: Final = 4
"""Connections that are kept for the next request: each is a thread of the server."""
_KEPT_S: Final = 30.0
_LONGEST_S: Final = 60.0
"""For an answer, whatever the settings say: the lock of a table lives five minutes."""
_SUCCESS: Final = 0
_MESSAGE: Final = 1
_APPLICATION: Final = "Application"
"""Thrift's own failure: an unknown method, or a failure inside the server."""
_BAD_REQUEST: Final = 400

_ERRORS: Final[dict[str, dict[int, str]]] = {
    "get_all_databases": {1: "Meta"},
    "get_database": {1: "NoSuchObject", 2: "Meta"},
    "create_database": {1: "AlreadyExists", 2: "InvalidObject", 3: "Meta"},
    "alter_database": {1: "Meta", 2: "NoSuchObject"},
    "drop_database": {1: "NoSuchObject", 2: "InvalidOperation", 3: "Meta"},
    "get_all_tables": {1: "Meta"},
    "get_table_req": {1: "Meta", 2: "NoSuchObject"},
    "get_table_objects_by_name_req": {1: "Meta", 2: "InvalidOperation", 3: "UnknownDB"},
    "create_table": {1: "AlreadyExists", 2: "InvalidObject", 3: "Meta", 4: "NoSuchObject"},
    "alter_table_with_environment_context": {1: "InvalidOperation", 2: "Meta"},
    "drop_table": {1: "NoSuchObject", 2: "Meta"},
    "lock": {1: "NoSuchTxn", 2: "TxnAborted"},
    "check_lock": {1: "NoSuchTxn", 2: "TxnAborted", 3: "NoSuchLock"},
    "unlock": {1: "NoSuchLock", 2: "TxnOpen"},
}
"""What each request may be refused with, by the number of the field in its result."""


class HiveRefused(Exception):
    """The metastore answered with one of its errors. Its words are for deciding, never for callers."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind)
        self.kind = kind
        self.message = message


class _Idle(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    since_s: float


class _Lost(Exception):
    """No answer. `has_left`: the request may have arrived."""

    def __init__(self, reason: str, *, has_left: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.has_left = has_left


class HiveClient:
    """One metastore."""

    def __init__(self, uri: str, settings: FederationSettings, clock: Clock, name: str) -> None:
        parts = urlsplit(uri)
        self._host, self._port = parts.hostname or "", parts.port or _DEFAULT_PORT
        self._timeout_s = min(settings.timeout.total_seconds(), _LONGEST_S)
        self._connect_timeout_s = settings.connect_timeout.total_seconds()
        self._limit_bytes = settings.answer_bytes
        self._clock = clock
        self._name = name
        self._idle: list[_Idle] = []
        self._is_closed = False
        self._number = 0

    async def read(self, method: str, arguments: Fields, *, is_once: bool = False) -> Any:
        """The result of a request that changes nothing. `HiveRefused`, `RemoteUnavailable`.

        `is_once`: it is sent once, also when the server has closed the connection meanwhile.
        """
        kept = None if is_once else self._take_idle()
        try:
            try:
                reply = await self._ask(method, arguments, kept)
            except _Lost as lost:
                if kept is None or lost.reason == NO_ANSWER:
                    raise
                # Closed by the server since it was kept.
                reply = await self._ask(method, arguments, None)
        except _Lost as lost:
            raise RemoteUnavailable(self._name, reason=lost.reason) from lost
        return self._result(method, reply)

    async def change(self, method: str, arguments: Fields) -> Any:
        """The result of a request that changes something. `OutcomeUnknown` when it may have arrived."""
        try:
            reply = await self._ask(method, arguments, None)
        except _Lost as lost:
            if not lost.has_left:
                raise RemoteUnavailable(self._name, reason=lost.reason) from lost
            raise unknown(self._name, lost.reason) from lost
        except RemoteMisbehaved as error:
            raise unknown(self._name, "unusable answer", status="unusable") from error
        return self._result(method, reply)

    async def close(self) -> None:
        """End all connections; those in use when they are not any more."""
        self._is_closed = True
        while self._idle:
            _drop(self._idle.pop().writer)

    def _take_idle(self) -> _Idle | None:
        while self._idle:
            kept = self._idle.pop()
            is_fresh = self._clock.monotonic_s() - kept.since_s < _KEPT_S
            if is_fresh and not kept.reader.at_eof() and not kept.writer.is_closing():
                return kept
            _drop(kept.writer)
        return None

    async def _ask(self, method: str, arguments: Fields, kept: _Idle | None) -> Reply:
        reader, writer = (await self._connect()) if kept is None else (kept.reader, kept.writer)
        self._number = (self._number + 1) % 2**31
        number, is_sound = self._number, False
        try:
            async with asyncio.timeout(self._timeout_s):
                writer.write(encode_call(method, number, arguments))
                await writer.drain()
                decoder = Decoder(lambda count: _read_some(reader, count), limit_bytes=self._limit_bytes)
                reply = await decoder.read_reply()
            if reply.number != number or reply.name != method or decoder.has_rest:
                raise RemoteMisbehaved(self._name, problem="an answer to another request")
            is_sound = True
            return reply
        except TimeoutError:
            raise _Lost(NO_ANSWER, has_left=True) from None
        except OSError as error:
            raise _Lost(name_failure(error), has_left=True) from error
        except BadThrift as error:
            raise RemoteMisbehaved(self._name, problem=str(error)) from error
        finally:
            if is_sound and not self._is_closed and len(self._idle) < _KEPT:
                self._idle.append(_Idle(reader, writer, self._clock.monotonic_s()))
            else:
                _drop(writer)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await asyncio.open_connection(self._host, self._port)
        except TimeoutError as error:
            raise _Lost(NOT_REACHED, has_left=False) from error
        except OSError as error:
            raise _Lost(name_failure(error), has_left=False) from error

    def _result(self, method: str, reply: Reply) -> Any:
        if reply.is_failure:
            raise HiveRefused(_APPLICATION, _message(reply.fields))
        for number, kind in _ERRORS[method].items():
            if number in reply.fields:
                raise HiveRefused(kind, _message(reply.fields[number].value))
        found = reply.fields.get(_SUCCESS)
        return None if found is None else found.value


def unknown(name: str, reason: str, *, status: str | None = None) -> OutcomeUnknown:
    """A change whose answer was lost; or, with a `status`, did not say whether it was made."""
    error = OutcomeUnknown(
        "The remote catalog did not say whether it made the change", catalog=name, reason=reason
    )
    if status is not None:
        error.details["status"] = status
    return error


def refusal(name: str, refused: HiveRefused) -> RemoteRefused:
    """A refusal in our words, of a request after which nothing is changed."""
    reason = NOT_UNDERSTOOD if refused.kind == _APPLICATION else NOT_ALLOWED
    return RemoteRefused(name, status=_BAD_REQUEST, reason=reason)


async def _read_some(reader: asyncio.StreamReader, count: int) -> bytes:
    data = await reader.read(count)
    if not data:
        raise ConnectionResetError
    return data


def _message(fields: Any) -> str:
    found = fields.get(_MESSAGE) if isinstance(fields, dict) else None
    return found.value if found is not None and isinstance(found.value, str) else ""


def _drop(writer: asyncio.StreamWriter) -> None:
    # At once: nothing is left to be said, and waiting for a server's good-bye may take for ever.
    writer.transport.abort()


async def ignore_refusal(asked: Awaitable[Any]) -> None:
    """Do what must not hide how the rest went."""
    with suppress(HiveRefused, RemoteUnavailable, RemoteMisbehaved, OutcomeUnknown):
        await asked
