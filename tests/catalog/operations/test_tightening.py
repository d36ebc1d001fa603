"""Taking locations from a catalog, and giving it more: who may, and what becomes of the tables there."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.require import AccessDenied
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.drop_namespace import drop_namespace
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.release_locations import release_locations
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.settings import CatalogSettings
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.settings import GcSettings, PersistenceSettings
from cynosure.storage.config import FileStorage, S3Storage
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_access import P, People, on_catalog
from cynosure.testing.small_catalog import ROOT, open_directory_in
from tests.catalog.tables import T, change, make, properties

pytestmark = pytest.mark.anyio

LIFETIME, WINDOW = timedelta(minutes=10), timedelta(minutes=20)
LIFETIME_S, WINDOW_S = LIFETIME.total_seconds(), WINDOW.total_seconds()


class World(NamedTuple):
    """A catalog on `old` and `new`, with a table in `old`, and time."""

    directory: Directory
    folder: Path
    clock: ManualClock

    def at(self, *names: str) -> str:
        return f"file://{self.folder.joinpath(*names)}"

    async def allow(self, *names: str, who: Caller = ROOT, catalog: str = "lake") -> OpenCatalog:
        storage = FileStorage(allowed_locations=tuple(self.at(name) for name in names))
        update = CatalogUpdate(base_location=self.at(names[0]), storage=storage)
        await update_catalog(self.directory, who, catalog, update)
        return await self.open(catalog)

    async def open(self, catalog: str = "lake") -> OpenCatalog:
        return await self.directory.open(DEFAULT_REALM, catalog)

    async def create(self, name: str, *allowed: str) -> OpenCatalog:
        storage = FileStorage(allowed_locations=tuple(self.at(each) for each in allowed))
        wanted = NewCatalog(name=name, base_location=self.at(allowed[0]), storage=storage)
        await create_catalog(self.directory, ROOT, wanted)
        return await self.open(name)

    async def release(self) -> int:
        return await release_locations(self.directory, ROOT, await self.open())


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    settings = PersistenceSettings(gc=GcSettings(undrop_window=WINDOW))
    staging = CatalogSettings(staging_lifetime=LIFETIME)
    async with open_directory_in(
        tmp_path, clock=clock, settings=settings, catalog_settings=staging
    ) as directory:
        made = World(directory, tmp_path, clock)
        catalog = await made.create("lake", "old", "new")
        await create_namespace(catalog, ROOT, ("ns",), {})
        await make(catalog, T, location=made.at("old", "t"))
        yield made


async def test_a_table_in_a_location_that_was_taken_is_loaded_and_nothing_else(world: World) -> None:
    before = await load_table(await world.open(), ROOT, T)

    catalog = await world.allow("new")

    assert (await load_table(catalog, ROOT, T)).metadata == before.metadata
    other = Identifier(("ns",), "other")
    with pytest.raises(LocationRefused):
        await change(catalog, properties(k="v"))
    with pytest.raises(LocationRefused):
        await change(catalog, properties(**{"write.metadata.path": world.at("new", "m")}))
    with pytest.raises(LocationRefused):
        await make(catalog, other, location=world.at("old", "other"))
    with pytest.raises(LocationRefused):
        await make(catalog, other, properties={"write.data.path": world.at("old", "data")})
    # It can be moved out of there.
    await change(catalog, {"action": "set-location", "location": world.at("new", "t")})
    await change(catalog, properties(k="v"))


async def test_no_other_catalog_gets_a_location_while_tables_are_there(world: World) -> None:
    catalog = await world.allow("new")
    await world.clock.advance(2 * WINDOW_S)

    assert await world.release() == 0
    for taken in (("old",), ("old", "t"), ("old", "elsewhere")):
        with pytest.raises(LocationRefused):
            await world.create("second", "/".join(taken))

    await drop_table(catalog, ROOT, T)
    # It can still be restored.
    assert await world.release() == 0
    with pytest.raises(LocationRefused):
        await world.create("second", "old")
    dropped = (await list_dropped(catalog, ROOT, size=1)).entries[0][0]
    await restore_dropped(catalog, ROOT, dropped)
    await drop_table(catalog, ROOT, T)
    await world.clock.advance(WINDOW_S + 1)
    await forget_dropped(catalog, ROOT)

    assert await world.release() == 1
    assert (await world.open()).entity.kept == ()
    second = await world.create("second", "old")
    await create_namespace(second, ROOT, ("ns",), {})
    await make(second, T, location=world.at("old", "t"))


async def test_what_is_free_is_released_and_what_is_not_stays(world: World) -> None:
    await world.allow("old", "new", "third")
    await world.allow("new")
    await world.clock.advance(LIFETIME_S + 1)

    assert await world.release() == 1

    assert [each.location for each in (await world.open()).entity.kept] == [world.at("old")]
    await world.create("second", "third")
    with pytest.raises(LocationRefused):
        await world.create("third", "old")


async def test_a_location_is_kept_for_as_long_as_a_request_may_be_on_its_way(world: World) -> None:
    """One that opened the catalog before still finds the location allowed."""
    before = await world.open()
    await drop_table(before, ROOT, T)
    await world.clock.advance(WINDOW_S + 1)
    await forget_dropped(before, ROOT)
    await world.allow("new")
    late = Identifier(("ns",), "late")
    await world.clock.advance(LIFETIME_S - 1)
    assert await world.release() == 0
    await make(before, late, location=world.at("old", "late"))
    await world.clock.advance(2)
    assert await world.release() == 0
    with pytest.raises(LocationRefused):
        await world.create("second", "old")


async def test_a_location_that_is_given_back_is_not_released(world: World) -> None:
    await drop_table(await world.open(), ROOT, T)
    tightened = await world.allow("new")
    await world.clock.advance(WINDOW_S + 1)
    await forget_dropped(tightened, ROOT)
    await world.allow("new", "old")

    # Looked at while it was taken, committed when it is back.
    assert await release_locations(world.directory, ROOT, tightened) == 0
    assert (await world.open()).entity.kept == ()
    with pytest.raises(LocationRefused):
        await world.create("second", "old")


async def test_a_narrowed_location_is_held_whole_and_then_only_what_is_left_of_it(world: World) -> None:
    await drop_table(await world.open(), ROOT, T)
    catalog = await world.allow("new", "old/part")
    with pytest.raises(LocationRefused):
        await world.create("second", "old/other")
    await world.clock.advance(WINDOW_S + 1)
    await forget_dropped(catalog, ROOT)
    # What is inside what it may use is not left.
    await make(catalog, T, location=world.at("old", "part", "t"))
    assert await world.release() == 0
    await drop_table(catalog, ROOT, T)
    await world.clock.advance(WINDOW_S + 1)
    await forget_dropped(catalog, ROOT)

    assert await world.release() == 1
    await world.create("second", "old/other")
    for taken in ("old/part", "old/part/x", "old"):
        with pytest.raises(LocationRefused):
            await world.create("third", taken)


async def test_a_dropped_catalog_leaves_what_it_kept(world: World) -> None:
    catalog = await world.allow("new")
    await drop_table(catalog, ROOT, T)
    await drop_namespace(catalog, ROOT, ("ns",))
    await drop_catalog(world.directory, ROOT, "lake")
    await world.create("second", "old", "new")


async def test_to_take_is_for_who_writes_properties_and_to_give_is_for_who_creates_catalogs(
    world: World,
) -> None:
    people = People(world.directory)
    root = await people.root()
    catalog = await world.open()
    rights = on_catalog(P.CATALOG_WRITE_PROPERTIES, P.CATALOG_MANAGE_ACCESS, P.CATALOG_MANAGE_CONTENT)
    ann = await people.add("ann", catalog, *rights)
    same = CatalogUpdate(set_properties={"k": "v"}, storage=catalog.entity.storage)
    await update_catalog(world.directory, ann, "lake", same)

    for more in (("old", "new", "more"), ("old", "new", "."), ("more",)):
        with pytest.raises(AccessDenied, match="CATALOG_CREATE"):
            await world.allow(*more, who=ann)
    renamed = CatalogUpdate(storage=FileStorage(catalog.entity.storage.allowed_locations, storage_name="x"))
    with pytest.raises(AccessDenied):
        await update_catalog(world.directory, ann, "lake", renamed)
    s3 = CatalogUpdate(base_location="s3://b", storage=S3Storage(allowed_locations=("s3://b",)))
    with pytest.raises(AccessDenied):
        await update_catalog(world.directory, ann, "lake", s3)
    assert (await world.open()).entity.storage == catalog.entity.storage

    await world.allow("new", "old/t", who=ann)
    # What it held is not hers to take back either.
    with pytest.raises(AccessDenied):
        await world.allow("new", "old", who=ann)
    await world.allow("new", "old", "more", who=root)
