"""Grants on names: whoever may read what has a name gets nothing of what had it before (I112)."""

import pytest

from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.names import Identifier
from cynosure.catalog.resolve import require_table_ref
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, OTHER_UUID, Far, T

pytestmark = pytest.mark.anyio

SECRET = Identifier(NS, "secret")


async def places_of(far: Far, table: Identifier) -> list[str]:
    """Where credentials for a table reach."""
    view = await far.catalog.read()
    ref = await require_table_ref(view, table)
    state = (await load_table_at(view, ref.id, far.catalog.shared.tables)).state
    scope = table_scope(far.catalog, state, is_writable=False)
    return [each.text.removeprefix(far.catalog.base.text) for each in scope.locations]


async def test_another_table_of_the_name_does_not_bring_the_places_of_the_one_before(far: Far) -> None:
    await far.set_properties(grants="by-name")
    far.put()
    await far.federation.see_to_grant(far.catalog, ROOT, T)
    await far.see()
    before = await far.id_of()
    far.remote.tables[SECRET] = far.remote.tables.pop(T)
    far.put(at="anew", uuid=OTHER_UUID)

    await far.see()

    assert await places_of(far, T) == ["/anew"]
    await far.see(table=SECRET)
    assert await places_of(far, SECRET) == ["/orders"]
    assert (await far.id_of() == before, await far.id_of(SECRET) == before) == (True, False)
    assert await far.disagreements() == []
