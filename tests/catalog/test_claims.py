"""What tables and views hold, and that nobody else gets it. Promises I60 and I62."""

from datetime import timedelta
from pathlib import Path

import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.claims import MAX_CLAIMS, join_places
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.locations import PATHS, find_holder
from cynosure.catalog.managed.identity import Held, load_held
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.commit_table import commit_table
from cynosure.catalog.operations.commit_transaction import commit_transaction
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.drop_view import drop_view
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.operations.unregister_table import unregister_table
from cynosure.catalog.operations.update_namespace_properties import (
    PropertiesUpdate,
    update_namespace_properties,
)
from cynosure.catalog.resolve import require_table_ref
from cynosure.catalog.table_changes import TableChange
from cynosure.common.errors import BadInput
from cynosure.persistence.settings import GcSettings, PersistenceSettings
from cynosure.storage.location import Location
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.small_access import P, People, on_namespace
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from tests.catalog.tables import T, change, decoded, make, properties, updates
from tests.catalog.world import VERSION

pytestmark = pytest.mark.anyio

OTHER = Identifier(("ns",), "other")
V = Identifier(("ns",), "v")
DATA = "write.data.path"


async def held(catalog: OpenCatalog, table: Identifier = T) -> Held:
    state = await catalog.read()
    return await load_held(state, await require_table_ref(state, table))


async def holder(catalog: OpenCatalog, text: str) -> int | None:
    return await find_holder(await catalog.read(), Location.parse(text))


def at(catalog: OpenCatalog, *segments: str) -> str:
    return catalog.base.child(*segments).text


def moved(location: str) -> dict:
    return {"action": "set-location", "location": location}


@pytest.mark.parametrize("name", PATHS)
async def test_a_path_outside_the_location_is_the_tables_until_it_is_given_up(
    catalog: OpenCatalog, name: str
) -> None:
    place = at(catalog, "elsewhere", "data")
    await make(catalog, properties={name: place})
    before = await held(catalog)

    assert before.claims == (place,)
    for taken in (place, f"{place}/below", at(catalog, "elsewhere")):
        with pytest.raises(LocationRefused, match="overlaps"):
            await make(catalog, OTHER, location=taken)
        with pytest.raises(LocationRefused, match="overlaps"):
            await make(catalog, OTHER, properties={name: taken})
    await make(catalog, OTHER, location=f"{place}2")

    await unregister_table(catalog, ROOT, T)
    assert await holder(catalog, place) is None


async def test_a_path_inside_the_location_needs_no_claim_of_its_own(catalog: OpenCatalog) -> None:
    place = at(catalog, "t")
    await make(
        catalog, location=place, properties={DATA: f"{place}/data", "write.metadata.path": f"{place}/m/"}
    )
    assert (await held(catalog))[1:] == (place, ())


async def test_a_path_above_the_location_is_held_with_all_that_is_in_it(catalog: OpenCatalog) -> None:
    above = at(catalog, "dir")
    await make(catalog, location=f"{above}/t", properties={DATA: above})
    with pytest.raises(LocationRefused):
        await make(catalog, OTHER, location=f"{above}/other")


@pytest.mark.parametrize("name", PATHS)
async def test_a_path_into_another_table_is_refused_at_every_door(catalog: OpenCatalog, name: str) -> None:
    """The lesson of CVE-2026-42812: not only when the table is created."""
    victim = decoded(await make(catalog, OTHER))["location"]
    await make(catalog)
    before = (await catalog.read()).commit_id
    change_path = {"action": "set-properties", "updates": {name: f"{victim}/metadata"}}

    with pytest.raises(LocationRefused):
        await change(catalog, change_path)
    with pytest.raises(LocationRefused):
        await commit_transaction(catalog, ROOT, [TableChange(T, [], updates(change_path))])
    with pytest.raises(LocationRefused):
        await create_view(
            catalog, ROOT, CreateView(V, SCHEMA, VERSION, properties={name: f"{victim}/metadata"})
        )

    assert (await catalog.read()).commit_id == before


async def test_a_path_that_is_taken_back_stays_the_tables(catalog: OpenCatalog) -> None:
    """Files may be there, and somebody may have credentials to write some."""
    first, second = at(catalog, "one"), at(catalog, "two")
    await make(catalog, properties={DATA: first})
    await change(catalog, {"action": "set-properties", "updates": {DATA: second}})
    await change(catalog, {"action": "remove-properties", "removals": [DATA]})

    assert set((await held(catalog)).claims) == {first, second}
    for place in (first, second):
        with pytest.raises(LocationRefused):
            await make(catalog, OTHER, location=place)


