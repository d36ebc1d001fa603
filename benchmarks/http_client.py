"""A small HTTP client: one connection, one request at a time, as little CPU as Python allows.

A maintainer must not break: it reads the whole answer before the next request, as clients of a catalog do.
"""

import asyncio
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

import httpx
import msgspec


class Answer(NamedTuple):
    """Status and body."""

    status: int
    body: bytes


class Connection:
    """One kept-alive connection to one server; opened by the first request, and again when it was closed."""

    def __init__(self, url: str, token: str = "") -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        headers = [f"Host: {self._host}:{self._port}", "Accept: application/json"]
        headers.append("Content-Type: application/json")
        if token:
            headers.append(f"Authorization: Bearer {token}")
        self._head = "".join(f"{header}\r\n" for header in headers).encode()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: object = None, *, key: str = "") -> Answer:
        """Send one request; `body` is encoded as JSON, `key` is its Idempotency-Key."""
        data = b"" if body is None else msgspec.json.encode(body)
        keyed = b"Idempotency-Key: %s\r\n" % key.encode() if key else b""
        head = b"%s %s HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n" % (
            *(method.encode(), path.encode(), self._head, keyed),
            len(data),
        )
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port, limit=1 << 24)
        reader, writer = self._streams
        writer.write(head + data)
        try:
            return await self._read(reader, method)
        except (OSError, EOFError):
            self.close()
            raise

    def close(self) -> None:
        """End the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    async def _read(self, reader: asyncio.StreamReader, method: str) -> Answer:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        if method == "HEAD" or status in (204, 304):
            return Answer(status, b"")
        if b"\r\ntransfer-encoding: chunked" in head:
            body = await _read_chunks(reader)
        else:
            length = head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
            body = await reader.readexactly(int(length or 0))
        if b"\r\nconnection: close" in head:
            self.close()
        return Answer(status, body)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    pieces: list[bytes] = []
    while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
        pieces.append((await reader.readexactly(size + 2))[:-2])
    await reader.readuntil(b"\r\n")
    return b"".join(pieces)


class Catalog:
    """The paths of one catalog behind an Iceberg REST address, as `GET /v1/config` tells them."""

    def __init__(self, url: str, root: str, token: str = "") -> None:
        self.url = url
        self.root = root
        """Path of everything below the prefix."""
        self.token = token
        """Empty for a server that does not ask who its clients are."""

    def connect(self) -> Connection:
        """A connection of its own, with the token."""
        return Connection(self.url, self.token)

    @classmethod
    async def find(cls, address: str) -> "Catalog":
        """Ask the server for its prefix.

        The address may end with `?warehouse=NAME`, and may name a client: `http://ID:SECRET@HOST:PORT/PATH`.
        """
        parts = urlsplit(address)
        path = parts.path.rstrip("/")
        url = f"{parts.scheme}://{parts.hostname}:{parts.port}"
        token = ""
        if parts.username:
            token = await _fetch_token(f"{url}{path}/v1/oauth/tokens", parts.username, parts.password or "")
        connection = Connection(url, token)
        query = f"?{parts.query}" if parts.query else ""
        answer = await connection.request("GET", f"{path}/v1/config{query}")
        connection.close()
        if answer.status != 200:
            raise SystemExit(f"bench: {url} answered {answer.status} to /v1/config")
        config = msgspec.json.decode(answer.body)
        prefix = {**config.get("defaults", {}), **config.get("overrides", {})}.get("prefix", "")
        return cls(url, f"{path}/v1/{quote(prefix)}".rstrip("/"), token)

    def namespace(self, *levels: str) -> str:
        """Path of a namespace."""
        return f"{self.root}/namespaces/{'%1F'.join(map(quote, levels))}"


async def _fetch_token(address: str, client_id: str, secret: str) -> str:
    form = {"grant_type": "client_credentials", "scope": "PRINCIPAL_ROLE:ALL"}
    form |= {"client_id": unquote(client_id), "client_secret": unquote(secret)}
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(address, data=form)
    if answer.status_code != 200:
        raise SystemExit(f"bench: {address} gave no token: {answer.status_code} {answer.text}")
    token: str = answer.json()["access_token"]
    return token
