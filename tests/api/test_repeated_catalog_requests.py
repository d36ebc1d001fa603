"""Every change of the catalog's APIs over HTTP, sent twice under one Idempotency-Key.

What operations do with keys is tested in `tests/catalog`. Here it is that handlers and router pass them on,
and that the whole answer is the same.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from cynosure.testing.admin import MANAGEMENT
from cynosure.testing.small_catalog import SCHEMA
from tests.api.world import World, open_world
from tests.catalog.external import UUID, table_metadata
from tests.catalog.world import VERSION

pytestmark = pytest.mark.anyio

KEY = "0c6a3f51e8de4f6fb1d2a7c94e5b8f30"
REPLAYED = "idempotency-replayed"
URL = "http://test/api/catalog"
LAKE, POLARIS, OURS = "/v1/lake", "/polaris/v1/lake", "/cynosure/v1/lake"
NS = f"{LAKE}/namespaces/ns"


class Call(NamedTuple):
    """A request. In its path and body, `{folder}` and whatever `Before` tells are filled in."""

    method: str
    path: str
    body: Any = None


Told = dict[str, str]
Before = Call | Callable[[World, httpx.AsyncClient], Awaitable[Told]]


async def write_metadata(world: World, _: httpx.AsyncClient) -> Told:
    """The metadata file of a table, as its owner writes it, in each catalog."""
    for catalog in ("lake", "ext"):
        location = world.folder / catalog / "orders"
        (location / "metadata").mkdir(parents=True)
        metadata = table_metadata(f"file://{location}")
        (location / "metadata" / "v1.metadata.json").write_bytes(msgspec.json.encode(metadata))
    return {"file": "orders/metadata/v1.metadata.json"}


async def write_view(world: World, _: httpx.AsyncClient) -> Told:
    location = world.folder / "lake" / "seen"
    metadata = {
        "view-uuid": UUID,
        "format-version": 1,
        "location": f"file://{location}",
        "current-version-id": 1,
        "versions": [msgspec.json.decode(VERSION)],
        "version-log": [{"version-id": 1, "timestamp-ms": 1}],
        "schemas": [msgspec.json.decode(SCHEMA)],
    }
    (location / "metadata").mkdir(parents=True)
    (location / "metadata" / "v1.metadata.json").write_bytes(msgspec.json.encode(metadata))
    return {"file": "seen/metadata/v1.metadata.json"}


async def find_dropped(_: World, client: httpx.AsyncClient) -> Told:
    answer = await client.get(f"{URL}{OURS}/dropped")
    return {"drop": str(answer.json()["dropped"][0]["id"])}


T = Call("POST", f"{NS}/tables", {"name": "t", "schema": msgspec.json.decode(SCHEMA)})
V = Call(
    "POST",
    f"{NS}/views",
    {
        "name": "v",
        "schema": msgspec.json.decode(SCHEMA),
        "view-version": msgspec.json.decode(VERSION),
        "properties": {},
    },
)
DROP = Call("DELETE", f"{NS}/tables/t")
SET = {"action": "set-properties", "updates": {"k": "v"}}
CHANGE = {"requirements": [], "updates": [SET]}
OF_T = {"identifier": {"namespace": ["ns"], "name": "t"}, **CHANGE}
GENERIC = Call("POST", f"{POLARIS}/namespaces/ns/generic-tables", {"name": "g", "format": "delta"})
POLICIES = f"{POLARIS}/namespaces/ns/policies"
POLICY = Call("POST", POLICIES, {"name": "p", "type": "system.data-compaction", "content": '{"enable":true}'})
TARGET = {"target": {"type": "namespace", "path": ["ns"]}}
ATTACH = Call("PUT", f"{POLICIES}/p/mappings", TARGET)
SCAN = {
    "report-type": "scan-report",
    "table-name": "ns.t",
    "snapshot-id": 1,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [],
    "projected-field-names": [],
    "metrics": {},
}
TOLD = {
    "notification-type": "CREATE",
    "payload": {
        "table-name": "orders",
        "timestamp": 1,
        "table-uuid": UUID,
        "metadata-location": "file://{folder}/ext/{file}",
    },
}


def rename(name: str) -> dict[str, Any]:
    return {
        "source": {"namespace": ["ns"], "name": name},
        "destination": {"namespace": ["ns"], "name": "moved"},
    }


CALLS: dict[str, tuple[Sequence[Before], Call]] = {
    "createNamespace": ((), Call("POST", f"{LAKE}/namespaces", {"namespace": ["new"], "properties": {}})),
    "dropNamespace": (
        (Call("POST", f"{LAKE}/namespaces", {"namespace": ["new"]}),),
        Call("DELETE", f"{LAKE}/namespaces/new"),
    ),
    "updateProperties": ((), Call("POST", f"{NS}/properties", {"removals": ["x"], "updates": {"k": "v"}})),
    "createTable": ((), T),
    "dropTable": ((T,), DROP),
    "renameTable": ((T,), Call("POST", f"{LAKE}/tables/rename", rename("t"))),
    "registerTable": (
        (write_metadata,),
        Call("POST", f"{NS}/register", {"name": "r", "metadata-location": "file://{folder}/lake/{file}"}),
    ),
    "unregisterTable": ((T,), Call("POST", f"{NS}/tables/t/unregister")),
    "updateTable": ((T,), Call("POST", f"{NS}/tables/t", CHANGE)),
    "appendFiles": (
        (T._replace(body={**T.body, "location": "file://{folder}/lake/at"}),),
        Call(
            "POST",
            f"{OURS}/namespaces/ns/tables/t/append",
            {
                "data-files": [
                    {
                        "content": "data",
                        "file-path": "file://{folder}/lake/at/data/one.parquet",
                        "file-format": "parquet",
                        "spec-id": 0,
                        "partition": [],
                        "file-size-in-bytes": 10,
                        "record-count": 1,
                    }
                ]
            },
        ),
    ),
    "orderMaintenance": (
        (T,),
        Call(
            "POST",
            f"{OURS}/namespaces/ns/tables/t/maintenance",
            {"operation": "TABLE_PURGE", "properties": {"dryRun": "true"}},
        ),
    ),
    "addColumns": (
        (T,),
        Call(
            "POST",
            f"{OURS}/namespaces/ns/tables/t/add-columns",
            {"columns": [{"name": "new", "type": "int"}]},
        ),
    ),
    "setPartitioning": (
        (T,),
        Call("POST", f"{OURS}/namespaces/ns/tables/t/set-partitioning", {"fields": [{"source": "id"}]}),
    ),
    "setSortOrder": (
        (T,),
        Call("POST", f"{OURS}/namespaces/ns/tables/t/set-sort-order", {"fields": [{"source": "id"}]}),
    ),
    "commitTransaction": ((T,), Call("POST", f"{LAKE}/transactions/commit", {"table-changes": [OF_T]})),
    "reportMetrics": ((T,), Call("POST", f"{NS}/tables/t/metrics", SCAN)),
    "createView": ((), V),
    "replaceView": ((V,), Call("POST", f"{NS}/views/v", CHANGE)),
    "dropView": ((V,), Call("DELETE", f"{NS}/views/v")),
    "renameView": ((V,), Call("POST", f"{LAKE}/views/rename", rename("v"))),
    "registerView": (
        (write_view,),
        Call(
            "POST", f"{NS}/register-view", {"name": "r", "metadata-location": "file://{folder}/lake/{file}"}
        ),
    ),
    "createGenericTable": ((), GENERIC),
    "dropGenericTable": ((GENERIC,), Call("DELETE", f"{GENERIC.path}/g")),
    "createPolicy": ((), POLICY),
    "updatePolicy": (
        (POLICY,),
        Call("PUT", f"{POLICIES}/p", {"content": '{"enable":false}', "current-policy-version": 0}),
    ),
    "dropPolicy": ((POLICY,), Call("DELETE", f"{POLICIES}/p")),
    "attachPolicy": ((POLICY,), ATTACH),
    "detachPolicy": ((POLICY, ATTACH), Call("POST", f"{POLICIES}/p/mappings", TARGET)),
    "sendNotification": (
        (write_metadata,),
        Call("POST", "/v1/ext/namespaces/ns/tables/orders/notifications", TOLD),
    ),
    "dropNamespaceCascade": (
        (Call("POST", f"{LAKE}/namespaces", {"namespace": ["more"]}),),
        Call("POST", f"{OURS}/namespaces/more/drop", {"cascade": True}),
    ),
    "restoreDropped": ((T, DROP, find_dropped), Call("POST", f"{OURS}/dropped/{{drop}}/restore", {})),
}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(tmp_path) as opened:
        yield opened


@pytest.fixture
async def root(world: World) -> AsyncIterator[httpx.AsyncClient]:
    """Who may do everything in an internal and an external catalog."""
    async with await world.login(world.root) as client:
        for name, kind in (("lake", "INTERNAL"), ("ext", "EXTERNAL")):
            answer = await client.post("/catalogs", json=world.catalog(name, type=kind))
            assert answer.status_code == 201, answer.text
            await world.admin(client).grant_content(name)
        await send(world, client, Call("POST", f"{LAKE}/namespaces", {"namespace": ["ns"]}))
        yield client


def filled(value: Any, told: Told) -> Any:
    if isinstance(value, dict):
        return {name: filled(each, told) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, told) for each in value]
    if not isinstance(value, str):
        return value
    for name, text in told.items():
        value = value.replace("{" + name + "}", text)
    return value


async def send(world: World, client: httpx.AsyncClient, call: Call, key: str | None = None) -> httpx.Response:
    headers = {} if key is None else {"idempotency-key": key}
    more = {} if call.body is None else {"json": call.body}
    return await client.request(call.method, URL + call.path, headers=headers, **more)


async def given(world: World, client: httpx.AsyncClient, name: str) -> Call:
    """What has to be there before, and the request."""
    before, call = CALLS[name]
    told = {"folder": str(world.folder)}
    for each in before:
        if isinstance(each, Call):
            answer = await send(world, client, each._replace(body=filled(each.body, told)))
            assert answer.is_success, answer.text
        else:
            told |= await each(world, client)
    return Call(call.method, filled(call.path, told), filled(call.body, told))


async def heads_of(world: World) -> dict[Any, int]:
    refs = await world.identities.persistence.backend.list_refs()
    return {ref.key: ref.head for ref in refs if ref.key.name != "audit"}


async def test_every_change_of_the_catalogs_apis_is_in_these_tests(world: World) -> None:
    routes = [route for route in world.service.routes if not route.path.startswith(MANAGEMENT)]
    assert set(CALLS) == {route.operation_id for route in routes if route.is_keyed}


@pytest.mark.parametrize("name", CALLS)
async def test_a_change_that_is_sent_twice_is_made_once_and_answered_twice(
    name: str, world: World, root: httpx.AsyncClient
) -> None:
    """I73, I74."""
    call = await given(world, root, name)

    first = await send(world, root, call, KEY)
    heads = await heads_of(world)
    again = await send(world, root, call, KEY)

    assert first.is_success, first.text
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers.get("etag") == first.headers.get("etag")
    assert (first.headers.get(REPLAYED), again.headers.get(REPLAYED)) == (None, "true")
    assert await heads_of(world) == heads


@pytest.mark.parametrize("name", [name for name, (before, _) in CALLS.items() if before])
async def test_a_change_that_was_refused_stays_refused_under_its_key_though_it_could_be_made_now(
    name: str, world: World, root: httpx.AsyncClient
) -> None:
    """I74, I77."""
    wanted = CALLS[name][1]
    known = {"folder": str(world.folder), "file": _file_of(name), "drop": "77"}
    early = Call(wanted.method, filled(wanted.path, known), filled(wanted.body, known))
    first = await send(world, root, early, KEY)
    assert first.status_code in (400, 404), first.text
    call = await given(world, root, name)
    heads = await heads_of(world)

    again = await send(world, root, early, KEY)

    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert again.headers.get(REPLAYED) == "true"
    assert await heads_of(world) == heads
    assert (await send(world, root, call, "another-key")).is_success


def _file_of(name: str) -> str:
    return f"{'seen' if name == 'registerView' else 'orders'}/metadata/v1.metadata.json"
