"""Storms on real databases: start them, hurt them, judge them.

A maintainer must not break: `./dev soak` runs the same tests with larger numbers (`scale`), nothing else.
"""

import asyncio
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from cynosure.testing.harness.probes import log_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.storm.ledger import Done, Event, Ledger, read_ledger, read_ledgers
from cynosure.testing.storm.verify import Verdict, verify_storm
from cynosure.testing.storm.writers import open_storm

IS_SOAK = bool(os.environ.get("CYNOSURE_SOAK"))
SERVICES = Path(__file__).parents[2] / "scripts" / "services"

STORES = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture
def scale() -> Callable[[int, int], int]:
    """Chooses between the size of the suite and that of `./dev soak`."""
    return lambda suite, soak: soak if IS_SOAK else suite


@pytest.fixture
def rng() -> random.Random:
    """Follows from pytest's own seed, which the header of a run shows."""
    return random.Random(random.getrandbits(64))


@pytest.fixture
def no_logs() -> Iterator[None]:
    """Simulated servers that crash and lose their leases would fill the screen."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path}/store.db"
    return request.getfixturevalue("postgres_schema_url")


class Storms:
    """Storm processes on one store, and what they wrote down."""

    def __init__(self, url: str, processes: Processes, directory: Path) -> None:
        self.url = url
        self._processes = processes
        self._directory = directory
        self._ledgers: dict[str, Path] = {}

    async def start(self, name: str, *flags: str, seed: int = 0, url: str = "") -> ManagedProcess:
        ledger = self._ledgers[name] = self._directory / f"{name}.jsonl"
        argv = [sys.executable, "-m", "cynosure.testing.storm", "write", "--store", url or self.url]
        argv += ["--ledger", str(ledger), "--seed", str(seed), *flags]
        ready = log_ready("The storm is ready")
        return await self._processes.start(name, argv, ready=ready, cwd=self._directory, timeout_s=60)

    def ledger(self, name: str) -> Ledger:
        """A ledger for requests that the test itself sends."""
        path = self._ledgers[name] = self._directory / f"{name}.jsonl"
        return Ledger(path)

    async def hail(self, *flags: str, processes: int, rounds: int, seed: int) -> None:
        """Have writing processes killed again and again, to the end."""
        argv = [sys.executable, "-m", "cynosure.testing.storm", "hail", "--store", self.url]
        argv += ["--seed", str(seed), "--rounds", str(rounds), *flags]
        for number in range(processes):
            ledger = self._ledgers[f"hail-{number}"] = self._directory / f"hail-{number}.jsonl"
            argv += ["--ledger", str(ledger)]
        process = await self._processes.start("hail", argv, cwd=self._directory)
        assert await process.wait_exit(timeout_s=60 + 10 * rounds) == 0

    def events(self, name: str = "") -> list[Event]:
        if name:
            return read_ledger(self._ledgers[name])
        return read_ledgers(self._ledgers.values())

    def acknowledged(self, name: str = "") -> int:
        return sum(isinstance(event, Done) for event in self.events(name))

    async def wait_for(self, name: str, more: int, process: ManagedProcess) -> None:
        """Wait until this process has been acknowledged so many more requests."""
        wanted = self.acknowledged(name) + more

        async def has_gone_on(_: ManagedProcess) -> bool:
            return self.acknowledged(name) >= wanted

        await process.wait_until(has_gone_on, timeout_s=60)

    async def verify(self) -> Verdict:
        """Judge all ledgers; nothing may still be written."""
        async with open_storm(self.url) as persistence:
            return await verify_storm(persistence, self.events())


@pytest.fixture
def storms(store_url: str, processes: Processes, tmp_path: Path) -> Storms:
    return Storms(store_url, processes, tmp_path)


@pytest.fixture
def wait_stopped() -> Callable[[ManagedProcess], object]:
    """Waits until a process has stopped itself."""

    async def wait(process: ManagedProcess) -> None:
        async def is_stopped(_: ManagedProcess) -> bool:
            return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED

        await process.wait_until(is_stopped, timeout_s=60)

    return wait


class PrivatePostgres(NamedTuple):
    """A PostgreSQL that a test may kill."""

    home: Path

    @property
    def url(self) -> str:
        return self._services("env").strip().partition("=")[2]

    def start(self) -> None:
        self._services("start")

    def stop(self) -> None:
        self._services("stop")

    def kill9(self) -> None:
        """As a power cut: the server and all its children at once."""
        (pid_file,) = self.home.glob("postgres-*/data/postmaster.pid")
        parent = psutil.Process(int(pid_file.read_text().split()[0]))
        # Stopped first, or it would see its children die and start new ones.
        parent.suspend()
        for process in [*parent.children(recursive=True), parent]:
            process.kill()

    def _services(self, action: str) -> str:
        done = subprocess.run(
            [sys.executable, str(SERVICES), action, "postgres"],
            env={**os.environ, "CYNOSURE_SERVICES_DIR": str(self.home)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout


@pytest.fixture(scope="module")
def private_postgres() -> Iterator[PrivatePostgres]:
    # Not pytest's own folder: as root, the server runs under another account, which cannot enter that.
    home = Path(tempfile.mkdtemp(prefix="cynosure-test-robustness-", dir="/var/tmp"))
    home.chmod(0o755)
    server = PrivatePostgres(home)
    try:
        server.start()
        yield server
    finally:
        server.kill9()  # Faster than a stop, and nobody needs its data.
        shutil.rmtree(home, ignore_errors=True)


class CliRun(NamedTuple):
    exit_code: int
    out: str
    err: str


@pytest.fixture
def run_cli(tmp_path: Path) -> Callable[..., object]:
    """Runs `cynosure` with these arguments to its end."""

    async def run(*arguments: str) -> CliRun:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "cynosure", *arguments,
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 90)
        assert process.returncode is not None
        return CliRun(process.returncode, out.decode(), err.decode())

    return run
