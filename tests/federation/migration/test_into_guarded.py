"""What nobody gets by a migration into another catalog: places, names, files, or sight of what is hidden.

Holds I123.
"""

import uuid

import msgspec
import pytest
from msgspec import structs

from cynosure.auth.committing import commit_part
from cynosure.auth.require import AccessDenied
from cynosure.catalog.ceding import Cession, listing_cession
from cynosure.catalog.errors import CatalogLocationRefused, LocationRefused, TableExists
from cynosure.catalog.locations import location_key
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.attach_policy import attach_policy
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_policy import CreatePolicy, create_policy
from cynosure.catalog.operations.create_table import CreateTable
from cynosure.catalog.operations.register_table import register_table
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.policies.placing import AttachTo
from cynosure.client.migration import Choices
from cynosure.common.errors import Conflict
from cynosure.federation.errors import NotShown
from cynosure.federation.operations import FederatedOperations
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.small_access import P, on_catalog
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.federation.migration.into_world import OURS, STAYS, Two, make_catalog
from tests.federation.migration.moving import U, ask, migration, outcomes
from tests.federation.seen_world import NS, OTHER_UUID, THIRD_UUID, Far, T

pytestmark = pytest.mark.anyio

ONE = structs.replace(OURS, tables=(("ns", "orders"),))
FILTER = Identifier(NS, "own-rows")
CONTENT = msgspec.json.encode({"enable": True, "filter": "data = current_user()"}).decode()


@pytest.fixture
async def two(far: Far) -> Two:
    """Tables at the remote, and a catalog to move them into."""
    made = Two(far)
    await make_catalog(far)
    await made.fill()
    return made


async def restrict(far: Far, to: AttachTo) -> None:
    await create_policy(far.catalog, ROOT, CreatePolicy(FILTER, "cynosure.row-filter", CONTENT))
    await attach_policy(far.catalog, ROOT, FILTER, to)


@pytest.mark.parametrize("ceded", [False, True])
async def test_nobody_in_the_other_catalog_gets_a_place_or_name_on_its_way(two: Two, ceded: bool) -> None:
    ours = await two.open()
    await create_namespace(ours, ROOT, NS, {})
    eve = await two.far.people.add("eve", ours, *on_catalog(P.CATALOG_MANAGE_CONTENT))
    file = two.far.remote.tables[T].tag.metadata_location or ""
    await two.prepare_giving(T)
    if ceded:
        await ask(two.far, {"step": "cede"})

    for at in ("orders", "orders/metadata", ""):
        with pytest.raises(LocationRefused):
            await two.create("ours", Identifier(NS, "mine"), two.place(at), eve)
    with pytest.raises(LocationRefused):
        await register_table(await two.open(), eve, Identifier(NS, "mine"), file)
    with pytest.raises(TableExists):
        await two.create("ours", T, f"{ours.base.text}/mine", eve)
    await two.create("ours", Identifier(NS, "mine"), f"{ours.base.text}/mine", eve)

    assert (await migration(two.far).move(ONE)).phase == "done"
    assert (await two.load())["location"] == two.place("orders")
    assert await two.disagreements() == []


async def test_nothing_of_the_giver_is_ever_in_a_ceded_place_again(two: Two) -> None:
    far = two.far
    await migration(far).move(ONE)
    far.catalog = await two.open("far")

    for at, table in (("orders", T), ("orders/below", Identifier(NS, "below"))):
        far.put(table, at, uuid=str(uuid.uuid4()))
        with pytest.raises(NotShown):
            await far.see(table=table)
        del far.remote.tables[table]
    through, asked = FederatedOperations(far.federation), len(far.remote.asked)
    for at in ("orders", "orders/below"):
        wanted = CreateTable(NS, "mine", msgspec.Raw(SCHEMA), location=two.place(at))
        with pytest.raises(LocationRefused):
            await through.create_table(far.catalog, ROOT, wanted)
    assert "create-table" not in far.remote.asked[asked:]
    await migration(far).move(Choices())
    with pytest.raises(LocationRefused):
        await two.create("far", Identifier(NS, "mine"), two.place("orders"))
    assert (await two.load())["location"] == two.place("orders")
    assert await two.disagreements() == []


async def test_while_places_change_hands_the_giver_lets_nobody_have_them(two: Two) -> None:
    await two.prepare_giving(T)
    await ask(two.far, {"step": "cede"})

    state = await (await two.open("far")).read()
    assert (await migration(two.far).survey(OURS)).phase == "giving"
    assert await state.find("locations", (await state.scan("ceded", limit=1))[0][0]) is not None
    assert await two.disagreements() == []


