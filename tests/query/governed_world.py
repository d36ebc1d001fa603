"""A real catalog with tables, users, policies, and the gateway's principal: what statements are asked of."""

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pyarrow as pa

from cynosure.client.api import ApiClient
from cynosure.client.appends import AppendApi, Appended
from cynosure.client.http import HttpClient
from cynosure.client.tokens import ClientCredentials, TokenSource
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.query.catalog_access.http import HttpCatalogSession, HttpCatalogSessions
from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential

NS = ("shop",)
ORDERS = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "region", "type": "string", "required": False},
        {"id": 3, "name": "owner", "type": "string", "required": False},
        {"id": 4, "name": "amount", "type": "double", "required": False},
        {"id": 5, "name": "day", "type": "date", "required": False},
    ],
}
READ = (
    Grant("TABLE_READ_DATA"),
    Grant("TABLE_LIST"),
    Grant("NAMESPACE_LIST"),
    Grant("VIEW_READ_PROPERTIES"),
    Grant("VIEW_LIST"),
    Grant("NAMESPACE_READ_PROPERTIES"),
)


def orders(start: int, count: int, region: str, owner: str = "ann") -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int64()),
            "region": pa.array([region] * count, pa.string()),
            "owner": pa.array([owner] * count, pa.string()),
            "amount": pa.array([float(each) for each in range(count)], pa.float64()),
            "day": pa.array([20_000] * count, pa.int32()).cast(pa.date32()),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("region", pa.string()),
                pa.field("owner", pa.string()),
                pa.field("amount", pa.float64()),
                pa.field("day", pa.date32()),
            ]
        ),
    )


@dataclass
class World:
    """What tests have."""

    server: CatalogServer
    lake: ServedCatalog
    http: HttpClient
    gateway: Credential
    credentials: dict[str, Credential] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: iter(range(10_000)))

    def fresh(self, word: str = "t") -> str:
        """A name that nothing has yet."""
        return f"{word}{next(self.numbers)}"

    def make_sessions(self, clock: Any = None, *, renews_credentials: bool = True) -> HttpCatalogSessions:
        credentials = ClientCredentials(self.gateway.client_id, Secret(self.gateway.secret))
        return HttpCatalogSessions(
            self.http, credentials, clock or SystemClock(), renews_credentials=renews_credentials
        )

    def token_of(self, user: str) -> str:
        return self.server.login_as(self.credentials[user]).token()

    async def open(self, user: str) -> HttpCatalogSession:
        return await self.make_sessions().open(None, self.token_of(user))

    async def add_user(self, name: str, *grants: Grant) -> str:
        async with self.server.client() as http:
            self.credentials[name] = await Admin(http).create_user(name, self.lake.name, *grants)
        return name

    async def send(self, method: str, path: str, body: Any = None, *, base: str = "") -> httpx.Response:
        """As root, below the catalog."""
        async with self.lake.client() as http:
            answer = await http.request(method, f"{base or self.lake.url}/{path}", json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def make_table(
        self,
        name: str = "",
        *,
        schema: Any = None,
        spec: Any = None,
        namespace: str = "shop",
        properties: Any = None,
    ) -> str:
        name = name or self.fresh("orders")
        body = {"name": name, "schema": schema or ORDERS, "properties": properties or {}}
        if spec:
            body["partition-spec"] = spec
        await self.send("POST", f"namespaces/{namespace}/tables", body)
        return name

    async def append(self, table: str, data: pa.Table, **more: Any) -> Appended:
        """Rows in files of their own."""
        root = self.server.credential
        tokens = TokenSource(
            self.http, ClientCredentials(root.client_id, Secret(root.secret)), SystemClock(), headers={}
        )
        api = AppendApi(ApiClient(self.http, tokens=tokens), self.lake.name)
        return await api.append(NS, table, data, **more)

    async def make_view(self, name: str, sql: str, columns: list[str], dialect: str = "spark") -> str:
        fields = [
            {"id": at, "name": each, "type": "string", "required": False}
            for at, each in enumerate(columns, 1)
        ]
        body = {
            "name": name,
            "schema": {"type": "struct", "schema-id": 0, "fields": fields},
            "properties": {},
            "view-version": {
                "version-id": 1,
                "schema-id": 0,
                "timestamp-ms": 1,
                "summary": {},
                "default-namespace": list(NS),
                "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
            },
        }
        await self.send("POST", "namespaces/shop/views", body)
        return name

    async def restrict(self, table: str, **content: Any) -> str:
        """A row filter or a mask on a table; the policy's name."""
        kind = "cynosure.row-filter" if "filter" in content else "cynosure.column-mask"
        said = {each.replace("_", "-"): value for each, value in {"enable": True, **content}.items()}
        name = self.fresh("policy")
        base = f"{self.lake.root}/polaris/v1/{self.lake.name}"
        body = {"name": name, "type": kind, "content": msgspec.json.encode(said).decode()}
        await self.send("POST", "namespaces/shop/policies", body, base=base)
        target = {"type": "table-like", "path": [*NS, table]}
        await self.send("PUT", f"namespaces/shop/policies/{name}/mappings", {"target": target}, base=base)
        return name

    async def lift(self, table: str, policy: str) -> None:
        base = f"{self.lake.root}/polaris/v1/{self.lake.name}"
        target = {"type": "table-like", "path": [*NS, table]}
        await self.send("POST", f"namespaces/shop/policies/{policy}/mappings", {"target": target}, base=base)


@asynccontextmanager
async def open_world(directory: Path, env: Mapping[str, str] | None = None) -> AsyncIterator[World]:
    """A catalog server in a process of its own, and in it a catalog, a namespace, the gateway's principal."""
    with Processes(directory) as processes:
        server = await start_catalog_server(processes, directory, env=env)
        lake = await server.create_catalog("lake")
        async with server.client() as http:
            admin = Admin(http)
            gateway = await admin.create_principal("gateway")
            path = "/cynosure/principals/gateway/trusted-service"
            await admin.send("PUT", path, {"trusted": True})
            await admin.create_role("gateway")
            await admin.assign_role("gateway", "gateway")
            await admin.create_catalog_role("lake", "gateway")
            await admin.assign_catalog_role("lake", "gateway", "gateway")
            made = await http.post(f"{lake.url}/namespaces", json={"namespace": list(NS)})
            assert made.is_success, made.text
        async with HttpClient(server.url, clock=SystemClock(), rng=random.Random(1)) as client:
            yield World(server, lake, client, gateway)
