"""Every route that is described is refused to strangers, and to somebody without a single grant."""

from typing import Any

import httpx
import pytest

from cynosure.auth.entities import ROOT
from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer
from cynosure.testing.catalog_storm.clients import SCHEMA

from .user import MakeUser

pytestmark = pytest.mark.anyio

OPEN_TO_ALL = {
    ("get", "/health/live"),
    ("get", "/health/ready"),
    ("get", "/metrics"),
    ("get", "/openapi.json"),
    ("get", "/.well-known/jwks.json"),
    ("get", "/api/catalog/v1/oauth/jwks"),
    ("post", "/api/catalog/v1/oauth/tokens"),
}
"""Without a token. Whoever adds a route here opens it to the world."""

OPEN_TO_PRINCIPALS = {
    ("get", "/api/management/v1/cynosure/realm"): "tells who one is",
    ("get", "/api/management/v1/cynosure/config"): "tells what clients may rely on",
    ("get", "/api/catalog/v1/config"): "tells the prefix of a catalog that one names",
}
"""Without a grant, each with the reason."""

PARAMETERS = {
    "prefix": "lake",
    "namespace": "ns",
    "table": "t",
    "view": "v",
    "generic-table": "g",
    "policy-name": "p",
    "catalogName": "lake",
    "catalogRoleName": "catalog_admin",
    "principalName": "root",
    "principalRoleName": "service_admin",
    "plan-id": "x",
    "id": "1",
    "taskId": "6f0ca3ad-5d2f-5c0a-9a8e-3f3f0d8f6f11",
}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
    "default-namespace": [],
}


@pytest.fixture
async def routes(root: httpx.AsyncClient) -> list[tuple[str, str]]:
    await root.post(
        "/api/catalog/v1/lake/namespaces/ns/views",
        json={"name": "v", "schema": {**SCHEMA, "schema-id": 0}, "view-version": VERSION, "properties": {}},
    )
    await root.post("/api/catalog/polaris/v1/lake/namespaces/ns/generic-tables", json=_GENERIC)
    await root.post("/api/catalog/polaris/v1/lake/namespaces/ns/policies", json=_POLICY)
    described = (await root.get("/openapi.json")).json()
    return [(method, path) for path, methods in described["paths"].items() for method in methods]


def fill(path: str) -> str:
    for name, value in PARAMETERS.items():
        path = path.replace(f"{{{name}}}", value)
    return path


async def test_strangers_get_into_no_route_but_the_public_ones(
    server: CatalogServer, routes: list[tuple[str, str]]
) -> None:
    assert set(routes) > OPEN_TO_ALL
    async with server.stranger() as http:
        for method, path in set(routes) - OPEN_TO_ALL:
            answer = await http.request(method, fill(path))
            assert answer.status_code == 401, f"{method} {path}: {answer.status_code} {answer.text}"


async def test_somebody_without_grants_is_never_answered(
    make_user: MakeUser, routes: list[tuple[str, str]], admin: Admin
) -> None:
    nobody = await make_user()
    before = await everything(admin)
    answered: list[str] = []

    for method, path in sorted(set(routes) - OPEN_TO_ALL - OPEN_TO_PRINCIPALS.keys()):
        assert method in ("get", "head", "delete") or (method, path) in BODIES, "say what it is sent"
        answer = await nobody.send(method.upper(), fill(path), BODIES.get((method, path)))
        if answer.status_code != 403:
            answered.append(f"{method} {path}: {answer.status_code} {answer.text}")

    assert answered == []
    assert await everything(admin) == before


async def everything(admin: Admin) -> list[Any]:
    """What could have been changed."""
    return [
        (await admin.http.get(path)).json()
        for path in (
            "/api/catalog/v1/lake/namespaces",
            "/api/catalog/v1/lake/namespaces/ns",
            "/api/catalog/v1/lake/namespaces/ns/tables",
            "/api/catalog/v1/lake/namespaces/ns/views",
            "/api/catalog/v1/lake/namespaces/ns/tables/t",
            "/api/catalog/polaris/v1/lake/namespaces/ns/generic-tables/g",
            "/api/catalog/polaris/v1/lake/namespaces/ns/policies/p",
            "/api/catalog/polaris/v1/lake/applicable-policies",
            "/api/management/v1/catalogs/lake",
            "/api/management/v1/catalogs/lake/catalog-roles",
            "/api/management/v1/catalogs/lake/catalog-roles/catalog_admin/grants",
            "/api/management/v1/catalogs/lake/catalog-roles/catalog_admin/principal-roles",
            "/api/management/v1/principals",
            "/api/management/v1/principal-roles",
            f"/api/management/v1/principals/{ROOT}/principal-roles",
        )
    ]


