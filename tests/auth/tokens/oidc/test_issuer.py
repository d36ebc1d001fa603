"""Tokens of other issuers, good and hostile ones, and the principals they lead to (I39)."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from cynosure.auth.caller import operator_caller
from cynosure.auth.operations.delete_principal import delete_principal
from cynosure.auth.principals import find_principal
from cynosure.auth.settings import AuthSettings, OidcSettings, TokenSettings
from cynosure.auth.tokens.errors import TokenRefused
from cynosure.auth.tokens.oidc.keys import KEPT_S, MIN_INTERVAL_S, REFRESH_S, IssuerKeys
from cynosure.common.errors import Misconfigured, NotAuthenticated, Unavailable
from cynosure.persistence.references import DEFAULT_REALM
from tests.auth.tokens.forge import STRANGER, claims_of, forge
from tests.auth.tokens.oidc.provider import AUDIENCE, CURVE_KEY, ISSUER, KEYS, Provider, settings_with
from tests.auth.tokens.world import open_world, server_on

pytestmark = pytest.mark.anyio
OPERATOR = operator_caller()


@pytest.fixture
def provider(manual_clock):
    return Provider(manual_clock)


@pytest.fixture
def world_with(manual_clock, provider):
    """Opens a server that accepts the provider's tokens, with these settings."""

    @asynccontextmanager
    async def open_with(**changed):
        async with open_world(manual_clock, settings_with(**changed), fetch=provider.fetch) as world:
            yield world

    return open_with


async def authenticate(world, token, realm=DEFAULT_REALM):
    return await world.tokens.authenticator.authenticate(token, realm)


async def refused(world, token, realm=DEFAULT_REALM):
    with pytest.raises(NotAuthenticated) as error:
        await authenticate(world, token, realm)
    return error.value.details.get("reason") or error.value.message


async def settle():
    """Let what was begun in the background come to its end."""
    for _ in range(10):
        await asyncio.sleep(0)


# --- accounts and principals -----------------------------------------------------------------------


async def test_a_token_stands_for_the_principal_that_is_called_like_its_subject(world_with, provider):
    async with world_with() as world:
        await world.add_role("analyst")
        await world.add_principal("u-1", "analyst")

        caller = await authenticate(world, provider.token())

        assert (caller.principal, caller.roles) == ("u-1", ("analyst",))
        assert caller.identity.credential == 0


async def test_an_account_without_a_principal_is_refused(world_with, provider):
    async with world_with() as world:
        assert await refused(world, provider.token()) == "No principal belongs to this account"


async def test_a_principal_belongs_to_the_account_that_came_first(world_with, provider):
    async with world_with(name_claim="preferred_username") as world:
        await world.add_principal("ann")
        await authenticate(world, provider.token(sub="u-1", preferred_username="ann"))

        reused = provider.token(sub="u-2", preferred_username="ann")
        renamed = provider.token(sub="u-1", preferred_username="anna")

        assert await refused(world, reused) == "No principal belongs to this account"
        assert (await authenticate(world, renamed)).principal == "ann"


async def test_nobody_becomes_root_by_a_name_at_another_issuer(world_with, provider):
    async with world_with(name_claim="name") as world:
        await world.add_principal("root")

        assert await refused(world, provider.token(name="root")) == "No principal belongs to this account"


async def test_principals_are_made_on_first_use_where_that_is_wanted(world_with, provider):
    async with world_with(first_use="provision", name_claim="email") as world:
        await world.add_role("guest", is_federated=True)

        caller = await authenticate(world, provider.token(email="ann@corp.example", groups=["guest"]))

        assert (caller.principal, caller.roles) == ("ann@corp.example", ("guest",))
        made = await find_principal(world.persistence, DEFAULT_REALM, "ann@corp.example")
        assert (made.secrets, made.client_id, made.subject) == ((), "", f"{ISSUER} u-1")


async def test_a_principal_that_exists_is_never_taken_over_where_they_are_made(world_with, provider):
    async with world_with(first_use="provision", name_claim="name") as world:
        await world.add_principal("ann")
        await authenticate(world, provider.token(sub="u-2", name="bob"))

        for name in ("ann", "bob"):
            token = provider.token(sub="u-1", name=name)
            assert await refused(world, token) == "No principal belongs to this account"


@pytest.mark.parametrize("name", [None, 7, "", "SYSTEM$x", "a\x00b", "x" * 257])
async def test_an_account_without_a_usable_name_gets_no_principal(world_with, provider, name):
    async with world_with(first_use="provision", name_claim="name") as world:
        assert await refused(world, provider.token(name=name)) == "No principal belongs to this account"


