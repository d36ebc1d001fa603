"""A real catalog server for tests and benchmarks: a process, a free port, a data directory, catalogs in it.

    with Processes(directory) as processes:
        server = await start_catalog_server(processes, directory)
        lake = await server.create_catalog("lake")      # lake.url: …/api/catalog/v1/lake

A maintainer must not break: the server is what users run, with nothing patched in; it ends with `processes`.
"""

import asyncio
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from cynosure.testing.harness.probes import http_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes

_CYNOSURE = (sys.executable, "-m", "cynosure")


class CommandFailed(AssertionError):
    """A `cynosure` command ended with an error."""


@dataclass(frozen=True, slots=True)
class ServedCatalog:
    """One catalog as clients reach it."""

    name: str
    root: str
    """What clients call `uri`."""

    @property
    def url(self) -> str:
        """Base of the catalog's own paths."""
        return f"{self.root}/v1/{quote(self.name, safe='')}"


@dataclass(frozen=True, slots=True)
class CatalogServer:
    """A running server."""

    process: ManagedProcess
    url: str
    data: Path
    flags: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """What clients of the Iceberg REST protocol call `uri`."""
        return f"{self.url}/api/catalog"

    @property
    def warehouse(self) -> Path:
        """Where files of catalogs are that were given no location."""
        return self.data / "warehouse"

    def get(self, name: str) -> ServedCatalog:
        """A catalog by its name, without asking the server."""
        return ServedCatalog(name, self.root)

    async def create_catalog(self, name: str = "lake", *options: str) -> ServedCatalog:
        """A new catalog, below the data directory unless the options say otherwise."""
        await self.run_cli("catalogs", "create", name, *options)
        return self.get(name)

    async def run_cli(self, *arguments: str) -> str:
        """What a `cynosure` command prints that operates on this server's data directory."""
        return await run_cynosure(*arguments, "--data", str(self.data))


async def start_catalog_server(
    processes: Processes,
    directory: Path,
    *flags: str,
    data: Path | None = None,
    name: str = "catalog",
    env: dict[str, str] | None = None,
    timeout_s: float = 60.0,
) -> CatalogServer:
    """Start `cynosure serve catalog` with these flags and wait until it is ready."""
    data = data or directory / "data"
    port = processes.reserve_port()
    url = f"http://127.0.0.1:{port}"
    argv = [*_CYNOSURE, "serve", "catalog", "--data", str(data), "--port", str(port), *flags]
    ready = http_ready(f"{url}/health/ready")
    process = await processes.start(name, argv, ready=ready, cwd=directory, env=env, timeout_s=timeout_s)
    return CatalogServer(process, url, data, flags)


async def run_cynosure(*arguments: str) -> str:
    """What a command prints; `CommandFailed` with its error when it fails."""
    process = await asyncio.create_subprocess_exec(
        *_CYNOSURE, *arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    if process.returncode:
        raise CommandFailed(f"cynosure {' '.join(arguments)}: exit {process.returncode}\n{err.decode()}")
    return out.decode()
