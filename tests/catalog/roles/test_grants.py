"""Grants: what may be granted, on what, and what comes of several who change them at once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.entities import CATALOG_ADMIN
from cynosure.auth.errors import BuiltIn
from cynosure.auth.rbac.grants import GRANTS
from cynosure.auth.rbac.privileges import GRANTABLE, Privilege
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import NoSuchNamespace, NoSuchPolicy, NoSuchTable, NoSuchView
from cynosure.catalog.names import Identifier
from cynosure.catalog.operations.drop_table import drop_table
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.operations.rename_table import rename_table
from cynosure.catalog.roles import changing
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.delete_catalog_role import delete_catalog_role
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.list_grants import list_grants
from cynosure.catalog.roles.revoke_privilege import revoke_privilege
from cynosure.catalog.roles.securables import Grant, SecurableKind
from cynosure.common.errors import BadInput, CynosureError
from cynosure.persistence.history.check import check_reference
from cynosure.persistence.listing import Paging
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table, on_view
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T, make
from tests.catalog.world import NS, OTHER, Lake, V, open_lake

pytestmark = pytest.mark.anyio

MISSING = Identifier(NS, "missing")


@pytest.fixture(params=["memory:", "sqlite:{}/store.db"], ids=["memory", "sqlite"])
async def lake(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path, url=request.param.format(tmp_path)) as lake:
        await create_catalog_role(lake.catalog, ROOT, "reader", {})
        yield lake


async def granted(lake: Lake, role: str = "reader") -> set[Grant]:
    return set((await list_grants(lake.catalog, ROOT, role)).grants)


async def test_grants_are_listed_by_name_and_revoked_one_by_one(lake: Lake) -> None:
    grants = [
        *on_catalog(P.TABLE_LIST, P.CATALOG_READ_PROPERTIES),
        *on_namespace(NS, P.NAMESPACE_LIST),
        *on_table(T, P.TABLE_READ_DATA, P.TABLE_MANAGE_STRUCTURE),
        *on_view(V, P.VIEW_LIST),
    ]
    for grant in grants:
        await grant_privilege(lake.catalog, ROOT, "reader", grant)
        await grant_privilege(lake.catalog, ROOT, "reader", grant)
    assert await granted(lake) == set(grants)

    for grant in grants:
        await revoke_privilege(lake.catalog, ROOT, "reader", grant)
        await revoke_privilege(lake.catalog, ROOT, "reader", grant)
    assert await granted(lake) == set()


async def test_grants_are_listed_in_pages(lake: Lake) -> None:
    grants = [
        *on_catalog(P.TABLE_LIST),
        *on_namespace(NS, P.TABLE_LIST, P.VIEW_LIST),
        *on_table(T, P.TABLE_LIST),
    ]
    for grant in grants:
        await grant_privilege(lake.catalog, ROOT, "reader", grant)

    paged: list[Grant] = []
    token: str | None = ""
    while token is not None:
        page = await list_grants(lake.catalog, ROOT, "reader", Paging(token, 1))
        assert len({(grant.namespace, grant.name) for grant in page.grants}) == 1
        paged += page.grants
        token = page.next_token

    assert paged == list((await list_grants(lake.catalog, ROOT, "reader")).grants)
    assert set(paged) == set(grants)


@pytest.mark.parametrize("kind", ["catalog", "namespace", "table", "view"])
async def test_what_means_nothing_on_a_thing_cannot_be_granted_on_it(lake: Lake, kind: SecurableKind) -> None:
    where = {"catalog": ((), ""), "namespace": (NS, ""), "table": (NS, "t"), "view": (NS, "v")}[kind]

    for privilege in Privilege:
        grant = Grant(kind, privilege, *where)
        if privilege in GRANTABLE[kind]:
            await grant_privilege(lake.catalog, ROOT, "reader", grant)
            continue
        for act in (grant_privilege, revoke_privilege):
            with pytest.raises(BadInput, match="CATALOG_MANAGE_ACCESS"):
                await act(lake.catalog, ROOT, "reader", grant)
    assert {each.privilege for each in await granted(lake)} == GRANTABLE[kind]


async def test_what_is_not_there_cannot_be_granted_on(lake: Lake) -> None:
    for error, grants in (
        (NoSuchNamespace, on_namespace(("missing",), P.TABLE_LIST)),
        (NoSuchTable, on_table(MISSING, P.TABLE_LIST)),
        (NoSuchTable, on_table(V, P.TABLE_LIST)),
        (NoSuchView, on_view(T, P.VIEW_LIST)),
        (NoSuchPolicy, [Grant("policy", P.POLICY_READ, NS, "p")]),
    ):
        for act in (grant_privilege, revoke_privilege):
            with pytest.raises(error):
                await act(lake.catalog, ROOT, "reader", grants[0])


async def test_catalog_admin_keeps_the_right_to_manage_access(lake: Lake) -> None:
    (management,) = on_catalog(P.CATALOG_MANAGE_ACCESS)

    with pytest.raises(BuiltIn):
        await revoke_privilege(lake.catalog, ROOT, CATALOG_ADMIN, management)

    await grant_privilege(lake.catalog, ROOT, "reader", management)
    await revoke_privilege(lake.catalog, ROOT, "reader", management)


async def test_nobody_grants_themselves_what_they_may_not_grant(lake: Lake) -> None:
    """Rights to content, however many, are no rights to access."""
    content = [Grant("catalog", each) for each in GRANTABLE["catalog"] if each != P.CATALOG_MANAGE_ACCESS]
    ann = await lake.people.add("ann", lake.catalog, *content)

    for grant in (*on_catalog(P.CATALOG_MANAGE_ACCESS), *on_table(T, P.TABLE_READ_DATA)):
        with pytest.raises(AccessDenied):
            await grant_privilege(lake.catalog, ann, "ann", grant)
    with pytest.raises(AccessDenied):
        await assign_catalog_role(lake.catalog, ann, CATALOG_ADMIN, "ann")


async def test_who_manages_access_to_a_namespace_grants_nothing_outside_it(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(OTHER, P.CATALOG_MANAGE_ACCESS))

    await grant_privilege(lake.catalog, ann, "reader", on_namespace(OTHER, P.TABLE_LIST)[0])
    for grant in (*on_table(T, P.TABLE_LIST), *on_namespace(NS, P.TABLE_LIST), *on_catalog(P.TABLE_LIST)):
        with pytest.raises(AccessDenied):
            await grant_privilege(lake.catalog, ann, "reader", grant)


# --- at once ------------------------------------------------------------------------------------------------


async def test_grants_by_many_at_once_are_all_kept(lake: Lake) -> None:
    root = await lake.people.root()
    tables = [Identifier(NS, f"t{number}") for number in range(8)]
    for table in tables:
        await make(lake.catalog, table)
    wanted = [
        grant for table in tables for grant in on_table(table, P.TABLE_LIST, P.TABLE_DROP, P.TABLE_READ_DATA)
    ]

    await asyncio.gather(*(grant_privilege(lake.catalog, root, "reader", grant) for grant in wanted))

    assert await granted(lake) == set(wanted)


async def test_two_admins_who_grant_and_revoke_the_same_leave_one_of_both(lake: Lake) -> None:
    root = await lake.people.root()
    for _ in range(10):
        await asyncio.gather(
            grant_privilege(lake.catalog, root, "reader", on_table(T, P.TABLE_LIST)[0]),
            revoke_privilege(lake.catalog, root, "reader", on_table(T, P.TABLE_LIST)[0]),
        )
        assert await granted(lake) in (set(), set(on_table(T, P.TABLE_LIST)))
        await both_directions_agree(lake)


async def test_a_grant_and_the_deletion_of_its_role_leave_nothing_behind(lake: Lake) -> None:
    root = await lake.people.root()
    for number in range(10):
        name = f"r{number}"
        await create_catalog_role(lake.catalog, root, name, {})
        await asyncio.gather(
            *(
                grant_privilege(lake.catalog, root, name, grant)
                for grant in on_table(T, P.TABLE_LIST, P.TABLE_DROP)
            ),
            delete_catalog_role(lake.catalog, root, name),
            return_exceptions=True,
        )
    assert await granted(lake) == set()
    state = (await lake.catalog.grants.read()).state
    assert len(await state.scan(GRANTS, limit=100)) == 2, "only what catalog_admin has"


async def test_a_grant_and_a_drop_at_once_are_decided_and_the_new_table_has_nothing(lake: Lake) -> None:
    root = await lake.people.root()
    for _ in range(10):
        outcomes = await asyncio.gather(
            grant_privilege(lake.catalog, root, "reader", on_table(T, P.TABLE_LIST)[0]),
            drop_table(lake.catalog, ROOT, T),
            return_exceptions=True,
        )
        assert all(each is None or isinstance(each, CynosureError) for each in outcomes), outcomes
        await make(lake.catalog, T)
        assert await granted(lake) == set()


async def test_a_grant_in_flight_is_not_made_on_a_table_that_was_moved_away_meanwhile(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right to manage access was held on the namespace that the table has left."""
    ann = await lake.people.add("ann", lake.catalog, *on_namespace(NS, P.CATALOG_MANAGE_ACCESS))
    is_first = True
    authorize = changing._authorize

    async def move_after(*args: object) -> object:
        nonlocal is_first
        found = await authorize(*args)  # type: ignore[arg-type]
        if is_first:
            is_first = False
            await rename_table(lake.catalog, ROOT, T, Identifier(OTHER, "t"))
        return found

    monkeypatch.setattr(changing, "_authorize", move_after)
    with pytest.raises(NoSuchTable):
        await grant_privilege(lake.catalog, ann, "reader", on_table(T, P.TABLE_LIST)[0])
    assert await granted(lake) == set()


