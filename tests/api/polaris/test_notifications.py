"""Notifications over HTTP."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.world import BASE, World
from tests.catalog.external import UUID, table_metadata

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


def table(catalog: str) -> str:
    return f"{BASE}/api/catalog/v1/{catalog}/namespaces/a%1Fb/tables/t"


def write(folder: Path, catalog: str = "ext") -> str:
    directory = folder / catalog / "orders" / "metadata"
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "v1.metadata.json"
    file.write_text(json.dumps(table_metadata(f"file://{folder}/{catalog}/orders")))
    return f"file://{file}"


def told(kind: str, timestamp: int, file: str, **more: Any) -> dict[str, Any]:
    payload = {"table-name": "t", "timestamp": timestamp, "table-uuid": UUID, "metadata-location": file}
    return {"notification-type": kind, "payload": {**payload, **more}}


async def send(client: httpx.AsyncClient, body: dict[str, Any], catalog: str = "ext") -> httpx.Response:
    return await client.post(f"{table(catalog)}/notifications", json=body)


async def test_an_external_table_comes_and_goes(root: httpx.AsyncClient, world: World) -> None:
    file = write(world.folder)

    validated = await send(root, told("VALIDATE", 1, file))
    assert (await root.get(table("ext"))).status_code == 404
    created = await send(root, told("CREATE", 1, file, metadata={"anything": 1}))
    loaded = await root.get(table("ext"))
    again = await send(root, told("UPDATE", 1, file))
    dropped = await send(root, told("DROP", 2, file))

    assert [each.status_code for each in (validated, created, dropped)] == [204, 204, 204]
    assert loaded.json()["metadata-location"] == file
    assert loaded.json()["metadata"]["table-uuid"] == UUID
    assert error_of(again) == (409, "AlreadyExistsException")
    message = again.json()["error"]["message"]
    assert message == "A notification with a newer timestamp has been admitted for table: a.b.t"
    assert error_of(await root.get(table("ext"))) == (404, "NoSuchTableException")


async def test_what_is_refused(root: httpx.AsyncClient, nobody: httpx.AsyncClient, world: World) -> None:
    file = write(world.folder)
    inside = write(world.folder, "lake")

    async def refuse(body: dict[str, Any], catalog: str = "ext") -> tuple[int, str]:
        return error_of(await send(root, body, catalog))

    assert await refuse(told("CREATE", 1, inside), "lake") == (400, "BadRequestException")
    assert await refuse(told("UNKNOWN", 1, file)) == (400, "BadRequestException")
    assert await refuse(told("RENAME", 1, file)) == (400, "BadRequestException")
    assert await refuse(told("CREATE", 1, inside)) == (403, "ForbiddenException")
    assert await refuse(told("CREATE", 1, f"{file}.gone")) == (400, "BadRequestException")
    assert await refuse(told("CREATE", 1 << 64, file)) == (400, "BadRequestException")
    assert await refuse(told("CREATE", 1, file, **{"table-uuid": "x"})) == (400, "BadRequestException")
    assert error_of(await send(nobody, told("CREATE", 1, file))) == (403, "ForbiddenException")
    assert (await root.get(f"{BASE}/api/catalog/v1/ext/namespaces")).json() == {"namespaces": []}


async def test_only_its_owner_changes_an_external_table(root: httpx.AsyncClient, world: World) -> None:
    await send(root, told("CREATE", 1, write(world.folder)))
    update = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}

    committed = await root.post(table("ext"), json=update)
    created = await root.post(
        f"{BASE}/api/catalog/v1/ext/namespaces/a/tables", json={"name": "new", "schema": SCHEMA}
    )

    assert error_of(committed) == error_of(created) == (400, "BadRequestException")
    assert "by the catalog that owns them" in committed.json()["error"]["message"]
