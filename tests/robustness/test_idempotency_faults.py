"""Answers of the database that get lost under requests with a key, at each of their writes."""

from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import httpx
import pytest

from cynosure.persistence.open_backend import open_backend
from cynosure.testing.crash_matrix.chain import ChainReader
from cynosure.testing.harness.fault_proxy import FaultProxy
from cynosure.testing.harness.faults import CutRequest, Fault, LoseAnswer, Request, executes
from cynosure.testing.idempotency_kit.world import CATALOGS, QUICK, REPLAYED, new_key
from cynosure.testing.small_servers import SmallServer, SmallServers

from .test_lost_answers import moves_a_reference

pytestmark = [pytest.mark.anyio, pytest.mark.postgres]

NAMESPACES = "/api/catalog/v1/lake/namespaces"
FAULTS = [LoseAnswer(), CutRequest(after_bytes=100)]
Matches = Callable[[Request], bool]


def reserves(request: Request) -> bool:
    return _writes_a_record(request, "INSERT INTO")


def finalizes(request: Request) -> bool:
    return _writes_a_record(request, "UPDATE")


def _writes_a_record(request: Request, verb: str) -> bool:
    return b"idempotency-record" in request.data and executes(verb)(request)


class Scene(NamedTuple):
    """Two servers on one database; the first one reaches it through a proxy."""

    servers: SmallServers
    proxy: FaultProxy
    first: SmallServer
    second: SmallServer
    chain: ChainReader


@pytest.fixture(scope="module")
async def scene(shared_schema_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    folder = tmp_path_factory.mktemp("servers")
    async with FaultProxy.to_url(shared_schema_url) as proxy:
        urls = iter([proxy.url, shared_schema_url])
        async with SmallServers(lambda: open_backend(next(urls)), folder) as servers:
            impatient = {**QUICK, "persistence__commit_deadline": "2s"}
            # Only the one whose database is taken away: the other must succeed however slow the disk is.
            first, second = await servers.start(**impatient), await servers.start(**QUICK)
            location = (folder / "lake").as_uri()
            wanted = {
                "type": "INTERNAL",
                "name": "lake",
                "properties": {"default-base-location": location},
                "storageConfigInfo": {"storageType": "FILE", "allowedLocations": [location]},
            }
            made = await second.http.post(CATALOGS, json={"catalog": wanted})
            assert made.status_code == 201, made.text
            await second.http.post(NAMESPACES, json={"namespace": ["taken"]})
            yield Scene(servers, proxy, first, second, ChainReader(second.persistence))


async def create(server: SmallServer, key: str, name: str) -> httpx.Response:
    body: dict[str, Any] = {"namespace": [name], "properties": {"k": "v"}}
    return await server.http.post(NAMESPACES, json=body, headers={"Idempotency-Key": key})


@pytest.mark.parametrize("fault", FAULTS, ids=["lost", "cut"])
@pytest.mark.parametrize("when", [reserves, moves_a_reference, finalizes])
@pytest.mark.parametrize("status", [200, 409])
async def test_when_the_database_answers_no_more_in_the_middle_the_request_still_has_one_outcome(
    scene: Scene, fault: Fault, when: Matches, status: int
) -> None:
    """I73, I74."""
    await scene.first.http.get(NAMESPACES)
    heads, key = await scene.chain.heads(), new_key()
    name = "taken" if status == 409 else key
    is_met = when is not moves_a_reference or status == 200
    rule = scene.proxy.add(fault, when=when)

    told = await create(scene.first, key, name)
    if is_met:
        # What is in the chain is noted after the answer.
        await rule.wait_done()
    scene.proxy.clear()
    again = await create(scene.second, key, name)
    once_more = await create(scene.first, key, name)

    assert rule.hits == is_met
    assert again.status_code == status
    assert (once_more.status_code, once_more.content) == (again.status_code, again.content)
    assert REPLAYED in once_more.headers
    if told.status_code < 500:
        assert (told.status_code, told.content) == (again.status_code, again.content)
    changes = (await scene.chain.since(heads)).changes()
    assert changes == ({"namespace-created": 1} if status == 200 else {})


async def test_a_refusal_is_not_told_while_the_database_is_away_that_should_keep_it(scene: Scene) -> None:
    """I74, I77: whoever were told it could find that it is done later."""
    await scene.first.http.get(NAMESPACES)
    key = new_key()
    lost = scene.proxy.add(LoseAnswer(), when=finalizes, times=None)
    scene.proxy.refuse(1_000_000)

    told = await create(scene.first, key, "taken")
    scene.proxy.clear()
    again = await create(scene.second, key, "taken")

    assert lost.hits
    assert told.status_code in (503, 504)
    assert again.status_code == 409
