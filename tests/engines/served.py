"""A catalog server of ours, as engines meet it: a real process, a data directory, catalogs in it.

A maintainer must not break: engines get nothing but an address and properties, so that any REST catalog
can stand in for ours (CYNOSURE_ENGINE_URI).
"""

import asyncio
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cynosure.testing.harness.probes import http_ready
from cynosure.testing.harness.processes import Processes


@dataclass(frozen=True)
class RestCatalog:
    """What a client must know of one catalog."""

    uri: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the client beside `uri`; the same names in Java and Python."""


class CatalogServer:
    """A running server. Catalogs are made on demand, each in a folder of its own."""

    def __init__(self, url: str, data: Path) -> None:
        self.url = url
        self.data = data

    def create_catalog(self, location: str | None = None, *options: str) -> RestCatalog:
        """A new, empty catalog; below the data directory unless a location is given."""
        name = f"c{uuid.uuid4().hex[:12]}"
        folder = self.data / "warehouse" / name
        command = ["catalogs", "create", name, "--location", location or folder.as_uri(), *options]
        _run_cli(*command, "--data", str(self.data))
        return RestCatalog(f"{self.url}/api/catalog", {"warehouse": name})


@contextmanager
def serve(directory: Path) -> Iterator[CatalogServer]:
    """A server over an empty data directory; gone when the block ends."""
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
        asyncio.run(processes.start("catalog", argv, ready=ready, cwd=directory, timeout_s=60))
        yield CatalogServer(url, data)


def _run_cli(*arguments: str) -> None:
    command = [sys.executable, "-m", "cynosure", *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"cynosure {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
