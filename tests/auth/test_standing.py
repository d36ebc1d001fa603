"""Rights are those of this moment: whatever is taken away is gone with the next look, on every server."""

import pytest

from cynosure.auth.bootstrap import bootstrap_realm
from cynosure.auth.caller import Caller, Identity, operator_caller
from cynosure.auth.entities import PrincipalEntity
from cynosure.auth.errors import NoSuchRealm
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.operations.rotate_credentials import rotate_credentials
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.operations.update_principal_role import update_principal_role
from cynosure.auth.rbac.privileges import NONE, Privilege
from cynosure.auth.realms import create_realm
from cynosure.auth.standing import Standing
from cynosure.common.errors import NotAuthenticated
from cynosure.persistence.references import DEFAULT_REALM, realm_reference
from cynosure.persistence.spi import ObjId, RealmId
from cynosure.testing.small_realm import SharedBackend, open_identities_on

pytestmark = pytest.mark.anyio

OPERATOR = operator_caller()
"""Not even root may rotate another's credentials."""


@pytest.fixture
async def etl(identities: Identities, root: Caller) -> PrincipalEntity:
    """A principal with the roles `reader` and `writer`."""
    made = await create_principal(identities, root, NewPrincipal("etl"))
    for role in ("writer", "reader"):
        await create_principal_role(identities, root, NewPrincipalRole(role))
        await assign_principal_role(identities, root, "etl", role)
    return made.principal


async def load(identities: Identities, identity: Identity) -> Standing:
    return (await identities.standings.load(DEFAULT_REALM, identity)).standing


def names(standing: Standing) -> list[str]:
    return [role.name for role in standing.roles]


async def test_root_has_the_role_that_manages_the_realm(identities: Identities, root: Caller) -> None:
    assert root.identity is not None
    standing = await load(identities, root.identity)

    assert (standing.principal.name, names(standing)) == ("root", ["service_admin"])
    assert standing.realm_privileges == Privilege.SERVICE_MANAGE_ACCESS.bit


async def test_all_assigned_roles_are_active_and_the_head_is_told(
    identities: Identities, etl: PrincipalEntity
) -> None:
    stood = await identities.standings.load(DEFAULT_REALM, Identity(etl.id, 1))

    assert names(stood.standing) == ["reader", "writer"]
    assert stood.standing.realm_privileges == NONE
    assert stood.key == realm_reference(DEFAULT_REALM, "principals")
    assert stood.head == (await identities.read(DEFAULT_REALM)).commit_id


async def test_a_scope_narrows_the_roles(identities: Identities, etl: PrincipalEntity) -> None:
    assert names(await load(identities, Identity(etl.id, 1, scope=("reader",)))) == ["reader"]
    assert names(await load(identities, Identity(etl.id, 1, scope=()))) == []


@pytest.mark.parametrize("scope", [("service_admin",), ("reader", "service_admin"), ("nothing",)])
async def test_a_scope_cannot_activate_what_is_not_had(
    identities: Identities, etl: PrincipalEntity, scope: tuple[str, ...]
) -> None:
    with pytest.raises(NotAuthenticated):
        await load(identities, Identity(etl.id, 1, scope=scope))


async def test_another_issuer_gives_federated_roles_only(
    identities: Identities, root: Caller, etl: PrincipalEntity
) -> None:
    await create_principal_role(identities, root, NewPrincipalRole("analysts", is_federated=True))
    claimed = ("analysts", "service_admin", "unknown")

    standing = await load(identities, Identity(etl.id, external_roles=claimed))
    narrowed = await load(identities, Identity(etl.id, external_roles=claimed, scope=("analysts",)))

    assert names(standing) == ["analysts", "reader", "writer"]
    assert standing.realm_privileges == NONE
    assert names(narrowed) == ["analysts"]
    with pytest.raises(NotAuthenticated):
        await load(identities, Identity(etl.id, external_roles=claimed, scope=("service_admin",)))


async def test_a_revoked_or_deleted_role_is_gone_with_the_next_look_on_every_server(
    identities: Identities, root: Caller, etl: PrincipalEntity, shared_backend: SharedBackend
) -> None:
    """I34."""
    identity = Identity(etl.id, 1)
    scoped = Identity(etl.id, 1, scope=("reader",))
    async with open_identities_on(shared_backend) as other:
        assert names(await load(other, identity)) == ["reader", "writer"]
        assert names(await load(other, scoped)) == ["reader"]

        await revoke_principal_role(identities, root, "etl", "reader")

        assert names(await load(other, identity)) == ["writer"]
        with pytest.raises(NotAuthenticated):
            await load(other, scoped)

        await delete_principal_role(identities, root, "writer")

        assert names(await load(other, identity)) == []


