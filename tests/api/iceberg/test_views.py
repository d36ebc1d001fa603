from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.anyio

ErrorOf = Callable[[httpx.Response], tuple[int, str]]
Json = dict[str, Any]


@pytest.fixture
async def views(client: httpx.AsyncClient, schema: Json, view_version: Json) -> httpx.AsyncClient:
    """A client of a catalog that holds namespace `a` with view `v`."""
    await client.post("namespaces", json={"namespace": ["a"]})
    created = await client.post("namespaces/a/views", json=new_view("v", schema, view_version))
    assert created.status_code == 200
    return client


def new_view(name: str, schema: Json, view_version: Json) -> Json:
    return {"name": name, "schema": schema, "view-version": view_version, "properties": {"k": "v"}}


def replacement(view_version: Json, sql: str) -> list[Json]:
    version = {
        **view_version,
        "version-id": 2,
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    }
    return [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]


async def test_a_created_view_is_loaded_as_it_was_answered(
    client: httpx.AsyncClient, schema: Json, view_version: Json
) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    created = await client.post("namespaces/a/views", json=new_view("v", schema, view_version))
    loaded = await client.get("namespaces/a/views/v")

    assert created.status_code == loaded.status_code == 200
    assert created.json() == loaded.json()
    metadata = loaded.json()["metadata"]
    assert metadata["properties"] == {"k": "v"}
    assert metadata["versions"][0]["representations"][0]["sql"] == "SELECT 1"
    assert loaded.json()["metadata-location"].startswith(metadata["location"])


async def test_a_name_is_taken_once_by_a_view_or_a_table(
    views: httpx.AsyncClient, schema: Json, view_version: Json, error_of: ErrorOf
) -> None:
    await views.post("namespaces/a/tables", json={"name": "t", "schema": schema})

    view_again = await views.post("namespaces/a/views", json=new_view("v", schema, view_version))
    view_over_table = await views.post("namespaces/a/views", json=new_view("t", schema, view_version))
    table_over_view = await views.post("namespaces/a/tables", json={"name": "v", "schema": schema})

    for response, message in (
        (view_again, "View already exists: a.v"),
        (view_over_table, "Table with same name already exists: a.t"),
        (table_over_view, "View with same name already exists: a.v"),
    ):
        assert error_of(response) == (409, "AlreadyExistsException")
        assert response.json()["error"]["message"] == message


async def test_a_view_needs_its_namespace(
    client: httpx.AsyncClient, schema: Json, view_version: Json, error_of: ErrorOf
) -> None:
    response = await client.post("namespaces/a/views", json=new_view("v", schema, view_version))

    assert error_of(response) == (404, "NoSuchNamespaceException")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "\n"}, "name"),
        ({"schema": {}}, "schema"),
        ({"view-version": {}}, "view-version"),
        ({"view-version": None}, "view-version"),
        ({"properties": {"k": 1}}, "properties"),
        ({"location": "nowhere"}, "location"),
    ],
)
async def test_a_view_that_cannot_be_created_is_refused_with_its_field(
    views: httpx.AsyncClient,
    schema: Json,
    view_version: Json,
    error_of: ErrorOf,
    change: Json,
    field: str,
) -> None:
    body = {**new_view("new", schema, view_version), **change}

    response = await views.post("namespaces/a/views", json=body)

    assert error_of(response)[0] == 400
    assert field in response.json()["error"]["message"]
    assert [each["name"] for each in (await views.get("namespaces/a/views")).json()["identifiers"]] == ["v"]


async def test_a_location_outside_the_catalog_is_forbidden(
    views: httpx.AsyncClient, schema: Json, view_version: Json, error_of: ErrorOf
) -> None:
    body = {**new_view("new", schema, view_version), "location": "file:///etc/new"}
    moved = {"updates": [{"action": "set-location", "location": "file:///etc/new"}]}

    assert error_of(await views.post("namespaces/a/views", json=body)) == (403, "ForbiddenException")
    assert error_of(await views.post("namespaces/a/views/v", json=moved)) == (403, "ForbiddenException")


