"""A commit whose outcome nobody knows is answered as such, and its files stay."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.catalogs import Catalogs
from cynosure.api.iceberg.routes import iceberg_routes
from cynosure.api.operator_gate import OperatorGate
from cynosure.catalog.directory import Directory
from cynosure.common.clock import SystemClock
from cynosure.common.errors import OutcomeUnknown, Unavailable
from cynosure.persistence.lifecycle import open_persistence_on
from cynosure.persistence.settings import PersistenceSettings
from cynosure.persistence.spi import Reference
from cynosure.testing.small_catalog import directory_on, make_catalog
from cynosure.testing.small_store import RuledBackend

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}
TABLE = "/api/catalog/v1/lake/namespaces/a/tables/t"
CHANGE = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}
SETTINGS = PersistenceSettings(commit_deadline=timedelta(seconds=3))


class Lake(NamedTuple):
    client: httpx.AsyncClient
    backend: RuledBackend
    directory: Directory


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    """A catalog with one table, on a database whose answers the test decides."""
    backend = RuledBackend()
    async with (
        open_persistence_on(backend, SETTINGS, initialise=True) as persistence,
        directory_on(persistence, tmp_path) as directory,
    ):
        await make_catalog(directory, tmp_path, "lake")
        routes = iceberg_routes(Catalogs(directory))
        service = make_service(
            routes, title="t", version="1", clock=SystemClock(), rng=random.Random(1), gate=OperatorGate()
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await client.post("/api/catalog/v1/lake/namespaces", json={"namespace": ["a"]})
            table = {"name": "t", "schema": SCHEMA}
            (await client.post("/api/catalog/v1/lake/namespaces/a/tables", json=table)).raise_for_status()
            yield Lake(client, backend, directory)


async def test_it_is_504_and_the_files_stay_until_the_outcome_is_known(lake: Lake):
    applied = asyncio.Event()

    async def lose_answers(expected: Reference, updated: Reference, apply) -> bool:
        if not applied.is_set():
            applied.set()
            await apply()
            raise OutcomeUnknown("The answer was lost")
        raise Unavailable("The database does not answer")

    lake.backend.rule = lose_answers
    answer = await lake.client.post(TABLE, json=CHANGE)
    lake.backend.rule = None
    loaded = await lake.client.get(TABLE)

    assert answer.status_code == 504
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    assert loaded.json()["metadata"]["properties"]["k"] == "v"
    assert Path(loaded.json()["metadata-location"].removeprefix("file://")).exists()


async def test_what_was_certainly_not_applied_is_503_and_leaves_no_file(lake: Lake, tmp_path: Path):
    async def refuse(expected: Reference, updated: Reference, apply) -> bool:
        raise Unavailable("The database does not answer")

    lake.backend.rule = refuse
    answer = await lake.client.post(TABLE, json=CHANGE)
    lake.backend.rule = None
    await lake.directory.shared.background.close()

    assert answer.status_code == 503
    assert len(list(tmp_path.rglob("*.metadata.json"))) == 1
