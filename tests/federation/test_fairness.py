"""One principal that asks a remote for very much costs others nothing, nor where they ask the same (I120)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.telemetry.request_scope import request_scope
from cynosure.federation.errors import FederationOff, RemoteBusy
from cynosure.federation.settings import FederationSettings
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, Far, T, count_who_comes, make_federation, open_far

pytestmark = pytest.mark.anyio

A, B, C, D = (Identifier(NS, f"t{number}") for number in range(4))


@pytest.fixture
async def narrow(tmp_path: Path) -> AsyncIterator[Far]:
    """A remote that answers one request at a time, for which three wait; all tables were seen before."""
    settings = FederationSettings(retries=0, concurrent=1, waiting=3)
    async with open_far(tmp_path / "files", settings=settings) as far:
        for number, table in enumerate((T, A, B, C, D)):
            far.put(table, table.name, uuid=f"{number:08}-2222-4333-8444-555555555555")
            await far.see(ROOT, table)
        yield far


def ask(far: Far, who: str, table: Identifier) -> "asyncio.Task[None]":
    with request_scope(principal=who):
        return asyncio.create_task(far.see(structs.replace(ROOT, principal=who), table))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - nobody says that it waits
            await asyncio.sleep(0.001)


async def test_who_waits_with_one_that_is_turned_away_waits_again_by_itself(
    narrow: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    come, asked = count_who_comes(monkeypatch), len(narrow.remote.asked)
    first, second = asyncio.Event(), asyncio.Event()
    narrow.remote.gate = first

    def are_waiting(count: int) -> bool:
        health = narrow.federation.clients.find_health(narrow.catalog)
        return health is not None and (health.running, health.waiting) == (1, count)

    many = [ask(narrow, "many", T)]
    await until(lambda: len(narrow.remote.asked) > asked)
    for count, table in enumerate((A, B, C), 1):
        many.append(ask(narrow, "many", table))
        await until(partial(are_waiting, count))
    many.append(ask(narrow, "many", T))
    await until(lambda: len(come) == 5)
    bob = ask(narrow, "bob", T)  # behind the second question of "many" about the same table
    await until(lambda: len(come) == 6)
    narrow.remote.gate = second
    first.set()
    # The first is answered; the next has its turn, and the second question about the same waits for one.
    await until(lambda: many[0].done() and are_waiting(3))
    carl = ask(narrow, "carl", D)  # for whom the longest line gives that question up, then one for bob
    await until(lambda: many[3].done() and many[4].done())
    second.set()

    await asyncio.gather(bob, carl)
    told = await asyncio.gather(*many, return_exceptions=True)
    assert [type(each) for each in told] == [type(None), type(None), type(None), RemoteBusy, RemoteBusy]


async def test_switched_off_it_shows_what_was_seen_as_if_the_remote_were_gone(
    far: Far, tmp_path: Path
) -> None:
    far.put()
    await far.see()
    asked = list(far.remote.asked)
    clock = far.directory.shared.persistence.clock
    off = make_federation(tmp_path, far.remote, clock, FederationSettings(enabled=False))

    with pytest.raises(FederationOff):
        await off.see_table(far.catalog, ROOT, T)
    await far.set_properties(stale_if_down="10m")
    await off.see_table(far.catalog, ROOT, T)
    await load_table(far.catalog, ROOT, T)
    assert far.remote.asked == asked
