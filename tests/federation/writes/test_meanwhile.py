"""Somebody looks while a table or view is renamed or dropped through us: it comes to the same (I112)."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from cynosure.catalog.errors import NoSuchTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.load_view import load_view
from cynosure.catalog.policies.placing import AttachTo
from cynosure.testing.small_access import P, on_table, on_view
from cynosure.testing.small_catalog import ROOT
from tests.catalog.policies.made import applicable, attach, create
from tests.federation.mirror.test_waiting import CONTENTS, FILTER, MASK
from tests.federation.seen_world import NS, OTHER_UUID, T
from tests.federation.writes.changes import Passing, make_namespace, make_table, view_creation

pytestmark = pytest.mark.anyio

ELSEWHERE = ("elsewhere",)
U = Identifier(ELSEWHERE, "orders")
V, W = Identifier(NS, "v"), Identifier(NS, "w")


async def see(here: Passing, *tables: Identifier) -> None:
    for table in tables:
        await here.far.federation.see_table(here.far.catalog, ROOT, table, is_fresh=True)


def look_behind(here: Passing, name: str, look: Callable[[], Awaitable[None]]) -> None:
    """Have somebody look when the remote has done this, before it is noted here."""
    ours = getattr(here.remote, name)

    async def done(*args: Any, **more: Any) -> None:
        await ours(*args, **more)
        await look()

    setattr(here.remote, name, done)


@pytest.mark.parametrize("looks", [(T,), (U,), (T, U)], ids=["old-name", "new-name", "both"])
async def test_a_renamed_table_keeps_its_id_and_all_that_is_on_it(
    here: Passing, looks: tuple[Identifier, ...]
) -> None:
    catalog, people = here.far.catalog, here.far.people
    await make_table(here)
    await here.writes.create_namespace(catalog, ROOT, ELSEWHERE, {})
    before = await here.far.id_of()
    await create(catalog, "keep")
    await attach(catalog, "keep", AttachTo("table-like", (*NS, T.name)))
    reader = await people.add("reader", catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    look_behind(here, "rename_table", lambda: see(here, *looks))

    await here.writes.rename_table(catalog, ROOT, T, U)

    # At once: who has a right on this table only cannot make the remote be asked for the new name.
    await load_table(catalog, reader, U)
    assert await here.far.id_of(U) == before
    assert await applicable(catalog, *ELSEWHERE, U.name) == [("keep", False)]
    with pytest.raises(NoSuchTable):
        await load_table(catalog, ROOT, T)
    assert await here.far.disagreements() == []


async def test_who_renames_a_table_leaves_what_is_on_its_namespace_also_when_somebody_looks(
    here: Passing,
) -> None:
    catalog = here.far.catalog
    here.far.put()
    await see(here, T)
    await here.writes.create_namespace(catalog, ROOT, ELSEWHERE, {})
    for path, to in ((FILTER, AttachTo("table-like", (*NS, T.name))), (MASK, AttachTo("namespace", NS))):
        kind, content = CONTENTS[path]
        await create(catalog, path.name, policy_type=kind, content=json.dumps(content | {"enable": True}))
        await attach(catalog, path.name, to)
    look_behind(here, "rename_table", lambda: see(here, T))

    await here.writes.rename_table(catalog, ROOT, T, U)

    # Its own, once.
    assert await applicable(catalog, *ELSEWHERE, U.name) == [(FILTER.name, False)]


async def test_what_took_the_name_of_a_table_that_is_being_renamed_is_not_renamed(here: Passing) -> None:
    catalog = here.far.catalog
    await make_table(here)
    await here.writes.create_namespace(catalog, ROOT, ELSEWHERE, {})
    before = await here.far.id_of()

    async def put_another() -> None:
        here.far.put(at="anew", uuid=OTHER_UUID)
        await see(here, T)

    look_behind(here, "rename_table", put_another)

    await here.writes.rename_table(catalog, ROOT, T, U)

    assert await here.far.id_of(U) == before
    assert await here.far.id_of(T) != before
    assert await here.far.disagreements() == []


async def test_a_renamed_view_keeps_its_id_and_grants(here: Passing) -> None:
    catalog = here.far.catalog
    await make_namespace(here)
    made = await here.writes.create_view(catalog, ROOT, view_creation(V))
    reader = await here.far.people.add("reader", catalog, *on_view(V, P.VIEW_READ_PROPERTIES))
    look_behind(
        here,
        "rename_view",
        lambda: here.far.federation.see_view(catalog, ROOT, V, is_fresh=True),
    )

    await here.writes.rename_view(catalog, ROOT, V, W)

    assert (await load_view(catalog, reader, W)).id == made.id
    assert await here.far.disagreements() == []


@pytest.mark.parametrize("is_looked_at", [False, True], ids=["alone", "somebody-looks"])
async def test_a_table_that_was_dropped_through_us_is_another_one_when_it_is_back(
    here: Passing, is_looked_at: bool
) -> None:
    catalog = here.far.catalog
    await make_table(here)
    there, before = here.remote.tables[T], await here.far.id_of()
    reader = await here.far.people.add("reader", catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    if is_looked_at:
        look_behind(here, "drop_table", lambda: see(here, T))
    await here.writes.drop_table(catalog, ROOT, T)

    here.remote.tables[T] = there
    await see(here, T)

    assert await here.far.id_of() != before
    with pytest.raises(NoSuchTable):
        await load_table(catalog, reader, T)
    assert await here.far.disagreements() == []
