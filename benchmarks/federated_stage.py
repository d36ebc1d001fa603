"""Two servers of ours: one owns tables, and the other has federated catalogs before them.

    async with open_stage(directory) as stage:
        pair = await stage.federate("lake", {"cynosure.federation.max-staleness": "1h"})
        await pair.owner.make_tables("ns", ["t"])
        pair.near                               # the same tables, as clients of the first server ask for them

Both run with their default settings on the memory store, with files in memory where the machine has a place
for that, so that neither waits for a disk.

A maintainer must not break: the two are processes of their own, so the CPU of each can be told apart.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec
import psutil
from msgspec import Struct

from benchmarks.catalog_server import MEMORY
from benchmarks.http_client import Catalog, Connection
from benchmarks.measure import tree_cpu_s
from benchmarks.suites.catalog import SCHEMA, new_snapshot
from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES

_MAKERS: Final = 16
"""Tables that are made at a time."""
_ASKED: Final = re.compile(r"^cynosure_api_requests_total\{([^}]*)\} (\S+)", re.MULTILINE)
_IN_KIB: Final = 1_024


class Tables(NamedTuple):
    """A catalog as a client asks for its tables."""

    catalog: Catalog

    def path(self, namespace: str, table: str = "") -> str:
        """Path of a table, or of all of a namespace."""
        tables = f"{self.catalog.namespace(namespace)}/tables"
        return f"{tables}/{table}" if table else tables

    async def make_tables(self, namespace: str, names: Iterable[str]) -> None:
        """A namespace with these tables."""
        connection = self.catalog.connect()
        body = {"namespace": [namespace], "properties": {}}
        await send(connection, f"{self.catalog.root}/namespaces", body)
        connection.close()
        waiting = iter(list(names))

        async def make() -> None:
            mine = self.catalog.connect()
            for name in waiting:
                await send(mine, self.path(namespace), {"name": name, "schema": SCHEMA})
            mine.close()

        await asyncio.gather(*(make() for _ in range(_MAKERS)))

    async def add_snapshots(self, namespace: str, table: str, count: int) -> None:
        """Give a table so many snapshots, one after the other."""
        connection, path = self.catalog.connect(), self.path(namespace, table)
        loaded = await ask(connection, path)
        location, first_ms = loaded["metadata"]["location"], loaded["metadata"]["last-updated-ms"]
        for number in range(1, count + 1):
            snapshot = new_snapshot(number, first_ms + number, location)
            ref = {"ref-name": "main", "type": "branch", "snapshot-id": number}
            updates = [
                {"action": "add-snapshot", "snapshot": snapshot},
                {"action": "set-snapshot-ref", **ref},
            ]
            await send(connection, path, {"requirements": [], "updates": updates})
        connection.close()


class Pair(Struct, frozen=True):
    """A catalog, and the federated one before it."""

    owner: Tables
    near: Tables
    location: str
    """Of both."""


class Stage:
    """The two servers."""

    def __init__(
        self, processes: Processes, directory: Path, near: CatalogServer, far: CatalogServer
    ) -> None:
        self._processes = processes
        self._directory = directory
        self.near = near
        """Whose CPU and memory are measured."""
        self.far = far
        """The remote."""
        self._started = 0

    async def federate(self, name: str, properties: Mapping[str, str] | None = None) -> Pair:
        """A catalog of the remote, with a federated one of the same name before it."""
        location = (self.far.warehouse / name).as_uri()
        await self.far.create_catalog(name, location=location)
        await create_federated(self.near, self.far, name, name, location, properties)
        return Pair(await open_tables(self.far, name), await open_tables(self.near, name), location)

    async def make_native(self, name: str) -> Tables:
        """A catalog of the first server's own."""
        await self.near.create_catalog(name)
        return await open_tables(self.near, name)

    @asynccontextmanager
    async def starting_another(self) -> AsyncIterator[CatalogServer]:
        """A further server, with nothing in it; it ends with the round."""
        self._started += 1
        server = await _start(self._processes, self._directory, f"near{self._started}")
        try:
            yield server
        finally:
            await server.process.stop()

    def remote_cpu_s(self) -> float:
        """CPU of the remote so far."""
        return tree_cpu_s(psutil.Process(self.far.process.pid))

    async def count_asked(self, operation: str) -> float:
        """Requests of this operation that the remote has answered so far, by its own count."""
        async with self.far.client() as http:
            told = (await http.get("/metrics")).raise_for_status().text
        counts = [float(count) for labels, count in _ASKED.findall(told) if f'"{operation}"' in labels]
        return sum(counts)


