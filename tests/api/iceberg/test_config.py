import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.catalog.directory import Directory
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.common.clock import SystemClock
from cynosure.idempotency.settings import IdempotencySettings, advertise
from cynosure.storage.config import FileStorage
from cynosure.testing.small_catalog import ROOT, make_catalog

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
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan
GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}
DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table}/plan/{plan-id}
POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/tasks
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


async def get_config(
    directory: Directory, settings: IdempotencySettings, name: str = "lake"
) -> dict[str, Any]:
    service = make_service(
        iceberg_routes(Catalogs(directory), advertised=advertise(settings)),
        title="test",
        version="1",
        clock=SystemClock(),
        rng=random.Random(1),
        gate=OperatorGate(),
    )
    transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport) as client:
        config: dict[str, Any] = (await client.get(CONFIG, params={"warehouse": name})).json()
        return config


async def test_keys_are_advertised_in_all_three_places_where_clients_look(directory: Directory) -> None:
    config = await get_config(directory, IdempotencySettings())

    told = {"idempotency-key-supported": "true", "idempotency-key-lifetime": "PT30M"}
    assert config["properties"] == told
    assert config["defaults"] == told
    assert config["idempotency-key-lifetime"] == "PT30M"


async def test_the_advertised_lifetime_is_that_of_the_settings(directory: Directory) -> None:
    config = await get_config(directory, IdempotencySettings(lifetime=timedelta(hours=25, seconds=90)))

    assert config["idempotency-key-lifetime"] == "PT25H1M30S"
    assert config["properties"]["idempotency-key-lifetime"] == "PT25H1M30S"


async def test_clients_of_a_server_without_keys_are_told_to_send_none(directory: Directory) -> None:
    config = await get_config(directory, IdempotencySettings(enabled=False))

    assert config["properties"] == {"idempotency-key-supported": "false"}
    assert config["defaults"] == {"idempotency-key-supported": "false"}
    assert "idempotency-key-lifetime" not in config


async def test_a_catalogs_own_properties_cannot_promise_what_the_server_does_not_do(
    directory: Directory, tmp_path: Path
) -> None:
    location = f"file://{tmp_path}/boasting"
    properties = {"idempotency-key-supported": "true", "color": "red"}
    storage = FileStorage(allowed_locations=(location,))
    wanted = NewCatalog(name="boasting", base_location=location, storage=storage, properties=properties)
    await create_catalog(directory, ROOT, wanted)

    config = await get_config(directory, IdempotencySettings(enabled=False), "boasting")

    assert config["defaults"] == {"idempotency-key-supported": "false", "color": "red"}


async def test_what_is_not_served_is_not_there(client: httpx.AsyncClient, error_of: ErrorOf) -> None:
    assert error_of(await client.get("namespaces/a/functions")) == (404, "NotFoundException")
    tokens = await client.post("http://test/api/catalog/v1/oauth/tokens", data={"grant_type": "x"})
    assert error_of(tokens) == (404, "NotFoundException")
