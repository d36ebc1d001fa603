"""Catalog roles: their life, and who has them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cynosure.auth.entities import CATALOG_ADMIN, SERVICE_ADMIN
from cynosure.auth.errors import BuiltIn, NoSuchPrincipalRole
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.rbac.grants import ASSIGNMENTS, GRANTS
from cynosure.auth.require import AccessDenied
from cynosure.catalog.errors import CatalogRoleExists, NoSuchCatalogRole
from cynosure.catalog.operations.load_table import load_table
from cynosure.catalog.roles import delete_catalog_role as deleting
from cynosure.catalog.roles.assign_catalog_role import assign_catalog_role
from cynosure.catalog.roles.create_catalog_role import create_catalog_role
from cynosure.catalog.roles.delete_catalog_role import delete_catalog_role
from cynosure.catalog.roles.list_assignees import list_assignees
from cynosure.catalog.roles.list_catalog_roles import list_catalog_roles
from cynosure.catalog.roles.list_catalog_roles_of_principal_role import list_catalog_roles_of_principal_role
from cynosure.catalog.roles.load_catalog_role import load_catalog_role
from cynosure.catalog.roles.revoke_catalog_role import revoke_catalog_role
from cynosure.catalog.roles.update_catalog_role import update_catalog_role
from cynosure.common.errors import BadInput, Conflict
from cynosure.persistence.listing import Paging
from cynosure.testing.small_access import P, on_catalog, on_namespace, on_table
from cynosure.testing.small_catalog import ROOT
from tests.catalog.tables import T
from tests.catalog.world import NS, Lake, open_lake

pytestmark = pytest.mark.anyio


@pytest.fixture
async def lake(tmp_path: Path) -> AsyncIterator[Lake]:
    async with open_lake(tmp_path) as lake:
        yield lake


async def test_a_role_is_created_found_changed_and_deleted(lake: Lake) -> None:
    created = await create_catalog_role(lake.catalog, ROOT, "reader", {"a": "1"})

    assert await load_catalog_role(lake.catalog, ROOT, "reader") == created
    changed = await update_catalog_role(lake.catalog, ROOT, "reader", 1, {"b": "2"})
    assert (changed.id, changed.version, changed.properties) == (created.id, 2, {"b": "2"})
    with pytest.raises(Conflict):
        await update_catalog_role(lake.catalog, ROOT, "reader", 1, {})
    await delete_catalog_role(lake.catalog, ROOT, "reader")
    with pytest.raises(NoSuchCatalogRole, match="Catalog role does not exist: reader"):
        await load_catalog_role(lake.catalog, ROOT, "reader")


async def test_a_name_is_taken_once_and_free_again_afterwards(lake: Lake) -> None:
    first = await create_catalog_role(lake.catalog, ROOT, "reader", {})
    with pytest.raises(CatalogRoleExists):
        await create_catalog_role(lake.catalog, ROOT, "reader", {})
    await delete_catalog_role(lake.catalog, ROOT, "reader")

    assert (await create_catalog_role(lake.catalog, ROOT, "reader", {})).id != first.id


@pytest.mark.parametrize("name", ["", "x" * 257, "a\nb", "SYSTEM$x", "  system$x"])
async def test_what_cannot_be_a_name_is_refused(lake: Lake, name: str) -> None:
    with pytest.raises(BadInput):
        await create_catalog_role(lake.catalog, ROOT, name, {})


async def test_roles_are_listed_in_pages_and_as_a_whole(lake: Lake) -> None:
    for number in range(5):
        await create_catalog_role(lake.catalog, ROOT, f"r{number}", {})
    whole = [role.name for role in (await list_catalog_roles(lake.catalog, ROOT)).roles]

    paged: list[str] = []
    token: str | None = ""
    while token is not None:
        page = await list_catalog_roles(lake.catalog, ROOT, Paging(token, 2))
        paged += [role.name for role in page.roles]
        token = page.next_token

    assert whole == paged == [CATALOG_ADMIN, "r0", "r1", "r2", "r3", "r4"]


async def test_who_has_a_role_is_told_from_both_sides(lake: Lake) -> None:
    await lake.people.add("ann", lake.catalog)
    await lake.people.add("bob")
    await assign_catalog_role(lake.catalog, ROOT, "ann", "bob")
    await assign_catalog_role(lake.catalog, ROOT, "ann", "bob")

    assignees = (await list_assignees(lake.catalog, ROOT, "ann")).roles
    assert [role.name for role in assignees] == ["ann", "bob"]
    roles = (await list_catalog_roles_of_principal_role(lake.catalog, ROOT, "bob")).roles
    assert [role.name for role in roles] == ["ann"]

    await revoke_catalog_role(lake.catalog, ROOT, "ann", "bob")
    await revoke_catalog_role(lake.catalog, ROOT, "ann", "bob")
    assert (await list_catalog_roles_of_principal_role(lake.catalog, ROOT, "bob")).roles == []


async def test_a_principal_role_that_is_not_there_gets_nothing(lake: Lake) -> None:
    await create_catalog_role(lake.catalog, ROOT, "reader", {})

    for act in (assign_catalog_role, revoke_catalog_role):
        with pytest.raises(NoSuchPrincipalRole):
            await act(lake.catalog, ROOT, "reader", "missing")
    with pytest.raises(NoSuchPrincipalRole):
        await list_catalog_roles_of_principal_role(lake.catalog, ROOT, "missing")


async def test_a_principal_role_that_is_gone_is_not_listed_and_its_name_gives_nothing(lake: Lake) -> None:
    await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    await delete_principal_role(lake.people.identities, ROOT, "ann")

    assert (await list_assignees(lake.catalog, ROOT, "ann")).roles == []


# --- deleting -----------------------------------------------------------------------------------------------


async def test_deleting_a_role_takes_its_grants_and_users_along(lake: Lake) -> None:
    before = await entries(lake)
    ann = await lake.people.add(
        "ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES), *on_namespace(NS, P.TABLE_LIST)
    )

    await delete_catalog_role(lake.catalog, ROOT, "ann")

    with pytest.raises(AccessDenied):
        await load_table(lake.catalog, ann, T)
    assert await entries(lake) == before


async def test_a_role_of_the_same_name_made_later_inherits_nothing(lake: Lake) -> None:
    ann = await lake.people.add("ann", lake.catalog, *on_table(T, P.TABLE_READ_PROPERTIES))
    await delete_catalog_role(lake.catalog, ROOT, "ann")
    await create_catalog_role(lake.catalog, ROOT, "ann", {})
    await assign_catalog_role(lake.catalog, ROOT, "ann", "ann")

    with pytest.raises(AccessDenied):
        await load_table(lake.catalog, ann, T)


async def test_a_role_with_more_than_fits_into_a_commit_goes_in_several(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "MOST_AT_ONCE", 2)
    before = await entries(lake)
    tables = [
        *on_table(T, P.TABLE_LIST),
        *on_namespace(NS, P.TABLE_LIST),
        *on_namespace(("other",), P.TABLE_LIST),
    ]
    await lake.people.add("ann", lake.catalog, *tables, *on_namespace((*NS, "deep"), P.TABLE_LIST))
    await lake.people.grant("ann", lake.catalog, *on_catalog(P.TABLE_LIST))
    for number in range(6):
        await lake.people.add(f"p{number}")
        await assign_catalog_role(lake.catalog, ROOT, "ann", f"p{number}")

    await delete_catalog_role(lake.catalog, ROOT, "ann")

    assert await entries(lake) == before


async def entries(lake: Lake) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
    state = (await lake.catalog.grants.read()).state
    return await state.scan(GRANTS, limit=1000), await state.scan(ASSIGNMENTS, limit=1000)


# --- nobody is locked out -----------------------------------------------------------------------------------


async def test_catalog_admin_cannot_be_deleted(lake: Lake) -> None:
    with pytest.raises(BuiltIn):
        await delete_catalog_role(lake.catalog, await lake.people.root(), CATALOG_ADMIN)


async def test_catalog_admin_stays_with_service_admin_until_another_has_it(lake: Lake) -> None:
    root = await lake.people.root()
    with pytest.raises(BuiltIn):
        await revoke_catalog_role(lake.catalog, root, CATALOG_ADMIN, SERVICE_ADMIN)
    ann = await lake.people.add("ann")
    await assign_catalog_role(lake.catalog, root, CATALOG_ADMIN, "ann")

    await revoke_catalog_role(lake.catalog, root, CATALOG_ADMIN, SERVICE_ADMIN)

    await list_catalog_roles(lake.catalog, ann)
    with pytest.raises(AccessDenied):
        await list_catalog_roles(lake.catalog, root)


async def test_catalog_admin_cannot_be_taken_from_the_last_who_has_it(lake: Lake) -> None:
    await lake.people.add("ann")
    await assign_catalog_role(lake.catalog, ROOT, CATALOG_ADMIN, "ann")
    await revoke_catalog_role(lake.catalog, ROOT, CATALOG_ADMIN, SERVICE_ADMIN)

    with pytest.raises(BuiltIn):
        await revoke_catalog_role(lake.catalog, ROOT, CATALOG_ADMIN, "ann")


async def test_a_principal_role_that_is_gone_is_no_other_admin(lake: Lake) -> None:
    await lake.people.add("ann")
    await assign_catalog_role(lake.catalog, ROOT, CATALOG_ADMIN, "ann")
    await delete_principal_role(lake.people.identities, ROOT, "ann")

    with pytest.raises(BuiltIn):
        await revoke_catalog_role(lake.catalog, ROOT, CATALOG_ADMIN, SERVICE_ADMIN)
