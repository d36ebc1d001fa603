import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest

from cynosure.auth.entities import ROOT
from tests.api.world import BASE, World
from tests.storage.access.gcs.google import key_file

VENDING = "polaris.config.enable.credential.vending"
pytestmark = pytest.mark.anyio

S3 = {"storageType": "S3", "accessKeyId": "AKIA", "secretAccessKey": "hunter2-hunter2"}


def s3_catalog(name: str, **storage: Any) -> dict[str, Any]:
    return {
        "catalog": {
            "type": "INTERNAL",
            "name": name,
            "properties": {"default-base-location": f"s3://bucket/{name}"},
            "storageConfigInfo": {**S3, **storage},
        }
    }


async def test_a_catalog_of_files_is_created_as_it_was_asked_for(
    world: World, root: httpx.AsyncClient
) -> None:
    location = f"file://{world.folder}/lake"

    answer = await root.post("/catalogs", json=world.catalog("lake"))

    assert answer.status_code == 201
    made = answer.json()
    assert made["createTimestamp"] == made["lastUpdateTimestamp"] > 1_700_000_000_000
    assert {name: value for name, value in made.items() if not name.endswith("Timestamp")} == {
        "type": "INTERNAL",
        "name": "lake",
        "properties": {"default-base-location": location},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
        "entityVersion": 1,
    }
    assert (await root.get("/catalogs/lake")).json() == made
    assert (await root.get("/catalogs")).json() == {"catalogs": [made]}


async def test_its_creator_manages_it_but_does_not_read_its_data(root: httpx.AsyncClient, lake: str) -> None:
    roles = (await root.get("/catalogs/lake/catalog-roles")).json()["roles"]
    grants = (await root.get("/catalogs/lake/catalog-roles/catalog_admin/grants")).json()["grants"]
    holders = (await root.get("/catalogs/lake/catalog-roles/catalog_admin/principal-roles")).json()["roles"]

    assert [each["name"] for each in roles] == ["catalog_admin"]
    assert {(each["type"], each["privilege"]) for each in grants} == {
        ("catalog", "CATALOG_MANAGE_ACCESS"),
        ("catalog", "CATALOG_MANAGE_METADATA"),
    }
    assert [each["name"] for each in holders] == ["service_admin"]


async def test_the_admins_of_a_catalog_can_be_chosen(world: World, root: httpx.AsyncClient) -> None:
    await root.post("/principal-roles", json={"principalRole": {"name": "stewards"}})
    body = {**world.catalog("lake"), "adminPrincipalRoles": ["stewards"]}

    assert (await root.post("/catalogs", json=body)).status_code == 201
    assert (await root.get("/catalogs/lake/catalog-roles")).status_code == 403

    await root.put(f"/principals/{ROOT}/principal-roles", json={"principalRole": {"name": "stewards"}})
    path = "/principal-roles/stewards/catalog-roles/lake"
    assert [each["name"] for each in (await root.get(path)).json()["roles"]] == ["catalog_admin"]


async def test_an_external_catalog_stays_one(world: World, root: httpx.AsyncClient) -> None:
    given = {"default-base-location": f"file://{world.folder}/ext", VENDING: "false"}
    body = world.catalog("ext", type="EXTERNAL", properties=given)

    made = await root.post("/catalogs", json=body)
    changed = await root.put("/catalogs/ext", json={"currentEntityVersion": 1, "properties": {"k": "v"}})
    listed = await root.get("/catalogs")

    assert made.status_code == 201, made.text
    assert made.json()["properties"] == given
    assert [each.json()["type"] for each in (made, changed)] == ["EXTERNAL", "EXTERNAL"]
    assert [each["type"] for each in listed.json()["catalogs"]] == ["EXTERNAL"]


async def test_keys_of_an_s3_storage_are_taken_and_never_answered(root: httpx.AsyncClient) -> None:
    answers = [
        await root.post(
            "/catalogs", json=s3_catalog("lake", region="eu-west-1", roleArn="arn:aws:iam::1:role/x")
        ),
        await root.get("/catalogs/lake"),
        await root.get("/catalogs"),
        await root.get(f"{BASE}/api/catalog/v1/config?warehouse=lake"),
    ]

    assert [each.status_code for each in answers] == [201, 200, 200, 200]
    assert answers[0].json()["storageConfigInfo"]["region"] == "eu-west-1"
    for each in answers:
        assert "hunter2" not in each.text
        assert "AKIA" not in each.text
        assert "sealed" not in each.text


