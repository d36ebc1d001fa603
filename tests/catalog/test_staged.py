"""Tables that are being created: reserved for one principal before anybody is given access."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_access.modes import ANY_WAY, NOT_ASKED, Delegation
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreatedTable, CreateTable, create_table
from cynosure.catalog.operations.forget_staged import forget_staged
from cynosure.catalog.operations.load_credentials import load_credentials
from cynosure.catalog.operations.load_table import table_exists
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.staged import StagedTable, find_own_staged, find_staged
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput, Expired
from cynosure.storage.access.ports import Credential, Scope, Subject, Vended
from cynosure.storage.access.vending import Vending
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storage
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_access import P, People, on_namespace
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.tables import T, decoded, make, requirements, updates

pytestmark = pytest.mark.anyio

NS = ("ns",)
NEW = Identifier(NS, "new")
LIFETIME = timedelta(hours=1)


class World(NamedTuple):
    """A catalog whose storage gives access, two who may create tables in it, and time."""

    catalog: OpenCatalog
    ann: Caller
    bob: Caller
    clock: ManualClock
    vendor: MemoryVendor

    async def stage(
        self, who: Caller | None = None, delegation: Delegation = ANY_WAY, name: str = "new", **options: Any
    ) -> CreatedTable:
        wanted = CreateTable(NS, name, SCHEMA, is_staged=True, **options)
        return await create_table(self.catalog, who or self.ann, wanted, delegation=delegation)

    async def create(
        self, staged: CreatedTable, who: Caller | None = None, table: Identifier = NEW, **changed: Any
    ) -> None:
        await commit_table(self.catalog, who or self.ann, creation(staged, table, **changed))

    async def find(self, location: str) -> StagedTable | None:
        return await find_staged(await self.catalog.read(), Location.parse(location))

    async def places(self) -> int:
        return len(await (await self.catalog.read()).scan("locations", limit=1_000))


def creation(staged: CreatedTable, table: Identifier = NEW, **changed: Any) -> TableChange:
    metadata = {**decoded(staged.answer), **changed}
    wanted = updates(
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": metadata["properties"]},
    )
    return TableChange(table, requirements({"type": "assert-create"}), wanted)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    clock, vendor = ManualClock(), MemoryVendor()
    settings = CatalogSettings(staging_lifetime=LIFETIME)
    async with open_directory_in(tmp_path, clock=clock, catalog_settings=settings) as directory:
        people = People(directory)
        await people.root()
        plain = await make_catalog(directory, tmp_path)
        await create_namespace(plain, ROOT, NS, {})
        rights = on_namespace(NS, P.TABLE_CREATE, P.TABLE_WRITE_DATA)
        ann, bob = [await people.add(name, plain, *rights) for name in ("ann", "bob")]
        yield World(vending(plain, vendor), ann, bob, clock, vendor)


class HalfHourVendor:
    """Whose credentials live for half an hour."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def mint(self, scope: Scope, subject: Subject) -> Vended:
        now_ms = self._clock.now_us() // 1000
        return Vended((Credential(scope.locations[0].text, {}),), now_ms, now_ms + 1_800_000)


def location_of(staged: CreatedTable) -> str:
    location: str = decoded(staged.answer)["location"]
    return location


async def test_a_staged_table_that_gives_access_is_reserved_and_then_created(world: World) -> None:
    data = world.catalog.base.child("data").text
    staged = await world.stage(properties={"write.data.path": data})
    assert (staged.state.location, staged.state.claims) == (location_of(staged), (data,))
    assert staged.is_writable
    for place in (location_of(staged), f"{data}/below"):
        with pytest.raises(LocationRefused):
            await make(world.catalog, T, location=place)
    reserved = await world.find(f"{data}/x.parquet")
    assert reserved is not None
    assert reserved.id == staged.state.id
    assert await find_own_staged(world.catalog, await world.catalog.read(), world.ann, NEW) == reserved

    await world.create(staged)

    state = await world.catalog.read()
    assert await state.scan("staged", limit=5) == []
    assert await world.find(location_of(staged)) is None
    assert await world.places() == 2
    # The id that was promised is the table's.
    assert len(await state.scan("ids", limit=9)) == 2
    with pytest.raises(LocationRefused):
        await make(world.catalog, T, location=data)


async def test_what_a_creation_leaves_of_its_reservation_stays_the_tables(world: World) -> None:
    """Whoever staged it has credentials for all of it."""
    data = world.catalog.base.child("data").text
    staged = await world.stage(properties={"write.data.path": data})
    await world.create(staged, properties={})
    with pytest.raises(LocationRefused):
        await make(world.catalog, T, location=data)