async def test_a_name_that_the_other_catalog_has_is_in_the_way(two: Two) -> None:
    ours = await two.open()
    await create_namespace(ours, ROOT, NS, {})
    await two.create("ours", T, f"{ours.base.text}/mine")
    before = await two.count_commits()

    for choices in (ONE, OURS):
        told = await migration(two.far).move(choices)
        assert [each.path for each in told.obstacles] == [("ns", "orders")]
    assert await two.count_commits() == before
    moved = await migration(two.far).move(structs.replace(OURS, leave_behind=True))

    assert moved.phase == "done"
    assert outcomes(moved.objects)["ns.orders"] == "left-behind"
    assert set(two.far.remote.tables) == {T}
    await two.far.see()
    assert await two.far.id_of()
    assert await two.disagreements() == []


async def test_a_name_that_is_taken_there_meanwhile_is_put_back_at_the_remote(two: Two) -> None:
    ours = await two.open()
    await create_namespace(ours, ROOT, NS, {})
    await ask(two.far, {"step": "begin", "into": "ours"})
    await ask(two.far, {"step": "take", "type": "table", "namespace": NS})
    await two.create("ours", T, f"{ours.base.text}/mine")

    told = await ask(two.far, {"step": "settle"})

    assert [each.outcome for each in told.objects if each.path == ("ns", "orders")] == ["obstacle"]
    assert set(two.far.remote.tables) >= {T}
    with pytest.raises(Conflict):
        await ask(two.far, {"step": "cede"})
    assert (await migration(two.far).cancel()).phase == "none"
    assert set(two.far.remote.tables) == {T, U, STAYS}
    assert await two.disagreements() == []


async def test_a_file_that_the_other_storage_cannot_read_is_in_the_way(two: Two) -> None:
    two.far.put(name="v2")

    told = await migration(two.far).survey(OURS)

    assert [each.path for each in told.obstacles] == [("ns", "orders")]
    assert "cannot read its metadata file" in told.obstacles[0].reason


@pytest.mark.parametrize(
    "to",
    [AttachTo("table-like", ("ns", "orders")), AttachTo("namespace", NS), AttachTo("catalog", ())],
    ids=["table", "namespace", "catalog"],
)
async def test_what_a_filter_hides_is_not_moved_out_of_it(two: Two, to: AttachTo) -> None:
    await restrict(two.far, to)

    told = await migration(two.far).move(ONE)

    assert [each.path for each in told.obstacles] == [("ns", "orders")]
    assert "own-rows" in told.obstacles[0].reason
    assert T in two.far.remote.tables
    moved = await migration(two.far).move(structs.replace(ONE, leave_policies=True))
    assert moved.phase == "done"


async def test_what_stays_behind_is_told(two: Two) -> None:
    await restrict(two.far, AttachTo("catalog", ()))

    told = await migration(two.far).survey(structs.replace(ONE, leave_policies=True))

    reasons = {each.path: each.reason for each in told.objects}
    assert reasons["ns", "orders"] == "policies that stay behind: ns.own-rows"


async def test_a_filter_that_comes_when_places_have_changed_hands_stops_it(two: Two) -> None:
    await two.prepare_giving(T)
    await ask(two.far, {"step": "cede"})
    await restrict(two.far, AttachTo("table-like", ("ns", "orders")))

    told = await migration(two.far).move(ONE)

    assert (told.phase, [each.path for each in told.obstacles]) == ("giving", [("ns", "orders")])
    moved = await migration(two.far).move(structs.replace(ONE, leave_policies=True))
    assert moved.phase == "done"


async def test_it_takes_rights_on_both_catalogs(two: Two) -> None:
    grants = on_catalog(P.CATALOG_MANAGE_METADATA, P.CATALOG_MANAGE_ACCESS)
    ann = await two.far.people.add("ann", two.far.catalog, *grants)
    before = await two.count_commits()

    for step in ("survey", "begin"):
        with pytest.raises(AccessDenied):
            await ask(two.far, {"step": step, "into": "ours"}, ann)
    await two.far.people.join("ann", await two.open(), *grants)
    assert (await ask(two.far, {"step": "survey", "into": "ours"}, ann)).objects[0].outcome == "ready"
    with pytest.raises(AccessDenied):
        await ask(two.far, {"step": "begin", "into": "ours"}, ann)
    assert await two.count_commits() == before


async def fill_many(two: Two, count: int, *, at: str = "many/") -> None:
    """A namespace with many tables, and a catalog that has room for few."""
    for number in range(count):
        table = Identifier(("many",), f"t{number:02}")
        await two.put(table, f"{at}{table.name}", uuid=str(uuid.UUID(int=number + 1)))
    entity = (await two.open()).entity
    places = tuple(f"{entity.base_location.rpartition('/')[0]}/extra{number}" for number in range(94))
    storage = FileStorage(allowed_locations=(entity.base_location, *places))
    await update_catalog(two.far.directory, ROOT, "ours", CatalogUpdate(storage=storage))


