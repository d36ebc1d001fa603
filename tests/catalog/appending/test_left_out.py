"""Groups of appends of which some, or all, cannot be committed together: each hears its own answer (I81)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.appending.work import Appended
from cynosure.catalog.operations.append_files import append_files
from cynosure.common.errors import NotFound
from cynosure.testing.small_access import P, on_table
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_keys import with_key
from tests.catalog.appending.test_append_files import file, planned, where
from tests.catalog.tables import T
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    # Not in memory: there a refusal takes no time, so nobody would come meanwhile.
    async with open_lake(tmp_path, url=f"sqlite:{tmp_path}/store.db") as lake:
        yield lake


async def append_all(lake: Lake, *asked: tuple[Caller, str]) -> list[Appended | BaseException]:
    location = await where(lake.catalog)
    return await asyncio.gather(
        *(
            append_files(lake.catalog, who, T, Addition(data_files=[file(location, name)]))
            for who, name in asked
        ),
        return_exceptions=True,
    )


async def test_a_group_in_which_nobody_may_append(lake: Lake) -> None:
    bob = await lake.people.add("bob", lake.catalog, *on_table(T, P.TABLE_ADD_SNAPSHOT))

    allowed, *outcomes = await append_all(lake, (ROOT, "r"), *((bob, f"f{number}") for number in range(6)))

    assert isinstance(allowed, Appended)
    assert [type(each) for each in outcomes] == [AccessDenied] * 6, outcomes
    assert await planned(lake.catalog) == ["r"]


async def test_a_group_whose_table_is_gone(lake: Lake) -> None:
    location = await where(lake.catalog)
    gone = T._replace(name="gone")

    outcomes = await asyncio.gather(
        *(
            append_files(lake.catalog, ROOT, gone, Addition(data_files=[file(location, f"f{number}")]))
            for number in range(6)
        ),
        return_exceptions=True,
    )

    assert all(isinstance(each, NotFound) for each in outcomes), outcomes


async def test_a_key_that_comes_twice_in_a_group_is_in_it_once(lake: Lake) -> None:
    """As when a chain was set back and attempts at a request that was answered ask for it again."""
    head = (with_key(ROOT, "head", payload="head"), "head")
    twins = [(with_key(ROOT, "twin", payload="twin", is_repeat=True), "twin") for _ in range(4)]

    _, *told = await append_all(lake, head, *twins, (with_key(ROOT, "last", payload="last"), "last"))

    assert all(isinstance(each, Appended) for each in told), told
    assert len({str(each) for each in told[:4]}) == 1
    assert await planned(lake.catalog) == ["head", "last", "twin"]
    state = await lake.catalog.read()
    keys: list[str] = []
    while state.commit.record.requests[0].operation == "append-files":
        keys += [each.key_hash for each in state.commit.record.requests]
        state = await type(state).load(lake.catalog.store, state.commit.record.parents[0])
    assert len(keys) == len(set(keys)) == 3
