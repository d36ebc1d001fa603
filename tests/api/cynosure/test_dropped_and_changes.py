import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.common.clock import SystemClock
from cynosure.testing.small_catalog import make_catalog, open_directory_in

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
LAKE, OURS = "/api/catalog/v1/lake", "/api/catalog/cynosure/v1/lake"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with open_directory_in(tmp_path) as directory:
        await make_catalog(directory, tmp_path, "lake")
        routes = [*iceberg_routes(Catalogs(directory)), *cynosure_routes(Catalogs(directory))]
        service = make_service(
            routes, title="t", version="1", clock=SystemClock(), rng=random.Random(1), gate=OperatorGate()
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await client.post(f"{LAKE}/namespaces", json={"namespace": ["a"]})
            await client.post(f"{LAKE}/namespaces/a/tables", json={"name": "t", "schema": SCHEMA})
            yield client


async def test_a_dropped_table_is_listed_and_comes_back(client: httpx.AsyncClient):
    before = await client.get(f"{LAKE}/namespaces/a/tables/t")
    await client.delete(f"{LAKE}/namespaces/a/tables/t")

    (dropped,) = (await client.get(f"{OURS}/dropped")).json()["dropped"]
    assert (dropped["kind"], dropped["namespace"], dropped["name"]) == ("table", ["a"], "t")
    assert dropped["restorable-until-ms"] - dropped["dropped-ms"] == 7 * 86_400_000
    restored = await client.post(f"{OURS}/dropped/{dropped['id']}/restore", json={})

    assert restored.json() == {"kind": "table", "namespace": ["a"], "name": "t"}
    assert (await client.get(f"{LAKE}/namespaces/a/tables/t")).content == before.content
    again = await client.post(f"{OURS}/dropped/{dropped['id']}/restore", json={})
    assert again.status_code == 404


async def test_it_can_come_back_under_another_name(client: httpx.AsyncClient):
    await client.delete(f"{LAKE}/namespaces/a/tables/t")
    (dropped,) = (await client.get(f"{OURS}/dropped")).json()["dropped"]
    answer = await client.post(
        f"{OURS}/dropped/{dropped['id']}/restore", json={"namespace": ["a"], "name": "u"}
    )
    assert answer.json()["name"] == "u"
    assert (await client.head(f"{LAKE}/namespaces/a/tables/u")).status_code == 204


@pytest.mark.parametrize(
    ("drop_id", "body", "status"),
    [
        ("0", {}, 404),
        ("x", {}, 400),
        ("9" * 30, {}, 400),
        ("0", {"name": "u"}, 400),
        ("0", {"unknown": 1}, 400),
    ],
)
async def test_what_cannot_be_restored_is_refused(
    client: httpx.AsyncClient, drop_id: str, body: dict, status: int
):
    answer = await client.post(f"{OURS}/dropped/{drop_id}/restore", json=body)
    assert answer.status_code == status
    assert answer.json()["error"]["code"] == status


async def test_the_feed_tells_what_happened_since_a_cursor(client: httpx.AsyncClient):
    page = (await client.get(f"{OURS}/changes", params={"from": "oldest", "limit": 1})).json()
    assert [each["kind"] for each in page["changes"]] == ["namespace-created"]
    assert page["has-more"] is True

    rest = (await client.get(f"{OURS}/changes", params={"from": page["cursor"]})).json()

    assert [(each["kind"], each["name"]) for each in rest["changes"]] == [("table-created", "t")]
    assert rest["has-more"] is False


@pytest.mark.parametrize("query", [{"from": "zzz"}, {"limit": 0}, {"wait": 100}, {"limit": "x"}])
async def test_a_bad_question_to_the_feed_names_its_field(client: httpx.AsyncClient, query: dict):
    answer = await client.get(f"{OURS}/changes", params=query)
    assert answer.status_code == 400
    assert next(iter(query)) in answer.json()["error"]["message"]


async def test_an_unknown_catalog_is_404(client: httpx.AsyncClient):
    for path in ("dropped", "changes"):
        answer = await client.get(f"/api/catalog/cynosure/v1/none/{path}")
        assert answer.status_code == 404
