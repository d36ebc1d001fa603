"""The catalog as a worker sees it over HTTP, held against a catalog by script."""

import json
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.client.api import ApiClient
from cynosure.client.http import HttpClient
from cynosure.common.clock import SystemClock
from cynosure.common.delegated.payload import TableIdentity
from cynosure.common.errors import BadInput, Conflict, NotFound, Unavailable
from cynosure.delegation.access_http import CatalogOverHttp
from cynosure.delegation.jobs.port import JobFailed
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.testing.s3_servers import VARIABLES, parse_s3_server
from cynosure.testing.small_delegation import make_order

pytestmark = pytest.mark.anyio

OURS = "/api/catalog/cynosure/v1/lake"
PLACE = "s3://bucket/lake/t"
KEYS = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c"}
TASK = make_order()


def tombstone(**changes: Any) -> dict[str, Any]:
    return {
        "entity-id": "7001",
        "state": "restorable",
        "location": PLACE,
        "places": [PLACE, "s3://bucket/elsewhere/t"],
        "table-uuid": "u-1",
        "metadata-location": f"{PLACE}/metadata/v1.json",
        "metadata": {"table-uuid": "u-1", "location": PLACE, "format-version": 2},
        "config": {"s3.endpoint": "http://s3:9000", "client.region": "us-east-1"},
        "storage-credentials": [{"prefix": PLACE, "config": KEYS}],
        **changes,
    }