async def test_a_table_that_moves_keeps_where_it_was_and_may_move_back(catalog: OpenCatalog) -> None:
    first, second = at(catalog, "one"), at(catalog, "two")
    await make(catalog, location=first)
    await change(catalog, moved(second))
    assert (await held(catalog))[1:] == (second, (first,))
    await change(catalog, moved(first))
    assert (await held(catalog))[1:] == (first, (second,))
    # Into its own and out of it again: what is inside is held with what is around it.
    await change(catalog, moved(f"{second}/deep"))
    assert set((await held(catalog)).claims) == {first, second}
    await change(catalog, moved(second))
    assert (await held(catalog))[1:] == (second, (first,))
    assert len(await (await catalog.read()).scan("locations", limit=10)) == 2


async def test_within_a_transaction_nobody_gets_what_another_left(catalog: OpenCatalog) -> None:
    left = decoded(await make(catalog))["location"]
    await make(catalog, OTHER)
    changes = [
        TableChange(T, [], updates(moved(at(catalog, "new")))),
        TableChange(OTHER, [], updates(moved(left))),
    ]
    with pytest.raises(LocationRefused):
        await commit_transaction(catalog, ROOT, changes)


async def test_a_table_holds_a_bounded_number_of_places(catalog: OpenCatalog) -> None:
    places = [Location.parse(f"s3://b/{number}") for number in range(MAX_CLAIMS + 1)]
    assert len(join_places(Location.parse("s3://b/t"), places[1:]).others) == MAX_CLAIMS
    with pytest.raises(BadInput, match="too many places"):
        join_places(Location.parse("s3://b/t"), places)


async def test_however_much_a_table_holds_in_a_place_it_does_not_hide_another(catalog: OpenCatalog) -> None:
    for number in range(12):
        await (make(catalog, location=at(catalog, "d", "a0")) if not number else _move(catalog, number))
    await make(catalog, OTHER, location=at(catalog, "d", "z"))
    with pytest.raises(LocationRefused):
        await change(catalog, moved(at(catalog, "d")))


async def _move(catalog: OpenCatalog, number: int) -> None:
    await change(catalog, moved(at(catalog, "d", f"a{number}")))


async def test_all_claims_come_back_with_a_table_or_it_does_not(catalog: OpenCatalog) -> None:
    first, second = at(catalog, "one"), at(catalog, "two")
    await make(catalog, location=first, properties={DATA: at(catalog, "data")})
    await change(catalog, moved(second))
    before = await held(catalog)
    await drop_table(catalog, ROOT, T)
    drop_id = (await list_dropped(catalog, ROOT, size=5)).entries[0][0]
    await make(catalog, OTHER, location=first)
    with pytest.raises(LocationRefused):
        await restore_dropped(catalog, ROOT, drop_id)
    await unregister_table(catalog, ROOT, OTHER)

    await restore_dropped(catalog, ROOT, drop_id)

    assert await held(catalog) == before
    for place in (first, second, at(catalog, "data")):
        assert await holder(catalog, place) == before.id


async def test_an_overwritten_table_holds_what_its_new_file_says_and_what_it_had(
    catalog: OpenCatalog,
) -> None:
    data = at(catalog, "data")
    await make(catalog, OTHER, properties={DATA: data})
    file = (await unregister_table(catalog, ROOT, OTHER)).metadata_location
    old = decoded(await make(catalog, properties={DATA: at(catalog, "old-data")}))["location"]

    await register_table(catalog, ROOT, T, file, is_overwrite=True)

    now = await held(catalog)
    assert now.claims == (data, old, at(catalog, "old-data"))
    for place in (now.location, *now.claims):
        assert await holder(catalog, place) == now.id