async def test_a_grant_in_flight_is_refused_once_its_maker_may_grant_no_more(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_catalog(P.CATALOG_MANAGE_ACCESS))
    is_first = True
    authorize = changing._authorize

    async def revoke_after(*args: object) -> object:
        nonlocal is_first
        found = await authorize(*args)  # type: ignore[arg-type]
        if is_first:
            is_first = False
            await lake.people.revoke("ann", lake.catalog, *on_catalog(P.CATALOG_MANAGE_ACCESS))
        return found

    monkeypatch.setattr(changing, "_authorize", revoke_after)
    with pytest.raises(AccessDenied):
        await grant_privilege(lake.catalog, ann, "ann", on_table(T, P.TABLE_READ_DATA)[0])
    with pytest.raises(AccessDenied):
        await load_table(lake.catalog, ann, T)


async def both_directions_agree(lake: Lake) -> None:
    state = (await lake.catalog.grants.read()).state
    entries = await state.scan(GRANTS, limit=1000)
    by_securable = {(key[1:10], key[10:]): value for key, value in entries if key.startswith(b"s")}
    by_role = {(key[10:], key[1:10]): value for key, value in entries if key.startswith(b"r")}
    assert by_securable == by_role
    ref = await lake.directory.shared.persistence.heads.load(lake.catalog.grants.key)
    assert (await check_reference(state.store, ref)).problems == ()
