import asyncio
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.anyio

ROLES = "/catalogs/lake/catalog-roles"


def names(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [each["name"] for each in answer.json()["roles"]]


async def test_a_catalog_role_lives_from_create_to_delete(root: httpx.AsyncClient, lake: str) -> None:
    answer = await root.post(ROLES, json={"catalogRole": {"name": "readers", "properties": {"a": "1"}}})
    assert answer.status_code == 201
    made = answer.json()
    assert (made["name"], made["properties"], made["entityVersion"]) == ("readers", {"a": "1"}, 1)
    assert made["createTimestamp"] == made["lastUpdateTimestamp"] > 1_700_000_000_000
    assert (await root.get(f"{ROLES}/readers")).json() == made

    body = {"currentEntityVersion": 1, "properties": {"b": "2"}}
    changed = await root.put(f"{ROLES}/readers", json=body)
    assert changed.status_code == 200
    assert (changed.json()["properties"], changed.json()["entityVersion"]) == ({"b": "2"}, 2)

    assert (await root.delete(f"{ROLES}/readers")).status_code == 204
    assert (await root.get(f"{ROLES}/readers")).status_code == 404


async def test_roles_are_listed_whole_or_in_pages(root: httpx.AsyncClient, lake: str) -> None:
    for name in ("b", "a"):
        await root.post(ROLES, json={"catalogRole": {"name": name}})

    first = await root.get(ROLES, params={"pageSize": 2})
    second = await root.get(ROLES, params={"pageToken": first.json()["nextPageToken"]})

    assert names(await root.get(ROLES)) == ["a", "b", "catalog_admin"]
    assert names(first) + names(second) == ["a", "b", "catalog_admin"]


async def test_a_stale_version_is_a_conflict(root: httpx.AsyncClient, lake: str, error_of: Any) -> None:
    await root.post(ROLES, json={"catalogRole": {"name": "readers"}})

    answers = await asyncio.gather(
        *(
            root.put(f"{ROLES}/readers", json={"currentEntityVersion": 1, "properties": {"by": by}})
            for by in ("one", "two")
        )
    )

    won, lost = sorted(answers, key=lambda answer: answer.status_code)
    assert won.status_code == 200
    assert error_of(lost)[0] == 409


async def test_a_catalog_role_is_given_to_a_principal_role_and_taken_back(
    root: httpx.AsyncClient, lake: str
) -> None:
    await root.post(ROLES, json={"catalogRole": {"name": "readers"}})
    await root.post("/principal-roles", json={"principalRole": {"name": "engineers"}})
    path, body = "/principal-roles/engineers/catalog-roles/lake", {"catalogRole": {"name": "readers"}}

    given = [await root.put(path, json=body) for _ in range(2)]
    assert [(each.status_code, each.content) for each in given] == [(201, b""), (201, b"")]
    assert names(await root.get(path)) == ["readers"]
    assert names(await root.get(f"{ROLES}/readers/principal-roles")) == ["engineers"]

    assert (await root.delete(f"{path}/readers")).status_code == 204
    assert names(await root.get(path)) == []
    assert names(await root.get(f"{ROLES}/readers/principal-roles")) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", ROLES, {}, 400),
        ("POST", ROLES, {"catalogRole": {"name": "SYSTEM$"}}, 400),
        ("POST", ROLES, {"catalogRole": {"name": "catalog_admin"}}, 409),
        ("POST", "/catalogs/none/catalog-roles", {"catalogRole": {"name": "x"}}, 404),
        ("GET", f"{ROLES}/none", None, 404),
        ("GET", "/catalogs/none/catalog-roles", None, 404),
        ("PUT", f"{ROLES}/none", {"currentEntityVersion": 1, "properties": {}}, 404),
        ("DELETE", f"{ROLES}/none", None, 404),
        ("GET", f"{ROLES}/none/principal-roles", None, 404),
        ("GET", "/principal-roles/none/catalog-roles/lake", None, 404),
        ("GET", "/principal-roles/service_admin/catalog-roles/none", None, 404),
        ("PUT", "/principal-roles/service_admin/catalog-roles/lake", {}, 400),
        ("PUT", "/principal-roles/service_admin/catalog-roles/lake", {"catalogRole": {"name": "no"}}, 404),
        ("PUT", "/principal-roles/none/catalog-roles/lake", {"catalogRole": {"name": "catalog_admin"}}, 404),
        ("DELETE", "/principal-roles/service_admin/catalog-roles/lake/none", None, 404),
    ],
)
async def test_what_is_wrong_or_missing_is_refused(
    refusing: Any, error_of: Any, method: str, path: str, body: Any, status: int
) -> None:
    assert error_of(await refusing.root.request(method, path, json=body))[0] == status


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", ROLES, None),
        ("POST", ROLES, {"catalogRole": {"name": "x"}}),
        ("GET", f"{ROLES}/catalog_admin", None),
        ("PUT", f"{ROLES}/catalog_admin", {"currentEntityVersion": 1, "properties": {}}),
        ("DELETE", f"{ROLES}/catalog_admin", None),
        ("GET", f"{ROLES}/catalog_admin/principal-roles", None),
        ("GET", f"{ROLES}/catalog_admin/grants", None),
        ("GET", "/principal-roles/service_admin/catalog-roles/lake", None),
        (
            "PUT",
            "/principal-roles/service_admin/catalog-roles/lake",
            {"catalogRole": {"name": "catalog_admin"}},
        ),
        ("DELETE", "/principal-roles/service_admin/catalog-roles/lake/catalog_admin", None),
    ],
)
async def test_who_has_no_right_is_refused(
    refusing: Any, error_of: Any, method: str, path: str, body: Any
) -> None:
    answer = await refusing.nobody.request(method, path, json=body)

    assert error_of(answer) == (403, "ForbiddenException")
    assert "fix" not in answer.json()["error"]
    assert "Have CATALOG_" in answer.json()["error"]["message"]
