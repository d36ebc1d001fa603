"""Principals: made, listed, changed, deleted; who may, and what is refused."""

import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.errors import BuiltIn, NoSuchPrincipal, NoSuchPrincipalRole, PrincipalExists
from cynosure.auth.identities import Identities
from cynosure.auth.operations.assign_principal_role import assign_principal_role
from cynosure.auth.operations.create_principal import NewPrincipal, create_principal
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.operations.list_assignees import list_assignees
from cynosure.auth.operations.list_principals import list_principals
from cynosure.auth.operations.load_principal import load_principal
from cynosure.auth.operations.provision_principal import bind_subject, provision_principal
from cynosure.auth.operations.set_trusted_service import set_trusted_service
from cynosure.auth.operations.update_principal import update_principal
from cynosure.auth.principals import find_client, find_subject
from cynosure.auth.require import AccessDenied
from cynosure.auth.settings import AuthSettings
from cynosure.common.errors import AlreadyExists, BadInput, BadPageToken, Conflict, Forbidden
from cynosure.common.secrets import Secret
from cynosure.persistence.index import encode_key
from cynosure.persistence.listing import Paging
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.small_realm import caller_for, identities_of

pytestmark = pytest.mark.anyio


async def names_of(identities: Identities, root: Caller) -> list[str]:
    return [each.name for each in (await list_principals(identities, root)).principals]


async def test_a_new_principal_can_be_recognised_by_what_it_was_given(
    identities: Identities, root: Caller
) -> None:
    made = await create_principal(identities, root, NewPrincipal("etl", {"team": "a"}))

    found = await find_client(identities.persistence, DEFAULT_REALM, made.credentials.client_id)
    secret = made.credentials.client_secret
    assert found == made.principal == await load_principal(identities, root, "etl")
    assert (found.version, found.properties, found.is_rotation_required) == (1, {"team": "a"}, False)
    assert len(made.credentials.client_id) == 16
    assert len(secret.reveal()) == 32
    assert int(made.credentials.client_id + secret.reveal(), 16)
    assert identities.hasher.find_match(secret, found.secrets) == found.secrets[0]
    assert identities.hasher.find_match(Secret("another"), found.secrets) is None


async def test_every_principal_gets_credentials_of_its_own(identities: Identities, root: Caller) -> None:
    made = [await create_principal(identities, root, NewPrincipal(f"p{at}")) for at in range(20)]

    assert len({each.credentials.client_id for each in made}) == 20
    assert len({each.credentials.client_secret for each in made}) == 20


async def test_a_taken_name_or_client_id_is_refused(identities: Identities, root: Caller) -> None:
    await create_principal(identities, root, NewPrincipal("etl", client_id="my-client"))

    with pytest.raises(PrincipalExists, match="Principal already exists: etl"):
        await create_principal(identities, root, NewPrincipal("etl"))
    with pytest.raises(AlreadyExists) as refused:
        await create_principal(identities, root, NewPrincipal("other", client_id="my-client"))

    assert "my-client" not in str(refused.value)
    assert await names_of(identities, root) == ["etl", "root"]


@pytest.mark.parametrize(
    "wanted",
    [
        NewPrincipal(""),
        NewPrincipal("system$x"),
        NewPrincipal("a", {"polaris.x": "1"}),
        NewPrincipal("a", client_id="a:b"),
    ],
)
async def test_what_is_malformed_is_refused(
    identities: Identities, root: Caller, wanted: NewPrincipal
) -> None:
    with pytest.raises(BadInput):
        await create_principal(identities, root, wanted)
    assert await names_of(identities, root) == ["root"]


async def test_an_update_needs_the_current_version(identities: Identities, root: Caller) -> None:
    await create_principal(identities, root, NewPrincipal("etl", {"a": "1", "b": "2"}))

    updated = await update_principal(identities, root, "etl", 1, {"b": "3"})
    with pytest.raises(Conflict) as refused:
        await update_principal(identities, root, "etl", 1, {"b": "4"})

    assert (updated.version, updated.properties) == (2, {"b": "3"})
    assert refused.value.details == {"name": "etl", "version": 2}
    assert await load_principal(identities, root, "etl") == updated
    assert updated.secrets


async def test_a_deleted_principal_is_gone_from_everywhere(identities: Identities, root: Caller) -> None:
    made = await create_principal(identities, root, NewPrincipal("etl"))
    await assign_principal_role(identities, root, "etl", "service_admin")

    await delete_principal(identities, root, "etl")

    assert await names_of(identities, root) == ["root"]
    assert await find_client(identities.persistence, DEFAULT_REALM, made.credentials.client_id) is None
    found = await list_assignees(identities, root, "service_admin")
    assert [each.name for each in found.principals] == ["root"]
    state = await identities.read(DEFAULT_REALM)
    assert len(await state.scan("assignments", limit=10)) == 2
    assert len(await state.scan("ids", limit=10)) == 2
    assert len(await state.scan("clients", limit=10)) == 1


async def test_root_is_never_deleted(identities: Identities, root: Caller) -> None:
    with pytest.raises(BuiltIn):
        await delete_principal(identities, root, "root")
    assert await names_of(identities, root) == ["root"]


async def test_what_does_not_exist_is_named(identities: Identities, root: Caller) -> None:
    for attempt in (
        load_principal(identities, root, "ghost"),
        update_principal(identities, root, "ghost", 1, {}),
        delete_principal(identities, root, "ghost"),
        set_trusted_service(identities, root, "ghost", is_trusted=True),
        assign_principal_role(identities, root, "ghost", "service_admin"),
    ):
        with pytest.raises(NoSuchPrincipal) as refused:
            await attempt
        assert str(refused.value) == "Principal does not exist: ghost"


