from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

pytestmark = pytest.mark.anyio

ErrorOf = Callable[[httpx.Response], tuple[int, str]]
Schema = dict[str, Any]

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


@pytest.fixture
async def tables(client: httpx.AsyncClient, schema: Schema) -> httpx.AsyncClient:
    """A client of a catalog that holds namespace `a` with table `t`."""
    await client.post("namespaces", json={"namespace": ["a"]})
    created = await client.post("namespaces/a/tables", json={"name": "t", "schema": schema})
    assert created.status_code == 200
    return client


def set_property(name: str, value: str) -> dict[str, Any]:
    return {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: value}}]}


async def test_a_created_table_is_loaded_as_it_was_answered(
    client: httpx.AsyncClient, schema: Schema
) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    created = await client.post(
        "namespaces/a/tables",
        json={
            "name": "t",
            "schema": schema,
            "location": None,
            "partition-spec": {"spec-id": 0, "fields": []},
            "write-order": None,
            "stage-create": False,
            "properties": {"k": "v"},
        },
    )
    loaded = await client.get("namespaces/a/tables/t")

    assert created.status_code == loaded.status_code == 200
    assert created.json() == loaded.json()
    assert created.headers["etag"] == loaded.headers["etag"]
    assert loaded.headers["content-type"] == "application/json"
    metadata = loaded.json()["metadata"]
    assert metadata["properties"]["k"] == "v"
    assert loaded.json()["metadata-location"].startswith(metadata["location"])


async def test_a_staged_table_is_answered_and_not_there(
    client: httpx.AsyncClient, schema: Schema, error_of: ErrorOf
) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    staged = await client.post(
        "namespaces/a/tables", json={"name": "t", "schema": schema, "stage-create": True}
    )

    assert staged.status_code == 200
    assert "metadata-location" not in staged.json()
    assert error_of(await client.get("namespaces/a/tables/t")) == (404, "NoSuchTableException")


async def test_a_table_is_created_once(tables: httpx.AsyncClient, schema: Schema, error_of: ErrorOf) -> None:
    response = await tables.post("namespaces/a/tables", json={"name": "t", "schema": schema})

    assert error_of(response) == (409, "AlreadyExistsException")
    assert response.json()["error"]["message"] == "Table already exists: a.t"


async def test_a_table_needs_its_namespace(
    client: httpx.AsyncClient, schema: Schema, error_of: ErrorOf
) -> None:
    response = await client.post("namespaces/a/tables", json={"name": "t", "schema": schema})

    assert error_of(response) == (404, "NoSuchNamespaceException")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": None}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"name": ".."}, "name"),
        ({"schema": None}, "schema"),
        ({"schema": []}, "schema"),
        ({"schema": {"type": "struct"}}, "schema"),
        ({"schema": {"type": "struct", "fields": [{"id": 1}]}}, "schema.fields[0]"),
        ({"partition-spec": 5}, "partition-spec"),
        ({"write-order": "x"}, "write-order"),
        ({"location": 5}, "location"),
        ({"location": "no location"}, "location"),
        ({"stage-create": "yes"}, "stage-create"),
        ({"properties": {"a": 1}}, "properties"),
    ],
)
async def test_a_table_that_cannot_be_created_is_refused_with_its_field(
    tables: httpx.AsyncClient, schema: Schema, error_of: ErrorOf, change: dict[str, Any], field: str
) -> None:
    response = await tables.post("namespaces/a/tables", json={"name": "new", "schema": schema, **change})

    assert error_of(response)[0] == 400
    assert field in response.json()["error"]["message"]
    listed = await tables.get("namespaces/a/tables")
    assert [each["name"] for each in listed.json()["identifiers"]] == ["t"]


async def test_a_location_outside_the_catalog_is_forbidden(
    tables: httpx.AsyncClient, schema: Schema, error_of: ErrorOf
) -> None:
    response = await tables.post(
        "namespaces/a/tables", json={"name": "new", "schema": schema, "location": "file:///etc/new"}
    )

    assert error_of(response) == (403, "ForbiddenException")


@pytest.mark.parametrize("name", ODD)
async def test_odd_table_names_come_back_as_they_were(
    tables: httpx.AsyncClient, schema: Schema, name: str
) -> None:
    path = f"namespaces/a/tables/{quote(name, safe='')}"
    await tables.post("namespaces/a/tables", json={"name": name, "schema": schema})

    listed = await tables.get("namespaces/a/tables")
    loaded = await tables.get(path)
    head = await tables.head(path)
    dropped = await tables.delete(path)

    assert {"namespace": ["a"], "name": name} in listed.json()["identifiers"]
    assert (loaded.status_code, head.status_code, dropped.status_code) == (200, 204, 204)


