"""A REST catalog that lies: a scripted HTTP server for tests of whoever believes too much.

    async with LyingRemote() as remote:
        remote.says("GET", "/tables/orders", huge(1 << 30))
        ...                             # a client of remote.url
        remote.heard                    # every request, as it came

What no script covers is answered honestly: a configuration, a token, an Iceberg 404. A *lie* is a coroutine
that writes what it wants to the connection, which is closed behind it.

A maintainer must not break: lies are written as they are, byte by byte, by no HTTP library that would mend
them; and the largest are never whole in memory.
"""

import asyncio
import json
import ssl
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qs, unquote, urlsplit

_CHUNK: Final = b"x" * 64 * 2**10
_PIECE: Final = 2**20
_GZIP_HEAD: Final = bytes([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255])
_PATIENCE_S: Final = 30.0
"""A lie that waits gives up after this, whatever the client does."""


class Heard(NamedTuple):
    """A request."""

    method: str
    path: str
    """As it was sent, without its query."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    def form(self) -> dict[str, str]:
        """The body as a form."""
        return {name: values[-1] for name, values in parse_qs(self.body.decode()).items()}


Lie = Callable[[Heard, asyncio.StreamWriter], Awaitable[None]]


class LyingRemote:
    """A server on this machine. Its lies are found by method and end of the path, the newest first."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """`tls`: serve HTTPS."""
        self._tls = tls
        self.heard: list[Heard] = []
        self.url = ""
        self._lies: list[tuple[str, str, Lie]] = []
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.says("GET", "/v1/config", answer({"defaults": {}, "overrides": {}}))
        self.says("POST", "/oauth/tokens", token())

    def says(self, method: str, path_end: str, lie: Lie) -> None:
        """Tell this lie to requests of this method whose decoded path ends so."""
        self._lies.insert(0, (method, path_end, lie))

    def heard_at(self, path_end: str) -> list[Heard]:
        """The requests whose path ends so."""
        return [each for each in self.heard if unquote(each.path).endswith(path_end)]

    async def __aenter__(self) -> Self:
        """Serve."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        scheme = "http" if self._tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, also in the middle of a lie."""
        if self._server is not None:
            self._server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            # Who hangs up has heard enough.
            with suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    heard = await _hear(reader)
                    self.heard.append(heard)
                    await self._find(heard)(heard, writer)
                    await writer.drain()
        finally:
            writer.close()

    def _find(self, heard: Heard) -> Lie:
        path = unquote(heard.path)
        for method, path_end, lie in self._lies:
            if heard.method == method and path.endswith(path_end):
                return lie
        return refusal(404, "NotFoundException")


async def _hear(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    method, target, _ = first.split(" ")
    parts = urlsplit(target)
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Heard(method, parts.path, query, headers, body)


def answer(body: Any, status: int = 200, **headers: str) -> Lie:
    """JSON, said in one piece; headers by name, `_` for `-`."""
    return raw(json.dumps(body).encode(), status, **{"content_type": "application/json", **headers})


def raw(body: bytes, status: int = 200, **headers: str) -> Lie:
    """Anything, said in one piece."""

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(status, {**headers, "content_length": str(len(body))}) + body)

    return tell


def refusal(status: int, kind: str, message: str = "what the remote says") -> Lie:
    """An error as the protocol has it."""
    return answer({"error": {"message": message, "type": kind, "code": status}}, status)


def token(text: str = "a-token", expires_in: Any = 3600, **fields: Any) -> Lie:
    """A grant of a token endpoint."""
    return answer({"access_token": text, "token_type": "bearer", "expires_in": expires_in, **fields})


def redirect(to: str, status: int = 307) -> Lie:
    """Ask there instead."""
    return raw(b"", status, location=to)


def huge(size: int, status: int = 200) -> Lie:
    """JSON that goes on for so many bytes."""

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(status, {"content_type": "application/json", "content_length": str(size)}) + b'"')
        for _ in range(size // len(_CHUNK)):
            writer.write(_CHUNK)
            await writer.drain()

    return tell


def bomb(size: int) -> Lie:
    """A small answer that unpacks to so many bytes: one packed piece, again and again."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    piece = packer.compress(bytes(_PIECE)) + packer.flush(zlib.Z_FULL_FLUSH)

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(
            _head(200, {"content_type": "application/json", "content_encoding": "gzip"}) + _GZIP_HEAD
        )
        for _ in range(size // _PIECE):
            writer.write(piece)
            await writer.drain()

    return tell


def drip(every_s: float = 0.01) -> Lie:
    """An answer that never stops coming, one byte at a time."""

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(_head(200, {"content_type": "application/json", "content_length": "1000000"}))
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(every_s)

    return tell


def silence() -> Lie:
    """No answer, and no end."""

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(_PATIENCE_S)

    return tell


def cut(after: bytes = b"") -> Lie:
    """The connection ends here, in the middle of an answer or before any."""

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(after)

    return tell


def cut_answer() -> Lie:
    """A good beginning of an answer, and nothing behind it."""
    return cut(_head(200, {"content_type": "application/json", "content_length": "1000"}) + b'{"metadata":')


def huge_headers(count: int = 100_000) -> Lie:
    """More headers than anybody needs."""

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(count):
            writer.write(b"x-%d: %s\r\n" % (number, b"y" * 100))
            await writer.drain()
        writer.write(b"\r\n")

    return tell


def in_turn(*lies: Lie) -> Lie:
    """One after the other; the last again and again."""
    left = list(lies)

    async def tell(heard: Heard, writer: asyncio.StreamWriter) -> None:
        lie = left.pop(0) if len(left) > 1 else left[0]
        await lie(heard, writer)

    return tell


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}connection: close\r\n\r\n".encode("latin-1")
