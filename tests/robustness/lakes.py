"""A catalog on a real object store, and what a client does with it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from cynosure.testing.catalog_server import CatalogServer, ServedCatalog
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.catalog_storm.places import creation_of
from cynosure.testing.s3_servers import S3Server

VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}
KEY = "s3.access-key-id"
SIGNING = "s3.remote-signing-enabled"
STAGED = {"stage-create": True}


class Lake:
    """One catalog on a store, through HTTP, as root."""

    def __init__(self, catalog: ServedCatalog, http: httpx.AsyncClient) -> None:
        self.catalog = catalog
        self.http = http

    def url(self, table: str = "") -> str:
        tables = f"{self.catalog.url}/namespaces/ns/tables"
        return f"{tables}/{table}" if table else tables

    @property
    def policies(self) -> str:
        """Of the namespace."""
        return f"{self.catalog.url.replace('/v1/', '/polaris/v1/')}/namespaces/ns/policies"

    async def create(
        self, name: str, headers: Mapping[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        wanted = {"name": name, "schema": SCHEMA, **fields}
        return await self.http.post(self.url(), json=wanted, headers=headers)

    async def load(self, name: str, headers: Mapping[str, str] = VENDED) -> httpx.Response:
        return await self.http.get(self.url(name), headers=headers)

    async def key_of(self, name: str) -> str | None:
        """The access key that a client is given; `None` when it is told to have its requests signed."""
        answer = await self.load(name)
        assert answer.status_code == 200, answer.text
        config = answer.json()["config"]
        assert (KEY in config) != (config.get(SIGNING) == "true"), "neither or both"
        key: str | None = config.get(KEY)
        return key

    async def refresh(self, name: str) -> httpx.Response:
        return await self.http.get(f"{self.url(name)}/credentials")

    async def set(self, name: str, **properties: str) -> httpx.Response:
        updates = [{"action": "set-properties", "updates": properties}]
        return await self.http.post(self.url(name), json={"requirements": [], "updates": updates})

    async def names(self) -> list[str]:
        return sorted(each["name"] for each in (await self.http.get(self.url())).json()["identifiers"])


@asynccontextmanager
async def lake_on(
    server: CatalogServer, store: S3Server, name: str, *tables: str, **storage: Any
) -> AsyncIterator[Lake]:
    catalog = await server.create_catalog_on(store, name, storage=storage)
    async with catalog.client() as http:
        lake = Lake(catalog, http)
        made = await http.post(f"{catalog.url}/namespaces", json={"namespace": ["ns"]})
        assert made.status_code == 200, made.text
        for table in tables:
            assert (await lake.create(table)).status_code == 200
        yield lake


def creation(staged: httpx.Response) -> dict[str, Any]:
    """The commit that creates what was staged."""
    return creation_of(staged.json()["metadata"])


async def problems_of(server: CatalogServer) -> list[str]:
    """What `cynosure store check` finds."""
    reports = json.loads(await server.run_cli("store", "check", "--json"))
    return [problem for report in reports for problem in report["problems"]]