async def test_pages_show_one_state_and_name_everybody_once(identities: Identities, root: Caller) -> None:
    wanted = sorted(f"p{at:02}" for at in range(25))
    for name in wanted:
        await create_principal(identities, root, NewPrincipal(name))

    found: list[str] = []
    paging = Paging(size=10)
    while True:
        page = await list_principals(identities, root, paging)
        found += [each.name for each in page.principals]
        if page.next_token is None:
            break
        await create_principal(identities, root, NewPrincipal(f"late-{len(found)}"))
        paging = Paging(page.next_token, 10)

    assert found == [*wanted, "root"]
    with pytest.raises(BadPageToken):
        await list_principals(identities, root, Paging("forged", 10))


async def test_who_has_no_right_is_refused_and_changes_nothing(identities: Identities, root: Caller) -> None:
    nobody = caller_for((await create_principal(identities, root, NewPrincipal("nobody"))).principal)
    head = (await identities.read(DEFAULT_REALM)).commit_id

    for attempt in (
        create_principal(identities, nobody, NewPrincipal("x")),
        list_principals(identities, nobody),
        load_principal(identities, nobody, "root"),
        update_principal(identities, nobody, "nobody", 1, {}),
        delete_principal(identities, nobody, "nobody"),
        set_trusted_service(identities, nobody, "nobody", is_trusted=True),
        assign_principal_role(identities, nobody, "nobody", "service_admin"),
    ):
        with pytest.raises(AccessDenied):
            await attempt

    assert (await identities.read(DEFAULT_REALM)).commit_id == head


async def test_what_is_missing_is_not_found_also_by_those_without_rights(
    identities: Identities, root: Caller
) -> None:
    nobody = caller_for((await create_principal(identities, root, NewPrincipal("nobody"))).principal)
    with pytest.raises(NoSuchPrincipal):
        await load_principal(identities, nobody, "ghost")


async def test_where_existence_is_hidden_what_is_there_and_what_is_not_look_the_same(
    identities: Identities, root: Caller
) -> None:
    nobody = caller_for((await create_principal(identities, root, NewPrincipal("nobody"))).principal)
    hiding = identities_of(identities.persistence, AuthSettings(hide_existence=True))

    for name in ("root", "ghost"):
        with pytest.raises(NoSuchPrincipal) as refused:
            await load_principal(hiding, nobody, name)
        assert str(refused.value) == f"Principal does not exist: {name}"
        assert isinstance(refused.value.__cause__, AccessDenied), "for the audit"
    for role in ("service_admin", "ghost"):
        with pytest.raises(NoSuchPrincipalRole):
            await assign_principal_role(hiding, nobody, "nobody", role)
    assert (await load_principal(hiding, root, "nobody")).name == "nobody"
    with pytest.raises(NoSuchPrincipal):
        await load_principal(hiding, root, "ghost")


async def test_a_caller_without_an_identity_may_nothing(identities: Identities) -> None:
    with pytest.raises(Forbidden):
        await create_principal(identities, Caller("root"), NewPrincipal("x"))


# --- accounts of another issuer ---------------------------------------------------------------------


async def test_an_account_gets_a_principal_of_its_own_once(identities: Identities, root: Caller) -> None:
    made = await provision_principal(identities, DEFAULT_REALM, "ann", "https://idp ann-1")
    again = await provision_principal(identities, DEFAULT_REALM, "ann-renamed", "https://idp ann-1")

    assert made == again == await find_subject(identities.persistence, DEFAULT_REALM, "https://idp ann-1")
    assert (made.secrets, made.client_id) == ((), "")
    with pytest.raises(PrincipalExists):
        await provision_principal(identities, DEFAULT_REALM, "ann", "https://idp mallory")
    with pytest.raises(PrincipalExists):
        await provision_principal(identities, DEFAULT_REALM, "root", "https://idp mallory")

    await delete_principal(identities, root, "ann")
    assert await find_subject(identities.persistence, DEFAULT_REALM, "https://idp ann-1") is None


async def test_an_account_is_bound_to_one_principal_and_never_to_root(
    identities: Identities, root: Caller
) -> None:
    made = await create_principal(identities, root, NewPrincipal("ann"))

    bound = await bind_subject(identities, DEFAULT_REALM, "ann", "https://idp ann-1")
    same = await bind_subject(identities, DEFAULT_REALM, "ann", "https://idp ann-1")

    assert (bound.id, bound.subject, same) == (made.principal.id, "https://idp ann-1", bound)
    with pytest.raises(AlreadyExists):
        await bind_subject(identities, DEFAULT_REALM, "ann", "https://idp mallory")
    with pytest.raises(BadInput):
        await bind_subject(identities, DEFAULT_REALM, "root", "https://idp mallory")
    with pytest.raises(NoSuchPrincipal):
        await bind_subject(identities, DEFAULT_REALM, "ghost", "https://idp ghost")


async def test_a_subject_is_not_a_client_id(identities: Identities) -> None:
    await provision_principal(identities, DEFAULT_REALM, "ann", "s")
    for client_id in ("s", "subject", encode_key("subject", "s").decode()):
        assert await find_client(identities.persistence, DEFAULT_REALM, client_id) is None
