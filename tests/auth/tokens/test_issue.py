"""What tokens are issued for, and that none gives more than it was made from (I38)."""

from datetime import timedelta

import pytest

from cynosure.auth.bootstrap import bootstrap_realm
from cynosure.auth.caller import operator_caller
from cynosure.auth.credentials import Credentials
from cynosure.auth.errors import NoSuchRealm
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.operations.reset_credentials import reset_credentials
from cynosure.auth.operations.revoke_principal_role import revoke_principal_role
from cynosure.auth.operations.rotate_credentials import rotate_credentials
from cynosure.auth.tokens.errors import TokenRefused
from cynosure.auth.tokens.failures import BURST, REFILL_S
from cynosure.common.errors import NotAuthenticated
from cynosure.common.secrets import Secret
from cynosure.persistence.commit import State
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import RealmId
from tests.auth.tokens.forge import claims_of, header_of
from tests.auth.tokens.world import PEER, TokenWorld, changed, open_world

pytestmark = pytest.mark.anyio
OPERATOR = operator_caller()


async def roles(world: TokenWorld, token: str) -> tuple[str, ...]:
    return (await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)).roles


async def is_good(world: TokenWorld, token: str) -> bool:
    try:
        await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)
    except NotAuthenticated:
        return False
    return True


def refused(code: str):
    return pytest.raises(TokenRefused, check=lambda error: error.code == code)


@pytest.fixture
async def ann(world: TokenWorld) -> Credentials:
    for role in ("analyst", "writer", "admin"):
        await world.add_role(role)
    return await world.add_principal("ann", "analyst", "writer")


# --- for a secret ----------------------------------------------------------------------------------


async def test_a_token_says_whom_it_is_for_and_nothing_about_rights(world, ann):
    now_s = world.clock.now_us() // 1_000_000

    token = await world.login(ann, "PRINCIPAL_ROLE:analyst")

    claims = claims_of(token)
    caller = await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)
    assert caller.identity is not None
    assert len(claims.pop("jti")) >= 16
    assert claims == {
        "iss": "cynosure",
        "aud": "cynosure/default",
        "sub": "ann",
        "principalId": caller.identity.principal_id,
        "client_id": ann.client_id,
        "scope": "PRINCIPAL_ROLE:analyst",
        "realm": "default",
        "generation": 1,
        "iat": now_s,
        "exp": now_s + 3600,
        "auth_time": now_s,
    }
    assert header_of(token).keys() == {"alg", "kid", "typ"}


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("", ("analyst", "writer")),
        ("catalog", ("analyst", "writer")),
        ("sign", ("analyst", "writer")),
        ("PRINCIPAL_ROLE:ALL", ("analyst", "writer")),
        ("PRINCIPAL_ROLE:ALL PRINCIPAL_ROLE:writer", ("analyst", "writer")),
        ("PRINCIPAL_ROLE:writer", ("writer",)),
        ("catalog PRINCIPAL_ROLE:writer", ("writer",)),
        ("PRINCIPAL_ROLE:writer  PRINCIPAL_ROLE:analyst", ("analyst", "writer")),
    ],
)
async def test_a_scope_chooses_among_the_principals_roles(world, ann, scope, expected):
    assert await roles(world, await world.login(ann, scope)) == expected


@pytest.mark.parametrize(
    "scope", ["admin", "PRINCIPAL_ROLE:", "PRINCIPAL_ROLE:admin", "PRINCIPAL_ROLE:gone", "principal_role:ALL"]
)
async def test_a_scope_cannot_name_what_the_principal_does_not_have(world, ann, scope):
    with refused("invalid_scope"):
        await world.login(ann, scope)


async def test_an_unknown_client_and_a_wrong_secret_get_the_same_answer_for_the_same_work(world, ann):
    await world.login(ann)
    answers, work = [], []
    for client, secret in (
        (ann.client_id, "x" * 32),
        (ann.client_id, ""),
        ("0" * 16, "x" * 32),
        ("", "x"),
        ("subject", "x"),
    ):
        before = world.identities.hasher.digests
        with pytest.raises(TokenRefused) as error:
            await world.login(Credentials(client, Secret(secret)))
        answers.append((str(error.value), error.value.code, error.value.details))
        work.append(world.identities.hasher.digests - before)

    assert set(map(repr, answers)) == {repr(answers[0])}
    assert answers[0][1] == "unauthorized_client"
    assert set(work) == {work[0]}