@pytest.mark.parametrize(
    ("base", "storage"),
    [
        ("gs://bucket/lake", {"storageType": "GCS", "serviceAccountKey": key_file()}),
        (
            "abfss://lake@acct.dfs.core.windows.net/lake",
            {
                "storageType": "AZURE",
                "tenantId": "tenant.example.com",
                "hierarchical": True,
                "clientId": "AKIA",
                "clientSecret": "hunter2",
            },
        ),
    ],
)
async def test_keys_of_other_clouds_are_taken_and_never_answered(
    root: httpx.AsyncClient, base: str, storage: dict[str, Any]
) -> None:
    body = {
        "type": "INTERNAL",
        "name": "lake",
        "properties": {"default-base-location": base},
        "storageConfigInfo": storage,
    }

    made = await root.post("/catalogs", json={"catalog": body})
    again = {**storage, "allowedLocations": [base], "storageName": "renamed"}
    changed = await root.put(
        "/catalogs/lake", json={"currentEntityVersion": 1, "storageConfigInfo": again, "properties": {}}
    )
    answers = [made, changed, await root.get("/catalogs/lake"), await root.get("/catalogs")]
    answers.append(await root.get(f"{BASE}/api/catalog/v1/config?warehouse=lake"))

    assert [each.status_code for each in answers] == [201, 200, 200, 200, 200], changed.text
    assert changed.json()["storageConfigInfo"]["storageName"] == "renamed"
    for each in answers:
        assert not any(word in each.text for word in ("hunter2", "AKIA", "PRIVATE KEY", "sealed"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            {"type": "EXTERNAL", "connectionConfigInfo": {"connectionType": "ICEBERG_REST", "uri": "x"}},
            "connectionConfigInfo.authenticationParameters",
        ),
        ({"type": "NEITHER"}, "catalog.type"),
        (
            {"connectionConfigInfo": {"connectionType": "HIVE"}},
            "connectionConfigInfo.authenticationParameters",
        ),
        ({"name": ""}, "name"),
        ({"name": "SYSTEM$lake"}, "name"),
        ({"name": "  system$lake"}, "name"),
        ({"properties": {}}, "default-base-location"),
        ({"properties": {"default-base-location": ""}}, "default-base-location"),
        ({"properties": {"default-base-location": "nowhere"}}, "default-base-location"),
        ({"properties": {"default-base-location": "file:///etc"}}, "allowedLocations"),
        ({"storageConfigInfo": {"storageType": "GCS"}}, "allowedLocations"),
        ({"storageConfigInfo": {"storageType": "AZURE", "tenantId": "tenant"}}, "allowedLocations"),
        ({"storageConfigInfo": {"storageType": "AZURE"}}, "tenantId"),
        ({"storageConfigInfo": {"storageType": "FTP"}}, "storageType"),
        ({"storageConfigInfo": {}}, "storageConfigInfo"),
        ({"storageConfigInfo": {"storageType": "FILE", "allowedLocations": ["/etc"]}}, "allowedLocations"),
        ({"storageConfigInfo": {**S3}}, "allowedLocations"),
    ],
)
async def test_bad_input_is_refused_by_field(
    refusing: Any, error_of: Any, change: dict[str, Any], field: str
) -> None:
    body = refusing.world.catalog("other", **change)

    answer = await refusing.root.post("/catalogs", json=body)

    assert error_of(answer) == (400, "BadRequestException")
    assert field in answer.json()["error"]["message"]
    assert "hunter2" not in answer.text


async def test_an_s3_storage_gets_its_key_later(root: httpx.AsyncClient, error_of: Any) -> None:
    inside = f"{BASE}/api/catalog/v1/lake/namespaces"
    table = {"name": "t", "schema": {"type": "struct", "schema-id": 0, "fields": []}}
    body = s3_catalog("lake", accessKeyId=None, secretAccessKey=None)

    assert (await root.post("/catalogs", json=body)).status_code == 201
    assert (await root.post(inside, json={"namespace": ["a"]})).status_code == 200
    refused = await root.post(f"{inside}/a/tables", json=table)
    moved = {"storageType": "S3", "endpoint": "https://s3.example.com"}
    changes = [
        await root.put("/catalogs/lake", json={"currentEntityVersion": 1, "storageConfigInfo": moved}),
        await root.put(
            "/catalogs/lake", json={"currentEntityVersion": 2, "storageConfigInfo": {**moved, **S3}}
        ),
    ]

    assert error_of(refused) == (403, "ForbiddenException")
    assert "access key" in refused.json()["error"]["message"]
    assert [each.status_code for each in changes] == [200, 200]