async def test_requests_that_come_first_together_make_one_principal(world_with, provider):
    async with world_with(first_use="provision") as world:
        servers = [server_on(world.persistence, world.clock, world.identities.settings, fetch=provider.fetch)]
        async with servers[0] as other:
            callers = await asyncio.gather(
                *(authenticate(each, provider.token(jti=str(n))) for n in range(8) for each in (world, other))
            )

        assert len({caller.identity.principal_id for caller in callers}) == 1


async def test_a_deleted_principal_is_refused_with_the_next_request(world_with, provider):
    async with world_with() as world:
        await world.add_principal("u-1")
        token = provider.token()
        await authenticate(world, token)

        await delete_principal(world.identities, OPERATOR, "u-1")

        await refused(world, token)


async def test_an_issuer_opens_only_the_realms_that_it_is_for(world_with, provider):
    async with world_with(realms=("other",)) as world:
        other = await world.add_realm("other")
        for realm in (DEFAULT_REALM, other):
            await world.add_principal("u-1", realm=realm)

        assert await refused(world, provider.token()) == "wrong issuer"
        assert (await authenticate(world, provider.token(), other)).realm == other


# --- roles -----------------------------------------------------------------------------------------


async def test_groups_give_federated_roles_and_no_others(world_with, provider):
    async with world_with(role_prefix="lake-") as world:
        await world.add_role("reader", is_federated=True)
        await world.add_role("admin")
        await world.add_principal("u-1")

        caller = await authenticate(world, provider.token(groups=["lake-reader", "lake-admin", "lake-x"]))

        assert caller.roles == ("reader",)


async def test_roles_of_groups_follow_the_token(world_with, provider):
    async with world_with() as world:
        await world.add_role("reader", is_federated=True)
        await world.add_principal("u-1")

        assert (await authenticate(world, provider.token(groups=["reader"]))).roles == ("reader",)
        assert (await authenticate(world, provider.token(groups=[]))).roles == ()


# --- on behalf of ----------------------------------------------------------------------------------


async def test_a_trusted_service_acts_for_an_account_of_another_issuer_until_its_token_ends(
    world_with, provider
):
    async with world_with() as world:
        await world.add_role("reader", is_federated=True)
        await world.add_principal("u-1")
        gateway = await world.login(await world.add_principal("gateway"))
        await world.trust("gateway")
        token = provider.token(groups=["reader"])

        made = await world.act_for(token, gateway)

        caller = await authenticate(world, made)
        assert (caller.principal, caller.roles, caller.actor) == ("u-1", ("reader",), "gateway")
        assert claims_of(made)["exp"] <= claims_of(token)["exp"] + 10


async def test_a_token_of_another_issuer_is_not_exchanged_for_a_longer_one(world_with, provider):
    async with world_with() as world:
        await world.add_principal("u-1")

        with pytest.raises(TokenRefused, match="good as they are"):
            await world.exchange(provider.token())


# --- attacks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": ISSUER + "/"}, "wrong issuer"),
        ({"iss": ISSUER.upper()}, "wrong issuer"),
        ({"iss": [ISSUER]}, "wrong issuer"),
        ({"aud": "elsewhere"}, "wrong audience"),
        ({"aud": [AUDIENCE + "x", 7, None]}, "wrong audience"),
        ({"aud": {AUDIENCE: 1}}, "wrong audience"),
        ({"aud": None}, "wrong audience"),
        ({"exp": None}, "no end"),
        ({"exp": 1}, "expired"),
        ({"nbf": 9_999_999_999}, "not good yet"),
        ({"sub": None}, "no subject"),
        ({"sub": ""}, "no subject"),
        ({"sub": ["u-1"]}, "no subject"),
        ({"tenant": "other"}, "a required claim is missing"),
        ({"tenant": None}, "a required claim is missing"),
    ],
)
async def test_claims_that_are_not_for_us(world_with, provider, claims, reason):
    async with world_with(required_claims={"tenant": "t"}) as world:
        await world.add_principal("u-1")
        await authenticate(world, provider.token(tenant="t", aud=["x", AUDIENCE]))
        await authenticate(world, provider.token(tenant=["s", "t"]))

        assert await refused(world, provider.token(**{"tenant": "t", **claims})) == reason


