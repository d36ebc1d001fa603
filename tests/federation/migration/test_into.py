"""Tables of a federated catalog go into another one, and the rest stays as it was.

Holds I123.
"""

from pathlib import Path

import pytest
from msgspec import structs

from cynosure.catalog.cascading.drop_catalog import drop_catalog_cascade
from cynosure.catalog.errors import CatalogLocationRefused, CatalogNotEmpty, NoSuchCatalog, NoSuchTable
from cynosure.catalog.listing import Paging
from cynosure.catalog.operations.drop_catalog import drop_catalog
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.resolve import find_namespace
from cynosure.client.migration import Choices
from cynosure.common.errors import BadInput, Conflict
from cynosure.federation import lists
from cynosure.federation.errors import NotShown
from cynosure.federation.mirror.seen import INDEX
from cynosure.persistence.index import prefix_of
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.small_catalog import ROOT
from tests.federation.migration.into_world import OURS, STAYS, Two, V, make_catalog
from tests.federation.migration.moving import U, ask, migration, outcomes
from tests.federation.seen_world import NS, OTHER_UUID, Far, T, open_beside

pytestmark = pytest.mark.anyio

CHOSEN = structs.replace(OURS, tables=(("ns", "orders"), ("ns", "deep", "items")))


@pytest.fixture
async def two(far: Far) -> Two:
    """Tables at the remote, and a catalog to move them into."""
    made = Two(far)
    await make_catalog(far)
    await made.fill()
    return made


async def test_chosen_tables_are_in_the_other_catalog_and_the_rest_stays_federated(two: Two) -> None:
    far = two.far
    there = dict(far.remote.tables)

    moved = await migration(far).move(CHOSEN)

    assert (moved.phase, moved.into) == ("done", "ours")
    assert outcomes(moved.objects) == {
        "ns": "taken",
        "ns.deep": "taken",
        "ns.orders": "released",
        "ns.deep.items": "released",
    }
    assert set(far.remote.tables) == {STAYS}
    for table in (T, U):
        found = await two.load(table)
        assert (found["table-uuid"], found["location"]) == (
            there[table].uuid,
            there[table].metadata.location,
        )
        await two.commit(table)
        with pytest.raises(NoSuchTable):
            await far.id_of(table)
    far.catalog = await two.open("far")
    assert far.catalog.is_federated
    await far.see(table=STAYS)
    assert await far.id_of(STAYS)
    assert (await ask(far, {"step": "status"})).phase == "none"
    assert await two.disagreements() == []


async def test_no_id_waits_here_for_what_is_another_catalogs(two: Two) -> None:
    await migration(two.far).move(CHOSEN)

    assert await (await two.far.catalog.read()).scan(INDEX, prefix=prefix_of("i"), limit=1) == []


async def test_everything_goes_with_views_namespaces_and_their_properties(two: Two) -> None:
    far = two.far
    await two.put_view()
    far.remote.namespaces["empty",] = {"owner": "them", "location": two.place("empty")}

    moved = await migration(far).move(OURS)

    assert moved.phase == "done"
    assert (far.remote.tables, far.remote.views) == ({}, {})
    ours = await two.open()
    assert (await load_view(ours, ROOT, V)).location.startswith(far.catalog.base.text)
    namespace = await find_namespace(await ours.read(), ("empty",))
    # Its location is no place of the other catalog's.
    assert namespace is not None
    assert namespace.properties == {"owner": "them"}
    assert await two.disagreements() == []


async def test_many_namespaces_go_too_page_by_page(two: Two) -> None:
    for number in range(60):
        two.far.remote.namespaces[f"n{number:02}",] = {}

    assert (await migration(two.far).move(OURS)).phase == "done"

    state = await (await two.open()).read()
    assert [number for number in range(60) if not await find_namespace(state, (f"n{number:02}",))] == []


async def test_a_dry_run_changes_nothing(two: Two) -> None:
    before = await two.count_commits()

    found = await migration(two.far).survey(CHOSEN)

    assert (found.phase, found.into, found.obstacles) == ("none", "ours", [])
    assert outcomes(found.objects)["ns.orders"] == "ready"
    assert "ns.stays" not in outcomes(found.objects)
    assert await two.count_commits() == before
    assert not {"rename-table", "drop-table"} & set(two.far.remote.asked)


