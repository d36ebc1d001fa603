"""Who waits for a server that says to come back later is told so, once, and only if it takes long."""

import httpx
import pytest

from cynosure.client.api import ApiClient
from cynosure.client.catalog import CatalogApi
from cynosure.client.idempotency import Keys
from cynosure.client.waiting import MOMENT_S, Wait
from cynosure.common.errors import Unavailable
from tests.client.scripted import Hands, Scripted, refusal

pytestmark = pytest.mark.anyio

OK = httpx.Response(200, json={"namespace": ["a"], "properties": {}})
DOWN = refusal(503, "ServiceUnavailableException", {"retry-after": "7"})


async def load(api: ApiClient) -> None:
    await api.request("GET", "/x", timeout_s=60.0)


async def create(api: ApiClient) -> None:
    await CatalogApi(api, "lake").create_namespace(("a",), {})


@pytest.mark.parametrize("work", [load, create])
async def test_a_long_pause_is_told_when_it_begins_with_its_end(work) -> None:
    server, told = Scripted(Hands(), DOWN, DOWN, OK), list[Wait]()
    began_us = server.clock.now_us()
    with server.client(Keys(patience_s=60.0), on_wait=told.append) as api:
        await work(api)

    (wait,) = told
    assert (wait.status, wait.error.message) == (503, "Said the server")
    assert wait.until_us == began_us + 60_000_000
    assert sum(server.clock.sleeps) >= 14.0


@pytest.mark.parametrize("work", [load, create])
async def test_a_moment_is_not_worth_a_word(work) -> None:
    server, told = Scripted(Hands(), httpx.Response(503), httpx.Response(503), OK), list[Wait]()
    with server.client(on_wait=told.append) as api:
        await work(api)

    assert (len(server.seen), told) == (3, [])


@pytest.mark.parametrize("work", [load, create])
async def test_many_short_pauses_are_told_once_when_they_have_become_long(work) -> None:
    server, told = Scripted(Hands(), httpx.Response(503)), list[float]()
    with (
        server.client(Keys(patience_s=60.0), on_wait=lambda _: told.append(server.clock.elapsed_s)) as api,
        pytest.raises(Unavailable),
    ):
        await work(api)

    (at_s,) = told
    assert at_s < MOMENT_S < server.clock.elapsed_s


@pytest.mark.parametrize("work", [load, create])
async def test_who_does_not_try_again_waits_for_nothing(work) -> None:
    server, told = Scripted(Hands(), refusal(503, "X", {"retry-after": "90"})), list[Wait]()
    with server.client(Keys(patience_s=60.0), on_wait=told.append) as api, pytest.raises(Unavailable):
        await work(api)

    assert (len(server.seen), told) == (1, [])
