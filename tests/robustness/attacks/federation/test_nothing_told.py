"""Who has rights in one namespace learns nothing of another: not by answers, nor by what the remote hears.

Holds I111.
"""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.catalog.names import Identifier
from cynosure.common.telemetry.metrics import render, start_metrics, stop_metrics
from cynosure.federation.circles import mark_of
from cynosure.federation.guard import metrics
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.remote_kit import Stage, plan_view
from cynosure.testing.small_access import P, on_namespace
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, OTHER_UUID, Far, T, open_far
from tests.federation.served import BASE, client_of

from .naming_remote import NamingRemote

pytestmark = pytest.mark.anyio

FAR = f"{BASE}/v1/far"
POLARIS = f"{BASE}/polaris/v1/far"
OURS = f"{BASE}/cynosure/v1/far"
MANAGE = "/api/management/v1"
MINE = Identifier(("own",), "mine")
OWN_VIEW, THEIR_VIEW = Identifier(("own",), "view"), Identifier(NS, "a-view-there")
SET = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
_REQUEST = re.compile(r"\(request [0-9a-f]+\)")
RIGHTS = (
    P.NAMESPACE_FULL_METADATA,
    P.TABLE_FULL_METADATA,
    P.TABLE_WRITE_DATA,
    P.VIEW_FULL_METADATA,
    P.POLICY_FULL_METADATA,
    P.CATALOG_MANAGE_ACCESS,
)


@pytest.fixture
async def far(tmp_path: Path, manual_clock: ManualClock) -> AsyncIterator[Far]:
    async with open_far(tmp_path / "files", clock=manual_clock, remote=NamingRemote()) as opened:
        stage = Stage(opened.remote, opened.catalog.base.text)
        opened.put(T)
        opened.put(MINE, at="own/mine", uuid=OTHER_UUID)
        opened.remote.put_view(THEIR_VIEW, plan_view(stage, THEIR_VIEW))
        opened.remote.put_view(OWN_VIEW, plan_view(stage, OWN_VIEW))
        yield opened


def named(namespace: str, name: str) -> dict[str, Any]:
    return {"namespace": [namespace], "name": name}


def requests(name: str) -> list[tuple[str, str, Any]]:
    """Requests that name the table or view `name` of the namespace `ns`, beside what the caller may touch."""
    their, own = named("ns", name), named("own", "mine")
    grant = {"type": "table", "namespace": ["ns"], "tableName": name, "privilege": "TABLE_READ_DATA"}
    target = {"catalog": "far", "namespace": ["ns"], "table": name}
    mapping = {"target": {"type": "table-like", "path": ["ns", name]}}
    return [
        ("GET", f"{FAR}/namespaces/ns/tables/{name}", None),
        ("HEAD", f"{FAR}/namespaces/ns/tables/{name}", None),
        ("GET", f"{FAR}/namespaces/ns/views/{name}", None),
        ("GET", f"{FAR}/namespaces/ns", None),
        ("GET", f"{FAR}/namespaces/ns/tables", None),
        ("GET", f"{FAR}/namespaces/ns/tables?pageSize=1", None),
        ("GET", f"{FAR}/namespaces/ns/views", None),
        ("GET", f"{FAR}/namespaces?parent=ns", None),
        ("POST", f"{FAR}/namespaces/ns/tables", {"name": name, "schema": SCHEMA}),
        ("POST", f"{FAR}/namespaces", {"namespace": ["ns", name]}),
        ("POST", f"{FAR}/namespaces/ns/properties", {"updates": {"a": "b"}}),
        ("DELETE", f"{FAR}/namespaces/ns/tables/{name}?purgeRequested=true", None),
        ("DELETE", f"{FAR}/namespaces/ns", None),
        ("POST", f"{FAR}/tables/rename", {"source": their, "destination": named("own", "x")}),
        ("POST", f"{FAR}/tables/rename", {"source": own, "destination": their}),
        ("POST", f"{FAR}/views/rename", {"source": their, "destination": named("own", "x")}),
        ("POST", f"{FAR}/views/rename", {"source": named("own", "view"), "destination": their}),
        (
            "POST",
            f"{FAR}/transactions/commit",
            {"table-changes": [{"identifier": own, **SET}, {"identifier": their, **SET}]},
        ),
        ("GET", f"{POLARIS}/applicable-policies?namespace=ns&target-name={name}", None),
        ("GET", f"{POLARIS}/applicable-policies?namespace=ns", None),
        ("GET", f"{POLARIS}/namespaces/ns/policies", None),
        ("PUT", f"{POLARIS}/namespaces/own/policies/p/mappings", mapping),
        ("POST", f"{POLARIS}/namespaces/own/policies/p/mappings", mapping),
        ("POST", f"{FAR}/namespaces/ns/tables/{name}/plan", {}),
        (
            "POST",
            f"{OURS}/namespaces/ns/tables/{name}/add-columns",
            {"columns": [{"name": "x", "type": "int"}]},
        ),
        ("PUT", f"{MANAGE}/catalogs/far/catalog-roles/ann/grants", {"grant": grant}),
        ("POST", f"{MANAGE}/catalogs/far/catalog-roles/ann/grants", {"grant": grant}),
        (
            "POST",
            f"{MANAGE}/cynosure/explain-access",
            {"principal": "ann", "operation": "load-table", "target": target},
        ),
    ]