async def test_a_taken_name_is_a_conflict_and_a_taken_location_is_not_valid(
    refusing: Any, error_of: Any
) -> None:
    world = refusing.world
    inside = {"default-base-location": f"file://{world.folder}/lake/inside"}
    overlapping = world.catalog("other", properties=inside, storageConfigInfo={"storageType": "FILE"})

    again = await refusing.root.post("/catalogs", json=world.catalog("lake"))
    overlap = await refusing.root.post("/catalogs", json=overlapping)

    assert error_of(again) == (409, "AlreadyExistsException")
    assert error_of(overlap) == (400, "ValidationException")


async def test_catalogs_are_listed_whole_or_in_pages(world: World, root: httpx.AsyncClient) -> None:
    for name in ("c", "a", "b"):
        assert (await root.post("/catalogs", json=world.catalog(name))).status_code == 201

    whole = (await root.get("/catalogs")).json()["catalogs"]
    first = (await root.get("/catalogs", params={"pageSize": 2})).json()
    second = (await root.get("/catalogs", params={"pageToken": first["nextPageToken"]})).json()

    assert [each["name"] for each in whole] == ["a", "b", "c"]
    assert first["catalogs"] + second["catalogs"] == whole


async def test_any_name_works_percent_encoded(world: World, root: httpx.AsyncClient) -> None:
    name = "Übersee/50% 🐟"
    body = world.catalog("fish", name=name)

    assert (await root.post("/catalogs", json=body)).status_code == 201

    path = f"/catalogs/{quote(name, safe='')}"
    assert (await root.get(path)).json()["name"] == name
    assert (await root.get(f"{path}/catalog-roles/catalog_admin/grants")).status_code == 200
    assert (await root.delete(path)).status_code == 204


async def test_an_update_replaces_the_properties_and_keeps_the_rest(
    root: httpx.AsyncClient, lake: str
) -> None:
    before = (await root.get("/catalogs/lake")).json()

    first = await root.put(
        "/catalogs/lake", json={"currentEntityVersion": 1, "properties": {"a": "1", "b": "2"}}
    )
    second = await root.put("/catalogs/lake", json={"currentEntityVersion": 2, "properties": {"b": "3"}})

    base = before["properties"]["default-base-location"]
    assert first.json()["properties"] == {"default-base-location": base, "a": "1", "b": "2"}
    assert second.json()["properties"] == {"default-base-location": base, "b": "3"}
    assert second.json()["entityVersion"] == 3
    assert second.json()["storageConfigInfo"] == before["storageConfigInfo"]
    assert (await root.get("/catalogs/lake")).json() == second.json()


async def test_what_was_read_can_be_sent_back(root: httpx.AsyncClient, lake: str) -> None:
    before = (await root.get("/catalogs/lake")).json()
    body = {
        "currentEntityVersion": before["entityVersion"],
        "properties": before["properties"],
        "storageConfigInfo": before["storageConfigInfo"],
    }

    answer = await root.put("/catalogs/lake", json=body)

    assert answer.status_code == 200
    assert answer.json()["properties"] == before["properties"]
    assert answer.json()["storageConfigInfo"] == before["storageConfigInfo"]


async def test_of_two_updates_of_one_version_one_is_a_conflict(
    root: httpx.AsyncClient, lake: str, error_of: Any
) -> None:
    answers = await asyncio.gather(
        *(
            root.put("/catalogs/lake", json={"currentEntityVersion": 1, "properties": {"by": by}})
            for by in ("one", "two")
        )
    )

    won, lost = sorted(answers, key=lambda answer: answer.status_code)
    assert won.status_code == 200
    assert error_of(lost)[0] == 409
    assert (await root.get("/catalogs/lake")).json() == won.json()


async def test_a_location_that_is_taken_from_a_catalog_is_not_given_to_another(
    world: World, root: httpx.AsyncClient, error_of: Any
) -> None:
    base, more = f"file://{world.folder}/lake", f"file://{world.folder}/more"
    storage = {"storageType": "FILE", "allowedLocations": [base, more]}
    await root.post("/catalogs", json=world.catalog("lake", storageConfigInfo=storage))

    unsaid = {"currentEntityVersion": 1, "storageConfigInfo": {"storageType": "FILE"}}
    kept = await root.put("/catalogs/lake", json=unsaid)
    fewer = {"currentEntityVersion": 2, "storageConfigInfo": {"storageType": "FILE", "allowedLocations": []}}
    changed = await root.put("/catalogs/lake", json=fewer)

    assert kept.json()["storageConfigInfo"]["allowedLocations"] == [base, more]
    assert changed.json()["storageConfigInfo"]["allowedLocations"] == [base]
    other = {"storageType": "FILE", "allowedLocations": [f"file://{world.folder}/other", more]}
    refused = await root.post("/catalogs", json=world.catalog("other", storageConfigInfo=other))
    assert error_of(refused)[0] == 400
    assert more in refused.json()["error"]["message"]