async def test_an_unknown_client_is_looked_up_for_as_long_as_a_known_one(world, ann, monkeypatch):
    await bootstrap_realm(world.identities, DEFAULT_REALM)
    asked: list[str] = []
    find, load_many = State.find, State.load_many

    async def count_find(state, index, key):
        asked.append(index)
        return await find(state, index, key)

    async def count_load(state, object_type, ids):
        asked.append(object_type.name)
        return await load_many(state, object_type, ids)

    monkeypatch.setattr(State, "find", count_find)
    monkeypatch.setattr(State, "load_many", count_load)
    work = []
    for client in (ann.client_id, "0" * 16):
        asked.clear()
        with refused("unauthorized_client"):
            await world.login(Credentials(client, Secret("x" * 32)))
        work.append(list(asked))

    assert "principal" in work[0]
    assert work[0] == work[1]


async def test_a_principal_without_secrets_cannot_log_in(world, ann):
    from cynosure.auth.operations.provision_principal import provision_principal

    await provision_principal(world.identities, DEFAULT_REALM, "eve", "https://idp.example 7")

    for client in ("", "eve", "https://idp.example 7"):
        with refused("unauthorized_client"):
            await world.login(Credentials(client, Secret("")))


async def test_there_are_no_tokens_for_a_realm_that_does_not_exist(world, ann):
    with pytest.raises(NoSuchRealm):
        await world.login(ann, realm=RealmId("nowhere"))


async def test_guessing_is_slowed_down_for_known_and_unknown_clients_alike(world, ann):
    for client_id in (ann.client_id, "0" * 16):
        wrong = Credentials(client_id, Secret("wrong"))
        for _ in range(BURST):
            with refused("unauthorized_client"):
                await world.login(wrong)

        with refused("slow_down") as error:
            await world.login(wrong)

        assert 0 < error.value.retry_after_s <= REFILL_S + 1
    with refused("slow_down"):
        await world.login(ann)
    # Who guesses elsewhere does not lock the client out.
    issuer = world.tokens.issuer
    await issuer.issue_for_secret(DEFAULT_REALM, ann.client_id, ann.client_secret, "", "198.51.100.1")
    await world.clock.advance(REFILL_S)
    await world.login(ann)


async def test_both_secrets_are_good_after_a_rotation_and_the_older_is_out_after_the_next(world, ann):
    old = await world.login(ann)

    second = (await rotate_credentials(world.identities, OPERATOR, "ann")).credentials
    assert await is_good(world, old)
    middle = await world.login(second)
    assert (claims_of(old)["generation"], claims_of(middle)["generation"]) == (1, 2)

    await rotate_credentials(world.identities, OPERATOR, "ann")

    assert not await is_good(world, old)
    assert await is_good(world, middle)
    with refused("unauthorized_client"):
        await world.login(ann)


# --- for a token -----------------------------------------------------------------------------------


async def test_an_exchange_gives_the_same_principal_and_roles_with_a_new_lifetime(world, ann):
    old = await world.login(ann, "PRINCIPAL_ROLE:writer")
    await world.clock.advance(1800)

    new = await world.exchange(old)

    before, after = claims_of(old), claims_of(new)
    assert after["exp"] == before["exp"] + 1800
    assert after["jti"] != before["jti"]
    for name in ("sub", "principalId", "scope", "generation", "realm", "aud"):
        assert after[name] == before[name]


async def test_who_finds_a_token_cannot_renew_it_for_ever(world, ann):
    token = await world.login(ann)
    end_s = claims_of(token)["iat"] + 86_400
    for _ in range(50):
        await world.clock.advance(1_700)
        token = await world.exchange(token)
        assert claims_of(token)["exp"] <= end_s
    await world.clock.advance(86_400 - 50 * 1_700)

    with refused("invalid_grant"):
        await world.exchange(token)

    await world.clock.advance(60)
    assert not await is_good(world, token)
    assert await is_good(world, await world.login(ann))


async def test_a_token_that_lives_longer_than_renewing_lasts_is_good_for_its_life(manual_clock):
    settings = changed(lifetime=timedelta(hours=2), renewable=timedelta(minutes=1))
    async with open_world(manual_clock, settings) as world:
        token = await world.login(await world.add_principal("ann"))
        await manual_clock.advance(3_600)

        renewed = await world.exchange(token)

        assert claims_of(renewed)["exp"] == claims_of(token)["exp"]


async def test_an_exchange_can_only_take_roles_away(world, ann):
    everything = await world.login(ann)
    some = await world.exchange(everything, "PRINCIPAL_ROLE:writer")
    assert await roles(world, some) == ("writer",)

    for scope in ("PRINCIPAL_ROLE:ALL", "", "catalog"):
        assert await roles(world, await world.exchange(some, scope)) == ("writer",)
    for scope in ("PRINCIPAL_ROLE:analyst", "PRINCIPAL_ROLE:writer PRINCIPAL_ROLE:analyst"):
        with refused("invalid_scope"):
            await world.exchange(some, scope)
    with refused("invalid_scope"):
        await world.exchange(everything, "PRINCIPAL_ROLE:admin")


