"""Principal roles: made, given, taken away, deleted."""

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.errors import BuiltIn, NoSuchPrincipalRole, PrincipalRoleExists
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.list_assignees import list_assignees
from cynosure.auth.operations.list_principal_roles import list_principal_roles
from cynosure.auth.operations.list_roles_of_principal import list_roles_of_principal
from cynosure.auth.operations.load_principal_role import load_principal_role
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.operations.update_principal_role import update_principal_role
from cynosure.auth.principals import load_roles_by_id
from cynosure.auth.require import AccessDenied
from cynosure.common.errors import BadInput, Conflict, NotFound
from cynosure.persistence.listing import Paging
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import ObjId
from cynosure.testing.small_realm import caller_for

pytestmark = pytest.mark.anyio


@pytest.fixture
async def reader(identities: Identities, root: Caller) -> None:
    """A role `reader` and a principal `ann`."""
    await create_principal_role(identities, root, NewPrincipalRole("reader", {"team": "a"}))
    await create_principal(identities, root, NewPrincipal("ann"))


async def roles_of(identities: Identities, root: Caller, name: str) -> list[str]:
    return [each.name for each in (await list_roles_of_principal(identities, root, name)).roles]


async def assignees_of(identities: Identities, root: Caller, name: str) -> list[str]:
    return [each.name for each in (await list_assignees(identities, root, name)).principals]


async def test_a_role_is_made_found_changed_and_deleted(
    identities: Identities, root: Caller, reader: None
) -> None:
    made = await load_principal_role(identities, root, "reader")
    with pytest.raises(PrincipalRoleExists, match="Principal role already exists: reader"):
        await create_principal_role(identities, root, NewPrincipalRole("reader"))
    updated = await update_principal_role(identities, root, "reader", 1, {})
    with pytest.raises(Conflict):
        await update_principal_role(identities, root, "reader", 1, {"x": "y"})

    listed = (await list_principal_roles(identities, root)).roles
    assert (made.properties, made.is_federated, made.realm_privileges) == ({"team": "a"}, False, b"")
    assert [each.name for each in listed] == ["reader", "service_admin"]
    assert listed[0] == updated
    assert (updated.id, updated.version) == (made.id, 2)
    wanted = [ObjId(1), made.id]
    assert await load_roles_by_id(identities.persistence, DEFAULT_REALM, wanted) == [updated]

    await delete_principal_role(identities, root, "reader")

    with pytest.raises(NoSuchPrincipalRole, match="Principal role does not exist: reader"):
        await load_principal_role(identities, root, "reader")
    assert await load_roles_by_id(identities.persistence, DEFAULT_REALM, wanted) == []


async def test_a_role_is_given_and_taken_away(identities: Identities, root: Caller, reader: None) -> None:
    await assign_principal_role(identities, root, "ann", "reader")
    await assign_principal_role(identities, root, "ann", "reader")  # Again: nothing changes.
    given = await roles_of(identities, root, "ann"), await assignees_of(identities, root, "reader")
    await revoke_principal_role(identities, root, "ann", "reader")
    with pytest.raises(NotFound):
        await revoke_principal_role(identities, root, "ann", "reader")

    assert given == (["reader"], ["ann"])
    assert await roles_of(identities, root, "ann") == []
    assert await assignees_of(identities, root, "reader") == []


async def test_a_role_made_again_under_the_same_name_is_had_by_nobody(
    identities: Identities, root: Caller, reader: None
) -> None:
    await assign_principal_role(identities, root, "ann", "reader")
    await delete_principal_role(identities, root, "reader")
    assert await roles_of(identities, root, "ann") == []

    await create_principal_role(identities, root, NewPrincipalRole("reader"))

    assert await roles_of(identities, root, "ann") == []
    assert await assignees_of(identities, root, "reader") == []


async def test_a_federated_role_is_not_given_by_hand(
    identities: Identities, root: Caller, reader: None
) -> None:
    await create_principal_role(identities, root, NewPrincipalRole("analysts", is_federated=True))
    with pytest.raises(BadInput):
        await assign_principal_role(identities, root, "ann", "analysts")
    assert await roles_of(identities, root, "ann") == []


async def test_nobody_can_be_locked_out_of_the_realm(identities: Identities, root: Caller) -> None:
    with pytest.raises(BuiltIn):
        await delete_principal_role(identities, root, "service_admin")
    with pytest.raises(BuiltIn):
        await revoke_principal_role(identities, root, "root", "service_admin")
    updated = await update_principal_role(identities, root, "service_admin", 1, {"a": "b"})

    assert updated.realm_privileges
    assert await roles_of(identities, root, "root") == ["service_admin"]


async def test_assignments_come_in_pages(identities: Identities, root: Caller, reader: None) -> None:
    for at in range(7):
        await create_principal(identities, root, NewPrincipal(f"p{at}"))
        await assign_principal_role(identities, root, f"p{at}", "reader")

    first = await list_assignees(identities, root, "reader", Paging(size=5))
    rest = await list_assignees(identities, root, "reader", Paging(first.next_token, 5))

    assert [each.name for each in first.principals + rest.principals] == [f"p{at}" for at in range(7)]
    assert rest.next_token is None


async def test_who_has_no_right_cannot_elevate_itself(
    identities: Identities, root: Caller, reader: None
) -> None:
    await assign_principal_role(identities, root, "ann", "reader")
    made = await create_principal(identities, root, NewPrincipal("mallory"))
    mallory = caller_for(made.principal)

    for attempt in (
        create_principal_role(identities, mallory, NewPrincipalRole("mine")),
        update_principal_role(identities, mallory, "reader", 1, {}),
        delete_principal_role(identities, mallory, "reader"),
        assign_principal_role(identities, mallory, "mallory", "reader"),
        revoke_principal_role(identities, mallory, "ann", "reader"),
        list_principal_roles(identities, mallory),
        list_assignees(identities, mallory, "reader"),
        list_roles_of_principal(identities, mallory, "ann"),
    ):
        with pytest.raises(AccessDenied):
            await attempt
    assert await assignees_of(identities, root, "reader") == ["ann"]
