"""A federated catalog of ours for the compatibility kit, before Iceberg's own REST server.

Whatever the kit asks goes through: names, rights and the mirror here, the change there. A maintainer must not
break: the remote is the unmodified reference server, and the kit is told nothing that it is not told of it.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import RestCatalog, ServedCatalog, start_catalog_server
from cynosure.testing.harness.probes import log_ready
from cynosure.testing.harness.processes import Processes
from tests.engines.rck.target import TABLE_PLACES, file_roots, keeping_places

FIXTURE = Path(__file__).parents[3] / "scripts/peers/fixture"


@dataclass(frozen=True)
class FederatedTarget:
    """The remote, and the catalog before it."""

    remote: str
    """Address of the reference server."""
    catalog: ServedCatalog
    scratch: Path
    warehouse: Path
    """Where the reference server puts tables."""

    def to_rest(self) -> RestCatalog:
        """For the kit, as root."""
        rest = self.catalog.to_rest()
        return RestCatalog(rest.uri, {**rest.properties, **SWITCHES, "java.io.tmpdir": str(self.scratch)})


SWITCHES = {"rck.requires-namespace-create": "true"}
"""A table in a namespace that is missing is refused here, before the remote could make the namespace."""

FAILS_FEDERATED = {
    "tables.testTableNameWithSlash": "the reference server fails it: its web server refuses such paths",
    "tables.testNamespaceWithSlash": "the reference server fails it: its web server refuses such paths",
    "tables.testNamespaceWithDot": "the reference server fails it: it takes the dot for a level; 400 here",
}
"""Tests that fail, each with the reason: those that fail on the reference server itself."""


@contextmanager
def serve_federated(directory: Path) -> Iterator[FederatedTarget]:
    """A catalog in which the kit may put its tables, and its remote; gone when the block ends."""
    scratch = directory / "scratch"
    scratch.mkdir()
    with keeping_places(), Processes(directory) as processes:
        yield asyncio.run(_start(processes, directory, scratch))


async def _start(processes: Processes, directory: Path, scratch: Path) -> FederatedTarget:
    port, warehouse = processes.reserve_port(), directory / "warehouse"
    argv = [sys.executable, str(FIXTURE), "--port", str(port), "--quiet", "--warehouse", str(warehouse)]
    places = [warehouse, scratch, *TABLE_PLACES]
    env = {**file_roots(places), "CYNOSURE_FEDERATION__ALLOW_IMPLICIT": "true"}
    _, server = await asyncio.gather(
        processes.start("fixture", argv, ready=log_ready(f"ready on port {port}"), timeout_s=90),
        start_catalog_server(processes, directory, env=env),
    )
    remote = f"http://127.0.0.1:{port}"
    definition = {
        "type": "EXTERNAL",
        "name": "kit",
        "properties": {"default-base-location": warehouse.as_uri()},
        "storageConfigInfo": {
            "storageType": "FILE",
            "allowedLocations": [place.as_uri() for place in places],
        },
        "connectionConfigInfo": {
            "connectionType": "ICEBERG_REST",
            "uri": remote,
            "authenticationParameters": {"authenticationType": "IMPLICIT"},
        },
    }
    async with server.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": definition})
        await admin.grant_content("kit")
    return FederatedTarget(remote, server.get("kit"), scratch, warehouse)