async def test_what_was_dropped_is_held_until_it_is_forgotten_for_all_but_who_dropped_it(
    tmp_path: Path,
) -> None:
    """Nobody else gets the files of a table by waiting for its end."""
    clock = ManualClock()
    settings = PersistenceSettings(gc=GcSettings(undrop_window=timedelta(minutes=20)))
    async with open_directory_in(tmp_path, clock=clock, settings=settings) as directory:
        people = People(directory)
        await people.root()
        catalog = await make_catalog(directory, tmp_path)
        for namespace in (("ns",), ("mine",)):
            await create_namespace(catalog, ROOT, namespace, {})
        rights = (P.TABLE_CREATE, P.TABLE_WRITE_DATA)
        both = [*on_namespace(("ns",), P.TABLE_FULL_METADATA, *rights), *on_namespace(("mine",), *rights)]
        ann, bob = [await people.add(name, catalog, *both) for name in ("ann", "bob")]
        drops = [*on_namespace(("ns",), P.TABLE_DROP), *on_namespace(("mine",), *rights)]
        eve = await people.add("eve", catalog, *drops)
        place, data = at(catalog, "place"), at(catalog, "data")
        mine = Identifier(("mine",), "t")
        await make(catalog, mine)

        async def is_refused(who: Caller) -> None:
            new = mine._replace(name="new")
            for taken in (place, f"{place}/data", data):
                for is_staged in (False, True):
                    wanted = CreateTable(*new, SCHEMA, location=taken, is_staged=is_staged)
                    with pytest.raises(LocationRefused, match="was dropped"):
                        await create_table(catalog, who, wanted)
                for update in (moved(taken), properties(**{DATA: taken})):
                    with pytest.raises(LocationRefused, match="was dropped"):
                        await commit_table(catalog, who, TableChange(mine, [], updates(update)))
            with pytest.raises(LocationRefused, match="was dropped"):
                await register_table(catalog, who, new, file)

        file = (await make(catalog, location=place, properties={DATA: data})).metadata_location
        await drop_table(catalog, ann, T)
        await is_refused(bob)
        await is_refused(ROOT)
        registered = await register_table(catalog, ann, mine._replace(name="new"), file)
        assert registered.state.claims == (data,)
        await rename_table(catalog, ROOT, mine._replace(name="new"), T)

        # Who may drop a table may not for that read it.
        await drop_table(catalog, eve, T)
        await is_refused(eve)
        await is_refused(ann)

        await clock.advance(20 * 60 + 1)
        assert await forget_dropped(catalog, ROOT) == 2
        assert await holder(catalog, place) is await holder(catalog, data) is None
        await register_table(catalog, bob, mine._replace(name="new"), file)


async def test_forgetting_takes_nothing_from_an_heir(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = PersistenceSettings(gc=GcSettings(undrop_window=timedelta(minutes=20)))
    async with open_directory_in(tmp_path, clock=clock, settings=settings) as directory:
        catalog = await make_catalog(directory, tmp_path)
        await create_namespace(catalog, ROOT, ("ns",), {})
        await make(catalog, location=at(catalog, "place"), properties={DATA: at(catalog, "data")})
        await drop_table(catalog, ROOT, T)
        await make(catalog, T, location=at(catalog, "place"))
        await clock.advance(20 * 60 + 1)

        await forget_dropped(catalog, ROOT)

        assert await holder(catalog, at(catalog, "place")) == (await held(catalog)).id
        assert await holder(catalog, at(catalog, "data")) is None


async def test_a_view_holds_its_places_too(catalog: OpenCatalog) -> None:
    place = at(catalog, "views", "meta")
    await create_view(
        catalog, ROOT, CreateView(V, SCHEMA, VERSION, properties={"write.metadata.path": place})
    )
    with pytest.raises(LocationRefused):
        await make(catalog, location=f"{place}/t")
    await drop_view(catalog, ROOT, V)
    await make(catalog, location=f"{place}/t")  # By who dropped it.


async def test_the_location_of_a_namespace_is_allowed_and_not_inside_a_table(catalog: OpenCatalog) -> None:
    table = decoded(await make(catalog))["location"]
    for refused in ("file:///etc", table, f"{table}/data", f"{catalog.base.text}/../x"):
        with pytest.raises((LocationRefused, BadInput)):
            await create_namespace(catalog, ROOT, ("new",), {"location": refused})
        wanted = PropertiesUpdate(updates={"location": refused})
        with pytest.raises((LocationRefused, BadInput)):
            await update_namespace_properties(catalog, ROOT, ("ns",), wanted)

    place = at(catalog, "spaces", "new")
    await create_namespace(catalog, ROOT, ("new",), {"location": place})
    made = decoded(await make(catalog, Identifier(("new",), "t")))["location"]
    assert made.startswith(f"{place}/t-")
    # A table is below it: that is what it is for.
    wanted = PropertiesUpdate(updates={"location": at(catalog, "spaces")})
    await update_namespace_properties(catalog, ROOT, ("new",), wanted)


async def test_a_state_from_before_claims_were_kept_gets_them_with_its_next_commit(
    catalog: OpenCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = at(catalog, "data")
    with monkeypatch.context() as before:
        before.setattr("cynosure.catalog.locations.PATHS", ())
        await make(catalog, properties={DATA: place})
    assert (await held(catalog)).claims == ()

    await change(catalog, properties(k="v"))

    assert (await held(catalog)).claims == (place,)
    with pytest.raises(LocationRefused):
        await make(catalog, OTHER, location=place)
