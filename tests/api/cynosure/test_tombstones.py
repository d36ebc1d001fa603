"""Tombstones over HTTP, as the service that purges sees them; and how a drop with purge is answered (I92)."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.begin_purging import begin_purging
from cynosure.catalog.operations.list_tombstones import list_tombstones
from cynosure.catalog.purging.ending import drop_for_good
from cynosure.catalog.purging.purge import begin_purge
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.delegated.vocabulary import TaskStatus
from cynosure.common.errors import Unavailable
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import ObjId
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_catalog import ROOT
from tests.api.world import World, open_world

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
URL = "http://test/api/catalog"
TABLES, OURS = f"{URL}/v1/lake/namespaces/ns/tables", f"{URL}/cynosure/v1/lake"
PURGE = f"{TABLES}/t?purgeRequested=true"
KEY = {"idempotency-key": "0c6a3f51e8de4f6fb1d2a7c94e5b8f30"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
def executor(world: World) -> ScriptedExecutor:
    """Whose tasks do not end by themselves; nobody waits for them for long."""
    found = world.directory.shared.executor
    assert isinstance(found, ScriptedExecutor)
    found.work = None
    settings = DelegationSettings(sync_timeout=timedelta(milliseconds=50))
    object.__setattr__(world.directory.shared, "delegation", settings)
    return found


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with await world.login(world.root) as client:
        assert (await client.post("/catalogs", json=world.catalog("lake"))).status_code == 201
        await world.admin(client).grant_content("lake")
        await client.post(f"{URL}/v1/lake/namespaces", json={"namespace": ["ns"]})
        assert (await client.post(TABLES, json={"name": "t", "schema": SCHEMA})).status_code == 200
        yield client


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


async def entomb(world: World) -> dict[str, Any]:
    catalog = await world.directory.open(DEFAULT_REALM, "lake")
    tombstone = (await begin_purge(catalog, ROOT, Identifier(("ns",), "t"))).tombstone
    return {"id": str(tombstone.entity_id), "task": tombstone.task_id, "drop": str(tombstone.drop_id)}


async def test_a_tombstone_tells_what_a_purge_needs(
    world: World, root: httpx.AsyncClient, executor: ScriptedExecutor
):
    table = (await root.get(f"{TABLES}/t")).json()
    made = await entomb(world)

    listed = (await root.get(f"{OURS}/tombstones")).json()["tombstones"]
    loaded = await root.get(f"{OURS}/tombstones/{made['id']}")
    told = loaded.json()

    assert [each["entity-id"] for each in listed] == [made["id"]]
    assert loaded.headers["cache-control"] == "no-store"
    assert told["metadata"] == table["metadata"]
    assert told["metadata-location"] == table["metadata-location"]
    assert told["places"] == [told["location"]] == [table["metadata"]["location"]]
    assert told["table-uuid"] == table["metadata"]["table-uuid"]
    assert (told["state"], told["mode"], told["task-id"]) == ("restorable", "sync", made["task"])
    assert (told["namespace"], told["name"], told["drop-id"]) == (["ns"], "t", made["drop"])
    assert told["correlation-id"].startswith("purge-")
    credentials = await root.get(f"{OURS}/tombstones/{made['id']}/credentials")
    assert credentials.json() == {"storage-credentials": []}
    assert (await root.get(f"{TABLES}/t")).status_code == 404


async def test_purging_is_entered_by_the_right_task_and_ends_restoring(
    world: World, root: httpx.AsyncClient, executor: ScriptedExecutor
):
    made = await entomb(world)
    path = f"{OURS}/tombstones/{made['id']}"
    (dropped,) = (await root.get(f"{OURS}/dropped")).json()["dropped"]
    assert (dropped["purge"], dropped["task-id"]) == ("restorable", made["task"])

    other = await root.post(f"{path}/purging", json={"task-id": "another"})
    begun = [await root.post(f"{path}/purging", json={"task-id": made["task"]}) for _ in range(2)]
    restored = await root.post(f"{OURS}/dropped/{made['drop']}/restore", json={})

    assert error_of(other) == (409, "CommitFailedException")
    assert [(each.status_code, each.json()) for each in begun] == [(200, {"state": "purging"})] * 2
    assert error_of(restored) == (409, "CommitFailedException")
    assert made["task"] in restored.json()["error"]["message"]
    await executor.end(made["task"])
    assert (await root.post(f"{path}/ended", json={"task-id": made["task"]})).status_code == 202
    gone = await root.get(path)
    while gone.status_code == 200:
        gone = await root.get(path)
    assert error_of(gone) == (404, "NotFoundException")
    assert (await root.get(f"{OURS}/dropped")).json()["dropped"] == []


@pytest.mark.parametrize("verb", ["purging", "ended"])
@pytest.mark.parametrize(
    ("entity", "body", "status", "named"),
    [
        ("x", {"task-id": "t"}, 400, "id"),
        ("99999999999999999999", {"task-id": "t"}, 400, "id"),
        ("7", {"task-id": ""}, 400, "task-id"),
        ("7", {"task-id": "x" * 65}, 400, "task-id"),
        ("7", {}, 400, "task-id"),
        ("7", {"task-id": "t", "more": 1}, 400, "more"),
        ("7", {"task-id": "t"}, 404, "7"),
    ],
)
async def test_bad_input_is_refused_by_name(
    root: httpx.AsyncClient, verb: str, entity: str, body: Any, status: int, named: str
):
    answer = await root.post(f"{OURS}/tombstones/{entity}/{verb}", json=body)

    assert answer.status_code == status
    assert named in answer.json()["error"]["message"]


async def test_a_purge_is_answered_as_it_went(
    world: World, root: httpx.AsyncClient, executor: ScriptedExecutor
):
    executor.refusal = Unavailable("Connection refused")
    away = await root.delete(PURGE)
    executor.refusal = None
    slow = await root.delete(PURGE)
    (dropped,) = (await root.get(f"{OURS}/dropped")).json()["dropped"]
    await executor.end(
        dropped["task-id"],
        TaskStatus.FAILURE,
        error_code="CREDENTIAL_VENDING_FAILED",
        result_summary="no credentials",
    )
    failed = await root.delete(PURGE)
    back = await root.get(f"{TABLES}/t")
    await root.delete(PURGE)
    (dropped,) = (await root.get(f"{OURS}/dropped")).json()["dropped"]
    await root.post(f"{OURS}/tombstones/{dropped['entity-id']}/purging", json={"task-id": dropped["task-id"]})
    await executor.end(dropped["task-id"])
    gone, missing = await root.delete(PURGE), await root.delete(PURGE)

    assert error_of(away) == (503, "ServiceUnavailableException")
    assert error_of(slow) == (504, "PurgeUnderWayException")
    assert "cynosure tasks watch" in slow.json()["error"]["message"]
    assert error_of(failed) == (502, "BadGatewayException")
    assert "no credentials" in failed.json()["error"]["message"]
    assert back.status_code == 200
    assert (gone.status_code, missing.status_code) == (204, 404)


async def test_a_key_has_one_purge_and_after_that_was_taken_back_none(
    world: World, root: httpx.AsyncClient, executor: ScriptedExecutor
):
    waiting = [await root.delete(PURGE, headers=KEY) for _ in range(2)]
    (dropped,) = (await root.get(f"{OURS}/dropped")).json()["dropped"]
    await executor.end(dropped["task-id"], TaskStatus.FAILURE, error_code="NO")
    failed = await root.delete(PURGE, headers=KEY)
    taken_back = [await root.delete(PURGE, headers=KEY) for _ in range(2)]

    assert [each.status_code for each in (*waiting, failed)] == [504, 504, 502]
    assert {order.task_id for order in executor.orders} == {dropped["task-id"]}
    for each in taken_back:
        assert error_of(each) == (409, "CommitFailedException")
        assert "new Idempotency-Key" in each.json()["error"]["message"]
    assert (await root.get(f"{TABLES}/t")).status_code == 200


async def test_tables_of_an_external_catalog_and_generic_tables_are_not_purged(
    world: World, root: httpx.AsyncClient
):
    await root.post("/catalogs", json=world.catalog("ext", type="EXTERNAL"))
    await world.admin(root).grant_content("ext")
    await root.post(f"{URL}/v1/ext/namespaces", json={"namespace": ["ns"]})
    generic = f"{URL}/polaris/v1/lake/namespaces/ns/generic-tables"
    await root.post(generic, json={"name": "g", "format": "csv"})
    location = world.folder / "ext" / "t"
    (location / "metadata").mkdir(parents=True)
    metadata = (await root.get(f"{TABLES}/t")).json()["metadata"]
    file = location / "metadata" / "v1.metadata.json"
    file.write_bytes(httpx.Response(200, json={**metadata, "location": f"file://{location}"}).content)
    body = {"name": "t", "metadata-location": f"file://{file}"}
    assert (await root.post(f"{URL}/v1/ext/namespaces/ns/register", json=body)).status_code == 200

    external = await root.delete(f"{URL}/v1/ext/namespaces/ns/tables/t?purgeRequested=true")
    as_table = await root.delete(f"{TABLES}/g?purgeRequested=true")

    assert error_of(external) == (400, "BadRequestException")
    assert "external catalog" in external.json()["error"]["message"]
    assert error_of(as_table) == (404, "NoSuchTableException")
    assert (await root.get(f"{generic}/g")).status_code == 200
    assert file.exists()


async def test_who_joins_a_purge_that_another_server_ends_hears_of_it(
    world: World, root: httpx.AsyncClient, executor: ScriptedExecutor
):
    object.__setattr__(world.directory.shared, "delegation", DelegationSettings())
    made = await entomb(world)
    joined = asyncio.create_task(root.delete(PURGE))
    await executor.until(lambda: len(executor.orders) == 2)
    catalog = await world.directory.open(DEFAULT_REALM, "lake")
    await begin_purging(catalog, ROOT, ObjId(int(made["id"])), made["task"])
    await drop_for_good(catalog, ROOT, (await list_tombstones(catalog, ROOT, size=1)).entries[0])

    await executor.end(made["task"])

    assert (await asyncio.wait_for(joined, 10)).status_code == 204
