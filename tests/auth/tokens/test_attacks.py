"""Forged tokens (I37). The attacker has a good token, and all that is public, but not the key."""

import json
from collections.abc import AsyncIterator

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import HMACAlgorithm

from cynosure.common.errors import NotAuthenticated
from cynosure.common.secrets import Secret
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.testing.harness.clock import ManualClock
from tests.auth.tokens.forge import STRANGER, base64, claims_of, forge, header_of
from tests.auth.tokens.world import KEYRING, TokenWorld, changed, open_world, server_on

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def world(anyio_backend: str) -> AsyncIterator[TokenWorld]:
    """One for all: whatever is tried here changes nothing."""
    async with open_world(ManualClock()) as opened:
        yield opened


@pytest.fixture(scope="module")
async def token(world: TokenWorld) -> str:
    await world.add_role("analyst")
    return await world.login(await world.add_principal("ann", "analyst"))


@pytest.fixture(scope="module")
async def signer(world: TokenWorld, token: str):
    """The realm's own key. Only for claims that a server of ours would never have written."""
    return (await world.tokens.keys.load_signer(DEFAULT_REALM)).private


async def refused(world: TokenWorld, token: str) -> str:
    with pytest.raises(NotAuthenticated) as error:
        await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)
    return error.value.details.get("reason", "")


async def test_what_is_forged_here_would_be_good_if_it_were_signed_by_the_realm(world, token, signer):
    again = forge(header_of(token), claims_of(token), signer)

    assert (await world.tokens.authenticator.authenticate(again, DEFAULT_REALM)).principal == "ann"


# --- keys and algorithms ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none", "None", "NONE", ""])
async def test_no_algorithm_at_all(world, token, name):
    forged = forge({**header_of(token), "alg": name}, claims_of(token), None, None)

    assert await refused(world, forged) == "malformed"
    assert await refused(world, forged + base64(b"x")) == "wrong algorithm"


@pytest.mark.parametrize("encoding", [Encoding.PEM, Encoding.DER])
async def test_the_public_key_as_a_shared_secret(world, token, signer, encoding):
    public = signer.public_key().public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)
    header = {**header_of(token), "alg": "HS256"}
    signed = forge(header, claims_of(token), None, None)[:-1]
    signature = HMACAlgorithm(HMACAlgorithm.SHA256).sign(signed.encode(), public)

    assert await refused(world, f"{signed}.{base64(signature)}") == "wrong algorithm"


@pytest.mark.parametrize("algorithm", ["RS384", "RS512", "PS256"])
async def test_another_algorithm_even_with_the_right_key(world, token, signer, algorithm):
    forged = forge({**header_of(token), "alg": algorithm}, claims_of(token), signer, algorithm)

    assert await refused(world, forged) == "wrong algorithm"


async def test_a_header_that_does_not_say_how_it_is_signed(world, token, signer):
    header = header_of(token)
    del header["alg"]

    assert await refused(world, forge(header, claims_of(token), signer)) == "malformed"


async def test_a_key_of_another_kind(world, token):
    forged = forge(
        {**header_of(token), "alg": "ES256"},
        claims_of(token),
        ec.generate_private_key(ec.SECP256R1()),
        "ES256",
    )

    assert await refused(world, forged) == "wrong algorithm"


async def test_a_strangers_key_under_the_realms_name_for_its_own(world, token):
    assert await refused(world, forge(header_of(token), claims_of(token), STRANGER)) == "wrong signature"


@pytest.mark.parametrize("kid", ["unknown", "", "../../etc/passwd", 7, None, ["x"]])
async def test_a_key_that_the_realm_does_not_have(world, token, kid):
    await refused(world, forge({**header_of(token), "kid": kid}, claims_of(token), STRANGER))


@pytest.mark.parametrize("name", ["jwk", "jku", "x5u", "x5c"])
async def test_a_header_that_brings_its_own_key(world, token, name):
    numbers = STRANGER.public_key().public_numbers()
    jwk = {"kty": "RSA", "n": base64(numbers.n.to_bytes(256, "big")), "e": "AQAB", "kid": "mine"}
    value = {"jwk": jwk, "x5c": ["MII"]}.get(name, "https://attacker.example/keys")
    for kid in ("mine", header_of(token)["kid"]):
        forged = forge({**header_of(token), "kid": kid, name: value}, claims_of(token), STRANGER)

        assert await refused(world, forged) == "malformed"


@pytest.mark.parametrize("extra", [{"crit": ["exp"]}, {"crit": []}, {"b64": False}, {"zip": "DEF"}])
async def test_a_header_with_more_than_we_write_even_with_the_right_key(world, token, signer, extra):
    assert await refused(world, forge({**header_of(token), **extra}, claims_of(token), signer)) == "malformed"


@pytest.mark.parametrize("kind", ["JWT", "id+jwt", None])
async def test_a_token_of_another_type_even_with_the_right_key(world, token, signer, kind):
    forged = forge({**header_of(token), "typ": kind}, claims_of(token), signer)

    assert await refused(world, forged) == "malformed"


# --- claims ----------------------------------------------------------------------------------------


async def test_claims_changed_under_a_good_signature(world, token):
    head, _, signature = token.split(".")
    claims = base64(json.dumps({**claims_of(token), "principalId": 1}).encode())

    assert await refused(world, f"{head}.{claims}.{signature}") == "wrong signature"


