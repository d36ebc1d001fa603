"""A token service on this machine that keeps every request it is sent."""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qs


class Heard(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def form(self) -> dict[str, str]:
        """The body, with every field given once."""
        return {name: value for name, [value] in parse_qs(self.body.decode(), strict_parsing=True).items()}


class Reply(NamedTuple):
    body: bytes
    status: int = 200
    headers: Mapping[str, str] = {}


class RecordedService:
    """Answers what `answer` says; a reply of `None` is never given, so that the client waits."""

    def __init__(self, answer: Callable[[Heard], Reply | None]) -> None:
        self.answer = answer
        self.heard: list[Heard] = []
        self.url = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "RecordedService":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            method, path, _ = first.split(" ")
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            heard = Heard(method, path, headers, body)
            self.heard.append(heard)
            if (reply := self.answer(heard)) is None:
                await reader.read()
                return
            extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
            writer.write(
                f"HTTP/1.1 {reply.status} Said\r\ncontent-length: {len(reply.body)}\r\n{extra}"
                "connection: close\r\n\r\n".encode()
                + reply.body
            )
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