async def test_without_delegation_or_access_nothing_is_kept(world: World) -> None:
    before = (await world.catalog.read()).commit_id
    await world.stage(delegation=NOT_ASKED)
    real = world.catalog
    no_access = OpenCatalog(real.realm, real.entity, real.shared, Storage(real.files))
    await create_table(no_access, world.ann, CreateTable(NS, "x", SCHEMA, is_staged=True), delegation=ANY_WAY)
    assert (await world.catalog.read()).commit_id == before


async def test_a_reservation_is_for_its_principal_its_name_and_its_table_only(world: World) -> None:
    staged = await world.stage(location=world.catalog.base.child("place").text)

    with pytest.raises(LocationRefused):
        await world.create(staged, who=world.bob)
    with pytest.raises(LocationRefused):
        await world.create(staged, who=ROOT)
    with pytest.raises(LocationRefused):
        await world.create(staged, table=Identifier(NS, "another"))
    with pytest.raises(LocationRefused):
        await world.create(staged, **{"table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1"})
    with pytest.raises(LocationRefused):
        await world.create(staged, location=f"{location_of(staged)}/below")
    with pytest.raises(LocationRefused):
        await world.stage(world.bob, location=location_of(staged))
    with pytest.raises(LocationRefused):
        await world.stage(name="another", location=location_of(staged))
    with pytest.raises(LocationRefused):
        await make(world.catalog, T, location=location_of(staged))

    await world.create(staged)
    await table_exists(world.catalog, ROOT, NEW)


async def test_two_may_reserve_one_name_and_the_first_to_commit_has_it(world: World) -> None:
    first, second = await world.stage(), await world.stage(world.bob)
    await world.create(first)
    with pytest.raises(Exception, match="already exists"):
        await world.create(second, who=world.bob)


async def test_who_begins_again_is_not_kept_out_by_what_was_left(world: World) -> None:
    place = world.catalog.base.child("place").text
    first = await world.stage(location=f"{place}/deeper")
    second = await world.stage(location=place)
    with pytest.raises(LocationRefused):
        await world.create(first)
    third = await world.stage(location=place)
    assert await world.places() == 1
    await world.create(third)
    assert await world.places() == 1
    assert second.state.id != third.state.id


async def test_what_was_reserved_is_not_given_up_in_part(world: World) -> None:
    """Credentials for all of it are still good, and somebody else would get the rest."""
    place = world.catalog.base.child("place").text
    first = await world.stage(location=place)
    with pytest.raises(LocationRefused):
        await world.stage(location=f"{place}/deeper")
    with pytest.raises(LocationRefused):
        await create_table(
            world.catalog, world.bob, CreateTable(NS, "bobs", SCHEMA, location=f"{place}/beside")
        )
    await world.create(first)


async def test_a_direct_creation_takes_the_place_of_its_own_reservation(world: World) -> None:
    place = world.catalog.base.child("place").text
    await world.stage(location=place)
    await create_table(world.catalog, world.ann, CreateTable(NS, "new", SCHEMA, location=place))
    assert await (await world.catalog.read()).scan("staged", limit=5) == []
    assert await world.places() == 1


async def write_metadata(world: World, staged: CreatedTable, **changed: Any) -> str:
    """A metadata file in the place of a staged table, as its client writes one."""
    metadata = {**decoded(staged.answer), **changed}
    where = f"{location_of(staged)}/metadata/00000-a.metadata.json"
    await world.catalog.files.write(Location.parse(where), msgspec.json.encode(metadata))
    return where


async def test_a_registration_takes_over_the_callers_own_reservation(world: World) -> None:
    staged = await world.stage(location=world.catalog.base.child("place").text)
    file = await write_metadata(world, staged)

    for who, name in ((world.bob, NEW), (ROOT, NEW), (world.ann, Identifier(NS, "another"))):
        with pytest.raises(LocationRefused):
            await register_table(world.catalog, who, name, file)
    await register_table(world.catalog, world.ann, NEW, file)

    state = await world.catalog.read()
    assert await state.scan("staged", limit=5) == []
    assert await world.places() == 1
    with pytest.raises(LocationRefused):
        await make(world.catalog, T, location=location_of(staged))


@pytest.mark.parametrize("left", ["above", "data"])
async def test_a_registration_that_leaves_some_of_the_reservation_is_refused(world: World, left: str) -> None:
    """Credentials for it are still good: nobody else may get that place yet."""
    place, data = world.catalog.base.child("place").text, world.catalog.base.child("data").text
    staged = await world.stage(location=place, properties={"write.data.path": data})
    changed = {"location": f"{place}/below"} if left == "above" else {"properties": {}}
    file = await write_metadata(world, staged, **changed)

    with pytest.raises(LocationRefused):
        await register_table(world.catalog, world.ann, NEW, file)
    assert await world.find(place) is not None
    assert await world.find(data) is not None


