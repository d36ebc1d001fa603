"""A federated catalog of one server before a catalog of another: real processes, with a proxy in between.

Holds I117.
"""

import asyncio
import json
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import (
    CatalogServer,
    ServedCatalog,
    make_client,
    start_catalog_server,
)
from cynosure.testing.harness.faults import LoseAnswer
from cynosure.testing.harness.http_proxy import HttpProxy, is_mutation, run_http_proxy
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES
from cynosure.testing.remote_samples import SCHEMA, version_of

pytestmark = pytest.mark.anyio


class Pair(NamedTuple):
    """Two servers, and a catalog of the first that stands for one of the second."""

    near: CatalogServer
    far: CatalogServer
    proxy: HttpProxy
    name: str

    def through(self) -> httpx.AsyncClient:
        return make_client(self.near.login, base_url=f"{self.near.url}/api/catalog/v1/{self.name}/")

    def directly(self) -> httpx.AsyncClient:
        return make_client(self.far.login, base_url=f"{self.far.url}/api/catalog/v1/{self.name}/")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("pair")
    with Processes(directory) as processes:
        far = asyncio.run(start_catalog_server(processes, directory, data=directory / "far", name="far"))
        with run_http_proxy(far.url) as proxy:
            env = {
                "CYNOSURE_STORAGE__FILE_ROOTS__FAR": str(directory / "far"),
                "CYNOSURE_IDEMPOTENCY__LEASE": "300ms",
            }
            near = asyncio.run(
                start_catalog_server(processes, directory, data=directory / "near", name="near", env=env)
            )
            name = f"c{uuid.uuid4().hex[:12]}"
            asyncio.run(_federate(near, asyncio.run(far.create_catalog(name)), proxy))
            yield Pair(near, far, proxy, name)


async def _federate(near: CatalogServer, there: ServedCatalog, proxy: HttpProxy) -> None:
    location = (near.data.parent / "far" / "warehouse" / there.name).as_uri()
    credential = there.login.credential
    wanted = {
        "type": "EXTERNAL",
        "name": there.name,
        "properties": {"default-base-location": location},
        "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
        "connectionConfigInfo": {
            "connectionType": "ICEBERG_REST",
            "uri": f"{proxy.url}/api/catalog",
            "remoteCatalogName": there.name,
            "authenticationParameters": {
                "authenticationType": "OAUTH",
                "clientId": credential.client_id,
                "clientSecret": credential.secret,
                "scopes": [ALL_ROLES],
            },
        },
    }
    async with near.client() as http:
        admin = Admin(http)
        await admin.send("POST", "/catalogs", {"catalog": wanted})
        await admin.grant_content(there.name)


def fresh(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:8]}"


async def make_table(client: httpx.AsyncClient) -> tuple[str, dict[str, Any]]:
    """A table in a namespace of its own; its path and metadata."""
    namespace, name = fresh("ns"), fresh("t")
    made = await client.post("namespaces", json={"namespace": [namespace]})
    assert made.status_code == 200, made.text
    made = await client.post(f"namespaces/{namespace}/tables", json={"name": name, "schema": SCHEMA})
    assert made.status_code == 200, made.text
    return f"namespaces/{namespace}/tables/{name}", made.json()["metadata"]


def append(metadata: dict[str, Any], snapshot: int, parent: int | None = None) -> dict[str, Any]:
    added = {
        "snapshot-id": snapshot,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot}.avro",
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    if parent is not None:
        added["parent-snapshot-id"] = parent
    return {
        "requirements": [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent}],
        "updates": [
            {"action": "add-snapshot", "snapshot": added},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot},
        ],
    }


async def load(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["metadata"]
    return found


async def test_what_is_done_through_us_is_done_there(pair: Pair) -> None:
    async with pair.through() as here, pair.directly() as there:
        path, metadata = await make_table(here)

        answer = await here.post(path, json=append(metadata, 17))

        assert answer.status_code == 200, answer.text
        found = await load(there, path)
        assert found["table-uuid"] == metadata["table-uuid"]
        assert found["current-snapshot-id"] == 17
        assert json.loads(answer.content)["metadata"]["current-snapshot-id"] == 17
        assert (await load(here, path))["current-snapshot-id"] == 17


async def test_a_staged_table_is_placed_by_the_remote_and_made_by_its_commit(pair: Pair) -> None:
    async with pair.through() as here, pair.directly() as there:
        path, _ = await make_table(here)
        namespace, name = path.partition("/tables/")[0], fresh("staged")
        staged = await here.post(
            f"{namespace}/tables", json={"name": name, "schema": SCHEMA, "stage-create": True}
        )
        assert staged.status_code == 200, staged.text
        metadata = staged.json()["metadata"]
        assert (await there.get(f"{namespace}/tables/{name}")).status_code == 404
        body = {
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
                {"action": "upgrade-format-version", "format-version": metadata["format-version"]},
                {"action": "add-schema", "schema": metadata["schemas"][0]},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": metadata["partition-specs"][0]},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
                {"action": "set-default-sort-order", "sort-order-id": -1},
                {"action": "set-location", "location": metadata["location"]},
            ],
        }

        made = await here.post(f"{namespace}/tables/{name}", json=body)

        assert made.status_code == 200, made.text
        found = await load(there, f"{namespace}/tables/{name}")
        assert (found["table-uuid"], found["location"]) == (metadata["table-uuid"], metadata["location"])
        again = await here.post(f"{namespace}/tables/{name}", json=body)
        assert again.status_code == 409, again.text