async def test_in_place_only_chosen_tables_become_ours(two: Two) -> None:
    await two.far.see(table=STAYS)

    moved = await migration(two.far).move(Choices(tables=(("ns", "orders"),)))

    assert moved.phase == "done"
    assert outcomes(moved.objects)["ns.stays"] == "left-behind"
    assert set(two.far.remote.tables) == {U, STAYS}


async def test_what_is_kept_at_the_remote_is_not_listed_and_not_shown(two: Two) -> None:
    far = two.far
    await migration(far).move(structs.replace(CHOSEN, keep_remote=True))

    (kept,) = [each for each in far.remote.tables if each.namespace == NS and each != STAYS]
    far.catalog = await two.open("far")
    for paging in (Paging(None, None), Paging("", 10)):
        names = await lists.list_tables(far.federation.clients, far.catalog, ROOT, NS, paging)
        assert (b"stays" in names, b"cynosure_moved" in names) == (True, False)
    with pytest.raises(NotShown):
        await far.see(table=kept)
    again = await migration(far).survey()
    assert set(outcomes(again.objects)) == {"ns", "ns.deep", "ns.stays"}


async def test_one_migration_after_the_other_then_the_rest_in_place(two: Two) -> None:
    far = two.far
    await make_catalog(far, "others")

    for table, into in ((T, "ours"), (U, "others")):
        choices = Choices(into=into, tables=((*table.namespace, table.name),))
        assert (await migration(far).move(choices)).phase == "done"
    assert (await migration(far).move(Choices())).phase == "done"

    assert far.remote.tables == {}
    assert (await two.open("far")).entity.kind == "INTERNAL"
    await two.commit(T)
    assert await two.disagreements() == []


async def test_both_catalogs_can_be_changed_afterwards_and_a_third_gets_none_of_it(two: Two) -> None:
    far, directory = two.far, two.far.directory
    await migration(far).move(CHOSEN)

    for name in ("far", "ours"):
        await update_catalog(directory, ROOT, name, CatalogUpdate(set_properties={"a": "1"}))
    for place in (two.place("orders"), two.place("orders/below"), far.catalog.base.text):
        with pytest.raises(CatalogLocationRefused):
            await make_catalog(far, "third", place)
        wider = FileStorage(
            allowed_locations=(*(await two.open("ours")).entity.storage.allowed_locations, place)
        )
        if place != two.place("orders"):
            continue
        await make_catalog(far, "fourth")
        with pytest.raises(CatalogLocationRefused):
            await update_catalog(directory, ROOT, "fourth", CatalogUpdate(storage=wider))


async def test_the_taker_can_leave_a_place_and_have_it_again(two: Two) -> None:
    before = (await two.open()).entity.storage
    await migration(two.far).move(CHOSEN)
    after = (await two.open()).entity.storage

    for storage in (before, after):
        await update_catalog(two.far.directory, ROOT, "ours", CatalogUpdate(storage=storage))
        with pytest.raises(CatalogLocationRefused):
            await make_catalog(two.far, "third", two.place("orders"))

    await two.commit()


async def test_a_ceded_place_is_not_the_takers_way_to_more(two: Two) -> None:
    await migration(two.far).move(CHOSEN)

    for place in (two.place("stays"), two.far.catalog.base.text):
        entity = (await two.open()).entity
        wider = FileStorage(allowed_locations=(*entity.storage.allowed_locations, place))
        with pytest.raises(CatalogLocationRefused):
            await update_catalog(two.far.directory, ROOT, "ours", CatalogUpdate(storage=wider))


async def test_when_both_are_dropped_the_places_are_anybodys(two: Two) -> None:
    far, directory = two.far, two.far.directory
    await migration(far).move(CHOSEN)
    await drop_catalog(directory, ROOT, "far")
    with pytest.raises(CatalogLocationRefused):
        await make_catalog(far, "third", far.catalog.base.text)

    await drop_catalog_cascade(directory, ROOT, "ours")

    assert await (await directory.read(DEFAULT_REALM)).scan("ceded", limit=1) == []
    await make_catalog(far, "third", far.catalog.base.text)


