"""Tokens of a remote: asked for once, renewed in time, and once more when they are refused."""

import asyncio

import pytest
from msgspec import structs

from cynosure.federation.errors import RemoteRefused, RemoteUnavailable
from cynosure.testing import lying_remote as lies
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.lying_remote import LyingRemote

from .liars import OAUTH, ORDERS, Liar, table_answer

pytestmark = pytest.mark.anyio


async def test_a_token_is_asked_for_once_by_all_who_wait(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open(OAUTH)

    await asyncio.gather(*(remote.load_table(ORDERS) for _ in range(10)))

    [asked] = liar.server.heard_at("/oauth/tokens")
    assert asked.path == "/api/catalog/v1/oauth/tokens"
    assert asked.form() == {
        "grant_type": "client_credentials",
        "client_id": "near",
        "client_secret": "the-client-secret",
        "scope": "all roles",
    }
    heard = liar.server.heard_at("/tables/orders")
    assert [each.headers["authorization"] for each in heard] == ["Bearer a-token"] * 10


async def test_a_token_endpoint_of_its_own_is_asked_instead(liar: Liar):
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    async with LyingRemote() as tokens:
        tokens.says("POST", "/token", lies.token("of-elsewhere"))
        remote = liar.open(structs.replace(OAUTH, token_uri=f"{tokens.url}/token"))

        await remote.load_table(ORDERS)

    assert liar.server.heard_at("/oauth/tokens") == []
    [heard] = liar.server.heard_at("/tables/orders")
    assert heard.headers["authorization"] == "Bearer of-elsewhere"


async def test_a_token_is_renewed_before_it_ends(liar: Liar, manual_clock: ManualClock):
    liar.server.says(
        "POST", "/oauth/tokens", lies.in_turn(lies.token("first", 100), lies.token("second", 100))
    )
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open(OAUTH, clock=manual_clock)
    await remote.load_table(ORDERS)

    await manual_clock.advance(95)
    await remote.load_table(ORDERS)

    used = [heard.headers["authorization"] for heard in liar.server.heard_at("/tables/orders")]
    assert used == ["Bearer first", "Bearer second"]


async def test_a_token_that_is_refused_is_renewed_once(liar: Liar, manual_clock: ManualClock):
    liar.server.says("POST", "/oauth/tokens", lies.in_turn(lies.token("first"), lies.token("second")))
    liar.server.says(
        "GET",
        "/tables/orders",
        lies.in_turn(lies.refusal(401, "NotAuthorizedException"), lies.answer(table_answer())),
    )
    remote = liar.open(OAUTH, clock=manual_clock)
    await remote.check()
    await manual_clock.advance(60)

    await remote.load_table(ORDERS)

    used = [heard.headers["authorization"] for heard in liar.server.heard_at("/tables/orders")]
    assert used == ["Bearer first", "Bearer second"]


async def test_a_second_refusal_is_the_answer(liar: Liar, manual_clock: ManualClock):
    liar.server.says("GET", "/tables/orders", lies.refusal(419, "AuthenticationTimeoutException"))
    remote = liar.open(OAUTH, clock=manual_clock)
    await remote.check()
    await manual_clock.advance(60)

    with pytest.raises(RemoteRefused):
        await remote.load_table(ORDERS)

    assert len(liar.server.heard_at("/tables/orders")) == 2
    assert len(liar.server.heard_at("/oauth/tokens")) == 2


async def test_a_good_token_serves_while_no_other_can_be_had(liar: Liar, manual_clock: ManualClock):
    liar.server.says("POST", "/oauth/tokens", lies.in_turn(lies.token("first", 100), lies.raw(b"", 503)))
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open(OAUTH, clock=manual_clock)
    await remote.load_table(ORDERS)

    await manual_clock.advance(80)
    await remote.load_table(ORDERS)
    await manual_clock.advance(15)
    with pytest.raises(RemoteUnavailable):
        await remote.load_table(ORDERS)

    assert len(liar.server.heard_at("/tables/orders")) == 2


async def test_who_stops_waiting_does_not_end_the_request_of_others(liar: Liar):
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def tell(heard: lies.Heard, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await let_go.wait()
        await lies.token()(heard, writer)

    liar.server.says("POST", "/oauth/tokens", tell)
    liar.server.says("GET", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open(OAUTH)
    first, second = (asyncio.create_task(remote.load_table(ORDERS)) for _ in range(2))
    await asked.wait()
    first.cancel()
    let_go.set()

    await second

    assert len(liar.server.heard_at("/oauth/tokens")) == 1