async def test_a_missing_view_is_not_found(views: httpx.AsyncClient, error_of: ErrorOf) -> None:
    for response in (
        await views.get("namespaces/a/views/x"),
        await views.delete("namespaces/a/views/x"),
        await views.post("namespaces/a/views/x", json={"updates": []}),
        await views.get("namespaces/x/views/v"),
    ):
        assert error_of(response) == (404, "NoSuchViewException")
        assert response.json()["error"]["message"].startswith("View does not exist: ")


async def test_a_head_says_whether_a_view_exists(views: httpx.AsyncClient) -> None:
    there, missing = await views.head("namespaces/a/views/v"), await views.head("namespaces/a/views/x")

    assert (there.status_code, there.content) == (204, b"")
    assert (missing.status_code, missing.content) == (404, b"")


async def test_a_replaced_view_has_a_new_version_and_file(
    views: httpx.AsyncClient, view_version: Json
) -> None:
    before = (await views.get("namespaces/a/views/v")).json()
    body = {
        "requirements": [{"type": "assert-view-uuid", "uuid": before["metadata"]["view-uuid"]}],
        "updates": replacement(view_version, "SELECT 2"),
    }

    replaced = await views.post("namespaces/a/views/v", json=body)

    assert replaced.status_code == 200
    assert replaced.json()["metadata"]["current-version-id"] == 2
    assert replaced.json()["metadata-location"] != before["metadata-location"]
    assert (await views.get("namespaces/a/views/v")).json() == replaced.json()


async def test_a_replacement_that_changes_nothing_is_no_new_version(views: httpx.AsyncClient) -> None:
    before = (await views.get("namespaces/a/views/v")).json()
    body = {"updates": [{"action": "set-properties", "updates": {"k": "v"}}]}

    response = await views.post("namespaces/a/views/v", json=body)

    assert response.json() == before


async def test_a_replacement_of_another_view_is_a_conflict(
    views: httpx.AsyncClient, view_version: Json, error_of: ErrorOf
) -> None:
    before = (await views.get("namespaces/a/views/v")).json()
    body = {
        "requirements": [{"type": "assert-view-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}],
        "updates": replacement(view_version, "SELECT 2"),
    }

    response = await views.post("namespaces/a/views/v", json=body)

    assert error_of(response) == (409, "CommitFailedException")
    assert (await views.get("namespaces/a/views/v")).json() == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "updates"),
        ({"updates": [{"action": "add-snapshot"}]}, "updates[0].action"),
        ({"updates": [{"action": "set-current-view-version", "view-version-id": 9}]}, "view-version-id"),
        ({"updates": [], "requirements": [{"type": "assert-create"}]}, "requirements[0].type"),
    ],
)
async def test_a_replacement_that_cannot_be_is_refused_with_its_field(
    views: httpx.AsyncClient, error_of: ErrorOf, body: Json, field: str
) -> None:
    response = await views.post("namespaces/a/views/v", json=body)

    assert error_of(response)[0] == 400
    assert field in response.json()["error"]["message"]


async def test_a_moved_view_has_its_new_location_and_keeps_the_old_one(
    views: httpx.AsyncClient, schema: Json, view_version: Json
) -> None:
    old = (await views.get("namespaces/a/views/v")).json()["metadata"]["location"]
    moved = await views.post(
        "namespaces/a/views/v", json={"updates": [{"action": "set-location", "location": f"{old}-moved"}]}
    )

    there = await views.post(
        "namespaces/a/views", json={**new_view("w", schema, view_version), "location": f"{old}-moved"}
    )
    here = await views.post(
        "namespaces/a/views", json={**new_view("w", schema, view_version), "location": old}
    )

    assert moved.json()["metadata-location"].startswith(f"{old}-moved/metadata/")
    assert (there.status_code, here.status_code) == (403, 403)


