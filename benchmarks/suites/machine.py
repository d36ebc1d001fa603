"""The machine's own limits, which the other suites' figures are read against.

One operation is: one fdatasync after appending 4 KiB; one 64-byte round trip between two processes on
loopback TCP; one msgpack encode of a commit-like struct of 50 fields; one SHA-256 of 1 MiB.

A maintainer must not break: nothing of this project is measured here, so the figures change only with
the machine.
"""

import asyncio
import hashlib
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec

from benchmarks.measure import Meter, Options, Round

ECHO = """
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    peer, _ = server.accept()
    while data := peer.recv(64):
        peer.sendall(data)
"""


@asynccontextmanager
async def open_candidates(options: Options) -> AsyncIterator[Mapping[str, Round]]:
    count = options.get("count", 200)
    directory = options.get("directory", "")
    echo = await asyncio.create_subprocess_exec(sys.executable, "-c", ECHO, stdout=asyncio.subprocess.PIPE)
    assert echo.stdout is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", int(await echo.stdout.readline()))

    async def fdatasync(meter: Meter) -> None:
        block = os.urandom(4096)
        with tempfile.TemporaryFile(dir=directory or None, buffering=0) as file, meter.measuring():
            for _ in range(count):
                file.write(block)
                os.fdatasync(file.fileno())
        meter.count(operations=count, bytes=count * len(block))

    async def loopback(meter: Meter) -> None:
        meter.watch(echo.pid)
        message = b"x" * 64
        with meter.measuring():
            for _ in range(count):
                writer.write(message)
                await reader.readexactly(64)
        meter.count(operations=count, requests=count, bytes=count * 128)

    async def msgpack(meter: Meter) -> None:
        encoder = msgspec.msgpack.Encoder()
        value = {f"field_{number}": [number, f"value {number}"] for number in range(50)}
        with meter.measuring():
            for _ in range(count):
                encoded = encoder.encode(value)
        meter.count(operations=count, bytes=count * len(encoded))

    async def sha256(meter: Meter) -> None:
        block = bytes(1 << 20)
        with meter.measuring():
            for _ in range(count):
                hashlib.sha256(block).digest()
        meter.count(operations=count, bytes=count * len(block))

    try:
        yield {"fdatasync": fdatasync, "loopback": loopback, "msgpack": msgpack, "sha256": sha256}
    finally:
        writer.close()
        await echo.wait()
