"""What the remote gives another name is the same there, whichever name somebody asks for first (I112)."""

from datetime import timedelta

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.catalog.errors import NoSuchTable, NoSuchView, RestrictedByPolicy
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.forget_dropped import forget_dropped
from cynosure.catalog.operations.list_tables import list_tables
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.roles.sweep_grants import SweepPlaces, sweep_grants
from cynosure.common.errors import NotFound
from cynosure.federation.maintenance import federation_tasks
from cynosure.federation.mirror import forget_table
from cynosure.federation.mirror.returning import Gone, forget_ids
from cynosure.federation.mirror.seen import INDEX
from cynosure.federation.reconcile import reconcile
from cynosure.federation.remote import Tag
from cynosure.persistence.commit.view import Entries
from cynosure.persistence.index import prefix_of
from cynosure.persistence.spi import ObjId
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.remote_kit import Stage, plan_view
from cynosure.testing.small_access import P, on_table, on_view
from cynosure.testing.small_catalog import ROOT
from tests.catalog.policies.made import applicable, attach, create
from tests.federation.mirror.test_waiting import load, restrict
from tests.federation.seen_world import NS, OTHER_UUID, THIRD_UUID, Far, T

pytestmark = pytest.mark.anyio

MOVED = Identifier(NS, "moved")
V, W = Identifier(NS, "v"), Identifier(NS, "w")
WINDOW_S = timedelta(days=7).total_seconds()


@pytest.fixture
async def ann(far: Far) -> Caller:
    """Somebody with a grant on one table, and a policy of maintenance that is attached to it."""
    far.put()
    await far.see()
    await create(far.catalog, "keep")
    await attach(far.catalog, "keep", AttachTo("table-like", (*NS, T.name)))
    return await far.people.add("ann", far.catalog, *on_table(T, P.TABLE_READ_DATA))


def rename(far: Far, source: Identifier = T, target: Identifier = MOVED) -> None:
    """Somebody renames a table at the remote."""
    far.remote.namespaces.setdefault(target.namespace, {})
    far.remote.tables[target] = far.remote.tables.pop(source)


async def see(far: Far, *tables: Identifier) -> None:
    for table in tables:
        await far.federation.see_table(far.catalog, ROOT, table, is_fresh=True)


async def find_waiting(far: Far) -> Entries:
    return await (await far.catalog.read()).scan(INDEX, prefix=prefix_of("i"), limit=10)


async def test_a_renamed_table_keeps_all_when_its_old_name_is_asked_for_first(far: Far, ann: Caller) -> None:
    before, target = await far.id_of(), Identifier(("other",), "orders")
    rename(far, target=target)

    await see(far, T)
    with pytest.raises(NoSuchTable):
        await load_table(far.catalog, ROOT, T)
    assert await far.disagreements() == []
    await see(far, target)

    assert await far.id_of(target) == before
    assert await applicable(far.catalog, *target.namespace, target.name) == [("keep", False)]
    await load(far, ann, target)
    assert await find_waiting(far) == []
    assert await far.disagreements() == []


@pytest.mark.parametrize("first", [T, MOVED], ids=["old-name", "new-name"])
async def test_what_is_put_in_the_place_of_a_renamed_table_has_nobodys_grants(
    far: Far, ann: Caller, first: Identifier
) -> None:
    before = await far.id_of()
    rename(far)
    far.put(at="anew", uuid=OTHER_UUID)

    await see(far, first, T, MOVED)

    assert await far.id_of(MOVED) == before
    await load(far, ann, MOVED)
    with pytest.raises(NoSuchTable):
        await load(far, ann)
    assert await applicable(far.catalog, *NS, T.name) == []
    assert await far.disagreements() == []


async def test_two_tables_that_change_places_keep_their_grants(far: Far, ann: Caller) -> None:
    far.put(MOVED, at="second", uuid=OTHER_UUID)
    await see(far, MOVED)
    bob = await far.people.add("bob", far.catalog, *on_table(MOVED, P.TABLE_READ_DATA))
    tables = far.remote.tables
    tables[T], tables[MOVED] = tables[MOVED], tables[T]

    await see(far, T, MOVED)

    for caller, theirs, other in ((ann, MOVED, T), (bob, T, MOVED)):
        await load(far, caller, theirs)
        with pytest.raises(NoSuchTable):
            await load(far, caller, other)
    assert await far.disagreements() == []


async def test_a_table_that_the_remote_hid_for_a_while_keeps_its_grants(far: Far, ann: Caller) -> None:
    hidden = far.remote.tables.pop(T)
    await see(far, T)
    far.put(at="anew", uuid=OTHER_UUID)
    await see(far, T)
    with pytest.raises(NoSuchTable):
        await load(far, ann)
    far.remote.tables[T] = hidden

    await see(far, T)

    await load(far, ann)

    assert await far.disagreements() == []


