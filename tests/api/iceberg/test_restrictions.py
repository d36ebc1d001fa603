"""Restricted tables over HTTP: what is answered, what is refused, and what a client may keep (I50, I51)."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from cynosure.testing.admin import Grant
from tests.api.world import BASE, World, open_world

pytestmark = pytest.mark.anyio

CATALOG = f"{BASE}/api/catalog/v1/lake"
TABLE = f"{CATALOG}/namespaces/a/tables/t"
POLICIES = f"{BASE}/api/catalog/polaris/v1/lake/namespaces/a/policies"
SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "owner", "required": False, "type": "string"},
    ],
}
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with await world.login(world.root) as client:
        for path, body in (
            ("/catalogs", world.catalog("lake")),
            (f"{CATALOG}/namespaces", {"namespace": ["a"]}),
            (f"{CATALOG}/namespaces/a/tables", {"name": "t", "schema": SCHEMA}),
        ):
            answer = await client.post(path, json=body)
            assert answer.is_success, answer.text
        yield client


@pytest.fixture
async def ann(world: World, root: httpx.AsyncClient) -> AsyncIterator[httpx.AsyncClient]:
    made = await world.admin(root).create_user("ann", "lake", Grant("CATALOG_MANAGE_CONTENT"))
    async with await world.login(made) as client:
        yield client


async def restrict(client: httpx.AsyncClient, **content: Any) -> httpx.Response:
    kind = "row-filter" if "filter" in content else "column-mask"
    text = msgspec.json.encode({"enable": True, **content}).decode()
    body = {"name": kind, "type": f"cynosure.{kind}", "content": text}
    made = await client.post(POLICIES, json=body)
    if not made.is_success:
        return made
    target = {"type": "table-like", "path": ["a", "t"]}
    return await client.put(f"{POLICIES}/{kind}/mappings", json={"target": target})


async def test_a_client_that_kept_an_open_answer_is_sent_the_restricted_one(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    kept = (await ann.get(TABLE)).headers["etag"]
    assert (await ann.get(TABLE, headers={"If-None-Match": kept})).status_code == 304

    assert (await restrict(root, filter="owner = current_user()")).is_success
    answer = await ann.get(TABLE, headers={"If-None-Match": kept, **DELEGATION})

    assert answer.status_code == 200
    found = answer.json()
    assert found["read-restrictions"]["required-row-filter"]["right"]["value"] == "ann"
    assert "storage-credentials" not in found
    again = await ann.get(TABLE, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304
    other = await root.get(TABLE, headers={"If-None-Match": answer.headers["etag"]})
    assert other.json()["read-restrictions"]["required-row-filter"]["right"]["value"] == "root"


async def test_a_restricted_principal_is_refused_by_name_of_the_policy(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    await restrict(root, columns={"owner": "show-last-4"})

    for answer in (
        await ann.get(f"{TABLE}/credentials"),
        await ann.post(TABLE, json={"requirements": [], "updates": []}),
        await ann.delete(TABLE),
    ):
        assert answer.status_code == 403
        assert answer.json()["error"]["type"] == "ForbiddenException"
        assert "a.column-mask" in answer.json()["error"]["message"]


async def test_a_refusal_for_a_policy_is_in_the_events(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    await restrict(root, columns={"owner": "show-last-4"})

    await ann.delete(TABLE)

    events = (await root.get("/cynosure/events")).json()["events"]
    (refused,) = [each for each in events if each["operation"] == "drop-table"]
    assert refused["principal"] == "ann"
    assert "a.column-mask" in msgspec.json.encode(refused).decode()


async def test_who_manages_content_manages_no_restrictions(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    assert (await restrict(ann, filter="id = 1")).status_code == 403

    await restrict(root, filter="id = 1")

    off = {"content": '{"enable":false,"filter":"id = 1"}', "current-policy-version": 0}
    target = {"type": "table-like", "path": ["a", "t"]}
    for answer in (
        await ann.put(f"{POLICIES}/row-filter", json=off),
        await ann.post(f"{POLICIES}/row-filter/mappings", json={"target": target}),
        await ann.delete(f"{POLICIES}/row-filter?detach-all=true"),
    ):
        assert answer.status_code == 403
    assert "read-restrictions" in (await ann.get(TABLE)).json()


async def test_a_column_that_is_restricted_is_not_renamed_by_anyone(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    await restrict(root, columns={"owner": "show-last-4"}, roles=["ann_role"])
    key, owner = SCHEMA["fields"]
    changed = {**SCHEMA, "schema-id": 1, "fields": [key, {**owner, "name": "x"}]}
    updates = [
        {"action": "add-schema", "schema": changed},
        {"action": "set-current-schema", "schema-id": -1},
    ]

    refused = await root.post(TABLE, json={"requirements": [], "updates": updates})

    assert refused.status_code == 400
    assert refused.json()["error"]["type"] == "ValidationException"
    assert "a.column-mask" in refused.json()["error"]["message"]


async def test_an_explanation_says_what_is_restricted(
    root: httpx.AsyncClient, ann: httpx.AsyncClient
) -> None:
    await restrict(root, filter="owner = 'secret'")
    await restrict(root, columns={"id": "mask-to-fixed-value"})
    place = {"catalog": "lake", "namespace": ["a"], "table": "t"}

    loads = (
        await ann.post("/cynosure/explain-access", json={"operation": "load-table", "target": place})
    ).json()
    reads = (
        await root.post(
            "/cynosure/explain-access",
            json={"operation": "load-table-to-read", "target": place, "principal": "ann"},
        )
    ).json()

    assert loads["allowed"] is True
    assert loads["restrictions"] == [
        {
            "policy": "a.row-filter",
            "type": "cynosure.row-filter",
            "onKind": "table",
            "on": "a.t",
            "effect": "only rows where owner = (string)",
        },
        {
            "policy": "a.column-mask",
            "type": "cynosure.column-mask",
            "onKind": "table",
            "on": "a.t",
            "effect": "id as mask-to-fixed-value",
        },
    ]
    assert reads["allowed"] is False
    assert "a.row-filter" in reads["reason"]
