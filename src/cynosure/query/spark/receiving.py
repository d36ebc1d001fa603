"""The gateway's end of the rows of one statement.

A maintainer must not break: not more than one batch is held here; who reads slowly holds Spark back.
"""

import asyncio
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cynosure.query.spark.sending import LENGTH

if TYPE_CHECKING:
    import pyarrow as pa

_BUFFER_BYTES: Final = 256 * 2**10


class Receiver:
    """Waits for the driver at a socket, and reads what it sends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._server: asyncio.Server | None = None
        self._connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = (
            asyncio.get_running_loop().create_future()
        )

    @property
    def path(self) -> str:
        """Where the driver connects to."""
        return str(self._path)

    async def listen(self) -> None:
        """Be there."""
        self._server = await asyncio.start_unix_server(self._accept, str(self._path), limit=_BUFFER_BYTES)

    async def schema(self) -> "pa.Schema":
        """The first message. `asyncio.IncompleteReadError` when the driver gave up."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        message = await self._read()
        return pa.ipc.read_schema(pa.py_buffer(message))

    async def batch(self, schema: "pa.Schema") -> "pa.RecordBatch | None":
        """The next one; None behind the last."""
        import pyarrow as pa  # noqa: PLC0415 - an extra

        message = await self._read()
        if not message:
            return None
        return pa.ipc.read_record_batch(pa.py_buffer(message), schema)

    async def close(self) -> None:
        """Leave; the driver notices."""
        if self._server is not None:
            self._server.close()
        if self._connected.done():
            _, writer = self._connected.result()
            writer.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)

    async def _read(self) -> bytes:
        reader, _ = await asyncio.shield(self._connected)
        (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
        return await reader.readexactly(length) if length else b""

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connected.done():
            writer.close()
        else:
            self._connected.set_result((reader, writer))
