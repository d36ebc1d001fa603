"""Catalog servers to be measured: our own, started here, and peers that listen already.

A maintainer must not break: our server runs with its default settings; only the store, the port and the data
directory are given.
"""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import psutil
from msgspec import Struct

from benchmarks.http_client import Catalog, Connection
from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import bootstrap_environment, make_client
from cynosure.testing.login import Login, make_credential

_START_S = 30.0
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else ""
"""Where files are in memory; empty where the machine has no such place."""
CATALOG = "bench"


class Target(Struct, frozen=True):
    """A server that is measured."""

    name: str
    catalog: Catalog
    pid: int
    """Of the process that listens; its children count too."""
    data: str = ""
    """Its data directory, where it is ours."""

    def rss_mib(self) -> float:
        """Resident memory of the largest of its processes."""
        root = psutil.Process(self.pid)
        sizes_bytes = [0]
        for process in [root, *root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                sizes_bytes.append(process.memory_info().rss)
        return max(sizes_bytes) / 2**20


@asynccontextmanager
async def start_ours(store: str, directory: str = "") -> AsyncIterator[Target]:
    """Our own server with an empty catalog. `store` is `memory` or `sqlite`; files go below `directory`.

    With the store in memory the files are as well, where the machine has a place for that: beside peers that
    keep everything in memory.
    """
    if store == "memory" and not directory:
        directory = MEMORY
    with TemporaryDirectory(prefix="cynosure-bench-", dir=directory or None) as data:
        port = free_port()
        where = ["--data", data, *(("--store", "memory:") if store == "memory" else ())]
        with (Path(data) / "server.log").open("wb") as log:
            root = make_credential()
            env = {**os.environ, **bootstrap_environment(root)}
            command = ["serve", "catalog", "--port", str(port), *where]
            server = await _cynosure(*command, env=env, stderr=log, stdout=log)
        try:
            await _wait_until_ready(server, port, Path(data) / "server.log")
            url = f"http://127.0.0.1:{port}"
            async with make_client(Login(url, root), base_url=url) as http:
                await Admin(http).create_catalog(CATALOG, (Path(data) / "warehouse" / CATALOG).as_uri())
                await Admin(http).grant_content(CATALOG)
            address = f"http://{root.text}@127.0.0.1:{port}/api/catalog?warehouse={CATALOG}"
            yield Target(store, await Catalog.find(address), server.pid, data)
        finally:
            if server.returncode is None:
                server.terminate()
            await server.wait()


@asynccontextmanager
async def start_bare() -> AsyncIterator[Target]:
    """The web server alone (`bare_server.py`): tells how fast the machine is just now."""
    port = free_port()
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.bare_server", str(port), env=dict(os.environ)
    )
    try:
        connection = Connection(f"http://127.0.0.1:{port}")
        while server.returncode is None:
            with suppress(OSError, EOFError):
                await connection.request("GET", "/")
                break
            await asyncio.sleep(0.1)
        connection.close()
        yield Target("bare", Catalog(f"http://127.0.0.1:{port}", ""), server.pid)
    finally:
        if server.returncode is None:
            server.terminate()
        await server.wait()


async def find_peer(name: str, address: str) -> Target:
    """A server that somebody else has started on this machine."""
    port = urlsplit(address).port
    pid = find_listening(port)
    if pid is None:
        raise SystemExit(f"bench: nothing listens on port {port} of this machine ({name})")
    return Target(name, await Catalog.find(address), pid)


def find_listening(port: int | None) -> int | None:
    """The process that listens on a port of this machine; `None` when nobody is seen to."""
    for each in psutil.net_connections(kind="tcp"):
        if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid:
            return int(each.pid)
    return None


async def _cynosure(*arguments: str, **options: Any) -> asyncio.subprocess.Process:
    program = Path(sys.executable).with_name("cynosure")
    return await asyncio.create_subprocess_exec(str(program), *arguments, **options)


async def _wait_until_ready(server: asyncio.subprocess.Process, port: int, log: Path) -> None:
    connection = Connection(f"http://127.0.0.1:{port}")
    give_up_s = asyncio.get_running_loop().time() + _START_S
    while asyncio.get_running_loop().time() < give_up_s and server.returncode is None:
        with suppress(OSError, EOFError):
            if (await connection.request("GET", "/health/ready")).status == 200:
                connection.close()
                return
        await asyncio.sleep(0.1)
    raise SystemExit(f"bench: our server did not start:\n{_end_of(log)}")


def _end_of(log: Path) -> str:
    return log.read_text()[-2000:]


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