async def test_another_replica_uses_the_new_places_at_once(two: Two, tmp_path: Path) -> None:
    async with open_beside(two.far, tmp_path) as other:
        before = await other.directory.open(DEFAULT_REALM, "ours")
        await migration(two.far).move(CHOSEN)
        after = await other.directory.open(DEFAULT_REALM, "ours")

    assert len(after.allowed) == len(before.allowed) + 2


@pytest.mark.parametrize("wrong", ["far", "ext", "nowhere"])
async def test_only_another_catalog_that_owns_its_tables_gets_them(two: Two, wrong: str) -> None:
    await make_catalog(two.far, "ext", kind="EXTERNAL")
    before = await two.count_commits()

    for step in ("survey", "begin"):
        with pytest.raises(NoSuchCatalog if wrong == "nowhere" else BadInput):
            await ask(two.far, {"step": step, "into": wrong})
    assert await two.count_commits() == before


async def test_a_table_that_the_remote_has_not_is_told_before_anything_is_begun(two: Two) -> None:
    choices = structs.replace(OURS, tables=(("ns", "orders"), ("ns", "odrers")), leave_behind=True)
    before = await two.count_commits()

    told = await migration(two.far).move(choices)

    assert [(each.path, each.outcome) for each in told.obstacles] == [(("ns", "odrers"), "obstacle")]
    with pytest.raises(BadInput, match="no table or view") as refused:
        await ask(two.far, choices.to_step("begin"))
    assert refused.value.details["name"] == "ns.odrers"
    assert await two.count_commits() == before


async def test_what_is_moved_and_where_to_does_not_change_on_the_way(two: Two) -> None:
    await make_catalog(two.far, "others")
    await ask(two.far, {"step": "begin", "into": "ours"})

    for other in ({"into": "others"}, {"tables": (("ns", "orders"),)}):
        with pytest.raises(Conflict):
            await ask(two.far, {"step": "begin", **other})
    assert (await migration(two.far).move(Choices())).into == "ours"


async def test_neither_catalog_is_dropped_on_the_way(two: Two) -> None:
    await ask(two.far, {"step": "begin", "into": "ours"})

    for name in ("far", "ours"):
        with pytest.raises(CatalogNotEmpty, match=r"being moved|on their way"):
            await drop_catalog(two.far.directory, ROOT, name)
    await migration(two.far).cancel()
    await drop_catalog(two.far.directory, ROOT, "ours")


async def test_given_up_before_places_change_hands_all_is_as_it_was(two: Two) -> None:
    far, there = two.far, dict(two.far.remote.tables)
    await two.prepare_giving(T, U)
    assert await (await (await two.open()).read()).scan("adopting", limit=1)

    cancelled = await migration(far).cancel()

    assert cancelled.phase == "none"
    assert far.remote.tables == there
    state = await (await two.open()).read()
    for index in ("adopting", "locations", "names"):
        assert await state.scan(index, limit=1) == []
    assert await two.disagreements() == []


async def test_there_is_no_way_back_once_places_changed_hands(two: Two) -> None:
    await two.prepare_giving(T)
    await ask(two.far, {"step": "cede"})

    with pytest.raises(Conflict):
        await ask(two.far, {"step": "cancel"})
    assert (await migration(two.far).move(OURS)).phase == "done"


async def test_steps_are_done_in_their_order(two: Two) -> None:
    await ask(two.far, {"step": "begin", "into": "ours"})
    for step in ("give", "release", "finish", "cede"):
        with pytest.raises(Conflict):
            await ask(two.far, {"step": step})
    assert set(two.far.remote.tables) == {T, U, STAYS}


async def test_what_comes_between_is_carried(two: Two) -> None:
    async def commit_there(step: dict) -> None:
        if step["step"] == "take" and step.get("type") == "table" and T in two.far.remote.tables:
            await two.put(name="v2", **{"last-updated-ms": 1_700_000_000_000})

    await migration(two.far, commit_there).move(CHOSEN)

    assert (await two.load())["properties"]["version"] == "v2"
    assert (await two.load())["table-uuid"] != OTHER_UUID
