"""A real delegation service beside a real catalog, over mutual TLS, each a process of its own.

    pair = await start_pair(processes, directory)
    await pair.catalog.create_catalog_on(minio)
    await pair.init()                                  # a principal for the service, with its rights there
    await pair.start_service()

Must not break: both are what users run, put together as users do: `certs init`, `delegation init`, settings.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from cynosure.client.tls import ClientTls, make_context
from cynosure.common.clock import SystemClock
from cynosure.server import certs
from cynosure.testing.catalog_server import CatalogServer, run_cynosure, start_catalog_server
from cynosure.testing.harness.processes import ManagedProcess, Processes

PREFIX = "CYNOSURE_DELEGATION__"


@dataclass
class Pair:
    """A catalog, and a delegation service that may not run yet."""

    processes: Processes
    directory: Path
    catalog: CatalogServer
    url: str
    """Of the service."""
    environment: Mapping[str, str]
    services: list[ManagedProcess] = field(default_factory=list)
    catalog_url: str = ""
    """By which services reach the catalog, where that is another one than that of users."""
    catalog_environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def certs(self) -> Path:
        """Of both sides."""
        return self.directory / "certs"

    @property
    def credentials(self) -> Path:
        """Of the service's principal."""
        return self.directory / "delegation.json"

    async def init(self) -> str:
        """Make the principal, or give it rights in new catalogs."""
        root = self.catalog.credential
        return await run_cynosure(
            *("delegation", "init", "--credentials-file", str(self.credentials)),
            *("--url", self.catalog.url, "--client-id", root.client_id),
            env={"CYNOSURE_CLIENT_SECRET": root.secret},
        )

    async def start_service(
        self, name: str = "delegation", *, port: str = "", env: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        """Start `cynosure serve delegation` and wait until it is ready."""
        argv = [
            *(sys.executable, "-m", "cynosure", "serve", "delegation"),
            *("--data", str(self.directory / name), "--port", port or self.url.rsplit(":", 1)[1]),
            *("--catalog", self.catalog_url or self.catalog.url, "--credentials-file", str(self.credentials)),
            *("--tls-cert", str(self.certs / certs.SERVER_CERTIFICATE)),
            *("--tls-key", str(self.certs / certs.SERVER_KEY)),
            *("--tls-client-ca", str(self.certs / certs.CA_CERTIFICATE)),
        ]

        async def is_ready(process: ManagedProcess) -> bool:
            return "Delegation service is ready" in process.log()

        process = await self.processes.start(
            name,
            argv,
            ready=is_ready,
            cwd=self.directory,
            env={**self.environment, **(env or {})},
            timeout_s=60.0,
        )
        self.services.append(process)
        return process

    async def start_catalog(self, name: str) -> CatalogServer:
        """Another server of the same catalogs. They must be in a database, with a keyring for both."""
        return await start_catalog_server(
            self.processes,
            self.directory,
            data=self.directory / f"{name}-data",
            name=name,
            credential=self.catalog.credential,
            env=self.catalog_environment,
        )

    def client(self, certificate: str = "catalog") -> httpx.AsyncClient:
        """A client of the service with one of the certificates; without a token."""
        ca, pem, key = (self.certs / name for name in ("ca.pem", f"{certificate}.pem", f"{certificate}.key"))
        context = make_context(ClientTls(ca, pem, key))
        return httpx.AsyncClient(base_url=self.url, verify=context, trust_env=False, timeout=30)


async def start_pair(
    processes: Processes,
    directory: Path,
    *,
    env: Mapping[str, str] | None = None,
    service_env: Mapping[str, str] | None = None,
) -> Pair:
    """Make certificates and start the catalog; it knows where the service will be."""
    made = directory / "certs"
    certs.init_certs(made, hosts=["127.0.0.1"], client="somebody", days=2, clock=SystemClock())
    url = f"https://127.0.0.1:{processes.reserve_port()}"
    environment = {
        f"{PREFIX}ENDPOINT": url,
        f"{PREFIX}TLS__CA": str(made / certs.CA_CERTIFICATE),
        f"{PREFIX}TLS__CERTIFICATE": str(made / certs.CATALOG_CERTIFICATE),
        f"{PREFIX}TLS__KEY": str(made / certs.CATALOG_KEY),
        **(env or {}),
    }
    catalog = await start_catalog_server(processes, directory, env=environment)
    return Pair(processes, directory, catalog, url, dict(service_env or {}), catalog_environment=environment)
