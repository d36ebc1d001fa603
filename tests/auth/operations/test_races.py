"""Several at once, in one process and in two: nothing is lost, and nothing half-done is left."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from cynosure.auth.caller import Caller, operator_caller
from cynosure.auth.errors import NoSuchPrincipal, NoSuchPrincipalRole, PrincipalExists
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.create_principal_role import NewPrincipalRole, create_principal_role
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.operations.delete_principal_role import delete_principal_role
from cynosure.auth.operations.list_principals import list_principals
from cynosure.auth.operations.load_principal import load_principal
from cynosure.auth.operations.provision_principal import provision_principal
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.operations.rotate_credentials import rotate_credentials
from cynosure.auth.operations.update_principal import update_principal
from cynosure.auth.require import AccessDenied
from cynosure.common.errors import Conflict, CynosureError, NotAuthenticated
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import Reference
from cynosure.testing.small_realm import SharedBackend, caller_for, open_identities_on

pytestmark = pytest.mark.anyio

OPERATOR = operator_caller()


async def outcomes(*attempts: Awaitable[Any]) -> list[Any]:
    """What came of each: its answer, or the error of our tree."""
    ended = await asyncio.gather(*attempts, return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException) and not isinstance(each, CynosureError):
            raise each
    return ended


async def assert_consistent(identities: Identities) -> None:
    """Assignments are there from both sides, and of what exists."""
    state = await identities.read(DEFAULT_REALM)
    ids = {key for key, _ in await state.scan("ids", limit=10_000)}
    entries = [key for key, _ in await state.scan("assignments", limit=10_000)]
    forward = {(key[1:10], key[10:]) for key in entries if key.startswith(b"p")}
    backward = {(key[10:], key[1:10]) for key in entries if key.startswith(b"r")}
    assert forward == backward
    assert {each for pair in forward for each in pair} <= ids
    names = {key for key, _ in await state.scan("names", limit=10_000)}
    assert names == {value for _, value in await state.scan("ids", limit=10_000)}


@pytest.mark.parametrize("processes", [1, 2])
async def test_of_several_who_create_one_name_exactly_one_does(
    identities: Identities, root: Caller, shared_backend: SharedBackend, processes: int
) -> None:
    async with open_identities_on(shared_backend) as other:
        both = [identities, other][:processes]
        ended = await outcomes(
            *(create_principal(both[at % processes], root, NewPrincipal("etl")) for at in range(8))
        )

    assert sum(isinstance(each, PrincipalExists) for each in ended) == 7
    (made,) = [each for each in ended if not isinstance(each, CynosureError)]
    assert await load_principal(identities, root, "etl") == made.principal
    await assert_consistent(identities)


async def test_all_of_many_principals_are_made_by_two_servers(
    identities: Identities, root: Caller, shared_backend: SharedBackend
) -> None:
    async with open_identities_on(shared_backend) as other:
        await asyncio.gather(
            *(create_principal((identities, other)[at % 2], root, NewPrincipal(f"p{at}")) for at in range(40))
        )

    assert len((await list_principals(identities, root)).principals) == 41
    await assert_consistent(identities)


async def test_of_several_who_rotate_at_once_the_last_two_hold_good_secrets(
    identities: Identities, root: Caller, shared_backend: SharedBackend
) -> None:
    await create_principal(identities, root, NewPrincipal("etl"))
    async with open_identities_on(shared_backend) as other:
        rotated = await asyncio.gather(
            *(rotate_credentials((identities, other)[at % 2], OPERATOR, "etl") for at in range(6))
        )

    found = await load_principal(identities, root, "etl")
    good = [identities.hasher.find_match(each.credentials.client_secret, found.secrets) for each in rotated]
    assert sorted(each.principal.version for each in rotated) == [2, 3, 4, 5, 6, 7], "none was lost"
    assert sorted(each.generation for each in good if each is not None) == [6, 7]
    assert len({each.credentials.client_secret for each in rotated}) == 6


async def test_of_two_who_update_one_version_one_is_told(identities: Identities, root: Caller) -> None:
    await create_principal(identities, root, NewPrincipal("etl"))
    ended = await outcomes(*(update_principal(identities, root, "etl", 1, {"n": str(at)}) for at in range(4)))
    assert sum(isinstance(each, Conflict) for each in ended) == 3


@pytest.mark.parametrize("victim", ["principal", "role"])
async def test_deleting_and_assigning_at_once_leaves_no_assignment_of_what_is_gone(
    identities: Identities, root: Caller, shared_backend: SharedBackend, victim: str
) -> None:
    async with open_identities_on(shared_backend) as other:
        for _ in range(5):
            await create_principal(identities, root, NewPrincipal("etl"))
            await create_principal_role(identities, root, NewPrincipalRole("reader"))
            is_principal = victim == "principal"
            delete = (
                delete_principal(identities, root, "etl")
                if is_principal
                else delete_principal_role(identities, root, "reader")
            )

            ended = await outcomes(
                assign_principal_role(other, root, "etl", "reader"),
                delete,
                assign_principal_role(identities, root, "etl", "reader"),
            )

            expected = NoSuchPrincipal if is_principal else NoSuchPrincipalRole
            assert ended[1] is None
            assert all(each is None or isinstance(each, expected) for each in ended)
            await assert_consistent(identities)
            await outcomes(
                delete_principal(identities, root, "etl"), delete_principal_role(identities, root, "reader")
            )


async def test_one_account_that_comes_several_times_at_once_gets_one_principal(
    identities: Identities, shared_backend: SharedBackend
) -> None:
    async with open_identities_on(shared_backend) as other:
        made = await asyncio.gather(
            *(
                provision_principal((identities, other)[at % 2], DEFAULT_REALM, "ann", "https://idp ann")
                for at in range(6)
            )
        )
    assert len({each.id for each in made}) == 1


async def test_a_right_that_is_revoked_while_its_use_is_under_way_is_not_used(
    identities: Identities, root: Caller, shared_backend: SharedBackend
) -> None:
    """I34: it was allowed when it was prepared, and is not any more when it would be committed."""
    admin = await create_principal(identities, root, NewPrincipal("admin"))
    await assign_principal_role(identities, root, "admin", "service_admin")
    arrived, revoked = asyncio.Event(), asyncio.Event()

    async def hold(expected: Reference, updated: Reference, apply: Any) -> bool:
        shared_backend.rule = None
        arrived.set()
        await revoked.wait()
        return await apply()

    async with open_identities_on(shared_backend) as other:
        shared_backend.rule = hold
        under_way = asyncio.create_task(
            create_principal(other, caller_for(admin.principal), NewPrincipal("back-door"))
        )
        await arrived.wait()
        await revoke_principal_role(identities, root, "admin", "service_admin")
        revoked.set()
        (ended,) = await outcomes(under_way)

    assert isinstance(ended, AccessDenied)
    names = [each.name for each in (await list_principals(identities, root)).principals]
    assert names == ["admin", "root"]


async def test_whoever_deletes_itself_does_nothing_afterwards(identities: Identities, root: Caller) -> None:
    admin = await create_principal(identities, root, NewPrincipal("admin"))
    await assign_principal_role(identities, root, "admin", "service_admin")
    own = caller_for(admin.principal)
    await delete_principal(identities, own, "admin")
    with pytest.raises(NotAuthenticated):
        await create_principal(identities, own, NewPrincipal("x"))
