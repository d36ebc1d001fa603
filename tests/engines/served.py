"""A catalog server of ours, as engines meet it: a real process, a data directory, catalogs in it.

A maintainer must not break: engines get nothing but an address and properties, so that any REST catalog
can stand in for ours (CYNOSURE_ENGINE_URI).
"""

import asyncio
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cynosure.testing.harness.probes import http_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes


@dataclass(frozen=True)
class RestCatalog:
    """What a client must know of one catalog."""

    uri: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the client beside `uri`; the same names in Java and Python."""


class CatalogServer:
    """A running server. Catalogs are made on demand, each in a folder of its own."""

    def __init__(self, url: str, data: Path, process: ManagedProcess) -> None:
        self.url = url
        self.data = data
        self.process = process

    def create_catalog(self, *options: str, env: Mapping[str, str] | None = None) -> RestCatalog:
        """A new, empty catalog; its files below the data directory unless an option says otherwise."""
        name = f"c{uuid.uuid4().hex[:12]}"
        command = ["catalogs", "create", name, "--data", str(self.data), *options]
        _run_cli(*command, env=env or {})
        return RestCatalog(f"{self.url}/api/catalog", {"warehouse": name})


@contextmanager
def serve(directory: Path, env: Mapping[str, str] | None = None) -> Iterator[CatalogServer]:
    """A server over an empty data directory, with settings from `env`; gone when the block ends."""
    data = directory / "data"
    with Processes(directory) as processes:
        port = processes.reserve_port()
        url = f"http://127.0.0.1:{port}"
        argv = [
            sys.executable,
            "-m",
            "cynosure",
            "serve",
            "catalog",
            "--data",
            str(data),
            "--port",
            str(port),
        ]
        ready = http_ready(f"{url}/health/ready")
        start = processes.start("catalog", argv, env=env, ready=ready, cwd=directory, timeout_s=60)
        yield CatalogServer(url, data, asyncio.run(start))


def _run_cli(*arguments: str, env: Mapping[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cynosure", *arguments],
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AssertionError(f"cynosure {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
