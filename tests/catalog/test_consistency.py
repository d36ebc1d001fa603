"""That indexes which disagree are noticed, and that those of a catalog in use do not."""

from collections.abc import Awaitable, Callable

import pytest

from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes
from cynosure.catalog.consistency import find_disagreements
from cynosure.catalog.file_access.modes import ANY_WAY
from cynosure.catalog.generic.create_generic_table import CreateGenericTable, create_generic_table
from cynosure.catalog.generic.drop_generic_table import drop_generic_table
from cynosure.catalog.names import Identifier, namespace_key, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_table import CreateTable, create_table
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.catalog.operations.drop_policy import drop_policy
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.list_dropped import list_dropped
from cynosure.catalog.operations.restore_dropped import restore_dropped
from cynosure.catalog.policies.mappings import MAPPINGS
from cynosure.catalog.policies.placing import AttachTo
from cynosure.catalog.purging.purge import begin_purge
from cynosure.catalog.purging.tombstone import IDS as TOMBSTONE_IDS
from cynosure.catalog.purging.tombstone import PURGES
from cynosure.catalog.staged import IDS
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import decode_key, encode_id_key, encode_key
from cynosure.testing.scripted_executor import ScriptedExecutor
from cynosure.testing.small_catalog import ROOT, SCHEMA
from tests.catalog.generic.vendors import MemoryVendor, vending
from tests.catalog.policies.made import CATALOG, EXPIRY, NAMESPACE, TABLE, attach, create, policy
from tests.catalog.tables import T, change, make, properties
from tests.catalog.world import VERSION

pytestmark = pytest.mark.anyio

Breaking = Callable[[State], Awaitable[Changes]]


@pytest.fixture
async def used(catalog: OpenCatalog) -> OpenCatalog:
    """A catalog with one of everything, some of it dropped."""
    opened = vending(catalog, MemoryVendor())
    await make(opened, properties={"write.data.path": opened.base.child("elsewhere").text})
    await change(opened, {"action": "set-location", "location": opened.base.child("moved").text})
    await make(opened, Identifier(("ns",), "dropped"))
    await create_view(opened, ROOT, CreateView(Identifier(("ns",), "v"), SCHEMA, VERSION))
    generic = CreateGenericTable(Identifier(("ns",), "g"), "csv", opened.base.child("g").text)
    await create_generic_table(opened, ROOT, generic)
    await create_table(opened, ROOT, CreateTable(("ns",), "new", SCHEMA, is_staged=True), delegation=ANY_WAY)
    for name, to in (("a", CATALOG), ("b", NAMESPACE), ("c", TABLE)):
        await create(opened, name)
        await attach(opened, name, to)
    await create(opened, "d", policy_type=EXPIRY)
    await attach(opened, "d", AttachTo("table-like", ("ns", "dropped")))
    await drop_table(opened, ROOT, Identifier(("ns",), "dropped"))
    executor = opened.shared.executor
    assert isinstance(executor, ScriptedExecutor)
    executor.work = None
    for name in ("purged", "lifted"):
        await make(opened, Identifier(("ns",), name))
    await begin_purge(opened, ROOT, Identifier(("ns",), "purged"))
    lifted = await begin_purge(opened, ROOT, Identifier(("ns",), "lifted"))
    await restore_dropped(opened, ROOT, lifted.tombstone.drop_id)
    return opened


async def disagreements(catalog: OpenCatalog) -> list[str]:
    return await find_disagreements(await catalog.read())


async def test_the_indexes_of_a_catalog_in_use_agree(used: OpenCatalog) -> None:
    """I46, I60, I62."""
    assert await disagreements(used) == []

    (drop_id, _), _ = (await list_dropped(used, ROOT, size=10)).entries
    await restore_dropped(used, ROOT, drop_id)
    await change(used, properties(**{"write.data.path": used.base.child("third").text}))
    await drop_policy(used, ROOT, policy("a"), is_detaching=True)
    await drop_generic_table(used, ROOT, Identifier(("ns",), "g"))

    assert await disagreements(used) == []


async def first(state: State, index: str, *, prefix: bytes = b"", start: bytes = b"") -> tuple[bytes, bytes]:
    return (await state.scan(index, prefix=prefix, start=start, limit=1))[0]


