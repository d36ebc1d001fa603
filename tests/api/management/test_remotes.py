"""Remotes of federated catalogs over HTTP: how they are, and what is different."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from cynosure.catalog.names import Identifier
from cynosure.iceberg.metadata import parse_metadata
from cynosure.testing.memory_remote import MemoryRemote
from tests.api.world import World, open_world
from tests.catalog.external import table_metadata

pytestmark = pytest.mark.anyio

FAR = "/cynosure/catalogs/far"
T = Identifier(("ns",), "orders")


class Far(NamedTuple):
    world: World
    root: httpx.AsyncClient
    remote: MemoryRemote


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    remote = MemoryRemote()
    async with (
        open_world(tmp_path, remotes=lambda _: remote) as world,
        await world.login(world.root) as root,
    ):
        connection = {
            "connectionType": "ICEBERG_REST",
            "uri": "http://127.0.0.1:1/",
            "remoteCatalogName": "there",
            "authenticationParameters": {"authenticationType": "BEARER", "bearerToken": "a-token-of-a-test"},
        }
        wanted = world.catalog("far", type="EXTERNAL", connectionConfigInfo=connection)
        made = await root.post("/catalogs", json=wanted)
        assert made.status_code == 201, made.text
        metadata = parse_metadata(msgspec.json.encode(table_metadata(f"file://{tmp_path}/far/orders")))
        remote.put(T, metadata)
        yield Far(world, root, remote)


async def load(far: Far) -> httpx.Response:
    return await far.root.get("http://test/api/catalog/v1/far/namespaces/ns/tables/orders")


async def test_a_remote_that_answers_is_reachable(far: Far) -> None:
    answer = await far.root.get(f"{FAR}/remote")

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["lastSuccessMs"] > 0
    assert re.fullmatch("[0-9a-f]{24}", found.pop("metricsLabel"))
    assert {**found, "lastSuccessMs": 0} == {
        "catalog": "far",
        "connectionType": "ICEBERG_REST",
        "uri": "http://127.0.0.1:1/",
        "reachable": True,
        "problem": None,
        "reason": None,
        "field": None,
        "fix": None,
        "breaker": "closed",
        "retryAfterMs": 0,
        "running": 0,
        "waiting": 0,
        "failures": 0,
        "lastSuccessMs": 0,
        "lastFailureMs": 0,
        "lastError": None,
    }
    assert far.remote.asked == ["check"]


async def test_a_remote_that_does_not_is_an_answer_too(far: Far) -> None:
    far.remote.is_down = True
    for _ in range(6):
        answer = await far.root.get(f"{FAR}/remote")

    found = answer.json()
    assert answer.status_code == 200
    assert (found["reachable"], found["problem"], found["breaker"]) == (False, "RemoteUnavailable", "open")
    assert (found["failures"], found["lastError"]) == (5, "RemoteUnavailable")
    assert found["retryAfterMs"] > 0
    assert far.remote.asked == ["check"] * 5


async def test_differences_are_told_and_mended_if_wanted(far: Far) -> None:
    assert (await load(far)).status_code == 200
    far.remote.tables.clear()

    told = await far.root.post(f"{FAR}/reconcile")
    mended = await far.root.post(f"{FAR}/reconcile", params={"dryRun": "false", "pageSize": 50})
    after = await far.root.post(f"{FAR}/reconcile")

    gone = {"type": "table", "path": ["ns", "orders"], "difference": "gone"}
    assert told.status_code == 200, told.text
    assert told.json() == {"checked": 2, "differences": [gone]}
    assert mended.json() == {"checked": 2, "differences": [{**gone, "mended": True}]}
    assert after.json() == {"checked": 1, "differences": []}


async def test_what_waits_for_the_remotes_tables_is_told_and_given_up_if_wanted(far: Far) -> None:
    assert (await load(far)).status_code == 200
    policies = "http://test/api/catalog/polaris/v1/far/namespaces/ns/policies"
    content = '{"enable": true, "filter": "data = current_user()"}'
    made = await far.root.post(
        policies, json={"name": "own", "type": "cynosure.row-filter", "content": content}
    )
    target = {"target": {"type": "table-like", "path": ["ns", "orders"]}}
    attached = await far.root.put(f"{policies}/own/mappings", json=target)
    assert (made.status_code, attached.status_code) == (200, 204), made.text + attached.text
    uuid = next(iter(far.remote.tables.values())).uuid
    far.remote.tables.clear()
    await far.root.post(f"{FAR}/reconcile", params={"dryRun": "false"})

    name = {"type": "table", "path": ["ns", "orders"], "policies": ["ns.own"]}
    told = await far.root.post(f"{FAR}/reconcile", params={"waiting": "list"})
    assert told.json()["waiting"] == [name, {"type": "uuid", "uuid": uuid, "policies": ["ns.own"]}]
    done = await far.root.post(f"{FAR}/reconcile", params={"waiting": "forget"})
    assert done.json() == {"checked": 0, "differences": [], "forgotten": 1, "kept": 1}
    told = await far.root.post(f"{FAR}/reconcile", params={"waiting": "list"})
    assert told.json()["waiting"] == [name]
    assert (await far.root.post(f"{FAR}/reconcile", params={"waiting": "all"})).status_code == 400
    events = (await far.root.get("/cynosure/events", params={"catalog": "far"})).json()["events"]
    assert "mirror-forget-waiting" in [each["operation"] for each in events]


async def test_lists_are_the_remotes(far: Far) -> None:
    catalog = "http://test/api/catalog/v1/far/namespaces"

    namespaces = await far.root.get(catalog)
    tables = await far.root.get(f"{catalog}/ns/tables", params={"pageSize": 1, "pageToken": ""})
    views = await far.root.get(f"{catalog}/ns/views")
    missing = await far.root.get(f"{catalog}/gone/tables")

    assert namespaces.json() == {"namespaces": [["ns"]]}
    assert tables.json() == {"identifiers": [{"namespace": ["ns"], "name": "orders"}]}
    assert views.json() == {"identifiers": []}
    assert missing.status_code == 404
    assert far.remote.asked == ["list-namespaces", "list-tables", "list-views", "list-tables"]


async def test_a_list_of_a_remote_that_is_down_is_503(far: Far) -> None:
    far.remote.is_down = True

    answer = await far.root.get("http://test/api/catalog/v1/far/namespaces")

    assert answer.status_code == 503


async def test_who_may_not_know_of_the_catalog_causes_no_request(far: Far) -> None:
    admin = far.world.admin(far.root)
    async with await far.world.login(await admin.create_principal("nobody")) as nobody:
        answers = [
            await nobody.get(f"{FAR}/remote"),
            await nobody.post(f"{FAR}/reconcile"),
            await nobody.post(f"{FAR}/reconcile", params={"waiting": "list"}),
            await nobody.post(f"{FAR}/reconcile", params={"waiting": "forget"}),
            await nobody.get("http://test/api/catalog/v1/far/namespaces"),
        ]

    assert [each.status_code for each in answers] == [403] * 5
    assert far.remote.asked == []


async def test_a_catalog_without_a_remote_is_refused(far: Far) -> None:
    await far.root.post("/catalogs", json=far.world.catalog("lake"))

    answers: list[Any] = [
        await far.root.get("/cynosure/catalogs/lake/remote"),
        await far.root.post("/cynosure/catalogs/lake/reconcile"),
        await far.root.post("/cynosure/catalogs/lake/reconcile", params={"waiting": "forget"}),
        await far.root.post(f"{FAR}/reconcile", params={"pageToken": "x"}),
        await far.root.post(f"{FAR}/reconcile", params={"pageSize": 1_000}),
    ]

    assert [each.status_code for each in answers] == [400] * 5
