"""Policies, grants and places: on two servers with one database, and where answers of it get lost."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.testing.admin import Admin, Grant
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import CutRequest, LoseAnswer
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import Credential, make_credential
from cynosure.testing.s3_servers import S3Server, find_s3_servers

from .lakes import KEY, STAGED, VENDED, Lake, creation, lake_on, problems_of
from .test_lost_answers import moves_a_reference

pytestmark = [pytest.mark.anyio, pytest.mark.s3, pytest.mark.postgres]

READ, WRITE = Grant("TABLE_READ_DATA", ("ns",)), Grant("TABLE_WRITE_DATA", ("ns",))
UNKNOWN = (504, "CommitStateUnknownException")
EMPTY_SHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def store() -> S3Server:
    return find_s3_servers()["minio"]


class Reader(NamedTuple):
    """Somebody who reads a table through one server."""

    lake: Lake
    store: S3Server

    async def load(self) -> dict[str, Any]:
        answer = await self.lake.load("t")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def sign(self) -> int:
        """The answer to a request to have a read of one of the table's files signed."""
        location = (await self.lake.load("t", {})).json()["metadata"]["location"]
        uri = f"{self.store.endpoint}/{location.removeprefix('s3://')}/data/file"
        wanted = {
            "region": self.store.region,
            "method": "GET",
            "uri": uri,
            "headers": {"host": [uri.split("/")[2]], "x-amz-content-sha256": [EMPTY_SHA256]},
        }
        answer = await self.lake.http.post(f"{self.lake.url('t')}/sign", json=wanted)
        return answer.status_code


@asynccontextmanager
async def reader_at(server: CatalogServer, credential: Credential, store: S3Server) -> AsyncIterator[Reader]:
    async with server.client(server.login_as(credential)) as http:
        yield Reader(Lake(server.get("lake"), http), store)


def row_filter(role: str) -> dict[str, Any]:
    content = json.dumps({"enable": True, "filter": "id > 10", "roles": [role]})
    return {"name": "only", "type": "cynosure.row-filter", "content": content}


async def change_storage(lake: Lake, server: CatalogServer, **changed: Any) -> None:
    path = f"{server.url}/api/management/v1/catalogs/lake"
    known = (await lake.http.get(path)).json()
    storage = {**known["storageConfigInfo"], **changed}
    body = {"currentEntityVersion": known["entityVersion"], "storageConfigInfo": storage}
    answer = await lake.http.put(path, json=body)
    assert answer.status_code == 200, answer.text


async def test_what_is_changed_through_one_server_counts_on_the_other_with_the_next_request(
    processes: Processes, postgres_schema_url: str, tmp_path: Path, store: S3Server
) -> None:
    """I34, I54, I55, I60, I61: attached policies, revoked grants, tightened locations, reservations."""
    env = {
        "CYNOSURE_PERSISTENCE__URL": postgres_schema_url,
        "CYNOSURE_KEYRING__FILE": str(tmp_path / "keyring.json"),
    }
    root = make_credential()
    first, second = [
        await start_catalog_server(
            processes, tmp_path, data=tmp_path / name, name=name, credential=root, env=env
        )
        for name in ("first", "second")
    ]
    async with lake_on(first, store, "lake") as lake, second.client() as http:
        elsewhere = store.fresh_location("elsewhere")
        base = (await lake.http.get(f"{first.url}/api/management/v1/catalogs/lake")).json()
        allowed = base["storageConfigInfo"]["allowedLocations"]
        await change_storage(lake, first, allowedLocations=[*allowed, elsewhere])
        assert (await lake.create("t", location=f"{elsewhere}/t")).status_code == 200
        ann = await Admin(http).create_user("ann", "lake", READ, WRITE)
        async with reader_at(first, ann, store) as here, reader_at(second, ann, store) as there:
            # Each server has asked for credentials of its own.
            assert (await here.load())["config"][KEY] != (await there.load())["config"][KEY]
            assert await there.sign() == 200

            # A policy.
            assert (await lake.http.post(lake.policies, json=row_filter("ann_role"))).status_code == 200
            target = {"target": {"type": "namespace", "path": ["ns"]}}
            attached = await lake.http.put(f"{lake.policies}/only/mappings", json=target)
            assert attached.status_code == 204, attached.text
            for reader in (there, here):
                found = await reader.load()
                assert found["read-restrictions"]["required-row-filter"]
                assert KEY not in found["config"]
                assert await reader.sign() == 403
            assert (await lake.http.post(f"{lake.policies}/only/mappings", json=target)).status_code == 204
            assert KEY in (await there.load())["config"]
            assert await there.sign() == 200

            # Locations.
            await change_storage(lake, first, allowedLocations=allowed)
            assert (await there.lake.load("t")).status_code == 403
            assert await there.sign() == 403
            await change_storage(lake, first, allowedLocations=[*allowed, elsewhere])
            assert await there.sign() == 200

            # Rights.
            for grant in (READ, WRITE):
                await Admin(lake_admin(lake, first)).revoke("lake", "ann_catalog_role", grant)
            assert (await there.lake.load("t")).status_code == 403

        # A reservation, redeemed elsewhere, after it was made again.
        other = Lake(second.get("lake"), http)
        for _ in range(2):
            staged = await lake.create("new", VENDED, location=f"{elsewhere}/new", **STAGED)
            assert staged.status_code == 200, staged.text
        assert (await other.create("thief", location=f"{elsewhere}/new/x")).status_code == 403
        made = await other.http.post(other.url("new"), json=creation(staged))
        assert made.status_code == 200, made.text
        assert await problems_of(second) == []


