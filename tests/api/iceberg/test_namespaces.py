from collections.abc import Callable
from urllib.parse import quote

import httpx
import pytest

pytestmark = pytest.mark.anyio

ErrorOf = Callable[[httpx.Response], tuple[int, str]]

ODD = [
    "with.dot",
    "with/slash",
    "ünïcödé-名前",
    "with space",
    "a+b",
    "100%",
    "q?u#e&r=y",
    'qu"ote\\',
    "\U0001f600",
]


def path_of(*levels: str) -> str:
    return "namespaces/" + quote("\x1f".join(levels), safe="")


async def test_a_created_namespace_is_loaded_with_its_properties(client: httpx.AsyncClient) -> None:
    created = await client.post("namespaces", json={"namespace": ["a"], "properties": {"owner": "me"}})

    loaded = await client.get("namespaces/a")

    assert created.status_code == loaded.status_code == 200
    assert created.json() == loaded.json() == {"namespace": ["a"], "properties": {"owner": "me"}}


async def test_creating_a_namespace_twice_is_a_conflict(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    response = await client.post("namespaces", json={"namespace": ["a"]})

    assert error_of(response) == (409, "AlreadyExistsException")
    assert response.json()["error"]["message"] == "Namespace already exists: a"


async def test_a_nested_namespace_needs_its_parent(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    response = await client.post("namespaces", json={"namespace": ["a", "b"]})

    assert error_of(response) == (404, "NoSuchNamespaceException")
    assert response.json()["error"]["message"] == "Namespace does not exist: a"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "namespace"),
        ({"namespace": "a"}, "namespace"),
        ({"namespace": []}, "namespace"),
        ({"namespace": [""]}, "namespace"),
        ({"namespace": [1]}, "namespace"),
        ({"namespace": ["a\x1fb"]}, "namespace"),
        ({"namespace": ["a\n"]}, "namespace"),
        ({"namespace": [".."]}, "namespace"),
        ({"namespace": ["x" * 257]}, "namespace"),
        ({"namespace": ["x"] * 33}, "namespace"),
        ({"namespace": ["a"], "properties": []}, "properties"),
        ({"namespace": ["a"], "properties": {"k": 1}}, "properties"),
        ({"namespace": ["a"], "properties": {"k": None}}, "properties"),
        ({"namespace": ["a"], "properties": {"": "v"}}, "properties"),
        ({"namespace": ["a"], "properties": {"k": "v" * 2**20}}, "properties"),
    ],
)
async def test_a_namespace_that_cannot_be_created_is_refused_with_its_field(
    client: httpx.AsyncClient, error_of: ErrorOf, body: object, field: str
) -> None:
    response = await client.post("namespaces", json=body)

    assert error_of(response) == (400, "BadRequestException")
    assert field in response.json()["error"]["message"]
    assert (await client.get("namespaces")).json() == {"namespaces": []}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"namespace":["\xff"]}', b'{"namespace":["a"],"x":"\xff"}', b"[" * 5000]
)
async def test_a_body_that_is_no_json_object_is_refused(
    client: httpx.AsyncClient, error_of: ErrorOf, body: bytes
) -> None:
    response = await client.post("namespaces", content=body, headers={"content-type": "application/json"})

    assert error_of(response) == (400, "BadRequestException")


@pytest.mark.parametrize("name", ODD)
async def test_odd_names_come_back_as_they_were(client: httpx.AsyncClient, name: str) -> None:
    await client.post("namespaces", json={"namespace": [name]})
    await client.post("namespaces", json={"namespace": [name, name]})

    listed = await client.get("namespaces")
    below = await client.get("namespaces", params={"parent": name})
    loaded = await client.get(path_of(name, name))

    assert listed.json() == {"namespaces": [[name]]}
    assert below.json() == {"namespaces": [[name, name]]}
    assert loaded.json()["namespace"] == [name, name]


@pytest.mark.parametrize(
    "name", ["a%00b", "a%0Ab", "%7F", "a%1F", "%1Fa", "a%1F%1Fb", "%2E%2E", "a%FF", "a%2"]
)
async def test_a_path_with_an_impossible_namespace_is_a_bad_request(
    client: httpx.AsyncClient, error_of: ErrorOf, name: str
) -> None:
    response = await client.get(
        httpx.URL(f"{client.base_url}namespaces/x").copy_with(
            raw_path=f"{client.base_url.path}namespaces/{name}".encode()
        )
    )

    assert error_of(response) == (400, "BadRequestException")


async def test_a_head_says_whether_a_namespace_exists(client: httpx.AsyncClient) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    there, missing = await client.head("namespaces/a"), await client.head("namespaces/b")

    assert (there.status_code, there.content) == (204, b"")
    assert (missing.status_code, missing.content) == (404, b"")


async def test_a_dropped_namespace_is_gone(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    dropped = await client.delete("namespaces/a")

    assert (dropped.status_code, dropped.content) == (204, b"")
    for response in (await client.get("namespaces/a"), await client.delete("namespaces/a")):
        assert error_of(response) == (404, "NoSuchNamespaceException")
        assert response.json()["error"]["message"] == "Namespace does not exist: a"


async def test_a_namespace_with_namespaces_in_it_is_not_dropped(
    client: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})
    await client.post("namespaces", json={"namespace": ["a", "b"]})

    response = await client.delete("namespaces/a")

    assert error_of(response) == (409, "NamespaceNotEmptyException")
    assert response.json()["error"]["message"].startswith("Namespace a is not empty")