@pytest.mark.parametrize("algorithm", ["RS384", "PS256"])
async def test_an_algorithm_that_the_settings_do_not_name(world_with, provider, algorithm):
    provider.keys = [provider.jwk("one", alg=algorithm)]
    async with world_with() as world:
        assert await refused(world, provider.token(algorithm=algorithm)) == "wrong algorithm"


@pytest.mark.parametrize("algorithm", ["none", "HS256", None, ["RS256"], 7])
async def test_a_header_with_an_algorithm_that_nobody_could_name(world_with, provider, algorithm):
    async with world_with() as world:
        assert await refused(world, provider.token(header={"alg": algorithm})) == "wrong algorithm"


async def test_a_key_that_is_published_for_another_algorithm(world_with, provider):
    provider.keys = [provider.jwk("one", alg="RS512")]
    async with world_with() as world:
        assert await refused(world, provider.token()) == "unknown key"


@pytest.mark.parametrize(
    "members",
    [{"use": "enc"}, {"key_ops": ["encrypt"]}, {"kty": "oct", "k": "AAAA"}, {"n": 7}, {"d": "AQAB"}],
)
async def test_a_key_that_is_not_for_signatures(world_with, provider, members):
    provider.keys = [provider.jwk("one", **members)]
    async with world_with() as world:
        assert await refused(world, provider.token()) == "unknown key"


async def test_a_key_of_a_stranger_under_a_published_name(world_with, provider):
    async with world_with() as world:
        header = {"alg": "RS256", "kid": "one", "typ": "JWT"}

        assert await refused(world, forge(header, provider.claims(), STRANGER)) == "wrong signature"


@pytest.mark.parametrize("name", ["jwk", "jku", "x5u", "x5c"])
async def test_a_header_that_brings_its_own_key(world_with, provider, name):
    value = provider.jwk("mine") if name == "jwk" else f"{ISSUER}/attacker"
    async with world_with() as world:
        for kid in ("mine", "one"):
            token = provider.token(key="mine", header={name: value, "kid": kid})
            assert await refused(world, token) in ("unknown key", "wrong signature")

        assert all(url.startswith((f"{ISSUER}/keys", f"{ISSUER}/.well-known")) for url in provider.fetched)


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"b64": False}, {"typ": "logout+jwt"}, {"kid": 7}])
async def test_a_header_that_means_something_else(world_with, provider, header):
    async with world_with() as world:
        await world.add_principal("u-1")

        assert await refused(world, provider.token(header=header)) == "malformed"


async def test_our_own_tokens_do_not_come_from_another_issuer(world_with, provider):
    async with world_with() as world:
        await world.add_principal("u-1")

        assert await refused(world, provider.token(iss="cynosure")) == "malformed"


async def test_elliptic_curves_are_accepted_where_the_settings_name_them(world_with, provider):
    provider.keys = [provider.curve_jwk()]
    async with world_with(algorithms=("ES256",)) as world:
        await world.add_principal("u-1")
        header = {"alg": "ES256", "kid": "curve", "typ": "at+jwt"}

        assert (await authenticate(world, forge(header, provider.claims(), CURVE_KEY, "ES256"))).principal


# --- keys ------------------------------------------------------------------------------------------


async def test_keys_are_fetched_once_for_many_tokens(world_with, provider):
    async with world_with() as world:
        await world.add_principal("u-1")

        await asyncio.gather(*(authenticate(world, provider.token(jti=str(n))) for n in range(10)))

        assert provider.fetched == [f"{ISSUER}/.well-known/openid-configuration", f"{ISSUER}/keys"]


async def test_an_address_of_keys_in_the_settings_needs_no_discovery(world_with, provider):
    async with world_with(jwks_uri=f"{ISSUER}/keys") as world:
        await world.add_principal("u-1")
        await authenticate(world, provider.token())

        assert provider.fetched == [f"{ISSUER}/keys"]


async def test_a_new_key_is_found_when_a_token_names_it(world_with, provider, manual_clock):
    async with world_with() as world:
        await world.add_principal("u-1")
        await authenticate(world, provider.token())
        provider.keys = [provider.jwk("two")]
        await manual_clock.advance(MIN_INTERVAL_S)

        await authenticate(world, provider.token(key="two"))

        assert await refused(world, provider.token(key="one", jti="x")) == "unknown key"


async def test_tokens_with_unknown_keys_do_not_make_us_ask_again_and_again(world_with, provider):
    async with world_with(jwks_uri=f"{ISSUER}/keys") as world:
        for number in range(30):
            token = provider.token(header={"kid": f"k{number}"})
            assert await refused(world, token) == "unknown key"

        assert len(provider.fetched) == 1


