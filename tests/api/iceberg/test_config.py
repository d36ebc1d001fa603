from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from cynosure.catalog.directory import Directory
from cynosure.testing.small_catalog import make_catalog

pytestmark = pytest.mark.anyio

ErrorOf = Callable[[httpx.Response], tuple[int, str]]
CONFIG = "http://test/api/catalog/v1/config"

ADVERTISED = """
GET /v1/{prefix}/namespaces
POST /v1/{prefix}/namespaces
GET /v1/{prefix}/namespaces/{namespace}
HEAD /v1/{prefix}/namespaces/{namespace}
DELETE /v1/{prefix}/namespaces/{namespace}
POST /v1/{prefix}/namespaces/{namespace}/properties
GET /v1/{prefix}/namespaces/{namespace}/tables
POST /v1/{prefix}/namespaces/{namespace}/tables
GET /v1/{prefix}/namespaces/{namespace}/tables/{table}
HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}
DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}
GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/unregister
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics
POST /v1/{prefix}/namespaces/{namespace}/register
POST /v1/{prefix}/tables/rename
POST /v1/{prefix}/transactions/commit
GET /v1/{prefix}/namespaces/{namespace}/views
POST /v1/{prefix}/namespaces/{namespace}/views
GET /v1/{prefix}/namespaces/{namespace}/views/{view}
HEAD /v1/{prefix}/namespaces/{namespace}/views/{view}
POST /v1/{prefix}/namespaces/{namespace}/views/{view}
DELETE /v1/{prefix}/namespaces/{namespace}/views/{view}
POST /v1/{prefix}/views/rename
POST /v1/{prefix}/namespaces/{namespace}/register-view
""".strip().splitlines()


async def test_a_catalog_is_configured_by_its_name(client: httpx.AsyncClient) -> None:
    response = await client.get(CONFIG, params={"warehouse": "lake"})

    assert response.status_code == 200
    config = response.json()
    assert config["overrides"] == {"prefix": "lake"}
    assert config["defaults"] == {}
    assert sorted(config["endpoints"]) == sorted(ADVERTISED)


async def test_an_odd_name_comes_back_ready_for_paths(
    client: httpx.AsyncClient, directory: Directory, tmp_path: Path
) -> None:
    name = "a/b c+ü%"
    await make_catalog(directory, tmp_path, "odd")
    await make_catalog(directory, tmp_path / "more", name)

    prefix = (await client.get(CONFIG, params={"warehouse": name})).json()["overrides"]["prefix"]
    response = await client.get(f"http://test/api/catalog/v1/{prefix}/namespaces")

    assert prefix == "a%2Fb%20c%2B%C3%BC%25"
    assert response.json() == {"namespaces": []}


async def test_an_unknown_warehouse_is_not_found(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    response = await client.get(CONFIG, params={"warehouse": "none"})

    assert error_of(response) == (404, "NoSuchWarehouseException")


@pytest.mark.parametrize("query", ["", "?warehouse="])
async def test_a_warehouse_has_to_be_named(client: httpx.AsyncClient, error_of: ErrorOf, query: str) -> None:
    response = await client.get(f"{CONFIG}{query}")

    assert error_of(response) == (400, "BadRequestException")
    assert "warehouse" in response.json()["error"]["message"]


async def test_what_is_not_served_is_not_there(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    for path in ("namespaces/a/functions", "namespaces/a/tables/t/plan"):
        assert error_of(await client.get(path)) == (404, "NotFoundException")
    tokens = await client.post("http://test/api/catalog/v1/oauth/tokens", data={"grant_type": "x"})
    assert error_of(tokens) == (404, "NotFoundException")