async def test_a_transaction_is_all_or_nothing_there(pair: Pair) -> None:
    async with pair.through() as here, pair.directly() as there:
        (one, _), (two, metadata) = await make_table(here), await make_table(here)

        def changes(value: str, uuid_of_two: str) -> dict[str, Any]:
            update = {"action": "set-properties", "updates": {"a": value}}
            guard = {"type": "assert-table-uuid", "uuid": uuid_of_two}
            return {
                "table-changes": [
                    {"identifier": identify(one), "requirements": [], "updates": [update]},
                    {"identifier": identify(two), "requirements": [guard], "updates": [update]},
                ]
            }

        done = await here.post("transactions/commit", json=changes("1", metadata["table-uuid"]))
        assert done.status_code == 204, done.text
        refused = await here.post("transactions/commit", json=changes("2", str(uuid.uuid4())))
        assert refused.status_code == 409, refused.text
        for path in (one, two):
            for client in (here, there):
                assert (await load(client, path))["properties"]["a"] == "1"


def identify(path: str) -> dict[str, Any]:
    _, namespace, _, name = path.split("/")
    return {"namespace": [namespace], "name": name}


async def test_writers_through_us_and_one_beside_us_never_lose_each_other(pair: Pair) -> None:
    async with pair.through() as here, pair.directly() as there:
        path, _ = await make_table(here)

        async def write(client: httpx.AsyncClient, first: int) -> list[int]:
            done: list[int] = []
            number = first
            while len(done) < 4:
                metadata = await load(client, path)
                parent = metadata.get("refs", {}).get("main", {}).get("snapshot-id")
                answer = await client.post(path, json=append(metadata, number, parent))
                if answer.status_code == 200:
                    done.append(number)
                else:
                    assert answer.status_code == 409, answer.text
                number += 1
            return done

        told = await asyncio.gather(write(here, 1_000), write(here, 2_000), write(there, 3_000))

        found = await load(there, path)
        assert {each["snapshot-id"] for each in found["snapshots"]} == {n for each in told for n in each}
        assert (await load(here, path))["snapshots"] == found["snapshots"]


@pytest.mark.parametrize("is_polite", [False, True], ids=["reset", "gone"])
async def test_a_lost_answer_is_one_effect_and_answered(pair: Pair, is_polite: bool) -> None:
    async with pair.through() as here, pair.directly() as there:
        path, metadata = await make_table(here)
        pair.proxy.add(LoseAnswer(is_polite=is_polite), when=is_mutation)

        answer = await here.post(path, json=append(metadata, 17))

        pair.proxy.clear()
        assert answer.status_code == 200, answer.text
        assert len((await load(there, path))["snapshots"]) == 1


class Sent(NamedTuple):
    """A request that is repeated after a death."""

    method: str
    path: str
    body: Any
    headers: dict[str, str]

    async def send(self, client: httpx.AsyncClient) -> httpx.Response:
        return await client.request(self.method, self.path, json=self.body, headers=self.headers)


def keyed(method: str, path: str, body: Any = None) -> Sent:
    return Sent(method, path, body, {"idempotency-key": str(uuid.uuid4())})


async def test_a_killed_server_leaves_one_effect(pair: Pair) -> None:
    mine = {"action": "set-properties", "updates": {"mine": "1"}}
    theirs = {"action": "set-properties", "updates": {"mine": "theirs"}}
    async with pair.through() as here, pair.directly() as there:
        path, metadata = await make_table(here)
        gone, _ = await make_table(here)
        namespace = path.partition("/tables/")[0]
        table, view = fresh("made"), fresh("v")
        sql = version_of("SELECT 1 AS id")
        requests = [
            keyed("POST", path, {"requirements": [], "updates": [mine]}),
            keyed("POST", f"{namespace}/tables", {"name": table, "schema": SCHEMA}),
            keyed(
                "POST",
                f"{namespace}/views",
                {"name": view, "schema": SCHEMA, "view-version": sql, "properties": {}},
            ),
            keyed("DELETE", gone),
        ]
        pair.proxy.add(LoseAnswer(hangs=True), when=is_mutation, times=len(requests))
        sent = [asyncio.create_task(each.send(here)) for each in requests]
        effects = [(f"{namespace}/tables/{table}", 200), (f"{namespace}/views/{view}", 200), (gone, 404)]
        async with asyncio.timeout(60):
            # The remote is another process: nothing tells when it is done but looking.
            while "mine" not in (await load(there, path))["properties"]:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            for found, status in effects:
                while (await there.get(found)).status_code != status:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        pair.near.process.kill9()
        assert all(
            isinstance(each, httpx.HTTPError) for each in await asyncio.gather(*sent, return_exceptions=True)
        )
        pair.proxy.clear()
        made = (await load(there, effects[0][0]))["table-uuid"]
        # Somebody else comes between: a second effect would be seen.
        assert (await there.post(path, json={"requirements": [], "updates": [theirs]})).status_code == 200
    await pair.near.process.restart()

    async with pair.through() as here, pair.directly() as there:
        for request in requests:
            for is_replayed in (False, True):
                again = await request.send(here)
                assert again.status_code in (200, 204), again.text
                assert ("idempotency-replayed" in again.headers) is is_replayed
        for found, status in effects:
            assert (await here.get(found)).status_code == status
        assert (await load(there, path))["properties"]["mine"] == "theirs"
        assert (await load(here, path))["properties"]["mine"] == "theirs"
        assert (await load(here, path))["table-uuid"] == metadata["table-uuid"]
        assert (await load(here, effects[0][0]))["table-uuid"] == made