@asynccontextmanager
async def open_stage(directory: str = "") -> AsyncIterator[Stage]:
    """Start both, and end them."""
    with TemporaryDirectory(prefix="cynosure-bench-", dir=directory or MEMORY or None) as folder:
        place = Path(folder)
        with Processes(place) as processes:
            near, far = [await _start(processes, place, name) for name in ("near", "far")]
            yield Stage(processes, place, near, far)


async def _start(processes: Processes, directory: Path, name: str) -> CatalogServer:
    # Files of the remote's tables are below its own directory.
    env = {"CYNOSURE_STORAGE__FILE_ROOTS__ALL": str(directory)}
    return await start_catalog_server(
        processes, directory, "--store", "memory:", data=directory / name, name=name, env=env
    )


async def create_federated(
    server: CatalogServer,
    remote: CatalogServer,
    name: str,
    remote_name: str,
    location: str,
    properties: Mapping[str, str] | None = None,
) -> None:
    """A federated catalog on a server, before a catalog of another one."""
    credential = remote.credential
    definition: dict[str, Any] = {
        "type": "EXTERNAL",
        "name": name,
        "properties": {"default-base-location": location, **(properties or {})},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
        "connectionConfigInfo": {
            "connectionType": "ICEBERG_REST",
            "uri": remote.root,
            "remoteCatalogName": remote_name,
            "authenticationParameters": {
                "authenticationType": "OAUTH",
                "clientId": credential.client_id,
                "clientSecret": credential.secret,
                "scopes": [ALL_ROLES],
            },
        },
    }
    async with server.client() as http:
        await Admin(http).send("POST", "/catalogs", {"catalog": definition})
        await Admin(http).grant_content(name)


async def open_tables(server: CatalogServer, name: str) -> Tables:
    """A catalog of a server, for a client that is its root."""
    login = f"://{server.credential.text}@"
    return Tables(await Catalog.find(f"{server.root.replace('://', login)}?warehouse={name}"))


async def send(connection: Connection, path: str, body: object) -> None:
    """Send what changes something; the run ends when it is refused."""
    answer = await connection.request("POST", path, body)
    if answer.status != 200:
        raise SystemExit(f"bench: {path} answered {answer.status}: {answer.body[:300]!r}")


async def ask(connection: Connection, path: str) -> dict[str, Any]:
    """An answer, decoded; the run ends when it is refused."""
    answer = await connection.request("GET", path)
    if answer.status != 200:
        raise SystemExit(f"bench: {path} answered {answer.status}: {answer.body[:300]!r}")
    decoded: dict[str, Any] = msgspec.json.decode(answer.body)
    return decoded


def processes_of(pid: int) -> Sequence[psutil.Process]:
    """A process and those below it."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def rss_mib(pid: int) -> float:
    """Resident memory of a process and those below it."""
    return float(sum(each.memory_info().rss for each in processes_of(pid))) / 2**20


def forget_peak(pid: int) -> None:
    """Let `peak_mib` begin anew with what is resident now."""
    for each in processes_of(pid):
        Path(f"/proc/{each.pid}/clear_refs").write_text("5")


def peak_mib(pid: int) -> float:
    """The most that was resident since `forget_peak`."""
    return sum(_read_peak_kib(each.pid) for each in processes_of(pid)) / _IN_KIB


def _read_peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split(None, 1)[0])