async def test_an_expired_reservation_blocks_nobody_and_is_swept(world: World) -> None:
    place = world.catalog.base.child("place").text
    old = await world.stage(location=place, properties={"write.data.path": f"{world.catalog.base}/data"})
    await world.stage(name="other")
    await world.clock.advance(LIFETIME.total_seconds() - 1)
    assert await forget_staged(world.catalog, ROOT) == 0
    with pytest.raises(LocationRefused):
        await world.stage(world.bob, location=place)
    await world.clock.advance(2)
    young = await world.stage(world.bob, name="young")
    assert await find_own_staged(world.catalog, await world.catalog.read(), world.ann, NEW) is None

    taken = await world.stage(world.bob, location=place)
    assert await forget_staged(world.catalog, ROOT) == 1

    left = await (await world.catalog.read()).scan("staged", limit=9)
    assert len(left) == 2 * 2, "two reservations, each by id and by path"
    assert await world.places() == 2
    with pytest.raises(LocationRefused):
        await world.create(old)
    await world.create(taken, who=world.bob)
    await world.create(young, who=world.bob, table=Identifier(NS, "young"))
    assert await (await world.catalog.read()).scan("staged", limit=9) == []


async def test_a_late_commit_creates_the_table_if_the_place_is_still_free(world: World) -> None:
    staged = await world.stage()
    await world.clock.advance(LIFETIME.total_seconds() + 1)
    assert await forget_staged(world.catalog, ROOT) == 1
    assert await world.places() == 0
    await world.create(staged)
    assert await world.places() == 1


@pytest.mark.parametrize(
    "wanted",
    [
        "{victim}",
        "{victim}/data",
        "{victim}/../x",
        "{victim}/%2e%2e/x",
        "{base}",
        "{base}2/x",
        "s3://b/x",
        "/etc",
    ],
)
async def test_a_staged_table_cannot_name_what_is_anothers(world: World, wanted: str) -> None:
    """The lesson of CVE-2026-42809: refused before anything is made for it."""
    victim = decoded(await make(world.catalog, T))["location"]
    place = wanted.format(victim=victim, base=world.catalog.base.text)
    before = (await world.catalog.read()).commit_id
    for delegation in (ANY_WAY, NOT_ASKED):
        for options in ({"location": place}, {"properties": {"write.data.path": place}}):
            with pytest.raises((LocationRefused, BadInput)):
                await world.stage(delegation=delegation, **options)
    assert (await world.catalog.read()).commit_id == before
    assert world.vendor.minted == []


async def test_of_many_who_reserve_one_place_at_once_one_gets_it(world: World) -> None:
    place = world.catalog.base.child("place").text
    outcomes = await asyncio.gather(
        *(
            world.stage(who, name=f"t{number}", location=place + "/x" * (number % 3))
            for number, who in enumerate((world.ann, world.bob) * 4)
        ),
        return_exceptions=True,
    )
    won = [each for each in outcomes if isinstance(each, CreatedTable)]
    assert len(won) == 1
    assert all(isinstance(each, CreatedTable | LocationRefused) for each in outcomes)
    assert await world.places() == 1


async def test_a_transaction_creates_what_was_reserved(world: World) -> None:
    staged = await world.stage(ROOT)
    await commit_transaction(world.catalog, ROOT, [creation(staged)])
    assert await (await world.catalog.read()).scan("staged", limit=5) == []
    assert await world.places() == 1


async def test_no_credentials_outlive_the_reservation_they_are_for(world: World) -> None:
    """Whoever gets the place next must be alone there."""
    storage = Storage(
        world.catalog.files, vending=Vending(HalfHourVendor(world.clock), world.clock, min_remaining=0.9)
    )
    catalog = OpenCatalog(world.catalog.realm, world.catalog.entity, world.catalog.shared, storage)
    await world.stage()

    await world.clock.advance(29 * 60)
    assert await load_credentials(catalog, world.ann, NEW) is not None
    await world.clock.advance(10 * 60)
    with pytest.raises(Expired):
        await load_credentials(catalog, world.ann, NEW)


async def test_nothing_is_signed_that_could_be_sent_after_the_reservation(world: World) -> None:
    await world.stage()
    await world.clock.advance(46 * 60)

    assert await find_own_staged(world.catalog, await world.catalog.read(), world.ann, NEW) is None
