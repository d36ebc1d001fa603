"""Every route that names something of a federated catalog has it seen first, by those who may know of it.

Holds I111.
"""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from cynosure.api.router import Route
from cynosure.catalog.names import Identifier
from cynosure.federation.settings import FederationSettings
from cynosure.testing.remote_kit import Stage, plan_view
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import SCHEMA
from tests.api.iceberg.conftest import VERSION
from tests.federation.seen_world import NS, Far, T, open_far
from tests.federation.served import client_of, routes_of

pytestmark = pytest.mark.anyio
V = Identifier(NS, "v")

SIGN = {"region": "r", "uri": "https://b.example/k", "method": "GET", "headers": {}}
TARGET = {"type": "table-like", "path": [*NS, T.name]}
SCHEMA_JSON = msgspec.json.decode(SCHEMA)
BODIES = {
    "updateProperties": {"updates": {"k": "v"}},
    "createTable": {"name": "new", "schema": SCHEMA_JSON},
    "registerTable": {"name": "new", "metadata-location": "file:///m.json"},
    "signRequest": SIGN,
    "signPlannedRequest": SIGN,
    "updateTable": {"requirements": [], "updates": []},
    "planTableScan": {},
    "fetchScanTasks": {"plan-task": "none"},
    "createView": {"name": "new", "schema": SCHEMA_JSON, "view-version": VERSION},
    "replaceView": {"updates": []},
    "registerView": {"name": "new", "metadata-location": "file:///m.json"},
    "reportMetrics": {
        "report-type": "commit-report",
        "table-name": "t",
        "snapshot-id": 1,
        "sequence-number": 1,
        "operation": "append",
        "metrics": {},
    },
    "createGenericTable": {"name": "g", "format": "csv"},
    "createPolicy": {"name": "p", "type": "system.data-compaction", "content": "{}"},
    "updatePolicy": {"content": "{}", "current-policy-version": 0},
    "attachPolicy": {"target": TARGET},
    "detachPolicy": {"target": TARGET},
    "dropNamespaceCascade": {},
    "appendFiles": {"manifests": ["file:///m.avro"]},
    "addColumns": {"columns": [{"name": "x", "type": "int"}]},
    "setPartitioning": {"fields": []},
    "setSortOrder": {"fields": []},
    "orderMaintenance": {"operation": "compact"},
    "sendNotification": {
        "notification-type": "DROP",
        "payload": {"table-name": "t", "timestamp": 1, "table-uuid": "u", "metadata-location": "x"},
    },
}


def naming_routes(far: Far) -> list[Route]:
    return [
        each
        for each in routes_of(far)
        if "{prefix}" in each.path and any(part in each.path for part in ("{namespace}", "{table}", "{view}"))
    ]


def path_of(far: Far, route: Route) -> str:
    path = route.path.replace("{prefix}", far.catalog.entity.name).replace("{namespace}", NS[0])
    path = path.replace("{table}", T.name).replace("{view}", V.name)
    return path.replace("{generic-table}", "g").replace("{policy-name}", "p").replace("{plan-id}", "none")


async def test_every_route_that_names_something_asks_the_remote(tmp_path: Path) -> None:
    silent = []
    settings = FederationSettings(negative=timedelta(0), retries=0)
    async with open_far(tmp_path / "files", settings=settings) as far, client_of(far) as client:
        view = plan_view(Stage(far.remote, far.catalog.base.text), V)
        for route in naming_routes(far):
            # Those before may have dropped them.
            far.put()
            far.remote.put_view(V, view)
            far.remote.asked.clear()
            body = BODIES.get(route.operation_id) if route.request is not None else None
            answer = await client.request(route.method, path_of(far, route), json=body)
            if not far.remote.asked:
                silent.append((route.operation_id, answer.status_code, answer.text))
            assert answer.status_code < 500 or answer.status_code == 501, (route.operation_id, answer.text)

    assert silent == []


async def test_who_may_do_nothing_makes_no_route_ask_the_remote(far: Far) -> None:
    far.put()
    ann = await far.people.add("ann", far.catalog, *on_catalog(P.CATALOG_READ_PROPERTIES))
    told = []
    async with client_of(far, ann) as client:
        for route in naming_routes(far):
            body = BODIES.get(route.operation_id) if route.request is not None else None
            answer = await client.request(route.method, path_of(far, route), json=body)
            if far.remote.asked or answer.status_code not in (400, 403, 404):
                told.append((route.operation_id, answer.status_code, [*far.remote.asked]))
                far.remote.asked.clear()

    assert told == []