async def test_a_missing_table_is_not_found(tables: httpx.AsyncClient, error_of: ErrorOf) -> None:
    for response in (
        await tables.get("namespaces/a/tables/x"),
        await tables.delete("namespaces/a/tables/x"),
        await tables.post("namespaces/a/tables/x", json=set_property("k", "v")),
        await tables.post("namespaces/a/tables/x/unregister"),
        await tables.post("namespaces/a/tables/x/metrics", json={"report-type": "scan-report"}),
        await tables.get("namespaces/nowhere/tables/x"),
    ):
        assert error_of(response) == (404, "NoSuchTableException"), response.request.url
        assert response.json()["error"]["message"].startswith("Table does not exist: ")


async def test_a_head_says_whether_a_table_exists(tables: httpx.AsyncClient) -> None:
    there = await tables.head("namespaces/a/tables/t")
    missing = await tables.head("namespaces/a/tables/x")

    assert (there.status_code, there.content) == (204, b"")
    assert (missing.status_code, missing.content) == (404, b"")


async def test_a_version_the_client_has_is_not_sent_again(tables: httpx.AsyncClient) -> None:
    etag = (await tables.get("namespaces/a/tables/t")).headers["etag"]

    for spelled in (etag, etag.removeprefix("W/"), f'"other", {etag}'):
        response = await tables.get("namespaces/a/tables/t", headers={"if-none-match": spelled})
        assert (response.status_code, response.content) == (304, b"")
        assert response.headers["etag"] == etag


async def test_another_version_or_shape_is_sent(tables: httpx.AsyncClient) -> None:
    first = (await tables.get("namespaces/a/tables/t")).headers["etag"]

    refs = await tables.get("namespaces/a/tables/t?snapshots=refs", headers={"if-none-match": first})
    committed = await tables.post("namespaces/a/tables/t", json=set_property("k", "v"))
    newer = await tables.get("namespaces/a/tables/t", headers={"if-none-match": first})

    assert refs.status_code == newer.status_code == 200
    assert len({first, refs.headers["etag"], newer.headers["etag"]}) == 3
    assert committed.headers["etag"] == newer.headers["etag"]


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [("snapshots=some", {}, "snapshots"), ("", {"if-none-match": "*"}, "If-None-Match")],
)
async def test_a_load_that_asks_for_nonsense_is_refused(
    tables: httpx.AsyncClient, error_of: ErrorOf, query: str, headers: dict[str, str], field: str
) -> None:
    response = await tables.get(f"namespaces/a/tables/t?{query}", headers=headers)

    assert error_of(response) == (400, "BadRequestException")
    assert field in response.json()["error"]["message"]


async def test_a_delegation_header_is_answered_without_credentials(tables: httpx.AsyncClient) -> None:
    response = await tables.get(
        "namespaces/a/tables/t", headers={"X-Iceberg-Access-Delegation": "vended-credentials"}
    )

    assert response.status_code == 200
    assert response.json()["config"] == {}
    assert "storage-credentials" not in response.json()


async def test_a_commit_is_answered_with_the_new_metadata(tables: httpx.AsyncClient) -> None:
    before = (await tables.get("namespaces/a/tables/t")).json()

    response = await tables.post(
        "namespaces/a/tables/t",
        json={
            "identifier": {"namespace": ["a"], "name": "t"},
            "requirements": [{"type": "assert-table-uuid", "uuid": before["metadata"]["table-uuid"]}],
            "updates": [{"action": "set-properties", "updates": {"k": "v"}}],
        },
    )

    assert response.status_code == 200
    assert response.json()["metadata"]["properties"]["k"] == "v"
    assert response.json()["metadata-location"] != before["metadata-location"]
    assert (await tables.get("namespaces/a/tables/t")).json()["metadata"] == response.json()["metadata"]


async def test_a_failed_requirement_is_a_conflict_and_changes_nothing(
    tables: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    before = (await tables.get("namespaces/a/tables/t")).json()
    change = set_property("k", "v")
    change["requirements"] = [{"type": "assert-current-schema-id", "current-schema-id": 5}]

    response = await tables.post("namespaces/a/tables/t", json=change)

    assert error_of(response) == (409, "CommitFailedException")
    assert response.json()["error"]["message"].startswith("Requirement failed: current schema")
    assert (await tables.get("namespaces/a/tables/t")).json() == before


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "requirements"),
        ({"requirements": []}, "updates"),
        ({"requirements": {}, "updates": []}, "requirements"),
        ({"requirements": [{"type": "assert-luck"}], "updates": []}, "requirements[0].type"),
        ({"requirements": [{"type": "assert-table-uuid"}], "updates": []}, "uuid"),
        ({"requirements": [], "updates": [{"action": "explode"}]}, "updates[0].action"),
        ({"requirements": [], "updates": [{}]}, "action"),
        ({"requirements": [], "updates": [{"action": "set-properties", "updates": 1}]}, "updates[0].updates"),
        ({"requirements": [], "updates": [{"action": "add-schema", "schema": 1}]}, "updates[0].schema"),
        (
            {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": {}}]},
            "updates[0].snapshot",
        ),
    ],
)
async def test_a_commit_that_cannot_be_read_is_refused_with_its_field(
    tables: httpx.AsyncClient, error_of: ErrorOf, body: object, field: str
) -> None:
    before = (await tables.get("namespaces/a/tables/t")).json()

    response = await tables.post("namespaces/a/tables/t", json=body)

    assert error_of(response)[0] == 400
    assert field in response.json()["error"]["message"]
    assert (await tables.get("namespaces/a/tables/t")).json() == before


