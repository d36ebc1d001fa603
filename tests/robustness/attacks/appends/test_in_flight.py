"""What changes between the preparation of a shared commit and the commit itself counts, for each member."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.appending.addition import Addition
from cynosure.catalog.appending.work import Appended
from cynosure.catalog.errors import NoSuchTable, RestrictedByPolicy
from cynosure.catalog.files import versions
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.append_files import append_files
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.common.errors import BadInput
from cynosure.testing.small_access import P, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.appending.test_append_files import file, planned, where
from tests.catalog.restrictions.restricting import EVERYTHING, TABLE, restrict
from tests.catalog.tables import T, change, decoded, make
from tests.catalog.world import NS, Lake

pytestmark = pytest.mark.anyio
APPENDS = (P.TABLE_ADD_SNAPSHOT, P.TABLE_SET_SNAPSHOT_REF)


async def in_flight(
    lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    callers: Sequence[Caller],
    meanwhile: Callable[[], Awaitable[object]],
) -> list[object]:
    """What comes of appends of which all but the first share a commit, if something happens before it.

    The first append of all is by root. Files are named by their place among the callers.
    """
    location = await where(lake.catalog)
    prepared, go_on = asyncio.Event(), asyncio.Event()
    write, count = versions.next_version, 0

    async def held(*args: object, **options: object) -> object:
        nonlocal count
        count += 1
        if count == 1:
            # So that the others share the next commit.
            turns = lake.catalog.shared.joining._waiting
            while sum(map(len, turns.values())) < len(callers):  # noqa: ASYNC110 - nobody says that it waits
                await asyncio.sleep(0)
        version = await write(*args, **options)  # type: ignore[arg-type]
        if count == 2:
            prepared.set()
            await go_on.wait()
        return version

    monkeypatch.setattr("cynosure.catalog.table_changes.next_version", held)
    tasks = [
        asyncio.create_task(
            append_files(lake.catalog, who, T, Addition(data_files=[file(location, f"f{at}")]))
        )
        for at, who in enumerate([ROOT, *callers])
    ]
    await prepared.wait()
    await meanwhile()
    go_on.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], Appended)
    return list(outcomes[1:])


@pytest.mark.parametrize("place", [0, 1, 3])
async def test_who_loses_the_right_is_refused_and_the_others_are_not(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, place: int
):
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, *APPENDS))
    callers = [ROOT] * 3
    callers.insert(place, ann)

    outcomes = await in_flight(
        lake,
        monkeypatch,
        callers,
        lambda: lake.people.revoke("ann", lake.catalog, *on_table(T, P.TABLE_ADD_SNAPSHOT)),
    )

    assert [type(each) for each in outcomes] == [AccessDenied if at == place else Appended for at in range(4)]
    assert await planned(lake.catalog) == [f"f{at}" for at in range(5) if at != place + 1]


async def test_who_is_restricted_since_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    ann = await lake.people.add("ann", lake.catalog, *EVERYTHING)

    outcomes = await in_flight(
        lake, monkeypatch, [ann, ann], lambda: restrict(lake, "few", TABLE, filter="id = 1")
    )

    assert [type(each) for each in outcomes] == [RestrictedByPolicy] * 2
    assert await planned(lake.catalog) == ["f0"]


async def test_a_table_that_is_dropped_takes_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    outcomes = await in_flight(lake, monkeypatch, [ROOT] * 3, lambda: drop_table(lake.catalog, ROOT, T))

    assert [type(each) for each in outcomes] == [NoSuchTable] * 3


async def test_another_table_of_the_name_takes_no_files_of_the_one_before(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
):
    async def replace() -> None:
        await rename_table(lake.catalog, ROOT, T, Identifier(NS, "before"))
        await make(lake.catalog)

    outcomes = await in_flight(lake, monkeypatch, [ROOT] * 3, replace)

    assert [type(each) for each in outcomes] == [BadInput] * 3
    assert not decoded(await load_table(lake.catalog, ROOT, T)).get("snapshots")


async def test_a_table_that_is_moved_keeps_what_is_appended(lake: Lake, monkeypatch: pytest.MonkeyPatch):
    place = f"file://{lake.folder}/lake/elsewhere"

    outcomes = await in_flight(
        lake,
        monkeypatch,
        [ROOT] * 3,
        lambda: change(lake.catalog, {"action": "set-location", "location": place}),
    )

    assert [type(each) for each in outcomes] == [Appended] * 3
    assert await planned(lake.catalog) == ["f0", "f1", "f2", "f3"]