async def test_tokens_that_are_bad_anyway_make_nobody_fetch_keys(world_with, provider):
    async with world_with() as world:
        for claims in ({"exp": 1}, {"aud": "x"}, {"iss": "https://x.example"}):
            await refused(world, provider.token(**claims))

        assert provider.fetched == []


async def test_keys_are_kept_while_the_issuer_is_down_but_not_for_ever(provider, manual_clock):
    keys = IssuerKeys(ISSUER, "", provider.fetch, manual_clock)
    assert await keys.find("one", "RS256") is not None
    provider.is_down = True

    for _ in range(10):
        await manual_clock.advance(KEPT_S / 10 - 1)
        assert await keys.find("one", "RS256") is not None
        await settle()
    assert len(provider.fetched) == 2 + 10

    await manual_clock.advance(10)
    with pytest.raises(Unavailable):
        await keys.find("one", "RS256")
    provider.is_down = False
    await manual_clock.advance(MIN_INTERVAL_S)
    assert await keys.find("one", "RS256") is not None


async def test_keys_that_the_issuer_took_away_are_not_believed_for_long(world_with, provider, manual_clock):
    async with world_with() as world:
        await world.add_principal("u-1")
        await authenticate(world, provider.token())
        provider.keys = [provider.jwk("two")]
        await manual_clock.advance(REFRESH_S)
        await authenticate(world, provider.token(jti="still believed while they are fetched"))
        await settle()

        assert await refused(world, provider.token(jti="x")) == "unknown key"


async def test_an_issuer_that_was_never_reached_is_unavailable_and_comes_back(
    world_with, provider, manual_clock
):
    provider.is_down = True
    async with world_with() as world:
        await world.add_principal("u-1")
        for _ in range(2):
            with pytest.raises(Unavailable):
                await authenticate(world, provider.token())
        assert len(provider.fetched) == 1

        provider.is_down = False
        await manual_clock.advance(MIN_INTERVAL_S)

        assert (await authenticate(world, provider.token())).principal == "u-1"


@pytest.mark.parametrize(
    "discovery",
    [
        {"issuer": ISSUER + "/", "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": "https://attacker.example", "jwks_uri": f"{ISSUER}/keys"},
        {"issuer": ISSUER},
        b"<html>",
        b"\xff",
        b"[]",
    ],
)
async def test_a_discovery_document_of_somebody_else_is_not_believed(world_with, provider, discovery):
    provider.discovery = discovery
    async with world_with() as world:
        await world.add_principal("u-1")

        with pytest.raises(Unavailable):
            await authenticate(world, provider.token())


async def test_two_keys_of_one_name_are_not_chosen_between(world_with, provider):
    provider.keys = [provider.jwk("one"), provider.jwk("mine", kid="one")]
    async with world_with() as world:
        assert await refused(world, provider.token()) == "unknown key"


async def test_a_token_without_a_key_id_is_checked_with_the_only_key(world_with, provider):
    async with world_with() as world:
        await world.add_principal("u-1")
        token = forge({"alg": "RS256"}, provider.claims(), KEYS["one"])

        assert (await authenticate(world, token)).principal == "u-1"


# --- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {"issuer": "http://idp.example"},
        {"issuer": "idp.example"},
        {"issuer": "https://"},
        {"issuer": "https://idp.example/a b"},
        {"audience": ()},
        {"audience": ("",)},
        {"algorithms": ("HS256",)},
        {"algorithms": ("none",)},
        {"algorithms": ()},
        {"jwks_uri": "http://idp.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"role_pattern": "("},
        {"role_pattern": "x", "role_replacement": r"\1"},
    ],
)
async def test_settings_that_cannot_be_safe_are_refused_at_the_start(manual_clock, changed):
    with pytest.raises(Misconfigured):
        async with open_world(manual_clock, settings_with(**changed)):
            pass


async def test_two_issuers_of_one_name_are_refused_at_the_start(manual_clock):
    one = OidcSettings(issuer=ISSUER, audience=(AUDIENCE,))
    for settings in (
        AuthSettings(oidc={"a": one, "b": one}),
        AuthSettings(oidc={"a": one}, tokens=TokenSettings(issuer=ISSUER)),
    ):
        with pytest.raises(Misconfigured, match="same name"):
            async with open_world(manual_clock, settings):
                pass
