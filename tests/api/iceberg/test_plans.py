"""Scan planning over HTTP: the shapes of the protocol, and what is refused how."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.settings import CatalogSettings, PlanningSettings
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import S3Keys, S3Storage, S3Sts
from cynosure.storage.location import Location
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.small_api import open_client
from cynosure.testing.small_catalog import ROOT, directory_on, make_catalog, open_directory_in
from tests.catalog.planning.scans import Scanned, make_scanned

pytestmark = pytest.mark.anyio

ErrorOf = Callable[[httpx.Response], tuple[int, str]]
TABLE = "namespaces/ns/tables/t"
FEW = CatalogSettings(planning=PlanningSettings(page_files=2))
JAVA = {"X-Client-Version": "Apache Iceberg 1.12.0 (commit 0123456)"}


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path, catalog_settings=FEW) as opened:
        catalog = await make_catalog(opened, tmp_path, "lake")
        await create_namespace(catalog, ROOT, ("ns",), {})
        yield opened


@pytest.fixture
async def scanned(directory: Directory) -> Scanned:
    made = await make_scanned(await directory.open(DEFAULT_REALM, "lake"))
    await made.commit(*[[made.file(f"{at}-{each}", at, at + 9) for each in range(2)] for at in range(3)])
    await made.commit(deletes=[made.delete_file("d")], operation="delete")
    return made


async def post(client: httpx.AsyncClient, path: str = "plan", **body: Any) -> httpx.Response:
    sent = {name.replace("_", "-"): value for name, value in body.items()}
    return await client.post(f"{TABLE}/{path}", json=sent)


async def test_a_plan_is_told_in_pages_of_files_and_tasks(
    client: httpx.AsyncClient, scanned: Scanned
) -> None:
    first = (await post(client)).json()

    assert first["status"] == "completed"
    assert isinstance(first["plan-id"], str)
    found = [each["data-file"]["file-path"] for each in first["file-scan-tasks"]]
    assert len(first["plan-tasks"]) == 2
    for task in first["plan-tasks"]:
        page = (await post(client, "tasks", plan_task=task)).json()
        assert "status" not in page
        assert len(page["delete-files"]) == 1
        assert [each["delete-file-references"] for each in page["file-scan-tasks"]] == [[0], [0]]
        found += [each["data-file"]["file-path"] for each in page["file-scan-tasks"]]
    assert sorted(found) == sorted(scanned.path(f"{at}-{each}") for at in range(3) for each in range(2))

    again = (await client.get(f"{TABLE}/plan/{first['plan-id']}")).json()
    assert again["status"] == "completed"
    assert again["file-scan-tasks"] == first["file-scan-tasks"]
    assert (await client.delete(f"{TABLE}/plan/{first['plan-id']}")).status_code == 204
    assert (await client.get(f"{TABLE}/plan/{first['plan-id']}")).json() == {"status": "cancelled"}


async def test_null_is_as_good_as_nothing_and_a_key_is_taken(
    client: httpx.AsyncClient, scanned: Scanned
) -> None:
    body = dict.fromkeys(
        (
            "snapshot-id",
            "select",
            "filter",
            "min-rows-requested",
            "case-sensitive",
            "use-snapshot-schema",
            "start-snapshot-id",
            "end-snapshot-id",
            "stats-fields",
        )
    )
    answers = [
        await client.post(f"{TABLE}/plan", json=body, headers={"Idempotency-Key": "one-key"}) for _ in "ab"
    ]

    assert [each.status_code for each in answers] == [200, 200]
    assert len(answers[0].json()["file-scan-tasks"]) == 2


async def test_iceberg_for_java_gets_bounds_as_it_reads_them(
    client: httpx.AsyncClient, scanned: Scanned
) -> None:
    body = {"stats-fields": ["id"]}
    plain = (await client.post(f"{TABLE}/plan", json=body)).json()
    java = (await client.post(f"{TABLE}/plan", json=body, headers=JAVA)).json()
    page = await client.post(f"{TABLE}/tasks", json={"plan-task": java["plan-tasks"][0]}, headers=JAVA)

    assert plain["file-scan-tasks"][0]["data-file"]["lower-bounds"]["values"] == [0]
    assert java["file-scan-tasks"][0]["data-file"]["lower-bounds"]["values"] == ["0000000000000000"]
    assert page.json()["file-scan-tasks"][0]["data-file"]["lower-bounds"]["values"] == ["0100000000000000"]


async def test_what_does_not_fit_is_refused_by_name(
    client: httpx.AsyncClient, scanned: Scanned, error_of: ErrorOf
) -> None:
    for body, named in (
        ({"snapshot-id": 99}, "snapshot-id"),
        ({"snapshot-id": "x"}, "snapshot-id"),
        ({"snapshot-id": 2**63}, "snapshot-id"),
        ({"select": ["nope"]}, "nope"),
        ({"filter": {"type": "eq", "term": "nope", "value": 1}}, "nope"),
        ({"filter": 3}, "filter"),
        ({"start-snapshot-id": 1}, "end-snapshot-id"),
        ([], "body"),
    ):
        answer = await client.post(f"{TABLE}/plan", json=body)
        assert error_of(answer) == (400, "BadRequestException")
        assert named in answer.json()["error"]["message"]


async def test_a_filter_of_any_depth_gets_an_answer(
    client: httpx.AsyncClient, scanned: Scanned, error_of: ErrorOf
) -> None:
    for depth in (401, 10_000):
        deep = b'{"filter":' + b'{"type":"not","child":' * depth + b"true" + b"}" * (depth + 1)
        answer = await client.post(
            f"{TABLE}/plan", content=deep, headers={"content-type": "application/json"}
        )
        assert error_of(answer) == (400, "BadRequestException")
        assert "filter" in answer.json()["error"]["message"]
        assert "Nest less" in answer.json()["error"]["message"]


async def test_what_nobody_was_given_is_missing_by_its_own_name(
    client: httpx.AsyncClient, scanned: Scanned, error_of: ErrorOf
) -> None:
    assert error_of(await client.get(f"{TABLE}/plan/x")) == (404, "NoSuchPlanIdException")
    assert error_of(await client.delete(f"{TABLE}/plan/x")) == (404, "NoSuchPlanIdException")
    assert error_of(await post(client, "tasks", plan_task="x")) == (404, "NoSuchPlanTaskException")
    assert error_of(await post(client, "tasks")) == (400, "BadRequestException")
    missing = await client.post("namespaces/ns/tables/none/plan", json={})
    assert error_of(missing) == (404, "NoSuchTableException")


@pytest.fixture
async def signed(directory: Directory, plain_s3_server: S3Server) -> AsyncIterator[Scanned]:
    """A table in a store that gives no credentials."""
    base = plain_s3_server.fresh_location()
    storage = S3Storage(
        allowed_locations=(base,),
        endpoint=plain_s3_server.endpoint,
        region=plain_s3_server.region,
        path_style_access=True,
        sts=S3Sts(is_unavailable=True),
    )
    keys = S3Keys(plain_s3_server.access_key_id, Secret(plain_s3_server.secret_access_key))
    wanted = NewCatalog(name="signed", base_location=base, storage=storage, storage_keys=keys)
    await create_catalog(directory, ROOT, wanted)
    catalog = await directory.open(DEFAULT_REALM, "signed")
    await create_namespace(catalog, ROOT, ("ns",), {})
    made = await make_scanned(catalog)
    await made.commit([made.file("a", 0, 9), made.file("b", 10, 19)])
    for name in ("a", "b"):
        await catalog.files.write(Location.parse(made.path(name)), name.encode())
    yield made
    await catalog.files.delete_many([each.location async for each in catalog.files.list(catalog.base)])


async def test_a_client_reads_what_was_planned_by_signatures_for_the_plan(
    client: httpx.AsyncClient, signed: Scanned, plain_s3_server: S3Server, error_of: ErrorOf
) -> None:
    catalog = "http://test/api/catalog/"
    body = {"filter": {"type": "lt", "term": "id", "value": 5}}
    planned = await client.post(
        f"{catalog}v1/signed/{TABLE}/plan",
        json=body,
        headers={"X-Iceberg-Access-Delegation": "remote-signing"},
    )
    assert planned.headers["cache-control"] == "no-store"
    (credential,) = planned.json()["storage-credentials"]
    assert credential["prefix"] == signed.location
    assert credential["config"]["s3.remote-signing-enabled"] == "true"
    # Relative to the address of the catalog, as clients take it.
    route = catalog + credential["config"]["s3.signer.endpoint"]

    def wanted(name: str) -> dict[str, Any]:
        uri = f"{plain_s3_server.endpoint}/{signed.path(name).removeprefix('s3://')}"
        return {"region": "us-east-1", "method": "GET", "uri": uri, "headers": {}}

    given = await client.post(route, json=wanted("a"))
    refused = await client.post(route, json=wanted("b"))

    assert given.headers["cache-control"] == "no-cache"
    headers = {name: ", ".join(values) for name, values in given.json()["headers"].items()}
    async with httpx.AsyncClient(timeout=60) as store:
        assert (await store.get(given.json()["uri"], headers=headers)).content == b"a"
    assert error_of(refused) == (403, "ForbiddenException")
    assert signed.path("b") in refused.json()["error"]["message"]


async def test_a_plan_that_takes_long_is_submitted_and_what_went_wrong_is_told_later(
    directory: Directory, scanned: Scanned, tmp_path: Path
) -> None:
    for each in scanned.manifests:
        scanned.local(each.path).write_bytes(b"x" * each.length)
    at_once = CatalogSettings(planning=PlanningSettings(wait=timedelta(0)))
    async with (
        directory_on(directory.shared.persistence, tmp_path, at_once) as other,
        open_client(other) as client,
    ):
        submitted = (await post(client)).json()
        assert submitted.keys() == {"status", "plan-id"}
        answer = submitted
        while answer["status"] == "submitted":
            answer = (await client.get(f"{TABLE}/plan/{submitted['plan-id']}")).json()

    assert answer["status"] == "failed"
    assert answer["error"]["type"] == "IllegalArgumentException"
    assert answer["error"]["code"] == 400