_UPDATES = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
_VIEW_UPDATES = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
_RENAME = {
    "source": {"namespace": ["ns"], "name": "t"},
    "destination": {"namespace": ["ns"], "name": "other"},
}
_ROLE = {"currentEntityVersion": 1, "properties": {}}
_CATALOG = "/api/catalog/v1/{prefix}"
_MANAGE = "/api/management/v1"
_NS = f"{_CATALOG}/namespaces/{{namespace}}"
_REPORT = {
    "report-type": "commit-report",
    "table-name": "ns.t",
    "snapshot-id": 1,
    "sequence-number": 1,
    "operation": "append",
    "metrics": {},
}
_POLARIS = "/api/catalog/polaris/v1/{prefix}/namespaces/{namespace}"
_GENERIC = {"name": "g", "format": "delta"}
_POLICY = {"name": "p", "type": "system.data-compaction", "content": '{"enable": true}'}
_ON_CATALOG = {"target": {"type": "catalog", "path": []}}
_NOTIFICATION = {
    "notification-type": "DROP",
    "payload": {
        "table-name": "t",
        "timestamp": 1,
        "table-uuid": "3c1d0f3a-4b8e-4b0a-8d8c-6a4f5f1f2e10",
        "metadata-location": "",
    },
}
_OURS = "/api/catalog/cynosure/v1/{prefix}/namespaces/{namespace}/tables/{table}"
_SIGNED = {
    "region": "us-east-1",
    "method": "GET",
    "uri": "http://127.0.0.1:9/bucket/t/file",
    "headers": {},
}
BODIES: dict[tuple[str, str], Any] = {
    ("post", "/api/catalog/cynosure/v1/query-events"): {
        "statement-id": "s",
        "outcome": "FINISHED",
        "sql": "SELECT ?",
        "tables": [],
        "policies": [],
        "rows": 0,
        "bytes": 0,
        "elapsed-ms": 0,
        "engine": "none",
    },
    ("post", "/api/catalog/cynosure/v1/{prefix}/dropped/{id}/restore"): {},
    ("post", "/api/catalog/cynosure/v1/{prefix}/namespaces/{namespace}/drop"): {"cascade": True},
    ("post", f"{_MANAGE}/catalogs/{{catalogName}}/drop"): {"cascade": True, "purge": True},
    ("post", f"{_MANAGE}/tasks/{{taskId}}/retry"): None,
    ("post", f"{_MANAGE}/tasks/{{taskId}}/cancel"): None,
    ("post", "/api/catalog/cynosure/v1/{prefix}/tombstones/{id}/purging"): {"task-id": "x"},
    ("post", "/api/catalog/cynosure/v1/{prefix}/tombstones/{id}/ended"): {"task-id": "x"},
    ("post", f"{_NS}/tables/{{table}}/metrics"): _REPORT,
    ("post", f"{_NS}/tables/{{table}}/unregister"): None,
    ("post", f"{_NS}/register"): {"name": "mine", "metadata-location": "file:///x.metadata.json"},
    ("post", f"{_NS}/register-view"): {"name": "mine", "metadata-location": "file:///x.metadata.json"},
    ("post", f"{_POLARIS}/generic-tables"): {"name": "mine", "format": "delta"},
    ("post", f"{_POLARIS}/policies"): {**_POLICY, "name": "mine"},
    ("put", f"{_POLARIS}/policies/{{policy-name}}"): {
        "content": '{"enable": false}',
        "current-policy-version": 0,
    },
    ("put", f"{_POLARIS}/policies/{{policy-name}}/mappings"): _ON_CATALOG,
    ("post", f"{_POLARIS}/policies/{{policy-name}}/mappings"): _ON_CATALOG,
    ("post", f"{_NS}/tables/{{table}}/notifications"): _NOTIFICATION,
    ("post", f"{_NS}/tables/{{table}}/plan"): {},
    ("post", f"{_NS}/tables/{{table}}/tasks"): {"plan-task": "x"},
    ("post", f"{_OURS}/append"): {"manifests": ["file:///x.avro"]},
    ("post", f"{_OURS}/maintenance"): {"operation": "TABLE_PURGE", "properties": {"dryRun": "true"}},
    ("post", f"{_OURS}/add-columns"): {"columns": [{"name": "mine", "type": "int"}]},
    ("post", f"{_OURS}/set-partitioning"): {"fields": []},
    ("post", f"{_OURS}/set-sort-order"): {"fields": []},
    ("post", f"{_OURS}/plan/{{plan-id}}/sign"): _SIGNED,
    ("post", f"{_NS}/tables/{{table}}/sign"): _SIGNED,
    ("post", f"{_MANAGE}/cynosure/catalogs/{{catalogName}}/check-storage"): None,
    ("post", f"{_MANAGE}/cynosure/catalogs/{{catalogName}}/reconcile"): None,
    ("post", f"{_MANAGE}/cynosure/catalogs/{{catalogName}}/migration"): {"step": "begin"},
    ("post", f"{_MANAGE}/catalogs"): {
        "catalog": {
            "type": "INTERNAL",
            "name": "mine",
            "properties": {"default-base-location": "s3://bucket/mine"},
            "storageConfigInfo": {"storageType": "S3", "allowedLocations": []},
        }
    },
    ("post", f"{_CATALOG}/namespaces"): {"namespace": ["mine"]},
    ("post", f"{_NS}/properties"): {"updates": {"a": "b"}},
    ("post", f"{_NS}/tables"): {"name": "mine", "schema": SCHEMA},
    ("post", f"{_NS}/views"): {"name": "mine", "schema": SCHEMA, "view-version": VERSION, "properties": {}},
    ("post", f"{_NS}/tables/{{table}}"): _UPDATES,
    ("post", f"{_NS}/views/{{view}}"): _VIEW_UPDATES,
    ("post", f"{_CATALOG}/tables/rename"): _RENAME,
    ("post", f"{_CATALOG}/views/rename"): {**_RENAME, "source": {"namespace": ["ns"], "name": "v"}},
    ("post", f"{_CATALOG}/transactions/commit"): {
        "table-changes": [{"identifier": {"namespace": ["ns"], "name": "t"}, **_UPDATES}]
    },
    ("post", f"{_MANAGE}/principals"): {"principal": {"name": "mine"}},
    ("post", f"{_MANAGE}/principal-roles"): {"principalRole": {"name": "mine"}},
    ("post", f"{_MANAGE}/catalogs/{{catalogName}}/catalog-roles"): {"catalogRole": {"name": "mine"}},
    ("put", f"{_MANAGE}/principals/{{principalName}}"): _ROLE,
    ("put", f"{_MANAGE}/principal-roles/{{principalRoleName}}"): _ROLE,
    ("put", f"{_MANAGE}/catalogs/{{catalogName}}/catalog-roles/{{catalogRoleName}}"): _ROLE,
    ("put", f"{_MANAGE}/catalogs/{{catalogName}}"): _ROLE,
    ("post", f"{_MANAGE}/principals/{{principalName}}/rotate"): None,
    ("post", f"{_MANAGE}/principals/{{principalName}}/reset"): {},
    ("put", f"{_MANAGE}/principals/{{principalName}}/principal-roles"): {
        "principalRole": {"name": "service_admin"}
    },
    ("put", f"{_MANAGE}/principal-roles/{{principalRoleName}}/catalog-roles/{{catalogName}}"): {
        "catalogRole": {"name": "catalog_admin"}
    },
    ("put", f"{_MANAGE}/catalogs/{{catalogName}}/catalog-roles/{{catalogRoleName}}/grants"): {
        "grant": Grant("TABLE_READ_DATA").to_wire()
    },
    ("post", f"{_MANAGE}/catalogs/{{catalogName}}/catalog-roles/{{catalogRoleName}}/grants"): {
        "grant": Grant("CATALOG_MANAGE_ACCESS").to_wire()
    },
    ("put", f"{_MANAGE}/cynosure/principals/{{principalName}}/trusted-service"): {"trusted": True},
    ("post", f"{_MANAGE}/cynosure/explain-access"): {
        "principal": "root",
        "operation": "load-table",
        "target": {"catalog": "lake", "namespace": ["ns"], "table": "t"},
    },
}
