"""Who may not is told so, in the protocol's words; and what asking for access to files needs."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.cynosure.routes import cynosure_routes
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.auth.rbac.privileges import Privilege
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.roles.securables import Grant
from cynosure.common.clock import SystemClock
from cynosure.testing.small_access import CallerGate, P, People, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from tests.api.iceberg.conftest import SCHEMA as BODY_SCHEMA
from tests.api.iceberg.conftest import ErrorOf

pytestmark = pytest.mark.anyio

T = Identifier(("a",), "t")
TABLE = "v1/lake/namespaces/a/tables/t"


@asynccontextmanager
async def served(
    folder: Path, *grants: Grant, access: AuthSettings | None = None, has_role: bool = True
) -> AsyncIterator[tuple[httpx.AsyncClient, CallerGate]]:
    """A server to which everybody is ann, who may what is granted."""
    async with open_directory_in(folder, access=access) as directory:
        people = People(directory)
        await people.root()
        catalog = await make_catalog(directory, folder)
        await create_namespace(catalog, ROOT, ("a",), {})
        await create_table(catalog, ROOT, CreateTable(("a",), "t", SCHEMA))
        ann = await people.add("ann", catalog if has_role else None, *grants)
        gate = CallerGate(ann)
        service = make_service(
            [*iceberg_routes(directory), *cynosure_routes(directory)],
            title="test",
            version="1",
            clock=SystemClock(),
            rng=random.Random(1),
            gate=gate,
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test/api/catalog/") as client:
            yield client, gate


async def test_a_refusal_names_the_principal_the_privilege_and_the_target(
    tmp_path: Path, error_of: ErrorOf
) -> None:
    async with served(tmp_path) as (client, gate):
        response = await client.get(TABLE)

        assert error_of(response) == (403, "ForbiddenException")
        message = response.json()["error"]["message"]
        assert all(word in message for word in ("ann", "TABLE_READ_PROPERTIES", "table a.t"))
        assert len(gate.refusals) == 1
        assert error_of(await client.get("v1/lake/namespaces/a/tables/missing")) == (
            404,
            "NoSuchTableException",
        )


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
async def test_every_way_to_a_table_is_closed_to_strangers(tmp_path: Path, method: str) -> None:
    async with served(tmp_path, has_role=False) as (client, _):
        body = {"requirements": [], "updates": []} if method == "POST" else None

        response = await client.request(method, TABLE, json=body)

        assert response.status_code == 403


@pytest.mark.parametrize(
    ("header", "privilege", "status"),
    [
        (None, P.TABLE_READ_PROPERTIES, 200),
        ("vended-credentials", P.TABLE_READ_PROPERTIES, 403),
        ("vended-credentials", P.TABLE_READ_DATA, 200),
        ("vended-credentials", P.TABLE_WRITE_DATA, 200),
        ("remote-signing", P.TABLE_READ_PROPERTIES, 403),
        ("unheard-of, Vended-Credentials", P.TABLE_READ_PROPERTIES, 403),
        ("true", P.TABLE_READ_PROPERTIES, 403),
        ("unheard-of", P.TABLE_READ_PROPERTIES, 200),
        ("", P.TABLE_READ_PROPERTIES, 200),
    ],
)
async def test_who_asks_for_access_to_files_needs_the_right_to_data(
    tmp_path: Path, header: str | None, privilege: Privilege, status: int
) -> None:
    headers = {} if header is None else {"X-Iceberg-Access-Delegation": header}
    async with served(tmp_path, *on_table(T, privilege)) as (client, _):
        response = await client.get(TABLE, headers=headers)

        assert response.status_code == status
        if status == 200:
            assert response.json()["config"] == {}


async def test_creating_a_table_with_access_to_files_needs_the_right_to_write(tmp_path: Path) -> None:
    headers = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    body = {"name": "new", "schema": BODY_SCHEMA}
    async with served(tmp_path, *on_namespace(("a",), P.TABLE_CREATE)) as (client, _):
        path = "v1/lake/namespaces/a/tables"

        assert (await client.post(path, json=body, headers=headers)).status_code == 403
        assert (await client.post(path, json=body)).status_code == 200


async def test_the_configuration_is_for_those_with_a_role(tmp_path: Path, error_of: ErrorOf) -> None:
    async with served(tmp_path, has_role=False) as (client, _):
        assert error_of(await client.get("v1/config?warehouse=lake")) == (403, "ForbiddenException")
        assert error_of(await client.get("v1/config?warehouse=gone"))[0] == 404
    async with served(tmp_path / "other") as (client, _):
        assert (await client.get("v1/config?warehouse=lake")).status_code == 200


async def test_a_catalog_that_is_hidden_is_answered_as_one_that_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path, access=AuthSettings(hide_existence=True), has_role=False) as (client, _):
        for path in ("v1/config?warehouse={}", "v1/{}/namespaces", "v1/{}/namespaces/a/tables/t"):
            hidden = await client.get(path.format("lake"))
            missing = await client.get(path.format("gone"))

            assert hidden.status_code == missing.status_code == 404
            assert hidden.text.replace("lake", "") == missing.text.replace("gone", "")


async def test_a_table_that_is_hidden_is_answered_as_one_that_is_not_there(tmp_path: Path) -> None:
    async with served(tmp_path, access=AuthSettings(hide_existence=True)) as (client, gate):
        hidden = await client.get(TABLE)
        missing = await client.get("v1/lake/namespaces/a/tables/x")

        assert hidden.status_code == missing.status_code == 404
        assert hidden.text.replace("a.t", "") == missing.text.replace("a.x", "")
        assert len(gate.refusals) == 2, "the audit is told what was hidden, and no less what was missing"


@pytest.mark.parametrize("path", ["cynosure/v1/lake/dropped", "cynosure/v1/lake/changes"])
async def test_what_concerns_the_whole_catalog_is_not_for_who_has_a_table_of_it(
    tmp_path: Path, path: str
) -> None:
    async with served(tmp_path, *on_table(T, P.TABLE_FULL_METADATA)) as (client, _):
        assert (await client.get(path)).status_code == 403
