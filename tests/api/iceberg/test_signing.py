from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.common.secrets import Secret
from cynosure.storage.config import S3Keys, S3Storage, S3Sts
from cynosure.testing.s3_servers import S3Server
from cynosure.testing.small_catalog import ROOT

pytestmark = pytest.mark.anyio

CATALOG = "http://test/api/catalog/v1/signed"
ROUTE = f"{CATALOG}/namespaces/ns/tables/t/sign"


@pytest.fixture
async def table_url(
    client: httpx.AsyncClient,
    directory: Directory,
    plain_s3_server: S3Server,
    schema: dict[str, object],
) -> AsyncIterator[str]:
    """Where the files of a table are, for the store's clients."""
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
    await client.post(f"{CATALOG}/namespaces", json={"namespace": ["ns"]})
    made = await client.post(
        f"{CATALOG}/namespaces/ns/tables", json={"name": "t", "schema": schema, "location": f"{base}/t"}
    )
    assert made.status_code == 200, made.text
    yield f"{plain_s3_server.endpoint}/{base.removeprefix('s3://')}/t"
    opened = await directory.open(ROOT.realm, "signed")
    await opened.files.delete_many([each.location async for each in opened.files.list(opened.base)])


def wanted(uri: str, **more: Any) -> dict[str, Any]:
    return {"region": "us-east-1", "method": "GET", "uri": uri, "headers": {}, **more}


async def test_a_signed_request_is_answered_by_the_store(client: httpx.AsyncClient, table_url: str) -> None:
    body = wanted(f"{table_url}/a.txt", method="PUT", headers={"Content-Type": ["text/plain"]}, provider="s3")
    put = await client.post(ROUTE, json={**body, "properties": {"any": "thing"}})
    get = await client.post(ROUTE, json=wanted(f"{table_url}/a.txt"))

    assert put.status_code == get.status_code == 200, put.text
    assert put.json().keys() == {"uri", "headers"}
    async with httpx.AsyncClient(timeout=60) as store:
        sent = await store.put(put.json()["uri"], headers=joined(put), content=b"rows")
        got = await store.get(get.json()["uri"], headers=joined(get))
    assert (sent.status_code, got.status_code, got.content) == (200, 200, b"rows")


def joined(answer: httpx.Response) -> dict[str, str]:
    return {name: ", ".join(values) for name, values in answer.json()["headers"].items()}


async def test_no_client_may_keep_a_signature(client: httpx.AsyncClient, table_url: str) -> None:
    for method in ("GET", "HEAD", "DELETE"):
        answer = await client.post(ROUTE, json=wanted(f"{table_url}/a", method=method))

        assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"provider": "gcs"}, "provider"),
        ({"method": "TRACE"}, "method"),
        ({"headers": {"a": "b"}}, "headers"),
        ({"headers": {"x-amz-acl": ["public-read"]}}, "headers.x-amz-acl"),
        ({"uri": "https://elsewhere.example/a"}, "uri"),
        ({"uri": 1}, "uri"),
    ],
)
async def test_a_request_that_is_not_signed_names_the_field(
    client: httpx.AsyncClient, table_url: str, change: dict[str, Any], field: str
) -> None:
    answer = await client.post(ROUTE, json={**wanted(f"{table_url}/a"), **change})

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "BadRequestException"
    assert field in answer.json()["error"]["message"]


async def test_what_leaves_the_table_is_forbidden(client: httpx.AsyncClient, table_url: str) -> None:
    answer = await client.post(ROUTE, json=wanted(f"{table_url}2/a"))

    assert answer.status_code == 403
    assert answer.json()["error"]["type"] == "ForbiddenException"


async def test_bulk_deletions_need_their_body(client: httpx.AsyncClient, table_url: str) -> None:
    bucket = "/".join(table_url.split("/")[:4])
    answer = await client.post(ROUTE, json=wanted(f"{bucket}?delete", method="POST"))

    assert answer.status_code == 400
    assert "body" in answer.json()["error"]["message"]


async def test_nothing_is_signed_for_a_missing_table(client: httpx.AsyncClient, table_url: str) -> None:
    answer = await client.post(ROUTE.replace("/t/", "/missing/"), json=wanted(f"{table_url}/a"))

    assert answer.status_code == 404