@pytest.mark.parametrize("end", ["expired", "deleted", "rotated out", "role revoked", "nonsense"])
async def test_what_is_not_good_any_more_cannot_be_exchanged(world, ann, end):
    token = await world.login(ann, "PRINCIPAL_ROLE:writer")
    match end:
        case "expired":
            world.clock.step_wall(3700)
        case "deleted":
            await delete_principal(world.identities, OPERATOR, "ann")
        case "rotated out":
            await reset_credentials(world.identities, OPERATOR, "ann")
        case "role revoked":
            await revoke_principal_role(world.identities, OPERATOR, "ann", "writer")
        case "nonsense":
            token = "x.y.z"

    with refused("invalid_scope" if end == "role revoked" else "invalid_grant"):
        await world.exchange(token)


async def test_what_ends_a_token_ends_those_that_were_made_from_it(world, ann):
    token = await world.login(ann)
    made = await world.exchange(await world.exchange(token))

    await reset_credentials(world.identities, OPERATOR, "ann")

    assert not await is_good(world, made)


# --- on behalf of ----------------------------------------------------------------------------------


@pytest.fixture
async def service(world: TokenWorld, ann: Credentials) -> Credentials:
    credentials = await world.add_principal("gateway", "admin")
    await world.trust("gateway")
    return credentials


async def test_a_trusted_service_acts_with_the_rights_of_the_user(world, ann, service):
    token = await world.act_for(await world.login(ann), await world.login(service))

    caller = await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)
    assert (caller.principal, caller.roles, caller.actor) == ("ann", ("analyst", "writer"), "gateway")
    act = claims_of(token)["act"]
    assert (act["sub"], act["generation"]) == ("gateway", 1)


async def test_a_service_that_is_not_trusted_cannot_act_for_others(world, ann):
    other = await world.add_principal("other", "admin")

    with refused("unauthorized_client"):
        await world.act_for(await world.login(ann), await world.login(other))


async def test_acting_for_somebody_gives_nothing_that_they_do_not_have(world, ann, service):
    user, actor = await world.login(ann, "PRINCIPAL_ROLE:writer"), await world.login(service)

    assert await roles(world, await world.act_for(user, actor)) == ("writer",)
    for scope in ("PRINCIPAL_ROLE:admin", "PRINCIPAL_ROLE:analyst"):
        with refused("invalid_scope"):
            await world.act_for(user, actor, scope)


async def test_acting_for_somebody_can_be_for_less(world, ann, service):
    token = await world.act_for(await world.login(ann), await world.login(service), "PRINCIPAL_ROLE:analyst")

    assert await roles(world, token) == ("analyst",)


async def test_nobody_acts_for_somebody_who_acts_for_somebody(world, ann, service):
    user, actor = await world.login(ann), await world.login(service)
    token = await world.act_for(user, actor)

    for subject, by in ((token, actor), (user, token), (token, token)):
        with refused("invalid_grant"):
            await world.act_for(subject, by)
    with refused("invalid_grant"):
        await world.exchange(token)


async def test_an_actor_of_another_realm_is_refused(world, ann, service):
    other = await world.add_realm("other")
    foreign = await world.login(await world.add_principal("gateway", realm=other), realm=other)

    with refused("invalid_grant"):
        await world.act_for(await world.login(ann), foreign)
    with refused("invalid_grant"):
        await world.act_for(foreign, await world.login(service))


@pytest.mark.parametrize(
    "end", ["user deleted", "user rotated out", "actor deleted", "actor rotated out", "actor not trusted"]
)
async def test_both_must_be_good_with_every_request(world, ann, service, end):
    token = await world.act_for(await world.login(ann), await world.login(service))
    assert await is_good(world, token)

    match end:
        case "user deleted":
            await delete_principal(world.identities, OPERATOR, "ann")
        case "user rotated out":
            await reset_credentials(world.identities, OPERATOR, "ann")
        case "actor deleted":
            await delete_principal(world.identities, OPERATOR, "gateway")
        case "actor rotated out":
            await reset_credentials(world.identities, OPERATOR, "gateway")
        case "actor not trusted":
            await world.trust("gateway", is_trusted=False)

    assert not await is_good(world, token)


async def test_the_lifetime_is_a_setting(manual_clock):
    async with open_world(manual_clock, changed(lifetime=timedelta(minutes=5))) as world:
        ann = await world.add_principal("ann")
        issued = await world.tokens.issuer.issue_for_secret(
            DEFAULT_REALM, ann.client_id, ann.client_secret, "", PEER
        )

        assert issued.lifetime_s == 300
        assert "eyJ" not in repr(issued)
        token = issued.token.reveal()
        manual_clock.step_wall(309)
        assert await is_good(world, token)
        manual_clock.step_wall(1)
        assert not await is_good(world, token)
