"""Appends of several callers in one commit: each has its own record, key and answer (I73, I74, I81)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.appending.work import Appended
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.load_table import load_table
from cynosure.common.errors import KeyReused
from cynosure.testing.small_access import P, on_table
from cynosure.testing.small_catalog import ROOT
from cynosure.testing.small_keys import with_key
from tests.catalog.appending.test_append_files import file, planned, where
from tests.catalog.tables import T, decoded
from tests.catalog.world import Lake, open_lake

pytestmark = pytest.mark.anyio
APPENDS = (P.TABLE_ADD_SNAPSHOT, P.TABLE_SET_SNAPSHOT_REF)


@pytest.fixture(params=["memory:", "sqlite:{}/store.db"], ids=["memory", "sqlite"])
async def lake(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path, url=request.param.format(tmp_path)) as lake:
        yield lake


async def append(lake: Lake, who: Caller, name: str) -> Appended:
    location = await where(lake.catalog)
    return await append_files(lake.catalog, who, T, Addition(data_files=[file(location, name)]))


async def snapshots(lake: Lake) -> list[int]:
    metadata = decoded(await load_table(lake.catalog, ROOT, T))
    return [each["snapshot-id"] for each in metadata["snapshots"]]


async def test_everyone_who_repeats_hears_what_the_shared_commit_gave(lake: Lake) -> None:
    names = [f"f{number:02d}" for number in range(20)]
    first = await asyncio.gather(*(append(lake, with_key(ROOT, name, payload=name), name) for name in names))
    before = await lake.heads()
    made = await snapshots(lake)
    assert len(made) < 10

    again = [await append(lake, with_key(ROOT, name, payload=name, is_repeat=True), name) for name in names]

    assert again == first
    assert await lake.heads() == before
    assert await planned(lake.catalog) == names


async def test_repeats_that_come_at_once_with_new_ones_are_not_appended_twice(lake: Lake) -> None:
    names = [f"f{number:02d}" for number in range(8)]
    first = await asyncio.gather(*(append(lake, with_key(ROOT, name, payload=name), name) for name in names))
    more = [f"g{number:02d}" for number in range(8)]

    both = await asyncio.gather(
        *(append(lake, with_key(ROOT, name, payload=name), name) for name in [*names, *more])
    )

    assert both[: len(names)] == first
    assert await planned(lake.catalog) == [*names, *more]


async def test_a_key_of_a_shared_commit_cannot_stand_for_something_else(lake: Lake) -> None:
    names = ["a", "b", "c", "d"]
    await asyncio.gather(*(append(lake, with_key(ROOT, name, payload=name), name) for name in names))

    with pytest.raises(KeyReused):
        await append(lake, with_key(ROOT, "c", payload="other"), "other")
    assert await planned(lake.catalog) == names


async def test_who_may_not_append_is_left_out_and_told_so(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, *APPENDS))
    bob = await lake.people.add("bob", lake.catalog, *on_table(T, P.TABLE_ADD_SNAPSHOT))

    outcomes = await asyncio.gather(
        *(append(lake, who, f"{who.principal}{at}") for at in range(5) for who in (ann, bob)),
        return_exceptions=True,
    )

    assert [type(each) for each in outcomes] == [Appended, AccessDenied] * 5
    assert await planned(lake.catalog) == [f"ann{at}" for at in range(5)]


async def test_each_caller_is_in_the_record_of_the_shared_commit(lake: Lake) -> None:
    people = [
        await lake.people.add(name, lake.catalog, *on_table(T, *APPENDS)) for name in ("ann", "bob", "cid")
    ]
    for _ in range(3):
        await asyncio.gather(
            *(append(lake, who, f"{who.principal}{at}{_}") for at in range(3) for who in people)
        )

    found: list[tuple[str, str]] = []
    state = await lake.catalog.read()
    record = state.commit.record
    while record.requests and record.requests[0].operation == "append-files":
        found += [(each.principal, each.operation) for each in record.requests]
        assert all(len(each.changes) == 1 for each in record.requests)
        state = await type(state).load(lake.catalog.store, record.parents[0])
        record = state.commit.record
    assert sorted(found) == sorted([(name, "append-files") for name in ("ann", "bob", "cid")] * 9)