async def test_many_tables_of_a_namespace_become_one_location(two: Two) -> None:
    await fill_many(two, 8)
    before = (await two.open()).entity.storage.allowed_locations

    moved = await migration(two.far).move(structs.replace(OURS, namespaces=(("many",),)))

    assert moved.phase == "done"
    after = (await two.open()).entity.storage.allowed_locations
    assert after == (*before, two.place("many"))
    await two.commit(Identifier(("many",), "t07"))
    assert await two.disagreements() == []
    two.far.put(Identifier(("many",), "late"), "many/late", uuid=OTHER_UUID)
    with pytest.raises(NotShown):
        await two.far.see(table=Identifier(("many",), "late"))


async def test_a_directory_that_holds_something_that_stays_is_not_ceded(two: Two) -> None:
    await fill_many(two, 8)
    stays = Identifier(("other",), "inside")
    await two.put(stays, "many/inside", uuid=THIRD_UUID)
    await two.far.see(table=stays)
    there = dict(two.far.remote.tables)

    with pytest.raises(Conflict, match="too many locations"):
        await migration(two.far).move(structs.replace(OURS, namespaces=(("many",),)))
    assert (await migration(two.far).cancel()).phase == "none"

    assert two.far.remote.tables == there
    state = await two.far.directory.read(DEFAULT_REALM)
    assert await state.scan("ceded", limit=1) == []


async def test_more_tables_than_the_other_catalog_can_have_are_told_by_the_dry_run(two: Two) -> None:
    await fill_many(two, 8)
    chosen = tuple(("many", f"t{number:02}") for number in range(8))

    told = await migration(two.far).move(structs.replace(OURS, tables=chosen, leave_behind=True))

    assert (told.phase, [each.path for each in told.obstacles]) == ("none", [("ours",)])
    assert "whole namespaces" in told.obstacles[0].reason


@pytest.mark.parametrize("at", ["", "flat/"])
async def test_a_directory_that_may_hold_what_nobody_has_seen_is_not_ceded(two: Two, at: str) -> None:
    await fill_many(two, 8, at=at)
    two.far.remote.namespaces["many",] = {"location": two.place(at)}

    with pytest.raises(Conflict, match="too many locations"):
        await migration(two.far).move(structs.replace(OURS, namespaces=(("many",),)))


async def test_a_namespace_that_does_not_go_as_a_whole_keeps_its_directory(two: Two) -> None:
    await fill_many(two, 8)
    chosen = tuple(("many", f"t{number:02}") for number in range(8))
    await ask(two.far, {"step": "begin", "into": "ours", "tables": chosen})
    await ask(two.far, {"step": "take", "type": "table", "namespace": ("many",)})
    await ask(two.far, {"step": "settle"})

    with pytest.raises(Conflict, match="too many locations"):
        await ask(two.far, {"step": "cede"})


async def test_places_that_are_not_reserved_are_not_ceded(two: Two) -> None:
    await ask(two.far, {"step": "begin", "into": "ours", "leaveBehind": True})
    await ask(two.far, {"step": "take", "type": "table", "namespace": NS})

    with pytest.raises(Conflict, match="Not everything"):
        await ask(two.far, {"step": "cede"})
    assert await (await (await two.open("far")).read()).scan("ceded", limit=1) == []


async def test_what_cannot_go_is_found_before_it_is_renamed_at_the_remote(two: Two) -> None:
    two.far.put(name="v2")
    await ask(two.far, {"step": "begin", "into": "ours", "tables": (("ns", "orders"),)})

    told = await ask(two.far, {"step": "take", "type": "table", "namespace": NS})

    assert [each.outcome for each in told.objects] == ["obstacle"]
    assert "rename-table" not in two.far.remote.asked


async def test_many_ceded_places_do_not_hide_the_location_of_another_catalog(two: Two) -> None:
    far, directory = two.far, two.far.directory
    await make_catalog(far, "zz")
    ours, base = await two.open(), far.catalog.base
    places = [base.child(f"p{number:03}") for number in range(150)]
    cession = Cession(far.catalog.entity.id, ours.entity.id)

    async def prepare(view: View) -> Prepared[None]:
        owned = {location_key(each): ours.entity.id.encode() for each in places}
        return Prepared(None, {**listing_cession(places, cession), "locations": owned})

    await commit_part(directory.committer(DEFAULT_REALM), ROOT, "cede-many", prepare)
    above = base.text.rpartition("/")[0]
    await update_catalog(directory, ROOT, "far", CatalogUpdate(set_properties={"a": "1"}))
    with pytest.raises(CatalogLocationRefused):
        await update_catalog(directory, ROOT, "far", CatalogUpdate(storage=FileStorage((base.text, above))))
