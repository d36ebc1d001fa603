"""Whatever a native catalog refuses is refused through federation with the same status, type and words."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.auth.settings import AuthSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.remote_samples import SCHEMA, version_of
from cynosure.testing.small_access import CallerGate, P, on_namespace
from cynosure.testing.small_api import open_client
from cynosure.testing.small_catalog import make_catalog
from tests.catalog.external import view_file
from tests.federation.seen_world import open_far
from tests.federation.writes.changes import passing, put_view_file
from tests.federation.writes.losing_remote import LosingRemote

pytestmark = pytest.mark.anyio

TABLE = {"name": "orders", "schema": SCHEMA}
VIEW = {"name": "v", "schema": SCHEMA, "view-version": version_of("SELECT 1 AS id"), "properties": {}}
OTHER_UUID = "11111111-2222-4333-8444-555555555555"


UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Case(NamedTuple):
    method: str
    path: str
    status: int
    body: Any = None


def update(*updates: Any, requires: Any = ()) -> dict[str, Any]:
    return {"requirements": list(requires), "updates": list(updates)}


def named(name: str, namespace: str = "ns") -> dict[str, Any]:
    return {"namespace": [namespace], "name": name}


SET = {"action": "set-properties", "updates": {"a": "b"}}
CASES = {
    "namespace that is there": Case("POST", "namespaces", 409, {"namespace": ["ns"]}),
    "namespace without parent": Case("POST", "namespaces", 404, {"namespace": ["none", "x"]}),
    "namespace with our property": Case(
        "POST", "namespaces", 400, {"namespace": ["x"], "properties": {"cynosure.x": "y"}}
    ),
    "namespace outside": Case(
        "POST", "namespaces", 403, {"namespace": ["x"], "properties": {"location": "file:///outside"}}
    ),
    "properties of no namespace": Case("POST", "namespaces/none/properties", 404, {"updates": {"a": "b"}}),
    "set and removed": Case(
        "POST", "namespaces/ns/properties", 422, {"updates": {"a": "b"}, "removals": ["a"]}
    ),
    "drop no namespace": Case("DELETE", "namespaces/none", 404),
    "drop a namespace with tables": Case("DELETE", "namespaces/ns", 409),
    "table in no namespace": Case("POST", "namespaces/none/tables", 404, TABLE),
    "table that is there": Case("POST", "namespaces/ns/tables", 409, TABLE),
    "table of a view's name": Case("POST", "namespaces/ns/tables", 409, {**TABLE, "name": "v"}),
    "table outside": Case(
        "POST", "namespaces/ns/tables", 403, {**TABLE, "name": "x", "location": "file:///outside/x"}
    ),
    "table with our property": Case(
        "POST", "namespaces/ns/tables", 400, {**TABLE, "name": "x", "properties": {"cynosure.x": "y"}}
    ),
    "table without columns' ids": Case(
        "POST", "namespaces/ns/tables", 400, {"name": "x", "schema": {"type": "struct", "fields": [{}]}}
    ),
    "staged table that is there": Case("POST", "namespaces/ns/tables", 409, {**TABLE, "stage-create": True}),
    "commit to no table": Case("POST", "namespaces/ns/tables/none", 404, update(SET)),
    "commit to another uuid": Case(
        "POST",
        "namespaces/ns/tables/orders",
        409,
        update(SET, requires=[{"type": "assert-table-uuid", "uuid": OTHER_UUID}]),
    ),
    "commit that creates what is there": Case(
        "POST", "namespaces/ns/tables/orders", 409, update(SET, requires=[{"type": "assert-create"}])
    ),
    "commit with our property": Case(
        "POST",
        "namespaces/ns/tables/orders",
        400,
        update({"action": "set-properties", "updates": {"cynosure.x": "y"}}),
    ),
    "commit that moves outside": Case(
        "POST",
        "namespaces/ns/tables/orders",
        403,
        update({"action": "set-location", "location": "file:///outside/x"}),
    ),
    "commit of no schema": Case(
        "POST",
        "namespaces/ns/tables/orders",
        400,
        update({"action": "set-current-schema", "schema-id": 77}),
    ),
    "transaction with no table": Case(
        "POST",
        "transactions/commit",
        404,
        {"table-changes": [{"identifier": named("none"), **update(SET)}]},
    ),
    "drop no table": Case("DELETE", "namespaces/ns/tables/none", 404),
    "rename no table": Case(
        "POST", "tables/rename", 404, {"source": named("none"), "destination": named("x")}
    ),
    "rename into no namespace": Case(
        "POST", "tables/rename", 404, {"source": named("orders"), "destination": named("x", "none")}
    ),
    "rename to a taken name": Case(
        "POST", "tables/rename", 409, {"source": named("orders"), "destination": named("v")}
    ),
    "register outside": Case(
        "POST",
        "namespaces/ns/register",
        403,
        {"name": "x", "metadata-location": "file:///outside/x.metadata.json"},
    ),
    "register a taken name": Case(
        "POST",
        "namespaces/ns/register",
        409,
        {"name": "orders", "metadata-location": "file:///outside/x.metadata.json"},
    ),
    "view that is there": Case("POST", "namespaces/ns/views", 409, VIEW),
    "view of a table's name": Case("POST", "namespaces/ns/views", 409, {**VIEW, "name": "orders"}),
    "view in no namespace": Case("POST", "namespaces/none/views", 404, VIEW),
    "register a view outside": Case(
        "POST",
        "namespaces/ns/register-view",
        403,
        {"name": "x", "metadata-location": "file:///outside/x.metadata.json"},
    ),
    "register a view of a taken name": Case(
        "POST",
        "namespaces/ns/register-view",
        409,
        {"name": "v", "metadata-location": "file:///outside/x.metadata.json"},
    ),
    "register a view of a table's name": Case(
        "POST",
        "namespaces/ns/register-view",
        409,
        {"name": "orders", "metadata-location": "file:///outside/x.metadata.json"},
    ),
    "register a view in no namespace": Case(
        "POST",
        "namespaces/none/register-view",
        404,
        {"name": "x", "metadata-location": "file:///outside/x.metadata.json"},
    ),
    "replace no view": Case("POST", "namespaces/ns/views/none", 404, update(SET)),
    "replace another view": Case(
        "POST",
        "namespaces/ns/views/v",
        409,
        update(SET, requires=[{"type": "assert-view-uuid", "uuid": OTHER_UUID}]),
    ),
    "drop no view": Case("DELETE", "namespaces/ns/views/none", 404),
    "rename no view": Case("POST", "views/rename", 404, {"source": named("none"), "destination": named("x")}),
    "rename a view to a taken name": Case(
        "POST", "views/rename", 409, {"source": named("v"), "destination": named("orders")}
    ),
}


async def send(client: httpx.AsyncClient, case: Case) -> httpx.Response:
    return await client.request(case.method, case.path, json=case.body)


async def prepare(client: httpx.AsyncClient) -> None:
    for path, body in (
        ("namespaces", {"namespace": ["ns"]}),
        ("namespaces/ns/tables", TABLE),
        ("namespaces/ns/views", VIEW),
    ):
        answer = await client.post(path, json=body)
        assert answer.status_code == 200, answer.text


async def test_refusals_are_the_same(tmp_path: Path, manual_clock: ManualClock) -> None:
    remote = LosingRemote()
    async with open_far(tmp_path, clock=manual_clock, remote=remote) as far:
        passing(far)
        await make_catalog(far.directory, tmp_path)
        async with (
            open_client(far.directory) as native,
            open_client(far.directory, "far", federation=far.federation) as federated,
        ):
            await prepare(native)
            await prepare(federated)
            done, differing = len(remote.done), []
            for name, case in CASES.items():
                there, here = await send(native, case), await send(federated, case)
                told = [(each.status_code, UUID.sub("UUID", each.text)) for each in (there, here)]
                if there.status_code != case.status or told[0] != told[1]:
                    differing.append((name, *told))
            assert differing == []
            assert len(remote.done) == done


async def test_the_same_requests_do_the_same(tmp_path: Path, manual_clock: ManualClock) -> None:
    async with open_far(tmp_path, clock=manual_clock, remote=LosingRemote()) as far:
        passing(far)
        await make_catalog(far.directory, tmp_path)
        async with (
            open_client(far.directory) as native,
            open_client(far.directory, "far", federation=far.federation) as federated,
        ):
            for case in (
                Case("POST", "namespaces", 200, {"namespace": ["ns"], "properties": {"a": "b"}}),
                Case("POST", "namespaces/ns/properties", 200, {"updates": {"c": "d"}, "removals": ["a"]}),
                Case("POST", "namespaces/ns/tables", 200, TABLE),
                Case("POST", "namespaces/ns/tables", 200, {**TABLE, "name": "x", "stage-create": True}),
                Case("POST", "namespaces/ns/tables/orders", 200, update(SET)),
                Case(
                    "POST",
                    "transactions/commit",
                    204,
                    {"table-changes": [{"identifier": named("orders"), **update(SET)}]},
                ),
                Case(
                    "POST",
                    "tables/rename",
                    204,
                    {"source": named("orders"), "destination": named("sales")},
                ),
                Case("GET", "namespaces/ns/tables/sales", 200),
                Case("GET", "namespaces/ns/tables/orders", 404),
                Case("POST", "namespaces/ns/views", 200, VIEW),
                Case("POST", "namespaces/ns/views/v", 200, update(SET)),
                Case("POST", "views/rename", 204, {"source": named("v"), "destination": named("w")}),
                Case("DELETE", "namespaces/ns/views/w", 204),
                Case("POST", "namespaces/ns/tables/sales/unregister", 200),
                Case("GET", "namespaces/ns/tables/sales", 404),
                Case("DELETE", "namespaces/ns", 204),
            ):
                there, here = await send(native, case), await send(federated, case)
                assert (there.status_code, here.status_code) == (case.status, case.status), here.text
                if there.content:
                    assert there.json().keys() == here.json().keys()


async def test_a_registered_view_is_answered_in_the_same_way(
    tmp_path: Path, manual_clock: ManualClock
) -> None:
    async with open_far(tmp_path, clock=manual_clock, remote=LosingRemote()) as far:
        lake, there = await make_catalog(far.directory, tmp_path), await put_view_file(passing(far))
        answers = []
        for catalog, file in ((lake, await view_file(lake)), (far.catalog, there)):
            federation = far.federation if catalog is far.catalog else None
            async with open_client(far.directory, catalog.entity.name, federation=federation) as client:
                await send(client, Case("POST", "namespaces", 200, {"namespace": ["ns"]}))
                body = {"name": "x", "metadata-location": file}
                made = await send(client, Case("POST", "namespaces/ns/register-view", 200, body))
                loaded = await send(client, Case("GET", "namespaces/ns/views/x", 200))
            told = (made.text.replace(catalog.base.text, ""), loaded.text.replace(catalog.base.text, ""))
            answers.append((made.status_code, loaded.status_code, *told))

        assert answers[0][:2] == (200, 200), answers[0]
        assert answers[0] == answers[1]


async def test_who_may_do_nothing_hears_the_same(tmp_path: Path, manual_clock: ManualClock) -> None:
    """As on a native catalog that hides what exists: federated ones always do."""
    remote = LosingRemote()
    hiding = AuthSettings(hide_existence=True)
    async with open_far(tmp_path, clock=manual_clock, remote=remote, access=hiding) as far:
        passing(far)
        lake = await make_catalog(far.directory, tmp_path)
        async with (
            open_client(far.directory) as native,
            open_client(far.directory, "far", federation=far.federation) as federated,
        ):
            await prepare(native)
            await prepare(federated)
        await far.people.root()
        elsewhere = on_namespace(("ns",), P.POLICY_READ)
        nobody = await far.people.add("nobody", lake, *elsewhere)
        await far.people.join("nobody", far.catalog, *elsewhere)
        asked, differing = len(remote.asked), []
        async with (
            open_client(far.directory, gate=CallerGate(nobody)) as native,
            open_client(
                far.directory, "far", federation=far.federation, gate=CallerGate(nobody)
            ) as federated,
        ):
            for name, case in CASES.items():
                there, here = await send(native, case), await send(federated, case)
                if (there.status_code, there.text) != (here.status_code, here.text):
                    differing.append((name, there.text, here.text))
        assert differing == []
        assert len(remote.asked) == asked
