"""A server that is started again whenever it was killed, and waiting for what other processes do."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from cynosure.testing.catalog_server import CatalogServer, bootstrap_environment
from cynosure.testing.harness.probes import http_ready
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Login, make_credential


class Phoenix:
    """Rises again; see `cynosure.testing.catalog_storm.phoenix`."""

    def __init__(self, server: CatalogServer) -> None:
        self.server = server
        self._killed: set[int] = set()

    async def kill(self) -> None:
        parent = psutil.Process(self.server.process.pid)
        living: list[psutil.Process] = []

        def is_born() -> bool:
            living[:] = [child for child in parent.children() if child.pid not in self._killed]
            return bool(living)

        await until(is_born)
        self._killed.add(living[0].pid)
        living[0].kill()


async def start_phoenix(processes: Processes, directory: Path, store_url: str) -> Phoenix:
    data, port = directory / "data", processes.reserve_port()
    url = f"http://127.0.0.1:{port}"
    argv = [sys.executable, "-m", "cynosure.testing.catalog_storm", "serve"]
    argv += ["--data", str(data), "--port", str(port), "--store", store_url]
    root = make_credential()
    process = await processes.start(
        "phoenix",
        argv,
        ready=http_ready(f"{url}/health/ready"),
        cwd=directory,
        env=bootstrap_environment(root),
        timeout_s=60,
    )
    return Phoenix(CatalogServer(process, url, data, Login(url, root)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another process has no event for us
            await asyncio.sleep(0.01)
