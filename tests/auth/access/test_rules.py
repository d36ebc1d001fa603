"""What does not follow from privileges: credentials, and what is one's own."""

import msgspec
import pytest

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.access.rules import find_ruling
from cynosure.auth.entities import ROOT, PrincipalEntity, PrincipalRoleEntity
from cynosure.auth.ports import Decision, Target
from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import OPERATIONS, Operation
from cynosure.auth.rbac.privileges import Privilege as P
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standing, Standings
from cynosure.auth.targets import PrincipalTarget, RealmTarget
from cynosure.persistence.spi import ObjId
from cynosure.testing.access_world import AccessWorld, World

pytestmark = pytest.mark.anyio
ADMIN = {"admin": (P.SERVICE_MANAGE_ACCESS,)}
OWN = {ops.ROTATE_CREDENTIALS.name, ops.EXPLAIN_ACCESS.name}


async def ask(
    world: AccessWorld,
    principal: str,
    operation: Operation,
    target: Target,
    settings: AuthSettings | None = None,
    **identity: object,
) -> Decision:
    persistence = world.persistence
    authorizer = InternalAuthorizer(persistence, Standings(persistence), settings or AuthSettings())
    caller = world.caller(principal, **identity)
    plain = await authorizer.decide(caller, operation, (target,), None)
    told = await authorizer.decide(caller, operation, (target,), None, explain=True)
    assert (plain.is_allowed, plain.reason, plain.missing) == (told.is_allowed, told.reason, told.missing)
    assert world.principals in plain.guards
    return plain


async def test_everyone_may_rotate_their_own_credentials_and_nobody_elses(world: AccessWorld):
    await world.make(World({"ann": (), "bob": ()}))

    own = await ask(world, "ann", ops.ROTATE_CREDENTIALS, PrincipalTarget("ann"))
    others = await ask(world, "ann", ops.ROTATE_CREDENTIALS, PrincipalTarget("bob"))

    assert own.is_allowed
    assert not others.is_allowed
    assert others.missing[0].privilege == "PRINCIPAL_ROTATE_CREDENTIALS"


async def test_not_even_a_service_admin_may_rotate_what_is_not_its_own(world: AccessWorld):
    await world.make(
        World(
            {"ann": ("admin",), "bob": ("rotator",)},
            realm={**ADMIN, "rotator": (P.PRINCIPAL_ROTATE_CREDENTIALS,)},
        )
    )

    assert not (await ask(world, "ann", ops.ROTATE_CREDENTIALS, PrincipalTarget("bob"))).is_allowed
    assert (await ask(world, "bob", ops.ROTATE_CREDENTIALS, PrincipalTarget("ann"))).is_allowed


async def test_only_root_with_its_role_may_reset_credentials(world: AccessWorld):
    await world.make(World({ROOT: ("admin", "guest"), "ann": ("admin",)}, realm={**ADMIN, "guest": ()}))
    target = PrincipalTarget("ann")

    by_root = await ask(world, ROOT, ops.RESET_CREDENTIALS, target)
    by_admin = await ask(world, "ann", ops.RESET_CREDENTIALS, target)
    as_guest = await ask(world, ROOT, ops.RESET_CREDENTIALS, target, scope=["guest"])
    switched_off = await ask(world, ROOT, ops.RESET_CREDENTIALS, target, AuthSettings(credential_reset=False))

    assert by_root.is_allowed
    assert not by_admin.is_allowed
    assert "only the principal root" in by_admin.reason
    assert not as_guest.is_allowed
    assert not switched_off.is_allowed
    assert "credential_reset" in switched_off.reason


async def test_who_must_rotate_can_do_nothing_else(world: AccessWorld):
    await world.make(World({ROOT: ("admin",)}, realm=ADMIN, must_rotate=(ROOT,)))

    for operation, target in (
        (ops.LIST_PRINCIPALS, RealmTarget("default")),
        (ops.RESET_CREDENTIALS, PrincipalTarget(ROOT)),
        (ops.EXPLAIN_ACCESS, PrincipalTarget(ROOT)),
        (ops.LOAD_PRINCIPAL, PrincipalTarget(ROOT)),
    ):
        refused = await ask(world, ROOT, operation, target)
        assert not refused.is_allowed
        assert "Rotate the principal's credentials first" in refused.reason
    assert (await ask(world, ROOT, ops.ROTATE_CREDENTIALS, PrincipalTarget(ROOT))).is_allowed
    unforced = AuthSettings(enforce_rotation=False)
    assert (await ask(world, ROOT, ops.LIST_PRINCIPALS, RealmTarget("default"), unforced)).is_allowed


