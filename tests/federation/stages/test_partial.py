"""Who makes a remote be asked: whoever may do anything with a thing, whether it was ever seen or not.

Holds I111.
"""

import pytest

from cynosure.auth.rbac.privileges import GRANTABLE, Privilege
from cynosure.catalog.names import Identifier
from cynosure.federation.stages.partial import may_know_namespace, may_know_table, may_know_view
from cynosure.testing.small_access import on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT
from tests.federation.seen_world import NS, Far, T

pytestmark = pytest.mark.anyio

V = Identifier(NS, "v")


async def test_every_privilege_that_means_something_on_a_table_lets_one_know_of_it(far: Far) -> None:
    far.put()
    await far.see()
    for privilege in sorted(GRANTABLE["table"]):
        ann = await far.people.add(f"p{privilege.value}", far.catalog, *on_table(T, privilege))
        assert await may_know_table(far.catalog, ann, T, await far.catalog.read()), privilege.name


async def test_every_privilege_on_views_and_namespaces_lets_one_know_of_them(far: Far) -> None:
    for privilege in sorted(GRANTABLE["view"]):
        ann = await far.people.add(f"v{privilege.value}", far.catalog, *on_catalog(privilege))
        assert await may_know_view(far.catalog, ann, V, await far.catalog.read()), privilege.name
    for privilege in (Privilege.NAMESPACE_LIST, Privilege.TABLE_CREATE, Privilege.POLICY_LIST):
        ann = await far.people.add(f"n{privilege.value}", far.catalog, *on_catalog(privilege))
        assert await may_know_namespace(far.catalog, ann, NS, await far.catalog.read()), privilege.name


async def test_rights_elsewhere_are_none(far: Far) -> None:
    far.put()
    far.put(Identifier(("else",), "t"), at="t", uuid="00000000-0000-4000-8000-000000000001")
    await far.see()
    await far.see(table=Identifier(("else",), "t"))
    grants = [*on_namespace(("else",), Privilege.TABLE_FULL_METADATA), *on_catalog(Privilege.VIEW_LIST)]
    ann = await far.people.add("ann", far.catalog, *grants)
    state = await far.catalog.read()

    assert not await may_know_table(far.catalog, ann, T, state)
    assert await may_know_table(far.catalog, ann, Identifier(("else",), "never"), state)
    assert await may_know_namespace(far.catalog, ann, ("else",), state)


async def test_a_right_on_a_table_lets_one_know_of_its_namespace(far: Far) -> None:
    far.put()
    await far.see()
    ann = await far.people.add("ann", far.catalog, *on_table(T, Privilege.TABLE_READ_DATA))
    state = await far.catalog.read()

    assert await may_know_namespace(far.catalog, ann, NS, state)
    assert not await may_know_namespace(far.catalog, ann, ("other",), state)
    assert not await may_know_view(far.catalog, ann, V, state)
    assert await may_know_view(far.catalog, ROOT, V, state)
