"""A real catalog server for tests and benchmarks: a process, a free port, a data directory, catalogs in it.

    with Processes(directory) as processes:
        server = await start_catalog_server(processes, directory)
        lake = await server.create_catalog("lake")      # lake.url: …/api/catalog/v1/lake
        async with server.client() as http: ...         # as root

A maintainer must not break: the server is what users run, with nothing patched in; it ends with `processes`.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from cynosure.client.tls import NO_TLS
from cynosure.testing.admin import Admin
from cynosure.testing.harness.probes import http_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.login import ALL_ROLES, Credential, Login, make_credential
from cynosure.testing.s3_servers import S3Server

_CYNOSURE = (sys.executable, "-m", "cynosure")


class CommandFailed(AssertionError):
    """A `cynosure` command ended with an error."""


@dataclass(frozen=True)
class RestCatalog:
    """What a client of the Iceberg REST protocol must know of one catalog, ours or another server's."""

    uri: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the client beside `uri`; the same names in Java and Python."""


@dataclass(frozen=True, slots=True)
class ServedCatalog:
    """One catalog as clients reach it."""

    name: str
    root: str
    """What clients call `uri`."""
    login: Login

    @property
    def url(self) -> str:
        """Base of the catalog's own paths."""
        return f"{self.root}/v1/{quote(self.name, safe='')}"

    def client(self, **options: Any) -> httpx.AsyncClient:
        """A client that is root."""
        return make_client(self.login, **options)

    def to_rest(self, credential: Credential | None = None, scope: str = ALL_ROLES) -> RestCatalog:
        """For an engine, as root unless another credential is given."""
        credential = credential or self.login.credential
        properties = {
            "warehouse": self.name,
            "credential": credential.text,
            "scope": scope,
            "oauth2-server-uri": f"{self.root}/v1/oauth/tokens",
        }
        return RestCatalog(self.root, properties)


@dataclass(frozen=True, slots=True)
class CatalogServer:
    """A running server."""

    process: ManagedProcess
    url: str
    data: Path
    login: Login
    """Of the realm's root."""
    flags: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """What clients of the Iceberg REST protocol call `uri`."""
        return f"{self.url}/api/catalog"

    @property
    def credential(self) -> Credential:
        """Of the realm's root."""
        return self.login.credential

    @property
    def warehouse(self) -> Path:
        """Where files of catalogs are that were given no location."""
        return self.data / "warehouse"

    def token(self) -> str:
        """A token of root's, always the same one."""
        return self.login.token()

    def login_as(self, credential: Credential, *, scope: str = ALL_ROLES, realm: str | None = None) -> Login:
        """What makes requests those of somebody else."""
        return Login(self.url, credential, scope=scope, realm=realm)

    def client(self, login: Login | None = None, **options: Any) -> httpx.AsyncClient:
        """A client whose base is this server; root's unless another login is given."""
        return make_client(login or self.login, base_url=self.url, **options)

    def stranger(self, **options: Any) -> httpx.AsyncClient:
        """A client that says nothing about who it is."""
        return make_client(None, base_url=self.url, **options)

    def get(self, name: str) -> ServedCatalog:
        """A catalog by its name, without asking the server."""
        return ServedCatalog(name, self.root, self.login)

    async def create_catalog(
        self,
        name: str = "lake",
        *,
        location: str = "",
        allowed: Sequence[str] = (),
        storage: Mapping[str, Any] | None = None,
        has_content: bool = True,
    ) -> ServedCatalog:
        """A new catalog, below the data directory unless a location is given; root may use its data."""
        location = location or (self.warehouse / name).as_uri()
        async with self.client() as http:
            admin = Admin(http)
            await admin.create_catalog(name, location, allowed=allowed, storage=storage)
            if has_content:
                await admin.grant_content(name)
        return self.get(name)

    async def create_catalog_on(
        self,
        server: S3Server,
        name: str = "lake",
        *,
        location: str = "",
        storage: Mapping[str, Any] | None = None,
    ) -> ServedCatalog:
        """A new catalog in an unused corner of an S3 server; `storage` changes its definition."""
        definition = {**server.storage(), **(storage or {})}
        return await self.create_catalog(
            name, location=location or server.fresh_location("catalogs"), storage=definition
        )

    async def run_cli(self, *arguments: str) -> str:
        """What a `cynosure` command prints that operates on this server's data directory."""
        return await run_cynosure(*arguments, "--data", str(self.data))


def make_client(login: Login | None, **options: Any) -> httpx.AsyncClient:
    """A client that takes nothing from this machine's configuration."""
    return httpx.AsyncClient(
        **{"timeout": 30, "trust_env": False, "verify": NO_TLS, "auth": login, **options}
    )


def bootstrap_environment(credential: Credential, realm: str = "default") -> dict[str, str]:
    """Variables with which a server gives a new realm this root."""
    return {"CYNOSURE_BOOTSTRAP_CREDENTIALS": f"{realm},{credential.client_id},{credential.secret}"}


async def start_catalog_server(
    processes: Processes,
    directory: Path,
    *flags: str,
    data: Path | None = None,
    name: str = "catalog",
    credential: Credential | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 60.0,
) -> CatalogServer:
    """Start `cynosure serve catalog` with these flags and wait until it is ready.

    Servers that share a store share their root: the second is given the `credential` of the first.
    """
    data = data or directory / "data"
    credential = credential or make_credential()
    port = processes.reserve_port()
    url = f"http://127.0.0.1:{port}"
    argv = [*_CYNOSURE, "serve", "catalog", "--data", str(data), "--port", str(port), *flags]
    process = await processes.start(
        name,
        argv,
        ready=http_ready(f"{url}/health/ready"),
        cwd=directory,
        env={**bootstrap_environment(credential), **(env or {})},
        timeout_s=timeout_s,
    )
    return CatalogServer(process, url, data, Login(url, credential), flags)


async def run_cynosure(*arguments: str, env: Mapping[str, str] | None = None) -> str:
    """What a command prints; `CommandFailed` with its error when it fails."""
    process = await asyncio.create_subprocess_exec(
        *_CYNOSURE,
        *arguments,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    if process.returncode:
        raise CommandFailed(f"cynosure {' '.join(arguments)}: exit {process.returncode}\n{err.decode()}")
    return out.decode()