async def test_a_changed_role_is_seen_with_its_new_version(
    identities: Identities, root: Caller, etl: PrincipalEntity
) -> None:
    await load(identities, Identity(etl.id, 1))
    await update_principal_role(identities, root, "reader", 1, {"team": "a"})

    roles = {role.name: role.version for role in (await load(identities, Identity(etl.id, 1))).roles}
    assert roles == {"reader": 2, "writer": 1}


async def test_tokens_end_with_the_secret_they_were_obtained_with(
    identities: Identities, root: Caller, etl: PrincipalEntity
) -> None:
    """I34."""
    first = Identity(etl.id, 1)
    await rotate_credentials(identities, OPERATOR, "etl")
    await load(identities, first)
    await rotate_credentials(identities, OPERATOR, "etl")
    with pytest.raises(NotAuthenticated):
        await load(identities, first)
    await load(identities, Identity(etl.id, 2))

    await reset_credentials(identities, root, "etl")

    for generation in (2, 3, 99):
        with pytest.raises(NotAuthenticated):
            await load(identities, Identity(etl.id, generation))
    await load(identities, Identity(etl.id, 4))


async def test_a_principal_made_again_under_the_same_name_is_another_one(
    identities: Identities, root: Caller, etl: PrincipalEntity
) -> None:
    await load(identities, Identity(etl.id, 1))
    await delete_principal(identities, root, "etl")
    with pytest.raises(NotAuthenticated):
        await load(identities, Identity(etl.id, 1))

    again = await create_principal(identities, root, NewPrincipal("etl"))

    with pytest.raises(NotAuthenticated):
        await load(identities, Identity(etl.id, 1))
    assert names(await load(identities, Identity(again.principal.id, 1))) == []


async def test_only_a_trusted_service_with_a_good_secret_acts_for_others(
    identities: Identities, root: Caller, etl: PrincipalEntity
) -> None:
    service = (await create_principal(identities, root, NewPrincipal("gateway"))).principal
    acting = Identity(etl.id, 1, actor_id=service.id, actor_credential=1)
    with pytest.raises(NotAuthenticated):
        await load(identities, acting)

    await set_trusted_service(identities, root, "gateway", is_trusted=True)
    standing = await load(identities, acting)
    assert standing.actor is not None
    assert (standing.actor.name, standing.principal.name, names(standing)) == (
        "gateway",
        "etl",
        ["reader", "writer"],
    )

    await reset_credentials(identities, root, "gateway")
    with pytest.raises(NotAuthenticated):
        await load(identities, acting)
    renewed = Identity(etl.id, 1, actor_id=service.id, actor_credential=2)
    await load(identities, renewed)

    await set_trusted_service(identities, root, "gateway", is_trusted=False)
    with pytest.raises(NotAuthenticated):
        await load(identities, renewed)

    await set_trusted_service(identities, root, "gateway", is_trusted=True)
    await delete_principal(identities, root, "gateway")
    with pytest.raises(NotAuthenticated):
        await load(identities, renewed)


@pytest.mark.parametrize("realm", ["nowhere", "", "a\x00b", "../default", "é", "x" * 1_000])
async def test_a_realm_that_does_not_exist_is_said_so_and_leaves_nothing_behind(
    identities: Identities, realm: str
) -> None:
    kept = len(identities.persistence._committers)

    with pytest.raises(NoSuchRealm) as refused:
        await identities.standings.load(RealmId(realm), Identity(ObjId(1)))

    assert len(identities.persistence._committers) == kept
    assert len(str(refused.value)) < 300


async def test_an_identity_of_one_realm_means_nothing_in_another(
    identities: Identities, root: Caller
) -> None:
    await create_realm(identities, RealmId("acme"))
    assert root.identity is not None
    with pytest.raises(NotAuthenticated):
        await identities.standings.load(RealmId("acme"), root.identity)


async def test_a_look_that_nothing_changed_reads_only_the_head(
    identities: Identities, etl: PrincipalEntity
) -> None:
    identity = Identity(etl.id, 1)
    first = await identities.standings.load(DEFAULT_REALM, identity)
    again = await identities.standings.load(DEFAULT_REALM, identity)
    assert again.standing is first.standing

    await bootstrap_realm(identities, DEFAULT_REALM)  # Changes nothing.
    assert (await identities.standings.load(DEFAULT_REALM, identity)).standing is first.standing