async def test_everyone_may_have_their_own_access_explained(world: AccessWorld):
    await world.make(World({"ann": (), "bob": ("admin",)}, realm=ADMIN))

    assert (await ask(world, "ann", ops.EXPLAIN_ACCESS, PrincipalTarget("ann"))).is_allowed
    assert not (await ask(world, "ann", ops.EXPLAIN_ACCESS, PrincipalTarget("bob"))).is_allowed
    assert (await ask(world, "bob", ops.EXPLAIN_ACCESS, PrincipalTarget("ann"))).is_allowed


def standing(name: str, *, actor: PrincipalEntity | None = None) -> Standing:
    entity = PrincipalEntity(ObjId(1), name, "client", 0, 0)
    return Standing(
        entity, (PrincipalRoleEntity(ObjId(2), "admin", 0, 0),), P.SERVICE_MANAGE_ACCESS.bit, actor
    )


def service(*, must_rotate: bool = False) -> PrincipalEntity:
    return PrincipalEntity(
        ObjId(3), "gateway", "client", 0, 0, is_trusted_service=True, is_rotation_required=must_rotate
    )


@pytest.mark.parametrize("operation", [ops.ROTATE_CREDENTIALS, ops.RESET_CREDENTIALS])
def test_a_service_that_acts_for_a_principal_cannot_change_its_credentials(operation: Operation):
    targets = (PrincipalTarget(ROOT),)

    ruling = find_ruling(standing(ROOT, actor=service()), operation, targets, AuthSettings())

    assert ruling is not None
    assert not ruling.is_allowed


LASTING = [
    ops.CREATE_PRINCIPAL,
    ops.TRUST_SERVICE,
    ops.ASSIGN_PRINCIPAL_ROLE,
    ops.ASSIGN_CATALOG_ROLE,
    *(each for each in OPERATIONS.values() if each.name.startswith("grant-on-")),
]


@pytest.mark.parametrize("operation", LASTING, ids=lambda each: each.name)
def test_a_service_that_acts_for_an_administrator_cannot_give_rights_to_itself(operation: Operation):
    """It would keep them when the administrator's token, or the trust in it, is gone."""
    targets = tuple(PrincipalTarget("any") for _ in operation.kinds)

    ruling = find_ruling(standing(ROOT, actor=service()), operation, targets, AuthSettings())

    assert ruling is not None
    assert not ruling.is_allowed


def test_a_service_may_take_rights_away_for_an_administrator():
    targets = (PrincipalTarget("any"), PrincipalTarget("any"))

    ruling = find_ruling(standing(ROOT, actor=service()), ops.REVOKE_PRINCIPAL_ROLE, targets, AuthSettings())

    assert ruling is None


def test_a_service_that_must_rotate_its_own_credentials_cannot_act_for_anyone():
    acted = standing("ann", actor=service(must_rotate=True))

    ruling = find_ruling(acted, ops.LIST_PRINCIPALS, (RealmTarget("default"),), AuthSettings())

    assert ruling is not None
    assert not ruling.is_allowed


def test_all_other_operations_are_left_to_privileges():
    for operation in OPERATIONS.values():
        if operation.name in OWN or operation == ops.RESET_CREDENTIALS:
            continue
        targets = tuple(PrincipalTarget("ann") for _ in operation.kinds)
        assert find_ruling(standing("ann"), operation, targets, AuthSettings()) is None
        locked = standing("ann")
        locked = msgspec.structs.replace(
            locked, principal=msgspec.structs.replace(locked.principal, is_rotation_required=True)
        )
        ruling = find_ruling(locked, operation, targets, AuthSettings())
        assert ruling is not None
        assert not ruling.is_allowed