async def test_a_dropped_view_is_gone_and_its_namespace_can_go_too(views: httpx.AsyncClient) -> None:
    in_use = await views.delete("namespaces/a")
    dropped = await views.delete("namespaces/a/views/v")
    empty = await views.delete("namespaces/a")

    assert (in_use.status_code, dropped.status_code, empty.status_code) == (409, 204, 204)


async def test_a_renamed_view_has_only_its_new_name(views: httpx.AsyncClient, error_of: ErrorOf) -> None:
    await views.post("namespaces", json={"namespace": ["b"]})
    body = {"source": {"namespace": ["a"], "name": "v"}, "destination": {"namespace": ["b"], "name": "w/x"}}

    response = await views.post("views/rename", json=body)

    assert (response.status_code, response.content) == (204, b"")
    assert (await views.get("namespaces/b/views/w%2Fx")).status_code == 200
    assert error_of(await views.post("views/rename", json=body)) == (404, "NoSuchViewException")


async def test_a_view_is_not_renamed_over_anything_nor_into_nowhere(
    views: httpx.AsyncClient, schema: Json, error_of: ErrorOf
) -> None:
    await views.post("namespaces/a/tables", json={"name": "t", "schema": schema})
    source = {"namespace": ["a"], "name": "v"}

    def rename(namespace: str, name: str) -> Any:
        destination = {"namespace": [namespace], "name": name}
        return views.post("views/rename", json={"source": source, "destination": destination})

    assert error_of(await rename("a", "t")) == (409, "AlreadyExistsException")
    assert error_of(await rename("x", "v")) == (404, "NoSuchNamespaceException")


async def test_a_dropped_view_can_be_registered_again(views: httpx.AsyncClient, error_of: ErrorOf) -> None:
    old = (await views.get("namespaces/a/views/v")).json()
    body = {"name": "v", "metadata-location": old["metadata-location"]}

    taken = await views.post("namespaces/a/register-view", json=body)
    await views.delete("namespaces/a/views/v")
    registered = await views.post("namespaces/a/register-view", json=body)

    assert error_of(taken) == (409, "AlreadyExistsException")
    assert registered.status_code == 200
    assert registered.json() == old


async def test_registering_needs_a_namespace_and_a_file_inside_the_catalog(
    views: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    old = (await views.get("namespaces/a/views/v")).json()["metadata-location"]

    nowhere = await views.post("namespaces/x/register-view", json={"name": "w", "metadata-location": old})
    outside = await views.post(
        "namespaces/a/register-view", json={"name": "w", "metadata-location": "file:///etc/passwd"}
    )
    taken = await views.post(
        "namespaces/a/register-view", json={"name": "w", "metadata-location": f"{old}.missing"}
    )
    missing = await views.post(
        "namespaces/a/register-view",
        json={"name": "w", "metadata-location": f"{old.rsplit('/', 3)[0]}/none.metadata.json"},
    )

    assert error_of(nowhere) == (404, "NoSuchNamespaceException")
    assert error_of(outside) == (403, "ForbiddenException")
    assert error_of(taken) == (403, "ForbiddenException")
    assert error_of(missing)[0] == 400


async def test_views_and_tables_are_listed_apart(views: httpx.AsyncClient, schema: Json) -> None:
    await views.post("namespaces/a/tables", json={"name": "t", "schema": schema})

    listed_views = (await views.get("namespaces/a/views")).json()
    listed_tables = (await views.get("namespaces/a/tables")).json()

    assert listed_views == {"identifiers": [{"namespace": ["a"], "name": "v"}]}
    assert listed_tables == {"identifiers": [{"namespace": ["a"], "name": "t"}]}


async def test_views_of_a_missing_namespace_are_not_found(
    client: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    assert error_of(await client.get("namespaces/x/views")) == (404, "NoSuchNamespaceException")
