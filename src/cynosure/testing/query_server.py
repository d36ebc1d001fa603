"""A real catalog and a real gateway, each a process of its own, put together as users do.

    scene = await start_query_scene(processes, directory, settings={"QUERY__SPARK__ENABLED": "off"})
    await scene.make_table("ns.t", pa.table({...}))                       # one file per table given
    ann = await scene.create_user("ann", Grant("TABLE_READ_DATA"))
    await scene.restrict("ns.t", filter="region = 'EU'")                  # or columns={"ssn": "show-last-4"}
    rows = await scene.query(ann, "SELECT * FROM lake.ns.t")              # a pyarrow Table
    failed = await scene.fails(ann, "SELECT 1 / 0 FROM lake.ns.t")        # the error

`settings` are environment variables of the gateway without `CYNOSURE_`. `query.gateway.file_locations` and
the gateway's principal are set. Without `store`, tables are on local files.

A maintainer must not break: statements go over HTTP, with tokens, as anybody's do; nothing is asked of the
inside.
"""

import asyncio
import itertools
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pyarrow as pa

from cynosure.client.tls import NO_TLS
from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, run_cynosure, start_catalog_server
from cynosure.testing.harness.probes import http_ready
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.login import Credential, Login
from cynosure.testing.s3_servers import S3Server

API: Final = "/api/query/v1"
ARROW: Final = "application/vnd.apache.arrow.stream"
READ: Final = (
    Grant("TABLE_READ_DATA"),
    Grant("TABLE_LIST"),
    Grant("NAMESPACE_LIST"),
    Grant("NAMESPACE_READ_PROPERTIES"),
    Grant("VIEW_LIST"),
    Grant("VIEW_READ_PROPERTIES"),
)
"""Of somebody who may look at everything in a catalog."""
QUIET: Final = {"CYNOSURE_DELEGATION__TASK_TYPE": "local"}


class StatementFailed(AssertionError):
    """A statement that should have answered."""


