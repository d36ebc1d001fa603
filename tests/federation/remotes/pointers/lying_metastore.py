"""A metastore that says what a test wants, for what a real one cannot be brought to say."""

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from cynosure.federation.remotes.hive.records import make_database, make_table
from cynosure.federation.remotes.hive.thrift import INT32, INT64, STRUCT, Fields, Value, encode_call
from cynosure.testing.pointer_kit import COLUMNS, place

Lie = Callable[[bytes, int], bytes | None]
"""What is answered to a request of this name and number; `None` ends the connection without an answer."""

_REPLY: Final = 2
_EXCEPTION: Final = 3
FIRST: Final = place("first")
"""The pointer of the only table, `sales.orders`."""


class LyingMetastore:
    """A server on this machine that has one table, and the lies that it is given by the names of requests."""

    def __init__(self) -> None:
        self.lies: dict[str, Lie] = {
            "get_database": answering({0: Value(STRUCT, make_database("sales", {}))}),
            "get_table_req": answering({0: Value(STRUCT, {1: Value(STRUCT, _orders())})}),
            "lock": answering({0: Value(STRUCT, {1: Value(INT64, 7), 2: Value(INT32, 1)})}),
        }
        self.heard: list[str] = []
        self.uri = ""
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Serve."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.uri = f"thrift://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, also in the middle of a lie."""
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        with suppress(ConnectionError):
            # Requests are small, and come in one piece.
            while request := await reader.read(2**16):
                length = int.from_bytes(request[4:8], "big")
                name, (number,) = request[8 : 8 + length], struct.unpack_from("!i", request, 8 + length)
                self.heard.append(name.decode())
                said = self.lies.get(name.decode(), failing)(name, number)
                if said is None:
                    break
                writer.write(said)
                await writer.drain()
        writer.close()


def answering(result: Fields) -> Lie:
    """A result, by the numbers of its fields: 0 is success."""
    return lambda name, number: _encode(_REPLY, name, number, result)


def saying(result: bytes) -> Lie:
    """A result as it is on the wire."""

    def say(name: bytes, number: int) -> bytes:
        return _encode(_REPLY, name, number, {})[:-1] + result

    return say


def failing(name: bytes, number: int) -> bytes:
    """Thrift's own failure: as of a method that is not known, or that broke inside."""
    return _encode(_EXCEPTION, name, number, {})


def silent(name: bytes, number: int) -> None:
    """No answer, and the end of the connection."""


def _encode(kind: int, name: bytes, number: int, fields: Fields) -> bytes:
    # A request differs from its answer in one byte.
    data = bytearray(encode_call(name.decode(), number, fields))
    data[3] = kind
    return bytes(data)


def _orders() -> Fields:
    return make_table("sales", "orders", FIRST, COLUMNS, now_s=0)
