"""Token services and object stores that hang, fail, lie and go away; servers that are killed meanwhile."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import pytest

from cynosure.testing.admin import Admin
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.catalog_storm.clients import SCHEMA
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import CutRequest, Delay, Fault, LoseAnswer, Respond, http_request
from cynosure.testing.harness.processes import Processes
from cynosure.testing.metadata_files import write_metadata
from cynosure.testing.s3_servers import S3Server, find_s3_servers
from tests.names import unique

from .lakes import STAGED, VENDED, Lake, creation, lake_on, problems_of
from .phoenix import until

pytestmark = [pytest.mark.anyio, pytest.mark.s3]

# So short that a test can outwait them, and long enough for a busy machine to do something else meanwhile.
IMPATIENT = {
    "CYNOSURE_STORAGE__CONNECT_TIMEOUT": "1s",
    "CYNOSURE_STORAGE__OPERATION_TIMEOUT": "8s",
    "CYNOSURE_STORAGE__RETRIES": "0",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    """One for all tests that do not kill it; each has catalogs of its own."""
    directory = tmp_path_factory.mktemp("faults")
    with Processes(directory) as processes:
        yield asyncio.run(start_catalog_server(processes, directory, env=IMPATIENT))


@pytest.fixture
def store() -> S3Server:
    """Whose own files are reached without its token service."""
    return find_s3_servers()["minio"]


@pytest.fixture
def store_with_role() -> S3Server:
    """Whose own files are reached in a role, which the token service gives."""
    return find_s3_servers()["seaweedfs"]


@pytest.fixture
async def proxy(store: S3Server, fault_proxy: Callable[[str], Any]) -> FaultProxy:
    """In front of the store, or of its token service."""
    return await fault_proxy(store.endpoint)


# --- the token service -----------------------------------------------------------------------------

GARBAGE = b"<html><body>It works!</body></html>"
FAULTS: dict[str, tuple[Fault, bool]] = {
    "500": (Respond(500, b"<ErrorResponse/>"), False),
    "503": (Respond(503, b"busy"), False),
    "closes": (CutRequest(after_bytes=100), False),
    "garbage": (Respond(200, GARBAGE), True),
    "huge": (Respond(200, b"<a>" + b"x" * 2_000_000), False),
    "unpacks to much": (Respond(200, b"\x1f\x8b garbage", (("content-encoding", "gzip"),)), True),
}
"""Each with whether it is taken for a refusal."""


@pytest.mark.parametrize("name", FAULTS)
async def test_a_token_service_that_fails_takes_credentials_from_nobody_who_has_some(
    server: CatalogServer, store: S3Server, proxy: FaultProxy, name: str
) -> None:
    """I58: others have their requests signed, are told so at once, and get credentials when it is back."""
    fault, is_refusal = FAULTS[name]
    catalog = unique(f"fails-{name.replace(' ', '-')}")
    async with lake_on(server, store, catalog, "known", "cold", "later", stsEndpoint=proxy.url) as lake:
        known = await lake.key_of("known")
        assert known is not None

        proxy.add(fault, times=None)
        cold = await lake.key_of("cold")
        refreshed = await lake.refresh("later")
        during = await lake.key_of("known")
        committed = await lake.set("known", during="1")
        proxy.clear()
        back = await lake.key_of("known" if is_refusal else "cold")

        assert cold is None
        assert during == known
        assert committed.status_code == 200
        if is_refusal:
            assert refreshed.json() == {"storage-credentials": []}
        else:
            # A client with credentials that still work is told to come again.
            assert refreshed.status_code == 503, refreshed.text
            assert "retry-after" in refreshed.headers
        if not is_refusal and back is None:
            await until_vended(lake, "cold")
        assert "Traceback" not in server.process.log()


async def until_vended(lake: Lake, table: str) -> str:
    async with asyncio.timeout(30):
        while (key := await lake.key_of(table)) is None:  # noqa: ASYNC110 - another process has no event
            await asyncio.sleep(0.1)
    return key


async def test_a_token_service_that_hangs_holds_up_nobody_but_who_asked_first(
    server: CatalogServer, store: S3Server, proxy: FaultProxy
) -> None:
    """I58: neither other tables, nor other catalogs, nor those who ask after it was found out."""
    async with (
        lake_on(server, store, unique("hangs"), "known", "a", "b", "c", stsEndpoint=proxy.url) as lake,
        lake_on(server, store, unique("beside"), "t") as beside,
    ):
        known = await lake.key_of("known")
        hang = proxy.add(LoseAnswer(hangs=True), times=None)
        waiting = [asyncio.create_task(lake.key_of("a")) for _ in range(8)]
        await until(lambda: hang.hits > 0)

        others = await asyncio.gather(
            lake.key_of("known"), beside.key_of("t"), lake.load("b", {}), lake.set("b", x="1")
        )
        assert not any(task.done() for task in waiting)
        assert others[0] == known
        assert others[1] is not None
        assert [each.status_code for each in others[2:]] == [200, 200]

        assert await asyncio.gather(*waiting) == [None] * 8
        assert hang.hits == 1, "a crowd costs one request"
        # It is known to hang: these do not wait to find it out for themselves.
        assert [await lake.key_of(name) for name in ("a", "b", "c")] == [None] * 3
        assert hang.hits <= 2

        proxy.clear()
        for name in ("a", "b"):
            await until_vended(lake, name)


async def test_a_token_service_that_is_slow_is_waited_for(
    server: CatalogServer, store: S3Server, proxy: FaultProxy
) -> None:
    async with lake_on(server, store, unique("slow"), "t", stsEndpoint=proxy.url) as lake:
        slow = proxy.add(Delay(answer_s=0.5), times=None)

        keys = set(await asyncio.gather(*(lake.key_of("t") for _ in range(8))))

        assert len(keys) == 1
        assert None not in keys
        assert slow.hits == 1


async def test_a_server_in_a_role_goes_on_with_what_it_was_given(
    server: CatalogServer, store_with_role: S3Server, fault_proxy: Callable[[str], Any]
) -> None:
    """I2: without a session of its own it changes nothing; with one it needs no service to commit."""
    sts: FaultProxy = await fault_proxy(store_with_role.endpoint)
    async with lake_on(server, store_with_role, unique("role"), stsEndpoint=sts.url) as lake:
        await sts.stop()
        refused = await lake.create("t")
        assert refused.status_code == 503, refused.text
        assert "retry-after" in refused.headers
        assert await lake.names() == []

        await sts.start()
        async with asyncio.timeout(30):
            while (await lake.create("t")).status_code != 200:  # noqa: ASYNC110 - the same
                await asyncio.sleep(0.1)
        await sts.stop()

        assert (await lake.set("t", during="1")).status_code == 200
        assert await lake.key_of("t") is None


# --- the object store ------------------------------------------------------------------------------


async def test_a_store_that_is_away_leaves_nothing_half_done(
    server: CatalogServer, store: S3Server, proxy: FaultProxy
) -> None:
    """I2, I61, I71: creation, staged creation, commit, registration, notification and check of a storage."""
    async with lake_on(
        server, store, unique("away"), "t", endpoint=proxy.url, stsEndpoint=store.endpoint
    ) as lake:
        old = (await lake.create("old")).json()
        assert (await lake.http.delete(lake.url("old"))).status_code == 204
        staged = await lake.create("staged", VENDED, **STAGED)
        assert staged.status_code == 200
        outside = await external_beside(server, lake, proxy, store)
        told = notification("CREATE", "n", f"{outside.base}/n/metadata/v1.metadata.json", 1)
        external = outside.url

        registration = {"name": "old", "metadata-location": old["metadata-location"]}
        await proxy.stop()
        refused = [
            await lake.create("new"),
            await lake.create("new", VENDED),
            await lake.http.post(lake.url("staged"), json=creation(staged)),
            await lake.set("t", during="1"),
            await lake.http.post(f"{lake.catalog.url}/namespaces/ns/register", json=registration),
            await lake.http.post(f"{external}/namespaces/far/tables/n/notifications", json=told),
        ]
        checked = await lake.http.post(
            f"{server.url}/api/management/v1/cynosure/catalogs/{lake.catalog.name}/check-storage", json={}
        )
        names, external_namespaces = await lake.names(), await lake.http.get(f"{external}/namespaces")
        await proxy.start()

        assert [each.status_code for each in refused] == [503] * len(refused), [each.text for each in refused]
        assert all("retry-after" in each.headers for each in refused)
        assert checked.status_code == 200, checked.text
        assert not checked.json()["ok"]
        assert names == ["t"]
        assert external_namespaces.json()["namespaces"] == []
        # All of it can be done once the store is back, the staged one where it was promised.
        made = await lake.http.post(lake.url("staged"), json=creation(staged))
        assert made.status_code == 200, made.text
        assert made.json()["metadata"]["location"] == staged.json()["metadata"]["location"]
        assert (await lake.create("new")).status_code == 200
        again = await lake.http.post(f"{lake.catalog.url}/namespaces/ns/register", json=registration)
        assert again.status_code == 200, again.text
        assert await problems_of(server) == []


async def test_a_store_that_hangs_holds_up_nobody_but_who_needs_it(
    server: CatalogServer, store: S3Server, proxy: FaultProxy
) -> None:
    """I2, I7: a commit waits as long as it may, and is refused whole; reads and other catalogs go on."""
    async with (
        lake_on(server, store, unique("frozen"), "t", endpoint=proxy.url, stsEndpoint=store.endpoint) as lake,
        lake_on(server, store, unique("warm"), "t") as beside,
    ):
        hang = proxy.add(LoseAnswer(hangs=True), when=http_request("PUT"), times=None)
        waiting = asyncio.create_task(lake.set("t", lost="1"))
        await until(lambda: hang.hits > 0)

        loaded, committed = await asyncio.gather(lake.load("t"), beside.set("t", x="1"))
        assert not waiting.done()
        assert (loaded.status_code, committed.status_code) == (200, 200)

        refused = await waiting
        assert refused.status_code == 503, refused.text
        proxy.clear()
        assert (await lake.set("t", back="1")).status_code == 200
        assert "lost" not in (await lake.load("t")).json()["metadata"]["properties"]


class Outside(NamedTuple):
    """An external catalog."""

    url: str
    base: str


async def external_beside(server: CatalogServer, lake: Lake, proxy: FaultProxy, store: S3Server) -> Outside:
    """One on the same store."""
    location, name = store.fresh_location("catalogs"), unique("outside")
    wanted = {
        "type": "EXTERNAL",
        "name": name,
        "properties": {"default-base-location": location},
        "storageConfigInfo": {**store.storage(), "endpoint": proxy.url, "allowedLocations": [location]},
    }
    made = await lake.http.post(f"{server.url}/api/management/v1/catalogs", json={"catalog": wanted})
    assert made.status_code == 201, made.text
    return Outside(f"{server.root}/v1/{name}", location)


def notification(kind: str, table: str, file: str, timestamp: int) -> dict[str, Any]:
    payload = {
        "table-name": table,
        "timestamp": timestamp,
        "table-uuid": str(UUID(int=1)),
        "metadata-location": file,
    }
    return {"notification-type": kind, "payload": payload}


async def test_a_write_whose_answer_is_lost_leaves_no_table_and_no_file(
    server: CatalogServer, store: S3Server, proxy: FaultProxy
) -> None:
    """I29: the file is there, and nobody knows; it goes, at once or with the sweep."""
    async with lake_on(
        server, store, unique("lost"), "t", endpoint=proxy.url, stsEndpoint=store.endpoint
    ) as lake:
        lost = proxy.add(LoseAnswer(), when=http_request("PUT"), times=None)
        created, committed = await lake.create("new"), await lake.set("t", lost="1")
        proxy.clear()

        assert lost.hits >= 2
        assert (created.status_code, committed.status_code) == (503, 503), created.text
        assert await lake.names() == ["t"]
        assert "lost" not in (await lake.load("t")).json()["metadata"]["properties"]
        # Once only, and the answer of the second attempt arrives.
        once = proxy.add(LoseAnswer(), when=http_request("PUT"))
        assert (await lake.set("t", once="1")).status_code in (200, 503)
        assert once.hits == 1
        await server.run_cli("tables", "sweep", lake.catalog.name, "--grace", "0s", "--thorough")
        left = await server.run_cli(
            "tables", "sweep", lake.catalog.name, "--grace", "0s", "--thorough", "--dry-run", "--json"
        )
        assert json.loads(left)["locations"] == []


# --- the server itself is killed -------------------------------------------------------------------


async def test_a_server_that_is_killed_among_notifications_remembers_what_it_took(
    processes: Processes, tmp_path: Path
) -> None:
    """I4, I71: what was taken is refused as outdated afterwards; what was not may be sent again."""
    server = await start_catalog_server(processes, tmp_path)
    outside = Outside(f"{server.root}/v1/outside", (server.warehouse / "outside").as_uri())
    storage = {"storageType": "FILE", "allowedLocations": [outside.base]}
    catalog = {
        "type": "EXTERNAL",
        "name": "outside",
        "properties": {"default-base-location": outside.base},
        "storageConfigInfo": storage,
    }
    names = [f"t{number}" for number in range(4)]
    files = {
        name: write_metadata(server.warehouse / "outside" / name, str(UUID(int=1)), SCHEMA) for name in names
    }
    taken = dict.fromkeys(names, 0)

    async def tell(http: httpx.AsyncClient, name: str, timestamp: int) -> int:
        kind = "DROP" if timestamp % 3 == 0 else "UPDATE"
        url = f"{outside.url}/namespaces/far/tables/{name}/notifications"
        return (await http.post(url, json=notification(kind, name, files[name], timestamp))).status_code

    async def tell_all(http: httpx.AsyncClient, name: str) -> None:
        for timestamp in range(1, 1 << 20):
            assert await tell(http, name, timestamp) == 204
            taken[name] = timestamp

    async with server.client() as http:
        made = await http.post("/api/management/v1/catalogs", json={"catalog": catalog})
        assert made.status_code == 201, made.text
        await Admin(http).grant_content("outside")
        telling = [asyncio.create_task(tell_all(http, name)) for name in names]
        await until(lambda: min(taken.values()) > 5)
        server.process.kill9()
        ends = await asyncio.gather(*telling, return_exceptions=True)
        assert all(isinstance(end, httpx.TransportError) for end in ends), ends
        await server.process.start()

        for name, timestamp in taken.items():
            assert await tell(http, name, timestamp) == 409
            # Whether the one that was not answered was taken is not known; the one after it is taken.
            assert await tell(http, name, timestamp + 1) in (204, 409)
            assert await tell(http, name, timestamp + 2) == 204
    assert await problems_of(server) == []


async def test_a_server_that_is_killed_between_its_steps_leaves_indexes_that_agree(
    processes: Processes, tmp_path: Path, store: S3Server, proxy: FaultProxy
) -> None:
    """I4, I61, I62: after a reservation, between a creation and its credentials, after a drop."""
    server = await start_catalog_server(processes, tmp_path)
    async with lake_on(server, store, unique("killed"), "gone", stsEndpoint=proxy.url) as lake:
        place = f"{(await lake.load('gone')).json()['metadata']['location']}-data"
        assert (await lake.set("gone", **{"write.data.path": place})).status_code == 200
        assert (await lake.http.delete(lake.url("gone"))).status_code == 204
        staged = await lake.create("staged", VENDED, **STAGED)
        hang = proxy.add(LoseAnswer(hangs=True), times=None)
        creating = asyncio.create_task(lake.create("made", VENDED))
        await until(lambda: hang.hits > 0)

        server.process.kill9()
        with pytest.raises(httpx.TransportError):
            await creating
        proxy.clear()
        await server.process.start()

        assert await lake.names() == ["made"]
        assert (await lake.create("made", VENDED)).status_code == 409
        assert await lake.key_of("made") is not None
        # Staging again gives up what the same principal has reserved for the same table.
        again = await lake.create("staged", VENDED, **STAGED)
        assert again.status_code == 200
        assert (await lake.http.post(lake.url("staged"), json=creation(staged))).status_code in (
            200,
            403,
            409,
        )
        assert await problems_of(server) == []
