from typing import Any

import httpx
import pytest

from tests.api.world import BASE

pytestmark = pytest.mark.anyio

GRANTS = "/catalogs/lake/catalog-roles/readers/grants"
INSIDE = f"{BASE}/api/catalog/v1/lake"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": [],
}
EACH = [
    {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"},
    {"type": "namespace", "namespace": ["a", "b"], "privilege": "NAMESPACE_LIST"},
    {"type": "table", "namespace": ["a"], "tableName": "t", "privilege": "TABLE_READ_DATA"},
    {"type": "view", "namespace": ["a"], "viewName": "v", "privilege": "VIEW_READ_PROPERTIES"},
]


@pytest.fixture
async def readers(root: httpx.AsyncClient, lake: str) -> str:
    """A catalog role, in a catalog with something to be granted on."""
    for path, body in (
        ("namespaces", {"namespace": ["a"]}),
        ("namespaces", {"namespace": ["a", "b"]}),
        ("namespaces/a/tables", {"name": "t", "schema": SCHEMA}),
        ("namespaces/a/views", {"name": "v", "schema": SCHEMA, "view-version": VERSION}),
    ):
        answer = await root.post(f"{INSIDE}/{path}", json=body)
        assert answer.status_code == 200, answer.text
    await root.post("/catalogs/lake/catalog-roles", json={"catalogRole": {"name": "readers"}})
    return "readers"


async def listed(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.get(GRANTS)).json()["grants"]
    return sorted(found, key=str)


async def test_grants_on_everything_are_added_listed_and_revoked(
    root: httpx.AsyncClient, readers: str
) -> None:
    for grant in EACH:
        answer = await root.put(GRANTS, json={"grant": grant})
        assert (answer.status_code, answer.content) == (201, b""), answer.text
    assert await listed(root) == sorted(EACH, key=str)

    for grant in EACH:
        answer = await root.post(GRANTS, json={"grant": grant})
        assert (answer.status_code, answer.content) == (201, b""), answer.text
    assert await listed(root) == []


async def test_a_grant_can_be_added_twice_and_several_stand_side_by_side(
    root: httpx.AsyncClient, readers: str
) -> None:
    grants = [{**EACH[2], "privilege": each} for each in ("TABLE_DROP", "TABLE_READ_DATA")]

    for grant in (*grants, grants[0]):
        assert (await root.put(GRANTS, json={"grant": grant})).status_code == 201

    assert await listed(root) == sorted(grants, key=str)


async def test_grants_are_listed_in_pages_without_losing_any(root: httpx.AsyncClient, readers: str) -> None:
    for grant in EACH:
        await root.put(GRANTS, json={"grant": grant})

    found: list[Any] = []
    query: dict[str, Any] = {"pageSize": 1}
    while True:
        page = (await root.get(GRANTS, params=query)).json()
        found += page["grants"]
        if "nextPageToken" not in page:
            break
        query = {"pageSize": 1, "pageToken": page["nextPageToken"]}

    assert sorted(found, key=str) == sorted(EACH, key=str)


async def test_a_rename_keeps_grants_and_tells_the_new_name(root: httpx.AsyncClient, readers: str) -> None:
    await root.put(GRANTS, json={"grant": EACH[2]})
    body = {
        "source": {"namespace": ["a"], "name": "t"},
        "destination": {"namespace": ["a", "b"], "name": "u"},
    }

    assert (await root.post(f"{INSIDE}/tables/rename", json=body)).status_code == 204

    assert await listed(root) == [{**EACH[2], "namespace": ["a", "b"], "tableName": "u"}]


async def test_revoking_with_cascade_is_not_served(
    root: httpx.AsyncClient, readers: str, error_of: Any
) -> None:
    await root.put(GRANTS, json={"grant": EACH[0]})

    answer = await root.post(GRANTS, params={"cascade": "true"}, json={"grant": EACH[0]})
    without = await root.post(GRANTS, params={"cascade": "false"}, json={"grant": EACH[0]})

    assert error_of(answer) == (501, "UnsupportedOperationException")
    assert without.status_code == 201


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize(
    ("grant", "status", "named"),
    [
        (None, 400, "grant"),
        ({}, 400, "type"),
        ({"type": "planet", "privilege": "TABLE_DROP"}, 400, "type"),
        ({"type": "catalog"}, 400, "privilege"),
        ({"type": "catalog", "privilege": "FLY"}, 400, "privilege"),
        ({"type": "catalog", "privilege": "SERVICE_MANAGE_ACCESS"}, 400, "privilege"),
        ({"type": "view", "namespace": ["a"], "viewName": "v", "privilege": "TABLE_DROP"}, 400, "privilege"),
        ({"type": "namespace", "namespace": [], "privilege": "TABLE_DROP"}, 400, "namespace"),
        ({"type": "namespace", "namespace": ["x"], "privilege": "TABLE_DROP"}, 404, "x"),
        ({"type": "table", "namespace": ["x"], "tableName": "y", "privilege": "TABLE_DROP"}, 404, "x.y"),
        ({"type": "table", "namespace": ["x"], "tableName": "", "privilege": "TABLE_DROP"}, 400, "tableName"),
        ({"type": "policy", "namespace": ["x"], "policyName": "p", "privilege": "POLICY_READ"}, 404, "p"),
    ],
)
async def test_what_cannot_be_granted_or_revoked_is_refused(
    refusing: Any, error_of: Any, method: str, grant: Any, status: int, named: str
) -> None:
    path = "/catalogs/lake/catalog-roles/catalog_admin/grants"

    answer = await refusing.root.request(method, path, json={"grant": grant})

    assert error_of(answer)[0] == status
    assert named in answer.json()["error"]["message"]


@pytest.mark.parametrize("method", ["PUT", "POST"])
@pytest.mark.parametrize("privilege", ["CATALOG_MANAGE_CONTENT", "CATALOG_MANAGE_ACCESS"])
async def test_nobody_grants_themselves_anything(
    refusing: Any, error_of: Any, method: str, privilege: str
) -> None:
    path = "/catalogs/lake/catalog-roles/catalog_admin/grants"
    before = (await refusing.root.get(path)).json()
    grant = {"type": "catalog", "privilege": privilege}

    answer = await refusing.nobody.request(method, path, json={"grant": grant})

    assert error_of(answer) == (403, "ForbiddenException")
    assert (await refusing.root.get(path)).json() == before


async def test_a_catalog_keeps_somebody_who_can_manage_it(refusing: Any, error_of: Any) -> None:
    path = "/catalogs/lake/catalog-roles/catalog_admin/grants"
    grant = {"type": "catalog", "privilege": "CATALOG_MANAGE_ACCESS"}

    revoked = await refusing.root.post(path, json={"grant": grant})
    deleted = await refusing.root.delete("/catalogs/lake/catalog-roles/catalog_admin")

    assert error_of(revoked) == error_of(deleted) == (400, "BadRequestException")
