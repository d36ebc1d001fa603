"""Real catalog processes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil
import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import bootstrap_environment, make_client
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.login import Login, find_root, make_credential


class Served(NamedTuple):
    process: ManagedProcess
    url: str
    data: Path
    login: Login

    def as_root(self) -> httpx.AsyncClient:
        return make_client(self.login, base_url=self.url)

    async def create_catalog(self, name: str) -> None:
        async with self.as_root() as http:
            await Admin(http).create_catalog(name, (self.data / "warehouse" / name).as_uri())

    @property
    def port(self) -> str:
        return self.url.rsplit(":", 1)[1]

    def children(self) -> list[int]:
        return [child.pid for child in psutil.Process(self.process.pid).children()]


def has_ended(process: psutil.Process) -> bool:
    """An orphan whose new parent has not collected it yet has ended all the same."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


Serve = Callable[..., Awaitable[Served]]
Wait = Callable[[Callable[[], bool]], Awaitable[None]]


async def _start(
    processes: Processes,
    directory: Path,
    *flags: str,
    command: tuple[str, ...] = ("serve", "catalog"),
    data: Path | None = None,
) -> Served:
    data = data or directory / "data"
    port = processes.reserve_port()
    url = f"{'https' if '--tls-cert' in flags else 'http'}://127.0.0.1:{port}"

    async def is_ready(process: ManagedProcess) -> bool:
        return "ready at" in process.log() or "Everything is ready" in process.log()

    argv = [sys.executable, "-m", "cynosure", *command, "--data", str(data), "--port", str(port), *flags]
    name = f"{command[-1]}-{len(processes.all)}"
    root = make_credential()
    env = bootstrap_environment(root)
    process = await processes.start(name, argv, ready=is_ready, cwd=directory, env=env)
    # A command that was there before the server has made root already.
    return Served(process, url, data, Login(url, find_root(data) or root))


@pytest.fixture
def serve(processes: Processes, tmp_path: Path) -> Serve:
    """Starts `cynosure serve catalog` (or `up`) with these flags and waits until it is ready."""

    async def start(*flags: str, **more) -> Served:
        return await _start(processes, tmp_path, *flags, **more)

    return start


@pytest.fixture(scope="module")
async def running(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Served]:
    """One catalog process for all tests of a module that only look at it."""
    directory = tmp_path_factory.mktemp("running")
    with Processes(directory) as processes:
        yield await _start(processes, directory)


@pytest.fixture
def run_cli(tmp_path: Path) -> Callable[..., Awaitable[subprocess.CompletedProcess[str]]]:
    """Runs `cynosure` with these arguments to its end."""

    async def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "cynosure", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            timeout=60,
        )

    return run


@pytest.fixture
def wait_until() -> Wait:
    """Waits for something that another process does."""

    async def wait(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - another process has no event for us
                await asyncio.sleep(0.02)

    return wait


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=10) as client:
        yield client


@pytest.fixture(name="has_ended")
def has_ended_fixture() -> Callable[[psutil.Process], bool]:
    return has_ended