async def test_a_transaction_changes_all_tables_or_none(
    tables: httpx.AsyncClient, schema: Schema, error_of: ErrorOf
) -> None:
    await tables.post("namespaces/a/tables", json={"name": "u", "schema": schema})

    def change(name: str, value: str, *requirements: dict[str, Any]) -> dict[str, Any]:
        return {
            "identifier": {"namespace": ["a"], "name": name},
            "requirements": list(requirements),
            "updates": [{"action": "set-properties", "updates": {"k": value}}],
        }

    done = await tables.post(
        "transactions/commit", json={"table-changes": [change("t", "1"), change("u", "1")]}
    )
    impossible = {"type": "assert-current-schema-id", "current-schema-id": 7}
    failed = await tables.post(
        "transactions/commit", json={"table-changes": [change("t", "2"), change("u", "2", impossible)]}
    )

    assert (done.status_code, done.content) == (204, b"")
    assert error_of(failed) == (409, "CommitFailedException")
    for name in "tu":
        loaded = await tables.get(f"namespaces/a/tables/{name}")
        assert loaded.json()["metadata"]["properties"]["k"] == "1"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "table-changes"),
        ({"table-changes": [{"requirements": [], "updates": []}]}, "identifier"),
        (
            {
                "table-changes": [
                    {"identifier": {"namespace": [], "name": "t"}, "requirements": [], "updates": []}
                ]
            },
            "table-changes[0].identifier.namespace",
        ),
        (
            {
                "table-changes": [
                    {"identifier": {"namespace": ["a"], "name": ""}, "requirements": [], "updates": []}
                ]
            },
            "table-changes[0].identifier.name",
        ),
    ],
)
async def test_a_transaction_that_cannot_be_read_is_refused_with_its_field(
    tables: httpx.AsyncClient, error_of: ErrorOf, body: object, field: str
) -> None:
    response = await tables.post("transactions/commit", json=body)

    assert error_of(response) == (400, "BadRequestException")
    assert field in response.json()["error"]["message"]


async def test_a_renamed_table_has_only_its_new_name(tables: httpx.AsyncClient, error_of: ErrorOf) -> None:
    await tables.post("namespaces", json={"namespace": ["b"]})
    body = {
        "source": {"namespace": ["a"], "name": "t"},
        "destination": {"namespace": ["b"], "name": "with/slash"},
    }

    response = await tables.post("tables/rename", json=body)

    assert (response.status_code, response.content) == (204, b"")
    assert (await tables.get("namespaces/b/tables/with%2Fslash")).status_code == 200
    assert error_of(await tables.get("namespaces/a/tables/t")) == (404, "NoSuchTableException")
    assert error_of(await tables.post("tables/rename", json=body)) == (404, "NoSuchTableException")


async def test_a_rename_needs_a_namespace_and_a_free_name(
    tables: httpx.AsyncClient, schema: Schema, error_of: ErrorOf
) -> None:
    await tables.post("namespaces/a/tables", json={"name": "u", "schema": schema})
    source = {"namespace": ["a"], "name": "t"}

    def rename(destination: dict[str, Any]) -> Any:
        return tables.post("tables/rename", json={"source": source, "destination": destination})

    taken = await rename({"namespace": ["a"], "name": "u"})
    nowhere = await rename({"namespace": ["x"], "name": "u"})
    nameless = await rename({"namespace": ["a"], "name": ""})

    assert error_of(taken) == (409, "AlreadyExistsException")
    assert error_of(nowhere) == (404, "NoSuchNamespaceException")
    assert error_of(nameless) == (400, "BadRequestException")
    assert "destination.name" in nameless.json()["error"]["message"]


async def test_a_dropped_table_is_gone_and_its_namespace_can_go_too(tables: httpx.AsyncClient) -> None:
    in_use = await tables.delete("namespaces/a")
    dropped = await tables.delete("namespaces/a/tables/t?purgeRequested=true")
    empty = await tables.delete("namespaces/a")

    assert (in_use.status_code, dropped.status_code, empty.status_code) == (409, 204, 204)