@dataclass
class QueryScene:
    """A catalog, a gateway and what a test makes in them."""

    processes: Processes
    directory: Path
    catalog: CatalogServer
    gateway: ManagedProcess
    url: str
    """Of the gateway."""
    lake: ServedCatalog
    environment: dict[str, str]
    _policies: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    # --- what there is ---------------------------------------------------------------------------------

    async def create_namespace(self, *names: str) -> None:
        """A namespace, and those above it."""
        async with self.lake.client() as http:
            for depth in range(1, len(names) + 1):
                await http.post(f"{self.lake.url}/namespaces", json={"namespace": list(names[:depth])})

    async def make_table(
        self, name: str, *data: pa.Table, properties: Mapping[str, str] | None = None, **options: Any
    ) -> Any:
        """A table with one file per piece of data, written by PyIceberg; the loaded table."""
        *namespace, _ = name.split(".")
        await self.create_namespace(*namespace)

        def write() -> Any:
            catalog = self.pyiceberg()
            table = catalog.create_table(
                name, schema=data[0].schema, properties=dict(properties or {}), **options
            )
            for each in data:
                if each.num_rows:
                    table.append(each)
            return table

        return await asyncio.to_thread(write)

    def pyiceberg(self, credential: Credential | None = None) -> Any:
        """A catalog of PyIceberg; as root unless somebody else is named."""
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 - not all who use this need it

        rest = self.lake.to_rest(credential)
        return load_catalog("lake", type="rest", uri=rest.uri, **rest.properties)

    async def create_user(self, name: str, *grants: Grant) -> Credential:
        """A principal; without grants it may look at everything."""
        async with self.catalog.client() as http:
            return await Admin(http).create_user(name, self.lake.name, *(grants or READ))

    async def restrict(self, table: str, **content: Any) -> str:
        """A policy on a table; its name. `filter=…` hides rows, `columns=…` masks."""
        *namespace, name = table.split(".")
        kind = "row-filter" if "filter" in content else "column-mask"
        policy = f"{kind}-{next(self._policies)}"
        text = msgspec.json.encode({"enable": True, **content}).decode()
        base = f"{self.lake.root}/polaris/v1/{self.lake.name}/namespaces/{'%1F'.join(namespace)}/policies"
        async with self.lake.client() as http:
            body = {"name": policy, "type": f"cynosure.{kind}", "content": text}
            made = await http.post(base, json=body)
            assert made.is_success, made.text
            target = {"type": "table-like", "path": [*namespace, name]}
            attached = await http.put(f"{base}/{policy}/mappings", json={"target": target})
            assert attached.is_success, attached.text
        return policy

    async def lift(self, table: str, policy: str) -> None:
        """Detach a policy again."""
        *namespace, name = table.split(".")
        base = f"{self.lake.root}/polaris/v1/{self.lake.name}/namespaces/{'%1F'.join(namespace)}/policies"
        async with self.lake.client() as http:
            target = {"type": "table-like", "path": [*namespace, name]}
            answer = await http.post(f"{base}/{policy}/mappings", json={"target": target})
            assert answer.is_success, answer.text

    async def grant_gateway(self, *grants: Grant) -> None:
        """Rights of the gateway itself: to read mapping tables."""
        async with self.catalog.client() as http:
            admin = Admin(http)
            await admin.create_catalog_role(self.lake.name, "gateway")
            await admin.assign_catalog_role(self.lake.name, "gateway", "cynosure-gateway")
            for grant in grants:
                await admin.grant(self.lake.name, "gateway", grant)

    async def events(self) -> list[dict[str, Any]]:
        """The audit of the realm, whole."""
        found: list[dict[str, Any]] = []
        query = {"limit": "1000"}
        async with self.catalog.client() as http:
            while True:
                answer = await http.get("/api/management/v1/cynosure/events", params=query)
                page = answer.raise_for_status().json()
                if not page["events"]:
                    return found
                found += page["events"]
                query["cursor"] = page["cursor"]

    # --- statements ------------------------------------------------------------------------------------

    def client(self, who: Credential | None = None, **options: Any) -> httpx.AsyncClient:
        """A client of the gateway; root's unless somebody is named."""
        login = Login(self.catalog.url, who or self.catalog.credential)
        return httpx.AsyncClient(
            **{
                "base_url": self.url,
                "auth": login,
                "timeout": 90,
                "trust_env": False,
                "verify": NO_TLS,
                **options,
            }
        )

    async def query(self, who: Credential | None, sql: str, **body: Any) -> pa.Table:
        """All rows of a statement."""
        async with self.client(who) as http:
            found = await run_to_end(http, sql, **body)
        if isinstance(found, dict):
            raise StatementFailed(f"{sql}: {found}")
        return found

    async def rows(self, who: Credential | None, sql: str, **body: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement, as tuples."""
        found = await self.query(who, sql, **body)
        return list(zip(*(each.to_pylist() for each in found.columns), strict=True))

    async def fails(self, who: Credential | None, sql: str, **body: Any) -> dict[str, Any]:
        """The error of a statement that must not answer."""
        async with self.client(who) as http:
            found = await run_to_end(http, sql, **body)
        assert isinstance(found, dict), f"{sql} answered {found.num_rows} rows"
        return found

    async def explain(self, who: Credential | None, sql: str) -> str:
        """The text of EXPLAIN."""
        return "\n".join(str(row[0]) for row in await self.rows(who, f"EXPLAIN {sql}"))

    # --- processes -------------------------------------------------------------------------------------

    async def start_another(self, name: str, settings: Mapping[str, str]) -> "QueryScene":
        """A second gateway beside this one, of the same catalog and principal, with other settings."""
        directory = self.directory / name
        directory.mkdir()
        shutil.copy(self.directory / "gateway.json", directory / "gateway.json")
        changed = {f"CYNOSURE_{key}": value for key, value in settings.items()}
        environment = {**self.environment, **changed}
        url = f"http://127.0.0.1:{self.processes.reserve_port()}"
        gateway = await _start_gateway(
            self.processes, directory, self.catalog.url, url, environment, name=name
        )
        return replace(self, directory=directory, gateway=gateway, url=url, environment=environment)


async def run_to_end(http: httpx.AsyncClient, sql: str, **body: Any) -> pa.Table | dict[str, Any]:
    """All rows of a statement, or its error."""
    sent = await http.post(f"{API}/statements", json={"sql": sql, "wait": 10, **body})
    if not sent.is_success:
        return dict(sent.json()["error"])
    batches: list[pa.RecordBatch] = []
    schema: pa.Schema | None = None
    path: str | None = sent.json()["results"]
    while path is not None:
        answer = await http.get(path, params={"wait": "30"}, headers={"Accept": ARROW})
        if not answer.is_success:
            return dict(answer.json()["error"])
        if answer.status_code == 202:
            continue
        with pa.ipc.open_stream(answer.content) as reader:
            schema = reader.schema
            batches += list(reader)
        path = answer.links.get("next", {}).get("url")
    return pa.Table.from_batches(batches, schema)


async def start_query_scene(
    processes: Processes,
    directory: Path,
    *,
    settings: Mapping[str, str] | None = None,
    catalog_settings: Mapping[str, str] | None = None,
    store: S3Server | None = None,
    storage: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    name: str = "lake",
    timeout_s: float = 60.0,
) -> QueryScene:
    """Start a catalog and a gateway; a catalog called `lake` on local files, or on an S3 server.

    `environment` are further variables of the gateway, as they are.
    """
    theirs = {f"CYNOSURE_{key}": value for key, value in (catalog_settings or {}).items()}
    catalog = await start_catalog_server(processes, directory, env={**QUIET, **theirs}, timeout_s=timeout_s)
    root = catalog.credential
    await run_cynosure(
        *("gateway", "init", "--credentials-file", str(directory / "gateway.json")),
        *("--url", catalog.url, "--client-id", root.client_id),
        env={"CYNOSURE_CLIENT_SECRET": root.secret},
    )
    if store is None:
        lake = await catalog.create_catalog(name)
    else:
        lake = await catalog.create_catalog_on(store, name, storage=storage)
    variables = {
        **(environment or {}),
        "CYNOSURE_QUERY__GATEWAY__FILE_LOCATIONS": catalog.warehouse.as_uri(),
        **{f"CYNOSURE_{key}": value for key, value in (settings or {}).items()},
    }
    url = f"http://127.0.0.1:{processes.reserve_port()}"
    gateway = await _start_gateway(processes, directory, catalog.url, url, variables, timeout_s)
    return QueryScene(processes, directory, catalog, gateway, url, lake, variables)


async def _start_gateway(
    processes: Processes,
    directory: Path,
    catalog_url: str,
    url: str,
    environment: Mapping[str, str],
    timeout_s: float = 60.0,
    *,
    name: str = "gateway",
) -> ManagedProcess:
    argv: Sequence[str] = [
        *(sys.executable, "-m", "cynosure", "serve", "gateway", "--data", str(directory / "gateway")),
        *("--port", url.rsplit(":", 1)[1], "--catalog", catalog_url),
        *("--credentials-file", str(directory / "gateway.json")),
    ]
    return await processes.start(
        name,
        argv,
        ready=http_ready(f"{url}/health/ready"),
        cwd=directory,
        env=environment,
        timeout_s=timeout_s,
    )
