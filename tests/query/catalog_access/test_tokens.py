"""Tokens on behalf of users: remembered for a minute, for one token of one user; outliving it."""

import asyncio

import pytest

from cynosure.common.errors import NotAuthenticated
from cynosure.query.catalog_access.port import TableName
from cynosure.testing.admin import Admin
from cynosure.testing.harness.clock import ManualClock
from tests.query.governed_world import NS, READ, World

pytestmark = pytest.mark.anyio


class Counting:
    """Counts the requests for tokens of a client."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exchanges = 0
        original = world.http.request

        async def request(method, path, **more):
            if "subject_token" in (more.get("form") or {}):
                self.exchanges += 1
            return await original(method, path, **more)

        monkeypatch.setattr(world.http, "request", request)


async def test_an_exchange_is_remembered_for_a_minute_and_by_the_very_token(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    clock, counting = ManualClock(), Counting(world, monkeypatch)
    sessions = world.make_sessions(clock)
    token = world.token_of("ann")
    for _ in range(3):
        await sessions.open(None, token)
    assert counting.exchanges == 1
    await sessions.open(None, world.token_of("bob"))
    assert counting.exchanges == 2
    await clock.advance(61)
    await sessions.open(None, token)
    assert counting.exchanges == 3


async def test_a_token_that_the_catalog_refuses_is_exchanged_anew_once(world: World):
    table = await world.make_table()
    sessions = world.make_sessions()
    session = await sessions.open(None, world.token_of("ann"))
    kept = sessions._exchange._kept
    [(key, behalf)] = kept.items()
    kept[key] = type(behalf)("eyJ.bad.token", behalf.claims, behalf.until_s, behalf.expires_s)
    assert (await session.open_name(TableName("lake", NS, table), None)).name.name == table


async def test_a_deleted_user_gets_nothing_more(world: World):
    table = await world.make_table()
    user = await world.add_user(world.fresh("user"), *READ)
    token = world.token_of(user)
    sessions = world.make_sessions()
    session = await sessions.open(None, token)
    await session.open_name(TableName("lake", NS, table), None)
    async with world.server.client() as http:
        await Admin(http).delete_principal(user)
    with pytest.raises(NotAuthenticated):
        await session.open_name(TableName("lake", NS, table), None)
    with pytest.raises(NotAuthenticated):
        await sessions.open(None, token)


async def test_a_statement_goes_on_when_the_users_own_token_has_ended(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    table = await world.make_table()
    sessions = world.make_sessions()
    session = await sessions.open(None, world.token_of("ann"))
    sessions._exchange._kept.clear()

    async def ended(*_):
        raise NotAuthenticated("The token is not good")

    monkeypatch.setattr(sessions._exchange, "_exchange", ended)
    assert (await session.open_name(TableName("lake", NS, table), None)).name.name == table


async def test_many_at_once(world: World):
    table = await world.make_table()
    sessions = world.make_sessions()

    async def one(user: str) -> str:
        session = await sessions.open(None, world.token_of(user))
        await session.open_name(TableName("lake", NS, table), None)
        return session.user

    users = ["ann", "bob"] * 10
    assert await asyncio.gather(*(one(each) for each in users)) == users
