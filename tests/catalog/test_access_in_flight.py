"""Rights are those of the moment of the commit: what is revoked or moved meanwhile counts (I41)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.files import versions
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.catalog.roles.revoke_catalog_role import revoke_catalog_role
from cynosure.catalog.table_changes import TableChange
from cynosure.testing.small_access import P, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT, directory_on
from tests.catalog.tables import T, decoded, make, properties, updates
from tests.catalog.world import NS, OTHER, Lake, open_lake

pytestmark = pytest.mark.anyio

MOVED = Identifier(OTHER, "moved")
CHANGE = TableChange(T, [], updates(properties(k="v")))


@pytest.fixture(params=["memory:", "sqlite:{}/store.db"], ids=["memory", "sqlite"])
async def lake(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path, url=request.param.format(tmp_path)) as lake:
        yield lake


class Held:
    """Holds the first commit to a table after it was authorized and prepared, before it is committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_prepared = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self._is_first = True
        write = versions.next_version

        async def held(*args: object, **options: object) -> object:
            version = await write(*args, **options)  # type: ignore[arg-type]
            if self._is_first:
                self._is_first = False
                self.is_prepared.set()
                await self.may_go_on.wait()
            return version

        monkeypatch.setattr("cynosure.catalog.table_changes.next_version", held)


async def in_flight(
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[], Awaitable[object]],
    meanwhile: Callable[[], Awaitable[object]],
) -> object:
    """What comes of `act` when `meanwhile` happens between its preparation and its commit."""
    held = Held(monkeypatch)
    acting = asyncio.ensure_future(act())
    await held.is_prepared.wait()
    await meanwhile()
    held.may_go_on.set()
    return await acting


async def test_a_commit_in_flight_is_refused_once_its_grant_is_revoked(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_WRITE_PROPERTIES))

    async def revoke() -> None:
        await lake.people.revoke("ann", lake.catalog, *on_table(T, P.TABLE_WRITE_PROPERTIES))

    with pytest.raises(AccessDenied):
        await in_flight(monkeypatch, lambda: commit_table(lake.catalog, ann, CHANGE), revoke)
    assert "k" not in decoded(await load_table(lake.catalog, ROOT, T))["properties"]


async def test_a_commit_in_flight_is_refused_once_its_role_is_taken_away(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_WRITE_PROPERTIES))

    async def revoke() -> None:
        await revoke_catalog_role(lake.catalog, ROOT, "ann", "ann")

    with pytest.raises(AccessDenied):
        await in_flight(monkeypatch, lambda: commit_table(lake.catalog, ann, CHANGE), revoke)


async def test_a_commit_in_flight_goes_on_when_others_are_given_rights(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_WRITE_PROPERTIES))

    await in_flight(
        monkeypatch,
        lambda: commit_table(lake.catalog, ann, CHANGE),
        lambda: lake.people.add("bob", lake.catalog, *on_table(T, P.TABLE_LIST)),
    )

    assert decoded(await load_table(lake.catalog, ROOT, T))["properties"]["k"] == "v"


async def test_a_prepared_commit_does_not_reach_what_was_made_anew_under_the_name(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_WRITE_PROPERTIES))

    async def make_anew() -> None:
        await drop_table(lake.catalog, ROOT, T)
        await make(lake.catalog, T)

    with pytest.raises(AccessDenied):
        await in_flight(monkeypatch, lambda: commit_table(lake.catalog, ann, CHANGE), make_anew)
    assert "k" not in decoded(await load_table(lake.catalog, ROOT, T))["properties"]


async def test_a_prepared_commit_does_not_follow_a_table_out_of_its_namespace(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right was held on the namespace; another table, moved in from elsewhere, has the name by now."""
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_WRITE_PROPERTIES))

    async def move() -> None:
        await rename_table(lake.catalog, ROOT, T, MOVED)

    with pytest.raises(NoSuchTable):
        await in_flight(monkeypatch, lambda: commit_table(lake.catalog, ann, CHANGE), move)
    assert "k" not in decoded(await load_table(lake.catalog, ROOT, MOVED))["properties"]


async def test_what_is_revoked_is_refused_with_the_next_request_also_in_another_process(
    lake: Lake, tmp_path: Path
) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    async with directory_on(lake.directory.shared.persistence, tmp_path) as elsewhere:
        catalog = await elsewhere.open(ann.realm, "lake")
        await load_table(catalog, ann, T)

        await lake.people.revoke("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))

        with pytest.raises(AccessDenied):
            await load_table(catalog, ann, T)


# --- names and ids ----------------------------------------------------------------------------------------


async def test_a_rename_keeps_grants(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))

    await rename_table(lake.catalog, ROOT, T, MOVED)

    await load_table(lake.catalog, ann, MOVED)
    granted = (await list_grants(lake.catalog, ROOT, "ann")).grants
    assert list(granted) == on_table(MOVED, P.TABLE_READ_PROPERTIES)


async def test_what_is_made_anew_under_a_name_has_no_grants(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))

    await drop_table(lake.catalog, ROOT, T)
    await make(lake.catalog, T)

    with pytest.raises(AccessDenied):
        await load_table(lake.catalog, ann, T)
    assert (await list_grants(lake.catalog, ROOT, "ann")).grants == []


async def test_a_restored_table_has_its_grants_again(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    await drop_table(lake.catalog, ROOT, T)
    assert (await list_grants(lake.catalog, ROOT, "ann")).grants == []
    (drop_id, _), *_ = (await list_dropped(lake.catalog, ROOT, size=5)).entries

    await restore_dropped(lake.catalog, ROOT, drop_id)

    await load_table(lake.catalog, ann, T)
    assert list((await list_grants(lake.catalog, ROOT, "ann")).grants) == on_table(T, P.TABLE_READ_PROPERTIES)


async def test_a_table_takes_on_the_rights_of_the_namespace_it_is_moved_to(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(OTHER, P.TABLE_READ_PROPERTIES))
    with pytest.raises(AccessDenied):
        await load_table(lake.catalog, ann, T)

    await rename_table(lake.catalog, ROOT, T, MOVED)

    await load_table(lake.catalog, ann, MOVED)


async def test_rights_on_a_namespace_reach_everything_below_it(lake: Lake) -> None:
    deep = Identifier((*NS, "deep", "er"), "t")
    await create_namespace(lake.catalog, ROOT, deep.namespace, {})
    await make(lake.catalog, deep)

    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.TABLE_READ_PROPERTIES))

    await load_table(lake.catalog, ann, deep)