async def test_properties_are_set_removed_and_missed(client: httpx.AsyncClient) -> None:
    await client.post("namespaces", json={"namespace": ["a"], "properties": {"x": "1", "y": "2"}})

    response = await client.post(
        "namespaces/a/properties", json={"removals": ["x", "z", "z"], "updates": {"y": "3", "n": "4"}}
    )

    assert response.status_code == 200
    assert response.json() == {"updated": ["y", "n"], "removed": ["x"], "missing": ["z"]}
    assert (await client.get("namespaces/a")).json()["properties"] == {"y": "3", "n": "4"}


async def test_a_property_cannot_be_set_and_removed_at_once(
    client: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    response = await client.post("namespaces/a/properties", json={"removals": ["x"], "updates": {"x": "1"}})

    assert error_of(response) == (422, "UnprocessableEntityException")
    assert (await client.get("namespaces/a")).json()["properties"] == {}


async def test_properties_of_a_missing_namespace_are_not_found(
    client: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    response = await client.post("namespaces/a/properties", json={"updates": {"x": "1"}})

    assert error_of(response) == (404, "NoSuchNamespaceException")


async def test_too_many_properties_are_refused(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    await client.post("namespaces", json={"namespace": ["a"], "properties": {"x": "1"}})

    response = await client.post("namespaces/a/properties", json={"updates": {"y": "v" * 2**20}})

    assert error_of(response) == (400, "BadRequestException")
    assert (await client.get("namespaces/a")).json()["properties"] == {"x": "1"}


async def test_only_the_namespaces_right_below_a_parent_are_listed(client: httpx.AsyncClient) -> None:
    for levels in (["a"], ["a", "b"], ["a", "b", "c"], ["ab"], ["z"]):
        await client.post("namespaces", json={"namespace": levels})

    top = await client.get("namespaces")
    empty = await client.get("namespaces", params={"parent": ""})
    below = await client.get("namespaces", params={"parent": "a\x1fb"})

    assert top.json() == empty.json() == {"namespaces": [["a"], ["ab"], ["z"]]}
    assert below.json() == {"namespaces": [["a", "b", "c"]]}


async def test_listing_below_a_missing_parent_is_not_found(
    client: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    response = await client.get("namespaces", params={"parent": "x"})

    assert error_of(response) == (404, "NoSuchNamespaceException")


async def test_pages_go_on_where_they_began_whatever_changes(client: httpx.AsyncClient) -> None:
    for number in range(5):
        await client.post("namespaces", json={"namespace": [f"n{number}"]})

    first = (await client.get("namespaces", params={"pageToken": "", "pageSize": 2})).json()
    await client.delete("namespaces/n2")
    await client.post("namespaces", json={"namespace": ["n2-new"]})
    second = (
        await client.get("namespaces", params={"pageToken": first["next-page-token"], "pageSize": 2})
    ).json()
    third = (
        await client.get("namespaces", params={"pageToken": second["next-page-token"], "pageSize": 2})
    ).json()

    assert [first["namespaces"], second["namespaces"]] == [[["n0"], ["n1"]], [["n2"], ["n3"]]]
    assert third == {"namespaces": [["n4"]]}


async def test_an_empty_page_token_alone_begins_paging(client: httpx.AsyncClient) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    response = await client.get("namespaces", params={"pageToken": ""})

    assert response.json() == {"namespaces": [["a"]]}


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"pageToken": "nonsense"}, "pageToken"),
        ({"pageSize": "0"}, "pageSize"),
        ({"pageSize": "-1"}, "pageSize"),
        ({"pageSize": "x"}, "pageSize"),
        ({"parent": "a\x00"}, "parent"),
    ],
)
async def test_a_list_query_that_cannot_be_is_refused_with_its_field(
    client: httpx.AsyncClient, error_of: ErrorOf, params: dict[str, str], field: str
) -> None:
    response = await client.get("namespaces", params=params)

    assert error_of(response) == (400, "BadRequestException")
    assert field in response.json()["error"]["message"]


async def test_a_page_token_of_another_list_is_refused(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    for levels in (["a"], ["b"], ["a", "x"], ["a", "y"]):
        await client.post("namespaces", json={"namespace": levels})
    page = (await client.get("namespaces", params={"pageToken": "", "pageSize": 1})).json()

    response = await client.get("namespaces", params={"pageToken": page["next-page-token"], "parent": "a"})

    assert error_of(response) == (400, "BadRequestException")


async def test_a_page_is_never_longer_than_a_page_may_be(client: httpx.AsyncClient) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    response = await client.get("namespaces", params={"pageSize": 10**30})

    assert response.json() == {"namespaces": [["a"]]}


async def test_a_missing_catalog_is_not_found(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    response = await client.get("http://test/api/catalog/v1/nothing/namespaces")

    assert error_of(response) == (404, "NoSuchWarehouseException")


async def test_another_realm_is_refused(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    other = await client.get("namespaces", headers={"Polaris-Realm": "other"})
    same = await client.get("namespaces", headers={"Polaris-Realm": "default"})

    assert error_of(other) == (404, "NotFoundException")
    assert same.status_code == 200
