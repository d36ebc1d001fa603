"""Generic tables over HTTP: statuses, shapes and types of errors as Apache Polaris has them."""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.api.world import BASE, World

pytestmark = pytest.mark.anyio

CATALOG = f"{BASE}/api/catalog/v1/lake"
MANY = f"{BASE}/api/catalog/polaris/v1/lake/namespaces/ns/generic-tables"
VENDED = {"Polaris-Generic-Table-Access-Delegation": "vended-credentials"}
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


def error_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["type"]


@pytest.fixture
async def client(root: httpx.AsyncClient) -> httpx.AsyncClient:
    answer = await root.post(f"{CATALOG}/namespaces", json={"namespace": ["ns"]})
    assert answer.status_code == 200, answer.text
    return root


async def create(client: httpx.AsyncClient, name: str = "g", **more: Any) -> httpx.Response:
    return await client.post(MANY, json={"name": name, "format": "delta", **more})


async def test_a_generic_table_is_created_loaded_listed_and_dropped(
    client: httpx.AsyncClient, world: World
) -> None:
    location = f"file://{world.folder}/lake/events/"
    described = {"base-location": location, "doc": "Raw events.", "properties": {"k": "v"}}

    made = await create(client, **described)
    loaded = await client.get(f"{MANY}/g")
    listed = await client.get(MANY)
    dropped = await client.delete(f"{MANY}/g")

    assert made.status_code == 200
    assert made.json() == {"table": {"name": "g", "format": "delta", **described}}
    assert loaded.json() == made.json()
    assert listed.json() == {"identifiers": [{"namespace": ["ns"], "name": "g"}]}
    assert (dropped.status_code, dropped.content) == (204, b"")
    assert error_of(await client.get(f"{MANY}/g")) == (404, "NoSuchTableException")


async def test_what_may_be_left_out_may_also_be_null(client: httpx.AsyncClient) -> None:
    made = await create(client, **dict.fromkeys(("base-location", "doc", "properties")))

    assert made.json() == {"table": {"name": "g", "format": "delta", "properties": {}}}


async def test_a_list_comes_in_pages(client: httpx.AsyncClient) -> None:
    for number in range(3):
        await create(client, f"g{number}")

    first = (await client.get(MANY, params={"pageSize": 2, "pageToken": ""})).json()
    rest = (await client.get(MANY, params={"pageToken": first["next-page-token"], "pageSize": 2})).json()

    assert [each["name"] for each in first["identifiers"] + rest["identifiers"]] == ["g0", "g1", "g2"]
    assert "next-page-token" not in rest


async def test_what_is_refused_has_the_status_and_type_of_polaris(
    client: httpx.AsyncClient, nobody: httpx.AsyncClient
) -> None:
    assert (await create(client)).status_code == 200
    table = {"name": "t", "schema": SCHEMA}
    assert (await client.post(f"{CATALOG}/namespaces/ns/tables", json=table)).status_code == 200

    assert error_of(await create(client)) == (409, "AlreadyExistsException")
    assert error_of(await create(client, "t")) == (409, "AlreadyExistsException")
    taken = await client.post(f"{CATALOG}/namespaces/ns/tables", json={**table, "name": "g"})
    assert error_of(taken) == (409, "AlreadyExistsException")
    assert error_of(await client.delete(f"{MANY}/no")) == (404, "NoSuchTableException")
    assert error_of(await client.get(f"{MANY}/t")) == (404, "NoSuchTableException")
    missing = MANY.replace("/ns/", "/no/")
    assert error_of(await client.get(missing)) == (404, "NoSuchNamespaceException")
    body = {"name": "g", "format": "delta"}
    assert error_of(await client.post(missing, json=body)) == (404, "NoSuchNamespaceException")
    assert error_of(await create(client, "", doc="x")) == (400, "BadRequestException")
    assert error_of(await client.post(MANY, json={"name": "x"})) == (400, "BadRequestException")
    outside = await create(client, "x", **{"base-location": "file:///etc"})
    assert error_of(outside) == (403, "ForbiddenException")
    assert error_of(await nobody.get(f"{MANY}/g")) == (403, "ForbiddenException")
    assert (await client.delete(f"{CATALOG}/namespaces/ns")).status_code == 409


@pytest.mark.parametrize("asked", ["remote-signing", "true", "", "vended-credentials,remote-signing"])
async def test_a_way_of_access_that_is_not_known_fails_the_request(
    client: httpx.AsyncClient, asked: str
) -> None:
    headers = {"Polaris-Generic-Table-Access-Delegation": asked}

    refused = await client.post(MANY, json={"name": "g", "format": "delta"}, headers=headers)

    assert error_of(refused) == (400, "BadRequestException")
    assert "vended-credentials" in refused.json()["error"]["message"]
    assert error_of(await client.get(f"{MANY}/g")) == (404, "NoSuchTableException"), "nothing was made"


async def test_access_that_the_storage_cannot_give_fails_the_request(
    client: httpx.AsyncClient, world: World
) -> None:
    location = f"file://{world.folder}/lake/events"
    await create(client, **{"base-location": location})

    loaded = await client.get(f"{MANY}/g", headers=VENDED)
    made = await client.post(
        MANY, json={"name": "h", "format": "csv", "base-location": f"{location}2"}, headers=VENDED
    )

    assert error_of(loaded) == error_of(made) == (400, "BadRequestException")
    assert error_of(await client.get(f"{MANY}/h")) == (404, "NoSuchTableException")


async def test_names_are_text(client: httpx.AsyncClient) -> None:
    name = 'a/b "c" %2F ü'

    assert (await create(client, name)).status_code == 200

    loaded = await client.get(f"{MANY}/{quote(name, safe='')}")
    assert loaded.json()["table"]["name"] == name
    [listed] = (await client.get(MANY)).json()["identifiers"]
    assert listed["name"] == name


async def test_a_dropped_one_is_listed_and_restored(client: httpx.AsyncClient) -> None:
    await create(client)
    await client.delete(f"{MANY}/g")
    undrop = f"{BASE}/api/catalog/cynosure/v1/lake/dropped"

    [dropped] = (await client.get(undrop)).json()["dropped"]
    restored = await client.post(f"{undrop}/{dropped['id']}/restore", json={})

    assert (dropped["kind"], dropped["name"]) == ("generic-table", "g")
    assert restored.json() == {"kind": "generic-table", "namespace": ["ns"], "name": "g"}
    assert (await client.get(f"{MANY}/g")).status_code == 200


async def test_its_endpoints_are_advertised_as_the_clients_of_polaris_compare_them(
    client: httpx.AsyncClient,
) -> None:
    config = await client.get(f"{BASE}/api/catalog/v1/config", params={"warehouse": "lake"})

    many = "polaris/v1/{prefix}/namespaces/{namespace}/generic-tables"
    one = f"{many}/{{generic-table}}"
    wanted = {f"GET {many}", f"POST {many}", f"GET {one}", f"DELETE {one}"}
    advertised = config.json()["endpoints"]
    assert wanted <= set(advertised)
    assert {each.replace(" ", " /") for each in wanted} <= set(advertised)
    assert len(set(advertised)) == len(advertised)