async def test_a_table_dropped_with_its_files_leaves_none(tables: httpx.AsyncClient, tmp_path: Path) -> None:
    location = (await tables.get("namespaces/a/tables/t")).json()["metadata"]["location"]
    folder = Path(location.removeprefix("file://"))
    assert [each for each in folder.rglob("*") if each.is_file()]

    dropped = await tables.delete("namespaces/a/tables/t?purgeRequested=true")

    assert dropped.status_code == 204
    assert not [each for each in folder.rglob("*") if each.is_file()]


async def test_a_drop_with_a_purge_that_is_no_boolean_is_refused(
    tables: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    response = await tables.delete("namespaces/a/tables/t?purgeRequested=perhaps")

    assert error_of(response) == (400, "BadRequestException")
    assert "purgeRequested" in response.json()["error"]["message"]


async def test_an_unregistered_table_can_be_registered_again(
    tables: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    gone = await tables.post("namespaces/a/tables/t/unregister")
    body = {"name": "again", "metadata-location": gone.json()["metadata-location"]}
    missing = await tables.get("namespaces/a/tables/t")
    registered = await tables.post("namespaces/a/register", json=body)

    assert gone.status_code == registered.status_code == 200
    assert error_of(missing) == (404, "NoSuchTableException")
    assert registered.json()["metadata"] == gone.json()["metadata"]
    assert registered.headers["etag"] == (await tables.get("namespaces/a/tables/again")).headers["etag"]


async def test_registering_over_a_table_has_to_be_asked_for(
    tables: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    old = (await tables.get("namespaces/a/tables/t")).json()
    await tables.post("namespaces/a/tables/t", json=set_property("k", "v"))
    body = {"name": "t", "metadata-location": old["metadata-location"]}

    refused = await tables.post("namespaces/a/register", json=body)
    done = await tables.post("namespaces/a/register", json={**body, "overwrite": True})

    assert error_of(refused) == (409, "AlreadyExistsException")
    assert done.status_code == 200
    loaded = await tables.get("namespaces/a/tables/t")
    assert loaded.json()["metadata-location"] == old["metadata-location"]


async def test_registering_what_is_no_metadata_file_is_refused(
    tables: httpx.AsyncClient, error_of: ErrorOf, tmp_path: Path
) -> None:
    garbage = tmp_path / "lake" / "garbage.metadata.json"
    garbage.write_bytes(b"\xff\x00")

    for location, status in (
        (garbage.as_uri(), 400),
        ((tmp_path / "lake" / "missing.json").as_uri(), 400),
        ("file:///etc/passwd", 403),
    ):
        body = {"name": "new", "metadata-location": location}
        response = await tables.post("namespaces/a/register", json=body)
        assert error_of(response)[0] == status, response.text


async def test_tables_are_listed_whole_and_in_pages(tables: httpx.AsyncClient, schema: Schema) -> None:
    for name in ("r", "s"):
        await tables.post("namespaces/a/tables", json={"name": name, "schema": schema})

    whole = (await tables.get("namespaces/a/tables")).json()
    first = (await tables.get("namespaces/a/tables?pageToken=&pageSize=2")).json()
    token = first["next-page-token"]
    last = (await tables.get(f"namespaces/a/tables?pageToken={token}&pageSize=2")).json()
    enough = (await tables.get("namespaces/a/tables?pageToken=&pageSize=3")).json()

    assert [each["name"] for each in whole["identifiers"]] == ["r", "s", "t"]
    assert first["identifiers"] + last["identifiers"] == whole["identifiers"]
    assert "next-page-token" not in last
    assert enough == whole


async def test_a_list_shows_every_change_at_once(tables: httpx.AsyncClient, schema: Schema) -> None:
    before = (await tables.get("namespaces/a/tables")).json()
    await tables.post("namespaces/a/tables", json={"name": "u", "schema": schema})
    with_new = (await tables.get("namespaces/a/tables")).json()
    await tables.delete("namespaces/a/tables/u")

    assert [each["name"] for each in with_new["identifiers"]] == ["t", "u"]
    assert (await tables.get("namespaces/a/tables")).json() == before


async def test_tables_of_a_missing_namespace_are_not_found(
    client: httpx.AsyncClient, error_of: ErrorOf
) -> None:
    for query in ("", "?pageToken=", "?pageSize=5"):
        response = await client.get(f"namespaces/x/tables{query}")
        assert error_of(response) == (404, "NoSuchNamespaceException")


async def test_an_empty_namespace_lists_nothing(client: httpx.AsyncClient) -> None:
    await client.post("namespaces", json={"namespace": ["a"]})

    for query in ("", "?pageToken="):
        response = await client.get(f"namespaces/a/tables{query}")
        assert response.json() == {"identifiers": []}
