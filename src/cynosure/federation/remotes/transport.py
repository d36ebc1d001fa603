"""One request and one answer over HTTP, with a server that nobody here knows.

A maintainer must not break: no redirect is followed, because credentials go with every request; nothing of
the environment counts (proxies, netrc); an answer is bounded in time however slowly it drips, and in size
as it streams, also behind its compression; and `Lost.has_left` is false only when no byte of the request
was sent.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import httpx
from msgspec import Struct

from cynosure.federation.remotes.failures import METADATA_SERVICE, NO_ANSWER, name_failure
from cynosure.federation.settings import FederationSettings
from cynosure.storage.check_config import is_metadata_service

LIST_BYTES: Final = 16 * 2**20
"""Of one answer of a list: decoding a larger one would hold all others of the process up for too long."""
ENTRY_BYTES: Final = 4 * 2**20
"""Of one that is decoded as it is, such as the properties of a namespace."""
_IDLE_S: Final = 4.0
"""Idle connections are given up before common servers do (5 s and more): a change that is sent while its
connection is being closed has no known outcome."""
_LEFT: Final = "http11.send_request_headers.started"
_CONNECTED: Final = "connection.connect_tcp.complete"
_GZIP: Final = 16 + zlib.MAX_WBITS
_WITHOUT_BODY: Final = frozenset({204, 304})
_MOST_REFUSAL_BYTES: Final = 64 * 2**10
"""Of an answer with a status of 400 or above; what is behind that is not read."""


class Answered(Struct, frozen=True):
    """A complete answer, be it a refusal."""

    status: int
    headers: httpx.Headers
    body: bytes


class Lost(Struct, frozen=True):
    """No answer."""

    has_left: bool
    """Whether any of the request may have been read by the server."""
    reason: str


class Unusable(Struct, frozen=True):
    """An answer that is not read any further."""

    status: int
    problem: str


class Transport:
    """Connections to the servers of one remote. Opened by the first request, kept for a moment after each."""

    def __init__(self, settings: FederationSettings) -> None:
        self._settings = settings
        self._timeout_s = settings.timeout.total_seconds()
        self._connect_s = min(settings.connect_timeout.total_seconds(), self._timeout_s)
        self._wire: httpx.AsyncHTTPTransport | None = None

    async def send(
        self,
        method: str,
        url: httpx.URL,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        limit: int | None = None,
    ) -> Answered | Lost | Unusable:
        """Send once. `limit` is for the answer's body, if it is less than `answer_bytes` of the settings."""
        most = self._settings.answer_bytes
        limit = most if limit is None else min(limit, most)
        has_left = False

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            nonlocal has_left
            if event == _CONNECTED:
                await _require_elsewhere(info["return_value"])
            has_left = has_left or event == _LEFT

        timeout = httpx.Timeout(self._timeout_s, connect=self._connect_s)
        extensions = {"trace": trace, "timeout": timeout.as_dict()}
        try:
            request = httpx.Request(
                method,
                url,
                headers={"accept-encoding": "gzip", "user-agent": "cynosure", **headers},
                content=body,
                extensions=extensions,
            )
            async with asyncio.timeout(self._timeout_s):
                wire = await self._open()
                response = await wire.handle_async_request(request)
                try:
                    return await _read(response, limit)
                finally:
                    await response.aclose()
        except TimeoutError:
            return Lost(has_left, NO_ANSWER)
        except _NoCatalogThere:
            return Lost(has_left, METADATA_SERVICE)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ssl.SSLError, OSError) as error:
            return Lost(has_left, name_failure(error))
        except (ValueError, UnicodeError) as error:
            # What no request can hold, such as a header with a line end in it.
            return Lost(has_left, type(error).__name__)

    async def close(self) -> None:
        """End the connections."""
        if self._wire is not None:
            await self._wire.aclose()
            self._wire = None

    async def _open(self) -> httpx.AsyncHTTPTransport:
        """Not a client of httpx: that keeps cookies, and reads user names out of URLs."""
        if self._wire is None:
            # Reads the certificates of all authorities, once per process.
            context = await asyncio.to_thread(make_context, self._settings.ca_file)
            if self._wire is None:
                limits = httpx.Limits(
                    max_connections=None,
                    max_keepalive_connections=self._settings.concurrent,
                    keepalive_expiry=_IDLE_S,
                )
                self._wire = httpx.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)
        return self._wire


class _NoCatalogThere(Exception):
    """A name leads to where a cloud tells its machines their secrets."""


async def _require_elsewhere(stream: Any) -> None:
    """Refuse an address that a connection could not have named itself, before anything is sent there."""
    address = stream.get_extra_info("server_addr")
    if address is not None and is_metadata_service(str(address[0])):
        await stream.aclose()
        raise _NoCatalogThere


async def _read(response: httpx.Response, limit: int) -> Answered | Unusable:
    status = response.status_code
    if 300 <= status < 400 and status != 304:
        return Unusable(status, "a redirect")
    if status in _WITHOUT_BODY:
        # Only a connection whose answer was read to its end is used again, also when that is at once.
        async for _ in response.aiter_raw():
            return Unusable(status, "a body where there is none")
        return Answered(status, response.headers, b"")
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", "x-gzip", ""):
        return Unusable(status, "an unknown compression")
    is_refusal = status >= 400
    body = bytearray()
    try:
        chunks = response.aiter_raw()
        async for chunk in chunks if coding in ("identity", "") else _unpack(chunks, limit):
            body += chunk
            if is_refusal and len(body) > _MOST_REFUSAL_BYTES:
                # The status says what there is to know.
                return Answered(status, response.headers, b"")
            if len(body) > limit:
                return Unusable(status, "too large")
    except zlib.error:
        return Unusable(status, "damaged compression")
    return Answered(status, response.headers, bytes(body))


async def _unpack(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Decompressed in pieces of bounded size: a small answer may unpack to a very large one."""
    piece = min(limit + 1, 2**20)
    unpacker = zlib.decompressobj(_GZIP)
    async for chunk in chunks:
        rest = chunk
        while rest:
            if unpacker.eof:
                raise zlib.error("more after the end")
            yield unpacker.decompress(rest, piece)
            rest = unpacker.unconsumed_tail or unpacker.unused_data
    while not unpacker.eof and (held := unpacker.decompress(b"", piece)):
        yield held
    if not unpacker.eof:
        raise zlib.error("ends too early")


@cache
def make_context(ca_file: Path | None) -> ssl.SSLContext:
    """One for all remotes: each would hold all of the system's authorities."""
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
