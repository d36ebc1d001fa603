"""Real catalog processes."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from cynosure.testing.harness.processes import ManagedProcess, Processes


class Served(NamedTuple):
    process: ManagedProcess
    url: str
    data: Path


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
def serve(processes: Processes, tmp_path: Path) -> Serve:
    """Starts `cynosure serve catalog` (or `up`) with these flags and waits until it is ready."""

    async def start(
        *flags: str, command: tuple[str, ...] = ("serve", "catalog"), data: Path | None = None, port: int = 0
    ) -> Served:
        data = data or tmp_path / "data"
        port = port or processes.reserve_port()
        is_tls = "--tls-cert" in flags
        url = f"{'https' if is_tls else 'http'}://127.0.0.1:{port}"

        async def is_ready(process: ManagedProcess) -> bool:
            return "ready at" in process.log() or "Everything is ready" in process.log()

        argv = [sys.executable, "-m", "cynosure", *command, "--data", str(data), "--port", str(port), *flags]
        name = f"{command[-1]}-{len(processes.all)}"
        process = await processes.start(name, argv, ready=is_ready, cwd=tmp_path)
        return Served(process, url, data)

    return start


@pytest.fixture
async def http() -> httpx.AsyncClient:
    async with httpx.AsyncClient(timeout=10) as client:
        yield client