async def test_a_claim_that_is_there_twice(world, token, signer):
    claims = json.dumps(claims_of(token))
    twice = claims[:-1] + ', "principalId": 1}'

    assert await refused(world, forge(header_of(token), twice, signer)) == "malformed"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://elsewhere.example"}, "wrong issuer"),
        ({"iss": ["cynosure"]}, "wrong issuer"),
        ({"aud": "cynosure/other"}, "wrong realm"),
        ({"aud": ["cynosure/default"]}, "malformed"),
        ({"realm": "other"}, "wrong realm"),
        ({"realm": "Default"}, "wrong realm"),
        ({"principalId": "1"}, "malformed"),
        ({"principalId": -1}, "malformed"),
        ({"principalId": 1 << 64}, "malformed"),
        ({"principalId": True}, "malformed"),
        ({"generation": -1}, "malformed"),
        ({"scope": "admin"}, "malformed"),
        ({"scope": None}, "malformed"),
        ({"exp": None}, "malformed"),
        ({"exp": "9999999999"}, "malformed"),
        ({"exp": True}, "malformed"),
        ({"exp": -1}, "malformed"),
        ({"exp": 1e300}, "malformed"),
        ({"exp": 1}, "expired"),
        ({"nbf": 9_999_999_999}, "not good yet"),
        ({"iat": 9_999_999_999}, "not good yet"),
        ({"act": "service"}, "malformed"),
        ({"act": {"sub": "service", "principalId": -1}}, "malformed"),
    ],
)
async def test_claims_that_no_server_of_ours_writes_even_with_the_right_key(
    world, token, signer, claims, reason
):
    assert await refused(world, forge(header_of(token), {**claims_of(token), **claims}, signer)) == reason


@pytest.mark.parametrize("name", ["iss", "aud", "realm", "exp", "principalId", "scope", "generation"])
async def test_a_claim_that_is_missing_even_with_the_right_key(world, token, signer, name):
    claims = claims_of(token)
    del claims[name]

    await refused(world, forge(header_of(token), claims, signer))


@pytest.mark.parametrize(
    "text", ["[]", "1", "null", '"x"', "{", '{"exp": NaN}', '{"exp": Infinity}', "[" * 4000]
)
async def test_a_body_that_is_no_object(world, token, signer, text):
    assert await refused(world, forge(header_of(token), text, signer)) == "malformed"


async def test_a_token_of_more_than_eight_kilobytes_even_with_the_right_key(world, token, signer):
    forged = forge(header_of(token), {**claims_of(token), "x": "y" * 8192}, signer)

    assert await refused(world, forged) == "too long"


async def test_another_spelling_of_the_same_token(world, token):
    await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # 256 bytes leave four bits of the last character unused.
    sloppy = token[:-1] + alphabet[alphabet.index(token[-1]) | 1]

    for other in (sloppy, token + "=", token + "\n", " " + token):
        assert await refused(world, other) == "malformed"


# --- realms, issuers, rights -----------------------------------------------------------------------


async def test_a_token_of_another_realm(world, token):
    other = await world.add_realm("other")
    foreign = await world.login(await world.add_principal("ann", realm=other), realm=other)

    assert await refused(world, foreign) == "unknown key"


async def test_a_token_of_another_realm_under_a_key_that_both_should_have(world, token, signer):
    other = {"realm": "other", "aud": "cynosure/other"}

    assert (
        await refused(world, forge(header_of(token), {**claims_of(token), **other}, signer)) == "wrong realm"
    )


async def test_a_token_of_a_server_with_another_issuer_on_the_same_store(world, token):
    settings = changed(issuer="elsewhere")
    async with server_on(world.persistence, world.clock, settings, keyring=KEYRING) as other:
        assert await refused(other, token) == "wrong issuer"


async def test_an_expired_token_whether_or_not_it_was_seen_before(manual_clock):
    async with open_world(manual_clock) as world:
        ann = await world.add_principal("ann")
        seen, unseen = await world.login(ann), await world.login(ann)
        await world.tokens.authenticator.authenticate(seen, DEFAULT_REALM)

        manual_clock.step_wall(3600 + 10)

        assert await refused(world, seen) == "expired"
        assert await refused(world, unseen) == "expired"


async def test_a_role_in_the_scope_that_the_principal_does_not_have_even_with_the_right_key(
    world, token, signer
):
    await world.add_role("admin")
    forged = forge(header_of(token), {**claims_of(token), "scope": "PRINCIPAL_ROLE:admin"}, signer)

    await refused(world, forged)


async def test_roles_in_a_token_are_only_those_that_other_issuers_may_give(world, token, signer):
    await world.add_role("owner")
    await world.add_role("guest", is_federated=True)
    forged = forge(header_of(token), {**claims_of(token), "roles": ["owner", "guest", "nothing"]}, signer)

    caller = await world.tokens.authenticator.authenticate(forged, DEFAULT_REALM)

    assert caller.roles == ("analyst", "guest")


async def test_an_actor_that_is_not_trusted_even_with_the_right_key(world, token, signer):
    service = claims_of(await world.login(await world.add_principal("service")))
    act = {"sub": "service", "principalId": service["principalId"], "generation": 1}

    await refused(world, forge(header_of(token), {**claims_of(token), "act": act}, signer))


async def test_a_secret_of_the_token_appears_in_no_error_or_text(world, token):
    signature = token.split(".")[2]
    forged = token[:-8] + "AAAAAAAA"
    with pytest.raises(NotAuthenticated) as error:
        await world.tokens.authenticator.authenticate(forged, DEFAULT_REALM)

    assert signature[:40] not in str(error.value) + repr(error.value.details)
    assert signature[:40] not in repr(Secret(token))