class Scripted:
    """Answers by path; remembers what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {}
        self.asked: list[httpx.Request] = []

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        status, body = self.answers.get(f"{request.method} {request.url.path}", (404, {}))
        if callable(body):
            body = body()
        if status >= 400:
            body = {"error": {"message": "No. Mend it.", "type": "X", "code": status}}
        return httpx.Response(status, content=json.dumps(body))


class MovedClock(SystemClock):
    """Of the machine, and as much later as a test says."""

    later_ms = 0

    def now_us(self) -> int:
        return super().now_us() + self.later_ms * 1_000


@pytest.fixture
async def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
async def catalog(scripted: Scripted, clock: MovedClock, tmp_path: Path) -> AsyncIterator[CatalogOverHttp]:
    transport = httpx.MockTransport(scripted)
    async with HttpClient("http://catalog", clock=clock, rng=random.Random(1), transport=transport) as http:
        yield CatalogOverHttp(
            ApiClient(http, realm="default"),
            storage=StorageSettings(),
            file_locations=(f"file://{tmp_path}/warehouse",),
            clock=clock,
        )


async def test_a_tombstone_is_opened_with_credentials_that_are_asked_for(catalog, scripted) -> None:
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (200, tombstone())

    opened = await catalog.open_tombstone(TASK)

    facts = opened.facts
    assert (facts.entity_id, facts.table_uuid, facts.location) == ("7001", "u-1", PLACE)
    assert [place.text for place in facts.places] == [PLACE, "s3://bucket/elsewhere/t"]
    assert facts.metadata["format-version"] == 2
    [asked] = scripted.asked
    assert asked.headers["X-Iceberg-Access-Delegation"] == "vended-credentials"
    assert asked.headers["Polaris-Realm"] == "default"


async def test_newer_credentials_keep_what_came_with_the_table(catalog, scripted) -> None:
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (200, tombstone())
    newer = {**KEYS, "s3.session-token": "d", "s3.session-token-expires-at-ms": "9000"}
    scripted.answers[f"GET {OURS}/tombstones/7001/credentials"] = (
        200,
        {"storage-credentials": [{"prefix": PLACE, "config": newer}]},
    )

    files = await (await catalog.open_tombstone(TASK)).client_files()

    assert files.properties == {"s3.endpoint": "http://s3:9000", "client.region": "us-east-1", **newer}
    assert files.expires_ms == 9000
    assert "d" not in repr(files).replace("ClientFiles", "")


@pytest.mark.parametrize(
    "changes",
    [
        {"storage-credentials": [], "config": {}},
        {"storage-credentials": [], "config": {"s3.remote-signing-enabled": "true"}},
        {"storage-credentials": [{"prefix": PLACE, "config": {"s3.region": "x"}}]},
    ],
)
async def test_a_storage_without_credentials_is_a_failure_with_a_fix(catalog, scripted, changes) -> None:
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (200, tombstone(**changes))

    with pytest.raises(JobFailed) as failed:
        await catalog.open_tombstone(TASK)

    assert (failed.value.code, failed.value.status) == ("CREDENTIAL_VENDING_FAILED", 502)
    assert "token service" in failed.value.fix


@pytest.mark.parametrize("status", [401, 403])
async def test_a_catalog_that_refuses_the_service_is_a_failure_with_a_fix(catalog, scripted, status) -> None:
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (status, None)

    with pytest.raises(JobFailed) as failed:
        await catalog.open_tombstone(TASK)

    assert (failed.value.code, failed.value.status) == ("CREDENTIAL_VENDING_FAILED", 502)
    assert "cynosure delegation init" in failed.value.fix


async def test_troubles_of_the_catalog_pass_and_answers_do_not(catalog, scripted) -> None:
    with pytest.raises(NotFound):
        await catalog.open_tombstone(TASK)
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (500, None)
    with pytest.raises(Unavailable):
        await catalog.open_tombstone(TASK)
    scripted.answers[f"POST {OURS}/tombstones/7001/purging"] = (409, None)
    with pytest.raises(Conflict):
        await catalog.begin_purging(TASK)
    scripted.answers[f"POST {OURS}/tombstones/7001/purging"] = (200, {"state": "purging"})
    await catalog.begin_purging(TASK)
    assert json.loads(scripted.asked[-1].content) == {"task-id": TASK.task_id}
    scripted.answers[f"POST {OURS}/tombstones/7001/ended"] = (202, {})
    await catalog.tell(TASK, TASK.task_id)
    assert scripted.asked[-1].url.path.endswith("/ended")


async def test_local_files_are_touched_below_the_directories_of_the_settings_only(
    catalog, scripted, tmp_path: Path
) -> None:
    inside, outside = (f"file://{tmp_path}/{name}" for name in ("warehouse/t", "other/t"))
    nothing = {"config": {}, "storage-credentials": []}
    given = tombstone(location=inside, places=[inside], **nothing)
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (200, given)
    opened = await catalog.open_tombstone(TASK)
    await opened.files.write(Location.parse(f"{inside}/f"), b"x")
    assert (await opened.client_files()).properties == {}

    for places in ([outside], [inside, outside]):
        scripted.answers[f"GET {OURS}/tombstones/7001"] = (200, {**given, "places": places})
        with pytest.raises(JobFailed) as refused:
            await catalog.open_tombstone(TASK)
        assert "delegation.service.file_locations" in refused.value.fix
    around = [f"file://{tmp_path}/warehouse/../other/t"]
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (200, {**given, "places": around})
    with pytest.raises(BadInput):
        await catalog.open_tombstone(TASK)


async def test_a_table_is_opened_with_all_places_that_its_properties_name(catalog, scripted) -> None:
    metadata = {
        "table-uuid": "u-2",
        "location": PLACE,
        "properties": {"write.data.path": "s3://bucket/data/t", "write.metadata.path": f"{PLACE}/meta"},
    }
    path = "/api/catalog/v1/lake/namespaces/a%1Fb/tables/t%2Fx"
    order = make_order(table=TableIdentity("7001", "lake", ("a", "b"), "t/x"))
    loaded = {
        "metadata": metadata,
        "metadata-location": "m",
        "storage-credentials": [{"prefix": PLACE, "config": KEYS}],
    }
    scripted.answers["GET /api/catalog/v1/lake/namespaces/a\x1fb/tables/t/x"] = (200, loaded)
    opened = await catalog.open_table(order)

    assert scripted.asked[-1].url.raw_path.decode() == path
    assert [each.text for each in opened.facts.places] == [PLACE, "s3://bucket/data/t"]
    assert (opened.facts.entity_id, opened.facts.table_uuid) == ("7001", "u-2")


async def test_dropped_tables_whose_places_overlap_are_opened(catalog, scripted) -> None:
    def dropped(number: str, location: str, **more: Any) -> dict[str, Any]:
        return {"id": number, "kind": "table", "location": location, **more}

    pages = [
        dropped("1", f"{PLACE}/below"),
        dropped("2", "s3://bucket/lake/other"),
        dropped("3", "s3://bucket/x", claims=["s3://bucket/lake"]),
        {"id": "4", "kind": "view", "location": PLACE},
    ]
    scripted.answers[f"GET {OURS}/dropped"] = (200, {"dropped": pages})
    for number in ("1", "3"):
        scripted.answers[f"GET {OURS}/dropped/{number}"] = (200, tombstone(**{"entity-id": number}))

    found = await catalog.list_overlapping_dropped(TASK, [Location.parse(PLACE)])

    assert [each.facts.entity_id for each in found] == ["1", "3"]


@pytest.mark.s3
async def test_credentials_of_seconds_are_renewed_for_as_long_as_the_work_takes(
    catalog, scripted, clock
) -> None:
    """They say themselves when they end; they are asked for again before that, and not for every request."""
    server = parse_s3_server("minio", os.environ[VARIABLES["minio"]])
    place = server.fresh_location("short")

    def credentials() -> list[dict[str, Any]]:
        ends_ms = clock.now_us() // 1_000 + 100_000
        keys = {
            "s3.access-key-id": server.access_key_id,
            "s3.secret-access-key": server.secret_access_key,
            "s3.session-token": "",
            "s3.session-token-expires-at-ms": str(ends_ms),
        }
        return [{"prefix": place, "config": keys}]

    config = {"s3.endpoint": server.endpoint, "client.region": server.region, "s3.path-style-access": "true"}
    given = tombstone(location=place, places=[place], config=config)
    scripted.answers[f"GET {OURS}/tombstones/7001"] = (200, given)
    path = f"{OURS}/tombstones/7001/credentials"
    scripted.answers[f"GET {path}"] = (200, lambda: {"storage-credentials": credentials()})
    given["storage-credentials"] = credentials()
    files = (await catalog.open_tombstone(TASK)).files

    for number in range(9):
        await files.write(Location.parse(f"{place}/{number}"), b"x")
        if number in (2, 5):
            clock.later_ms += 70_000
    found = [each.location async for each in files.list(Location.parse(place))]
    await files.delete_many(found)

    assert len(found) == 9
    renewed = [each for each in scripted.asked if each.url.path == path]
    # Once for each time that most of a life was over, and not for every request.
    assert len(renewed) == 2
