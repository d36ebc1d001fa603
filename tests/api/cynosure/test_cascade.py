"""Cascades over HTTP: statuses, bodies, what is refused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from cynosure.testing.admin import Grant
from cynosure.testing.scripted_executor import ScriptedExecutor
from tests.api.world import BASE, World, open_world
from tests.catalog.purging.running_out import put_forward, wait_until_waited_for

pytestmark = pytest.mark.anyio

LAKE = f"{BASE}/api/catalog/v1/lake/namespaces"
DROP = f"{BASE}/api/catalog/cynosure/v1/lake/namespaces/a/drop"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}
NOTHING = {
    "namespaces": 0,
    "tables": 0,
    "generic-tables": 0,
    "views": 0,
    "policies": 0,
    "purges-under-way": 0,
    "in-the-way": [],
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as world:
        yield world


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """With namespaces `a` and `a.b`, each with a table `t`."""
    async with await world.login(world.root) as client:
        assert (await client.post("/catalogs", json=world.catalog("lake"))).status_code == 201
        await world.admin(client).grant_content("lake")
        for levels in (["a"], ["a", "b"]):
            assert (await client.post(LAKE, json={"namespace": levels})).status_code == 200
            path = f"{LAKE}/{'%1F'.join(levels)}/tables"
            assert (await client.post(path, json={"name": "t", "schema": SCHEMA})).status_code == 200
        yield client


async def test_what_would_go_is_told_and_then_goes(root: httpx.AsyncClient) -> None:
    plan = await root.get(DROP)
    plain = await root.post(DROP, json={})
    dropped = await root.post(DROP, json={"cascade": True})
    again = await root.post(DROP, json={"cascade": True})

    assert plan.json() == {**NOTHING, "namespaces": 1, "tables": 2}
    assert plain.status_code == 409, "only a request that says so drops more than what is empty"
    assert dropped.status_code == 204
    assert again.status_code == 404
    assert (await root.get(LAKE)).json()["namespaces"] == []


async def test_a_catalog_is_dropped_with_all_it_holds(root: httpx.AsyncClient) -> None:
    plan = await root.get("/catalogs/lake/drop")
    plain = await root.post("/catalogs/lake/drop", json={"cascade": False})
    dropped = await root.post("/catalogs/lake/drop", json={"cascade": True})

    assert (plan.json()["namespaces"], plan.json()["tables"]) == (2, 2)
    assert (plain.status_code, dropped.status_code) == (400, 204)
    assert (await root.get("/catalogs/lake")).status_code == 404


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"purge": True}, "purge"),
        ({"cascade": "yes"}, "cascade"),
        ({"cascade": True, "force": True}, "force"),
        ([], "object"),
    ],
)
async def test_a_body_that_means_nothing_is_refused(
    root: httpx.AsyncClient, body: object, field: str
) -> None:
    answer = await root.post(DROP, json=body)

    assert answer.status_code == 400
    assert field in answer.json()["error"]["message"]


async def test_who_may_not_drop_all_of_it_hears_of_what_and_is_on_record(
    world: World, root: httpx.AsyncClient
) -> None:
    who = await world.admin(root).create_user("ann", "lake", Grant("NAMESPACE_DROP"))
    async with await world.login(who) as ann:
        plan = await ann.get(DROP)
        refused = await ann.post(DROP, json={"cascade": True})
    events = (await root.get("/cynosure/events", params={"principal": "ann"})).json()["events"]

    assert [each["path"] for each in plan.json()["in-the-way"]] == [["a", "b", "t"], ["a", "t"]]
    assert refused.status_code == 403
    assert "a.b.t (lacks TABLE_DROP)" in refused.json()["error"]["message"]
    assert [(each["operation"], each["decision"]) for each in events] == [("drop-table", "denied")]


async def test_a_purge_that_takes_longer_is_answered_with_its_tasks(
    world: World, root: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = world.directory.shared
    clock = shared.persistence.clock
    executor = ScriptedExecutor(clock)
    shared.use_executor(executor)
    monkeypatch.setattr("cynosure.catalog.purging.purge._LONGEST_WAIT_S", 0.05)

    asked = asyncio.create_task(root.post(DROP, json={"cascade": True, "purge": True}))
    await wait_until_waited_for(executor, monkeypatch, 2)
    put_forward(clock, monkeypatch, shared.delegation.sync_timeout.total_seconds())
    answer = await asked

    assert answer.status_code == 504
    message = answer.json()["error"]["message"]
    assert {order.task_id for order in executor.orders}
    assert all(order.task_id in message for order in executor.orders)
    assert (await root.get(DROP)).json()["purges-under-way"] == 2
