"""A delegation service that is sent what nobody sends: text that stores cannot hold, forged pages, bombs."""

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from cynosure.auth.tokens.signing_keys import generate_private
from cynosure.common.clock import SystemClock
from cynosure.delegation.failures import JobFailed
from cynosure.delegation.store.open import open_task_store
from cynosure.testing.service_tokens import TokenMaker
from cynosure.testing.small_delegation import REALM, SmallDelegation, stumble
from tests.delegation.http.conftest import BASE, ONCE, SYNC, World, payload

pytestmark = pytest.mark.anyio

CONTROLS = ("\0", "a\0b", "\x1b[31m", "\u2028", "\U0010ffff", "\r\nX: y")
ODD = (*CONTROLS, "'; DROP TABLE x; --", "../../..", "%00%2e%2e")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    match request.param:
        case "memory":
            return "memory:"
        case "sqlite":
            return f"sqlite:{tmp_path}/tasks.db"
    return str(request.getfixturevalue("postgres_schema_url"))


@pytest.fixture
async def world(store_url: str) -> AsyncIterator[World]:
    async with open_task_store(store_url, REALM) as store:
        small = SmallDelegation(ONCE, store=store)
        yield World(small, TokenMaker(SystemClock(), generate_private()))
        await small.close()


@pytest.fixture
async def http(world: World) -> AsyncIterator[httpx.AsyncClient]:
    async with world.client() as client:
        yield client


async def test_no_text_makes_the_service_fail(http: httpx.AsyncClient) -> None:
    failed = {}
    for number, odd in enumerate(ODD):
        for place in ("correlation", "catalog", "table", "namespace", "entity", "trace", "time", "property"):
            body = payload(f"t{number}", polaris_correlation_id=f"{place}-{number}")
            identity = body["operation_parameters"]["table_identity"]
            match place:
                case "correlation":
                    body["common_payload"]["polaris_correlation_id"] = odd
                case "catalog":
                    identity["catalog_name"] = odd
                case "table":
                    identity["table_name"] = odd
                case "namespace":
                    identity["namespace_levels"] = [odd]
                case "entity":
                    identity["table_entity_id"] = odd
                case "trace":
                    body["common_payload"]["traceparent"] = odd
                case "time":
                    body["common_payload"]["request_timestamp_utc"] = odd
                case _:
                    body["operation_parameters"]["properties"] = {odd: odd}
            answer = await http.post(f"{BASE}/tasks", json=body)
            if answer.status_code >= 500:
                failed[place, odd] = answer.text
    for odd in ODD:
        for query in ({"catalog": odd}, {"pageToken": odd}, {"status": odd}, {"type": odd}, {"wait": odd}):
            answer = await http.get(f"{BASE}/tasks", params=query)
            if answer.status_code >= 500:
                failed[str(query)] = answer.text
        for path in ("", "/history"):
            answer = await http.get(f"{BASE}/tasks/{quote(odd, safe='')}{path}")
            if answer.status_code >= 500 or answer.status_code == 200:
                failed[path, odd] = answer.text

    assert failed == {}


async def test_a_failure_in_odd_words_is_kept_like_any_other(world: World, http: httpx.AsyncClient) -> None:
    world.small.job.script = [stumble(JobFailed("odd \0 words", code="ODD", reason="\0\ud800"))]
    await world.work()

    answer = await http.post(SYNC, json=payload())

    assert answer.status_code == 500, answer.text
    assert answer.json()["status"] == "FAILED_TERMINAL"
    assert "odd" in answer.json()["message"]