def lake_admin(lake: Lake, server: CatalogServer) -> httpx.AsyncClient:
    lake.http.base_url = httpx.URL(server.url)
    return lake.http


# --- answers of the database that get lost ----------------------------------------------------------

AGAIN = {"stage": 200, "drop and detach": 404}
"""What is also tried without any answer, which takes a commit's whole deadline; and what comes of a second
try, when the first was made."""


class Scene(NamedTuple):
    lake: Lake
    proxy: FaultProxy

    async def send(self, method: str, url: str, body: Any = None, *, headers: Any = None) -> httpx.Response:
        return await self.lake.http.request(method, url, json=body, headers=headers)


async def steps_of(scene: Scene) -> AsyncIterator[tuple[str, Callable[[], Awaitable[httpx.Response]], int]]:
    """One after another, every kind of commit that access to files and policies brought."""
    lake, send = scene.lake, scene.send
    one = f"{lake.policies}/p/mappings"
    to_table = {"target": {"type": "table-like", "path": ["ns", "made"]}}
    policy = {"name": "p", "type": "system.snapshot-expiry", "content": '{"enable":true}'}
    staging = {"name": "made", "schema": SCHEMA_OF, **STAGED}
    yield "stage", lambda: send("POST", lake.url(), staging, headers=VENDED), 200
    staged = await send("POST", lake.url(), staging, headers=VENDED)
    yield "create what was staged", lambda: send("POST", lake.url("made"), creation(staged)), 200
    place = f"{staged.json()['metadata']['location']}-data"
    path = {"requirements": [], "updates": [_set({"write.data.path": place})]}
    yield "claim a place", lambda: send("POST", lake.url("made"), path), 200
    yield "create a policy", lambda: send("POST", lake.policies, policy), 200
    yield "attach", lambda: send("PUT", one, to_table), 204
    yield "detach", lambda: send("POST", one, to_table), 204
    await send("PUT", one, to_table)
    yield "drop and detach", lambda: send("DELETE", f"{lake.policies}/p?detach-all=true"), 204
    generics = f"{lake.policies.removesuffix('policies')}generic-tables"
    generic = {"name": "g", "format": "csv", "base-location": f"{place}-g"}
    yield "create a generic table", lambda: send("POST", generics, generic), 200
    yield "drop a generic table", lambda: send("DELETE", f"{generics}/g"), 204
    yield "drop with claims", lambda: send("DELETE", lake.url("made")), 204


def _set(properties: dict[str, str]) -> dict[str, Any]:
    return {"action": "set-properties", "updates": properties}


SCHEMA_OF = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}


@asynccontextmanager
async def scene_on(
    processes: Processes, url: str, directory: Path, store: S3Server, proxy: FaultProxy, **env: str
) -> AsyncIterator[tuple[Scene, CatalogServer]]:
    server = await start_catalog_server(
        processes, directory, env={"CYNOSURE_PERSISTENCE__URL": proxy.url, **env}
    )
    async with lake_on(server, store, "lake") as lake:
        yield Scene(lake, proxy), server


async def test_no_change_is_refused_because_the_answer_of_the_database_got_lost(
    processes: Processes, postgres_schema_url: str, tmp_path: Path, store: S3Server
) -> None:
    """I1, I3: the database can be asked again, so each is told what was done."""
    async with (
        FaultProxy.to_url(postgres_schema_url) as proxy,
        scene_on(processes, postgres_schema_url, tmp_path, store, proxy) as (scene, server),
    ):
        told: dict[str, int] = {}
        wanted: dict[str, int] = {}
        for fault in (LoseAnswer(), CutRequest(after_bytes=100)):
            async for name, step, status in steps_of(scene):
                rule = proxy.add(fault, when=moves_a_reference)
                told[name], wanted[name] = (await step()).status_code, status
                proxy.clear()
                assert rule.hits == 1, name
            assert told == wanted
        assert await problems_of(server) == []


async def test_a_change_of_which_nobody_knows_whether_it_was_made_is_never_called_refused(
    processes: Processes, postgres_schema_url: str, tmp_path: Path, store: S3Server
) -> None:
    """I1, I3: here each was made, so that making it again finds it, or is harmless."""
    async with (
        FaultProxy.to_url(postgres_schema_url) as proxy,
        scene_on(
            processes, postgres_schema_url, tmp_path, store, proxy,
            CYNOSURE_PERSISTENCE__COMMIT_DEADLINE="1s",
        ) as (scene, server),
    ):  # fmt: skip
        told: dict[str, int] = {}
        async for name, step, status in steps_of(scene):
            if name not in AGAIN:
                assert (await step()).status_code == status
                continue
            proxy.add(LoseAnswer(), when=moves_a_reference, times=None)
            unknown = await step()
            proxy.clear()
            assert (unknown.status_code, unknown.json()["error"]["type"]) == UNKNOWN, unknown.text
            told[name] = (await step()).status_code
        assert told == AGAIN
        assert await problems_of(server) == []