async def test_a_change_of_the_storage_keeps_keys_and_stays_at_its_address(
    root: httpx.AsyncClient, error_of: Any
) -> None:
    await root.post("/catalogs", json=s3_catalog("lake", endpoint="https://s3.example.com"))
    same = {"storageType": "S3", "endpoint": "https://s3.example.com", "region": "eu-west-1"}
    moved = {**same, "endpoint": "https://evil.example.com"}

    kept = await root.put("/catalogs/lake", json={"currentEntityVersion": 1, "storageConfigInfo": same})
    refused = await root.put("/catalogs/lake", json={"currentEntityVersion": 2, "storageConfigInfo": moved})
    with_keys = await root.put(
        "/catalogs/lake", json={"currentEntityVersion": 2, "storageConfigInfo": {**S3, **moved}}
    )

    assert kept.json()["storageConfigInfo"]["region"] == "eu-west-1"
    assert error_of(refused) == (400, "BadRequestException")
    assert "accessKeyId" in refused.text
    assert with_keys.json()["storageConfigInfo"]["endpoint"] == "https://evil.example.com"


async def test_an_s3_catalog_made_here_serves_tables(
    root: httpx.AsyncClient, s3_url: str, tmp_path: Path
) -> None:
    parts = urlsplit(s3_url)
    base = f"s3://{parts.path.strip('/')}/management-{os.getpid()}-{tmp_path.name}"
    storage = {
        "storageType": "S3",
        "endpoint": f"http://{parts.hostname}:{parts.port}",
        "pathStyleAccess": True,
        "accessKeyId": parts.username,
        "secretAccessKey": parts.password,
    }
    body = {
        "type": "INTERNAL",
        "name": "lake",
        "properties": {"default-base-location": base},
        "storageConfigInfo": storage,
    }
    table = {"name": "t", "schema": {"type": "struct", "schema-id": 0, "fields": []}}

    assert (await root.post("/catalogs", json={"catalog": body})).status_code == 201

    inside = f"{BASE}/api/catalog/v1/lake/namespaces"
    assert (await root.post(inside, json={"namespace": ["a"]})).status_code == 200
    created = await root.post(f"{inside}/a/tables", json=table)
    assert created.status_code == 200, created.text
    assert created.json()["metadata-location"].startswith(base)
    assert (await root.delete(f"{inside}/a/tables/t")).status_code == 204


async def test_a_catalog_that_is_not_empty_is_refused_with_400(
    root: httpx.AsyncClient, lake: str, error_of: Any
) -> None:
    inside = f"{BASE}/api/catalog/v1/lake/namespaces"
    assert (await root.post(inside, json={"namespace": ["a"]})).status_code == 200

    refused = await root.delete("/catalogs/lake")
    await root.delete(f"{inside}/a")
    dropped = await root.delete("/catalogs/lake")

    assert error_of(refused) == (400, "BadRequestException")
    assert (dropped.status_code, dropped.content) == (204, b"")
    assert error_of(await root.get("/catalogs/lake")) == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/catalogs", None),
        ("POST", "/catalogs", "a catalog"),
        ("GET", "/catalogs/lake", None),
        ("PUT", "/catalogs/lake", {"currentEntityVersion": 1, "properties": {}}),
        ("DELETE", "/catalogs/lake", None),
    ],
)
async def test_who_has_no_right_is_refused(
    refusing: Any, error_of: Any, method: str, path: str, body: Any
) -> None:
    body = refusing.world.catalog("x") if isinstance(body, str) else body
    before = (await refusing.root.get("/catalogs")).json()

    assert error_of(await refusing.nobody.request(method, path, json=body)) == (403, "ForbiddenException")
    assert (await refusing.root.get("/catalogs")).json() == before


@pytest.mark.parametrize(("method", "body"), [("GET", None), ("PUT", {"properties": {}}), ("DELETE", None)])
async def test_what_is_not_there_is_not_found_whoever_asks(
    refusing: Any, error_of: Any, method: str, body: Any
) -> None:
    for client in (refusing.root, refusing.nobody):
        answer = await client.request(method, "/catalogs/none", json=body)
        assert error_of(answer) == (404, "NoSuchWarehouseException")
