"""What requests are prepared in: catalogs, and things in them, under names of their own.

Must not break: everything is made through the API of a server that nothing happens to.
"""

import itertools
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from cynosure.testing.admin import MANAGEMENT, Admin
from cynosure.testing.login import Credential
from cynosure.testing.metadata_files import write_metadata

CATALOG: Final = "/api/catalog/v1"
POLARIS: Final = "/api/catalog/polaris/v1"
OURS: Final = "/api/catalog/cynosure/v1"
SCHEMA: Final = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
VERSION: Final = {
    "version-id": 1,
    "timestamp-ms": 1_750_000_000_000,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": ["a"],
}
REPORT: Final = {
    "report-type": "scan-report",
    "table-name": "t",
    "snapshot-id": 1,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["id"],
    "metrics": {},
}

Probe = Callable[[httpx.AsyncClient, httpx.Response], Awaitable[str]]
"""Looks at the effect, with what was answered; says what is wrong, or nothing."""


class Call(NamedTuple):
    """A request that is about to be sent."""

    method: str
    path: str
    body: Any
    status: int
    """What it is answered when nothing goes wrong."""
    probe: Probe
    credential: Credential | None = None
    """Whose request it is; root's when there is none."""
    may_commit: bool = False
    """A second attempt commits what a first one only answers."""
    is_uneven: bool = False
    """How much is written beside its commit is not the same every time: others take part in it."""


Prepare = Callable[["World"], Awaitable[Call]]


class World:
    """What requests are prepared in, through a server that nothing happens to."""

    def __init__(self, http: httpx.AsyncClient, files: Path) -> None:
        self.http = http
        self.admin = Admin(http)
        self._files = files
        self._numbers = itertools.count(1)

    async def furnish(self) -> None:
        """The catalogs that most requests are about."""
        for name, kind in (("lake", "INTERNAL"), ("ext", "EXTERNAL")):
            await self.send("POST", f"{MANAGEMENT}/catalogs", self.new_catalog(name, kind))
            await self.admin.grant_content(name)

    def fresh(self, word: str) -> str:
        """A name that nothing has yet."""
        return f"{word}{next(self._numbers)}"

    def location(self, name: str) -> str:
        """Where a catalog has its files."""
        return (self._files / name).as_uri()

    def new_catalog(self, name: str, kind: str = "INTERNAL") -> dict[str, Any]:
        """What creates it."""
        location = self.location(name)
        storage = {"storageType": "FILE", "allowedLocations": [location]}
        properties = {"default-base-location": location}
        return {
            "catalog": {"type": kind, "name": name, "properties": properties, "storageConfigInfo": storage}
        }

    async def send(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """A request that must succeed."""
        answer = await self.http.request(method, path, json=body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer

    async def namespace(self, catalog: str = "lake") -> str:
        """The path of a new namespace."""
        name = self.fresh("n")
        await self.send("POST", f"{CATALOG}/{catalog}/namespaces", {"namespace": [name]})
        return f"{CATALOG}/{catalog}/namespaces/{name}"

    async def table(self, namespace: str = "", name: str = "t") -> str:
        """The path of a new table."""
        namespace = namespace or await self.namespace()
        await self.send("POST", f"{namespace}/tables", {"name": name, "schema": SCHEMA})
        return f"{namespace}/tables/{name}"

    async def view(self) -> str:
        """The path of a new view."""
        namespace = await self.namespace()
        await self.send("POST", f"{namespace}/views", new_view())
        return f"{namespace}/views/v"

    async def policy(self) -> str:
        """The path of a new policy."""
        namespace = (await self.namespace()).replace(CATALOG, POLARIS)
        await self.send("POST", f"{namespace}/policies", new_policy())
        return f"{namespace}/policies/p"

    async def catalog_role(self) -> str:
        """The name of a new role in the lake."""
        name = self.fresh("cr")
        await self.admin.create_catalog_role("lake", name)
        return name

    async def role(self) -> str:
        """The name of a new principal role."""
        name = self.fresh("r")
        await self.admin.create_role(name)
        return name

    def write_metadata(self, catalog: str, name: str) -> tuple[str, str]:
        """A metadata file of a table of somebody else's: its location and the table's UUID."""
        table_uuid = str(uuid.uuid4())
        return write_metadata(self._files / catalog / name, table_uuid, SCHEMA), table_uuid


def new_view() -> dict[str, Any]:
    """What creates a view `v`."""
    return {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}}


def new_policy() -> dict[str, Any]:
    """What creates a policy `p`."""
    return {"name": "p", "type": "system.data-compaction", "content": '{"enable":true}'}


def counting(value: str) -> list[dict[str, Any]]:
    """Updates that set a property."""
    return [{"action": "set-properties", "updates": {"k": value}}]
