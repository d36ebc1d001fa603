"""A server of ours that plans in pages of two files, on MinIO, for clients that let it plan their scans.

A maintainer must not break: pages are so small that every plan of a few files goes through plan tasks.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import find_s3_servers

PLANNED = {"scan-planning-mode": "server"}
VENDED = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}


class PlanningLake:
    """A catalog of such a server, and how often its clients have asked for plans."""

    def __init__(self, server: CatalogServer, served: ServedCatalog) -> None:
        self.server = server
        self.served = served

    def count(self, operation: str) -> int:
        """How often an operation was asked for with success."""
        text = httpx.get(f"{self.server.url}/metrics", trust_env=False).raise_for_status().text
        samples = [line for line in text.splitlines() if line.startswith("cynosure_api_requests_total{")]
        wanted = (f'operation="{operation}"', 'status="20')
        return sum(int(float(line.split()[-1])) for line in samples if all(word in line for word in wanted))


@contextmanager
def open_planning_lake(directory: Path) -> Iterator[PlanningLake]:
    store = find_s3_servers()["minio"]
    location = store.fresh_location("planning")
    with Processes(directory) as processes:
        env = {"CYNOSURE_CATALOG__PLANNING__PAGE_FILES": "2"}
        server = asyncio.run(start_catalog_server(processes, directory, env=env))
        yield PlanningLake(server, asyncio.run(server.create_catalog_on(store, "planned", location=location)))
    store.delete_below(location)