async def lose(state: State, index: str, prefix: bytes = b"", start: bytes = b"") -> Changes:
    key, _ = await first(state, index, prefix=prefix, start=start)
    return {index: {key: None}}


async def lose_place(state: State) -> Changes:
    return await lose(state, "locations")


async def lose_id(state: State) -> Changes:
    return await lose(state, "ids")


async def lose_table(state: State) -> Changes:
    return {"names": {table_key(T): None}}


async def lose_namespace(state: State) -> Changes:
    return {"names": {namespace_key(("ns",)): None}}


async def lose_reservation(state: State) -> Changes:
    return await lose(state, "staged", start=IDS)


async def lose_path_of_reservation(state: State) -> Changes:
    return await lose(state, "staged")


async def lose_direction(state: State) -> Changes:
    return await lose(state, MAPPINGS, prefix=b"t")


async def lose_other_direction(state: State) -> Changes:
    return await lose(state, MAPPINGS, prefix=b"p")


async def lose_policy(state: State) -> Changes:
    return await lose(state, "names", prefix=b"p")


async def lose_drop(state: State) -> Changes:
    return await lose(state, "dropped")


async def lose_tombstone(state: State) -> Changes:
    return await lose(state, PURGES, start=TOMBSTONE_IDS)


async def lose_path_of_tombstone(state: State) -> Changes:
    return await lose(state, PURGES, prefix=b"p")


async def lose_what_is_purged(state: State) -> Changes:
    return {"dropped": {(await state.scan("dropped", limit=5))[-1][0]: None}}


async def take_place(state: State) -> Changes:
    key, _ = await first(state, "locations")
    return {"locations": {key: encode_id_key(17)}}


async def take_below(state: State) -> Changes:
    """Something inside a table's place is somebody else's."""
    key, holder = await first(state, "locations")
    entries = await state.scan("locations", limit=100)
    other = next(value for _, value in entries if value != holder)
    return {"locations": {encode_key(*decode_key(key), "below"): other}}


async def note_nothing(state: State) -> Changes:
    return {"notified": {table_key(T): b"soon"}}


async def see_nothing(state: State) -> Changes:
    return {"remote": {table_key(Identifier(("ns",), "unseen")): b"seen"}}


async def find_nothing_by_uuid(state: State) -> Changes:
    return {"remote": {encode_key("u", "uuid"): table_key(T)}}


async def name_twice(state: State) -> Changes:
    value = await state.find("names", table_key(T))
    return {"names": {table_key(Identifier(("ns",), "twice")): value}}


@pytest.mark.parametrize(
    ("breaking", "told"),
    [
        (lose_place, "does not hold"),
        (see_nothing, "was seen, and is gone"),
        (find_nothing_by_uuid, "which was not seen"),
        (lose_id, "its id leads elsewhere"),
        (lose_table, "which is gone"),
        (lose_namespace, "its namespace is gone"),
        (lose_reservation, "reservations: 1 entries instead of 0"),
        (lose_path_of_reservation, "cannot be found by id and by path"),
        (lose_direction, "the two directions differ"),
        (lose_other_direction, "the two directions differ"),
        (lose_policy, "which is gone"),
        (lose_drop, "which does not hold it"),
        (lose_tombstone, "tombstones: 1 entries instead of 0"),
        (lose_path_of_tombstone, "cannot be found by id and by path"),
        (lose_what_is_purged, "what was dropped is gone"),
        (take_place, "which does not hold it"),
        (take_below, "inside that of"),
        (note_nothing, "is not the time of a table"),
        (name_twice, "its id leads elsewhere"),
    ],
)
async def test_indexes_that_disagree_are_noticed(used: OpenCatalog, breaking: Breaking, told: str) -> None:
    changes = await breaking(await used.read())

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, changes)

    await commit_part(used.committer, ROOT, "break", prepare)

    assert any(told in each for each in await disagreements(used))


async def test_only_so_many_problems_are_told(used: OpenCatalog) -> None:
    state = await used.read()
    every = await state.scan("locations", limit=100)

    async def prepare(view: View) -> Prepared[None]:
        return Prepared(None, {"locations": {key: None for key, _ in every}})

    await commit_part(used.committer, ROOT, "break", prepare)

    assert len(await find_disagreements(await used.read(), most=2)) == 2
