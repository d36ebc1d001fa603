"""Idempotency-Key through the whole API: I73 to I79 as clients see them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from cynosure.api.messages import Request, Response
from cynosure.api.router import Route
from cynosure.idempotency.settings import IdempotencySettings
from cynosure.testing.admin import Grant
from tests.api.world import World, open_world

pytestmark = pytest.mark.anyio

BRIEFLY = timedelta(milliseconds=500)
LAKE = "http://test/api/catalog/v1/lake"
NAMESPACES = f"{LAKE}/namespaces"
TABLES = f"{NAMESPACES}/sales/tables"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
}
CONTENT = Grant("CATALOG_MANAGE_CONTENT")
KEY = {"Idempotency-Key": "019a8b52-6a0c-7d3e-9f61-2b1c8e7d5a40"}


@pytest.fixture
def wait() -> timedelta:
    """How long whoever repeats a request waits for the first one."""
    return IdempotencySettings().wait


@pytest.fixture
async def world(tmp_path: Path, wait: timedelta) -> AsyncIterator[World]:
    async with open_world(tmp_path, idempotency=IdempotencySettings(wait=wait)) as opened:
        yield opened


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """Root of the realm, with a catalog `lake` and a namespace `sales` in it."""
    async with await world.login(world.root) as client:
        assert (await client.post("catalogs", json=world.catalog("lake"))).status_code == 201
        await world.admin(client).grant_content("lake")
        assert (await client.post(NAMESPACES, json={"namespace": ["sales"]})).status_code == 200
        yield client


def is_replayed(answer: httpx.Response) -> bool:
    return "true" in answer.headers.get_list("idempotency-replayed")


def told(answer: httpx.Response) -> tuple[int, bytes, str | None]:
    """What must be the same whenever it is told."""
    return answer.status_code, answer.content, answer.headers.get("etag")


def error_type(answer: httpx.Response) -> str:
    found: str = answer.json()["error"]["type"]
    return found


def hold(route: Route, entered: asyncio.Semaphore, going_on: asyncio.Event) -> None:
    """Let requests of a route enter and not go on."""
    handler = route.handler

    async def held(request: Request) -> Response:
        entered.release()
        await going_on.wait()
        return await handler(request)

    object.__setattr__(route, "handler", held)


async def test_what_was_done_is_told_again_and_not_done_again(root: httpx.AsyncClient) -> None:
    """I73, I74."""
    wanted = {"name": "orders", "schema": SCHEMA}

    first = await root.post(TABLES, json=wanted, headers=KEY)
    again = await root.post(TABLES, json=wanted, headers=KEY)

    assert first.status_code == 200
    assert not is_replayed(first)
    assert told(again) == told(first)
    assert is_replayed(again)


async def test_what_was_refused_is_told_again_although_it_would_be_done_by_now(
    root: httpx.AsyncClient,
) -> None:
    """I74."""
    wanted = {"name": "orders", "schema": SCHEMA}
    missing = f"{NAMESPACES}/later/tables"

    first = await root.post(missing, json=wanted, headers=KEY)
    await root.post(NAMESPACES, json={"namespace": ["later"]})
    again = await root.post(missing, json=wanted, headers=KEY)
    with_new_key = await root.post(missing, json=wanted, headers={"Idempotency-Key": "another"})

    assert (first.status_code, error_type(first)) == (404, "NoSuchNamespaceException")
    assert told(again) == told(first)
    assert is_replayed(again)
    assert with_new_key.status_code == 200


async def test_another_payload_is_refused_and_not_done(root: httpx.AsyncClient) -> None:
    """I75."""
    await root.post(NAMESPACES, json={"namespace": ["a"]}, headers=KEY)

    other = await root.post(NAMESPACES, json={"namespace": ["b"]}, headers=KEY)

    assert (other.status_code, error_type(other)) == (422, "idempotency_key_conflict")
    assert (await root.head(f"{NAMESPACES}/b")).status_code == 404


async def test_another_query_is_another_payload(root: httpx.AsyncClient) -> None:
    await root.post(TABLES, json={"name": "orders", "schema": SCHEMA})

    dropped = await root.delete(f"{TABLES}/orders", headers=KEY)
    again = await root.delete(f"{TABLES}/orders?purgeRequested=false", headers=KEY)
    purged = await root.delete(f"{TABLES}/orders?purgeRequested=true", headers=KEY)

    assert dropped.status_code == again.status_code == 204
    assert is_replayed(again)
    assert purged.status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        b'{"properties":{"a":"\\u0062"},"namespace":["x"]}',
        b' {\n"namespace" : ["\\u0078"], "properties": {"a": "b"}} ',
    ],
)
async def test_a_body_that_is_only_spelt_otherwise_is_the_same(root: httpx.AsyncClient, body: bytes) -> None:
    first = await root.post(NAMESPACES, json={"namespace": ["x"], "properties": {"a": "b"}}, headers=KEY)
    again = await root.post(NAMESPACES, content=body, headers={**KEY, "content-type": "application/json"})

    assert told(again) == told(first)
    assert is_replayed(again)


@pytest.mark.parametrize("spelling", ["a%1Fb", "a%1fb", "%61%1Fb", "a%1F%62"])
async def test_a_path_that_is_only_spelt_otherwise_is_the_same(
    root: httpx.AsyncClient, spelling: str
) -> None:
    for namespace in (["a"], ["a", "b"]):
        await root.post(NAMESPACES, json={"namespace": namespace})
    first = await root.delete(f"{NAMESPACES}/a%1Fb", headers=KEY)

    again = await root.delete(httpx.URL(f"{NAMESPACES}/{spelling}"), headers=KEY)

    assert first.status_code == 204
    assert told(again) == told(first)
    assert is_replayed(again)


async def test_a_key_is_another_one_elsewhere(root: httpx.AsyncClient) -> None:
    one = await root.post(TABLES, json={"name": "one", "schema": SCHEMA}, headers=KEY)
    namespace = await root.post(NAMESPACES, json={"namespace": ["other"]}, headers=KEY)
    two = await root.post(f"{NAMESPACES}/other/tables", json={"name": "two", "schema": SCHEMA}, headers=KEY)
    role = await root.post("principal-roles", json={"principalRole": {"name": "etl"}}, headers=KEY)

    assert [each.status_code for each in (one, namespace, two, role)] == [200, 200, 200, 201]
    assert not any(is_replayed(each) for each in (one, namespace, two, role))


async def test_a_key_is_another_one_for_another_principal(world: World, root: httpx.AsyncClient) -> None:
    """Nobody is told what another one asked for, and both may use the same key."""
    credential = await world.admin(root).create_user("ann", "lake", CONTENT)
    async with await world.login(credential) as ann:
        first = await root.post(NAMESPACES, json={"namespace": ["x"]}, headers=KEY)
        hers = await ann.post(NAMESPACES, json={"namespace": ["x"]}, headers=KEY)
        other = await ann.post(NAMESPACES, json={"namespace": ["y"]}, headers=KEY)

    assert first.status_code == 200
    assert (hers.status_code, is_replayed(hers)) == (409, False)
    assert other.status_code == 422


@pytest.mark.parametrize("key", ["", "-a", "_a", ".a", "a b", "a/b", "ä", "a" * 256, "a,b", "a\x00"])
async def test_a_key_that_breaks_the_rule_is_named(root: httpx.AsyncClient, key: str) -> None:
    headers = [(b"idempotency-key", key.encode("latin-1"))]

    answer = await root.post(NAMESPACES, json={"namespace": ["x"]}, headers=headers)

    assert answer.status_code == 400
    assert "Idempotency-Key" in answer.json()["error"]["message"]
    assert (await root.head(f"{NAMESPACES}/x")).status_code == 404


@pytest.mark.parametrize("key", ["a", "9", "a" * 255, "A-b_c.d", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"])
async def test_a_key_that_keeps_the_rule_is_taken(root: httpx.AsyncClient, key: str) -> None:
    headers = {"Idempotency-Key": key}

    first = await root.post(NAMESPACES, json={"namespace": ["x"]}, headers=headers)

    assert first.status_code == 200
    assert is_replayed(await root.post(NAMESPACES, json={"namespace": ["x"]}, headers=headers))


async def test_two_keys_in_one_request_are_refused(root: httpx.AsyncClient) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]

    answer = await root.post(NAMESPACES, json={"namespace": ["x"]}, headers=headers)

    assert answer.status_code == 400


async def test_whoever_lost_the_right_is_told_so_and_nothing_else(
    world: World, root: httpx.AsyncClient
) -> None:
    """I76: both for what is in the chain and for what was refused and stored."""
    admin = world.admin(root)
    credential = await admin.create_user("ann", "lake", CONTENT)
    async with await world.login(credential) as ann:

        async def ask() -> list[httpx.Response]:
            wanted = {"namespace": ["x"]}
            keys = ({"Idempotency-Key": "done"}, {"Idempotency-Key": "refused"})
            return [await ann.post(NAMESPACES, json=wanted, headers=key) for key in keys]

        before = await ask()
        await admin.revoke("lake", "ann_catalog_role", CONTENT)
        after = await ask()
        await admin.grant("lake", "ann_catalog_role", CONTENT)
        again = await ask()

    assert [answer.status_code for answer in before] == [200, 409]
    assert [answer.status_code for answer in after] == [403, 403]
    assert [told(answer) for answer in again] == [told(answer) for answer in before]


async def test_a_refused_right_is_no_outcome(world: World, root: httpx.AsyncClient) -> None:
    """I74: with the right granted, the same key succeeds."""
    admin = world.admin(root)
    credential = await admin.create_user("ann", "lake")
    async with await world.login(credential) as ann:
        first = await ann.post(NAMESPACES, json={"namespace": ["x"]}, headers=KEY)
        await admin.grant("lake", "ann_catalog_role", CONTENT)
        second = await ann.post(NAMESPACES, json={"namespace": ["x"]}, headers=KEY)

    assert (first.status_code, second.status_code) == (403, 200)
    assert not is_replayed(second)


async def test_a_secret_is_told_again(root: httpx.AsyncClient) -> None:
    """I74, I78."""
    wanted = {"principal": {"name": "etl"}}

    first = await root.post("principals", json=wanted, headers=KEY)
    again = await root.post("principals", json=wanted, headers=KEY)
    reset = [await root.post("principals/etl/reset", json={}, headers=KEY) for _ in range(2)]

    assert first.status_code == 201
    assert told(again) == told(first)
    assert told(reset[1]) == told(reset[0])
    assert reset[0].json()["credentials"] != first.json()["credentials"]


async def test_many_at_once_have_one_effect_and_one_answer(root: httpx.AsyncClient) -> None:
    """I73, I74."""
    wanted = {"name": "orders", "schema": SCHEMA}

    answers = await asyncio.gather(*(root.post(TABLES, json=wanted, headers=KEY) for _ in range(8)))

    assert {told(answer) for answer in answers} == {told(answers[0])}
    assert answers[0].status_code == 200
    assert sorted(is_replayed(answer) for answer in answers) == [False] + 7 * [True]


async def test_who_asks_only_needs_no_key(root: httpx.AsyncClient) -> None:
    """A key at a request that changes nothing is not looked at."""
    asked = {"principal": "root", "operation": "list-catalogs"}

    answer = await root.post("cynosure/explain", json=asked, headers={"Idempotency-Key": "not a key"})

    assert answer.status_code != 400 or "Idempotency-Key" not in answer.text


@pytest.mark.parametrize("wait", [BRIEFLY])
async def test_what_is_in_progress_is_told_so_when_the_wait_is_over(
    world: World, root: httpx.AsyncClient
) -> None:
    """409 with advice when to come back; 504 where a client would take 409 for a refusal of its commit."""
    await root.post(TABLES, json={"name": "orders", "schema": SCHEMA})
    going_on, entered = asyncio.Event(), asyncio.Semaphore(0)
    for route in world.service.routes:
        if route.operation_id in ("createNamespace", "updateTable"):
            hold(route, entered, going_on)
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    asked = [(NAMESPACES, {"namespace": ["x"]}), (f"{TABLES}/orders", change)]

    async with asyncio.TaskGroup() as group:
        first = [group.create_task(root.post(url, json=body, headers=KEY)) for url, body in asked]
        for _ in asked:
            await entered.acquire()
        second = [await root.post(url, json=body, headers=KEY) for url, body in asked]
        going_on.set()
    third = [await root.post(url, json=body, headers=KEY) for url, body in asked]

    assert [(answer.status_code, error_type(answer)) for answer in second] == [
        (409, "request_in_progress"),
        (504, "CommitStateUnknownException"),
    ]
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in second)
    assert [task.result().status_code for task in first] == [200, 200]
    assert [told(answer) for answer in third] == [told(task.result()) for task in first]