async def test_a_renamed_namespace_keeps_the_grants_on_its_tables(far: Far, ann: Caller) -> None:
    rename(far, target=Identifier(("after",), T.name))
    del far.remote.namespaces[NS]
    await far.federation.see_namespace(far.catalog, ROOT, NS)

    await see(far, Identifier(("after",), T.name))

    await load(far, ann, Identifier(("after",), T.name))


async def test_what_was_mended_as_gone_is_found_again_by_its_uuid(far: Far, ann: Caller) -> None:
    gone = far.remote.tables.pop(T)
    (told,) = (await reconcile(far.federation.clients, far.catalog, ROOT, is_mending=True)).drifts
    assert (told.difference, told.is_mended) == ("gone", True)
    far.remote.tables[MOVED] = gone

    await see(far, MOVED)

    await load(far, ann, MOVED)


async def test_a_renamed_view_keeps_its_grants_when_its_old_name_is_asked_for_first(far: Far) -> None:
    far.remote.put_view(V, plan_view(Stage(far.remote, far.catalog.base.text), V))
    await far.federation.see_view(far.catalog, ROOT, V)
    ann = await far.people.add("ann", far.catalog, *on_view(V, P.VIEW_READ_PROPERTIES))
    far.remote.views[W] = far.remote.views.pop(V)

    for name in (V, W):
        await far.federation.see_view(far.catalog, ROOT, name, is_fresh=True)

    assert await load_view(far.catalog, ann, W)
    with pytest.raises(NoSuchView):
        await load_view(far.catalog, ann, V)
    assert await far.disagreements() == []


async def test_what_waits_is_nowhere_and_counts_for_nothing_else(far: Far, ann: Caller) -> None:
    del far.remote.tables[T]
    await see(far, T)

    for caller in (ROOT, ann):
        for table in (T, MOVED):
            with pytest.raises(NotFound):
                await load_table(far.catalog, caller, table)
    listed = await list_tables(far.catalog, ROOT, NS, Paging())
    assert msgspec.json.decode(listed)["identifiers"] == []
    far.put(uuid=THIRD_UUID)
    with pytest.raises(NoSuchTable):
        await load(far, ann)


async def test_a_mask_that_does_not_fit_what_is_there_again_hides_it(far: Far) -> None:
    far.put()
    await far.see()
    await restrict(far)
    bob = await far.people.add("bob", far.catalog, *on_table(T, P.TABLE_READ_DATA))
    assert await load(far, bob) is not None
    del far.remote.tables[T]
    await see(far, T)
    fields = [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "hidden", "required": False, "type": "string"},
        {"id": 3, "name": "data", "required": False, "type": "string"},
    ]
    schema = {"type": "struct", "schema-id": 0, "fields": fields}
    far.put(MOVED, name="v2", schemas=[schema], **{"last-column-id": 3})

    await see(far, MOVED)

    with pytest.raises(RestrictedByPolicy):
        await load(far, bob, MOVED)


async def test_an_id_waits_as_long_as_what_was_dropped_is_kept(
    far: Far, ann: Caller, manual_clock: ManualClock
) -> None:
    before = await far.id_of()
    rename(far)
    await see(far, T)
    far.put(at="anew", uuid=OTHER_UUID)
    await see(far, T)
    await manual_clock.advance(WINDOW_S - 1)
    await forget_table(far.catalog, ROOT, T)
    assert await sweep_grants(far.catalog, ROOT, SweepPlaces()) == 0
    await manual_clock.advance(2)

    assert await forget_dropped(far.catalog, ROOT) == 1
    assert [await forget_ids(far.catalog, ROOT) for _ in range(2)] == [1, 0]

    # That of the other one, which was given up later.
    assert len(await find_waiting(far)) == 1
    assert await sweep_grants(far.catalog, ROOT, SweepPlaces()) == 1
    await see(far, MOVED)
    assert await far.id_of(MOVED) != before
    with pytest.raises(NoSuchTable):
        await load(far, ann, MOVED)
    assert await far.disagreements() == []


async def test_an_id_whose_drop_is_kept_no_more_is_not_taken(
    far: Far, ann: Caller, manual_clock: ManualClock
) -> None:
    rename(far)
    await see(far, T)
    await manual_clock.advance(WINDOW_S + 1)
    await forget_dropped(far.catalog, ROOT)

    await see(far, MOVED)

    with pytest.raises(NoSuchTable):
        await load(far, ann, MOVED)
    (task,) = federation_tasks(far.directory)
    done = await far.directory.shared.persistence.tasks.run_now(task)
    assert done.text == "1 done, 0 catalogs failed"
    assert await find_waiting(far) == []


def test_what_waits_is_stored_as_it_was_and_old_entries_can_be_read() -> None:
    golden = bytes.fromhex("920783b16d657461646174615f6c6f636174696f6ea166a465746167c0a776657273696f6ec0")
    gone = Gone(ObjId(7), Tag("f"))

    assert msgspec.msgpack.encode(gone) == golden
    assert msgspec.msgpack.decode(golden, type=Gone) == gone
    assert msgspec.msgpack.decode(b"\x91\x07", type=Gone) == Gone(ObjId(7))
