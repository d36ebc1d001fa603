"""A commit whose outcome nobody knows is answered as such, and its files stay."""

import asyncio
import random
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from cynosure.api.app import make_service
from cynosure.api.iceberg.routes import iceberg_routes
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
SETTINGS = PersistenceSettings(commit_deadline=timedelta(seconds=1))


async def test_it_is_504_and_the_files_stay_until_the_outcome_is_known(tmp_path: Path):
    backend = RuledBackend()
    async with (
        open_persistence_on(backend, SETTINGS, initialise=True) as persistence,
        directory_on(persistence, tmp_path) as directory,
    ):
        await make_catalog(directory, tmp_path, "lake")
        service = make_service(
            iceberg_routes(directory), title="t", version="1", clock=SystemClock(), rng=random.Random(1)
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await client.post("/api/catalog/v1/lake/namespaces", json={"namespace": ["a"]})
            await client.post(
                "/api/catalog/v1/lake/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}
            )
            applied = asyncio.Event()

            async def lose_answers(expected: Reference, updated: Reference, apply) -> bool:
                if not applied.is_set():
                    applied.set()
                    await apply()
                    raise OutcomeUnknown("The answer was lost")
                raise Unavailable("The database does not answer")

            backend.rule = lose_answers
            answer = await client.post(TABLE, json=CHANGE)
            backend.rule = None
            loaded = await client.get(TABLE)

    assert answer.status_code == 504
    assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    assert loaded.json()["metadata"]["properties"]["k"] == "v"
    current = Path(loaded.json()["metadata-location"].removeprefix("file://"))
    assert current.exists()


async def test_what_was_certainly_not_applied_is_503_and_leaves_no_file(tmp_path: Path):
    backend = RuledBackend()
    async with (
        open_persistence_on(backend, SETTINGS, initialise=True) as persistence,
        directory_on(persistence, tmp_path) as directory,
    ):
        await make_catalog(directory, tmp_path, "lake")
        service = make_service(
            iceberg_routes(directory), title="t", version="1", clock=SystemClock(), rng=random.Random(1)
        )
        transport = httpx.ASGITransport(app=service.app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await client.post("/api/catalog/v1/lake/namespaces", json={"namespace": ["a"]})
            await client.post(
                "/api/catalog/v1/lake/namespaces/a/tables", json={"name": "t", "schema": SCHEMA}
            )

            async def refuse(expected: Reference, updated: Reference, apply) -> bool:
                raise Unavailable("The database does not answer")

            backend.rule = refuse
            answer = await client.post(TABLE, json=CHANGE)
            backend.rule = None
            await directory.shared.background.close()

    assert answer.status_code == 503
    assert len(list(tmp_path.rglob("*.metadata.json"))) == 1