async def answers_to(far: Far, client: httpx.AsyncClient, name: str) -> list[tuple[str, int, str]]:
    """What each request is answered, with the name taken out."""
    answers: list[tuple[str, int, str]] = []
    for method, path, body in requests(name):
        answer = await client.request(method, path, json=body)
        told = _REQUEST.sub("", answer.text.replace(name, "NAME"))
        answers.append((f"{method} {path}".replace(name, "NAME"), answer.status_code, told))
    return answers


@pytest.mark.parametrize("is_down", [False, True], ids=["up", "down"])
@pytest.mark.parametrize("is_seen", [False, True], ids=["unseen", "seen"])
async def test_what_is_there_and_what_is_not_are_the_same(far: Far, *, is_seen: bool, is_down: bool) -> None:
    remote = far.remote
    assert isinstance(remote, NamingRemote)
    await far.federation.see_namespace(far.catalog, ROOT, ("own",))
    ann = await far.people.add("ann", far.catalog, *on_namespace(("own",), *RIGHTS))
    if is_seen:
        await far.see()
        await far.federation.see_view(far.catalog, ROOT, THEIR_VIEW)
    async with client_of(far) as root, client_of(far, ann) as client:
        policy = {"name": "p", "type": "system.data-compaction", "content": '{"enable": true}'}
        made = await root.post(f"{POLARIS}/namespaces/own/policies", json=policy)
        assert made.is_success, made.text
        remote.is_down = is_down
        remote.namespaces_asked.clear()

        there = await answers_to(far, client, "orders")
        missing = await answers_to(far, client, "nothing-of-it")
        views = await answers_to(far, client, THEIR_VIEW.name)
        asked = set(remote.namespaces_asked)
        listed = await client.get(f"{FAR}/namespaces")

    assert there == missing
    assert [each[1:] for each in views] == [each[1:] for each in missing]
    assert ("ns",) not in asked
    # 503 of a remote that is down is about `own`, which is the caller's to know.
    assert {status for _, status, _ in there} <= {403, 404, *([503] if is_down else [])}, there
    assert ["ns"] not in listed.json().get("namespaces", [])


async def test_metrics_that_strangers_read_do_not_say_of_which_catalog_they_are(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_names", set())
    start_metrics()
    try:
        await far.see()
        shown = render().decode()
    finally:
        stop_metrics()

    assert f'cynosure_federation_breaker_open{{catalog="{mark_of(far.catalog)}"}} 0.0' in shown
    assert f'"{far.catalog.entity.name}"' not in shown
