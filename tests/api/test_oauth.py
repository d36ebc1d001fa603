from base64 import b64encode
from urllib.parse import urlencode

import jwt
import pytest

from cynosure.api.oauth import TOKENS_PATH, oauth_routes
from cynosure.api.openapi import describe_routes
from cynosure.auth.audit.denials import Denial
from cynosure.auth.tokens.failures import BURST
from cynosure.persistence.references import DEFAULT_REALM
from tests.auth.tokens.world import TokenWorld

pytestmark = pytest.mark.anyio

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class Recorded:
    def __init__(self) -> None:
        self.all: list[Denial] = []

    async def record(self, denial: Denial) -> None:
        self.all.append(denial)


@pytest.fixture
def denials() -> Recorded:
    return Recorded()


@pytest.fixture
def client(client_for, world, denials):
    return client_for(*oauth_routes(world.tokens.issuer, world.tokens.keys, denials))


@pytest.fixture
async def ann(world: TokenWorld):
    await world.add_role("analyst")
    return await world.add_principal("ann", "analyst")


def form_of(credentials, **changed):
    form = {
        "grant_type": "client_credentials",
        "client_id": credentials.client_id,
        "client_secret": credentials.client_secret.reveal(),
        "scope": "PRINCIPAL_ROLE:ALL",
    } | changed
    return {name: value for name, value in form.items() if value is not None}


def basic(credentials):
    text = f"{credentials.client_id}:{credentials.client_secret.reveal()}"
    return {"authorization": f"Basic {b64encode(text.encode()).decode()}"}


async def is_for(world, answer, principal):
    caller = await world.tokens.authenticator.authenticate(answer.json()["access_token"], DEFAULT_REALM)
    return caller.principal == principal


def assert_refused(answer, status, error):
    assert (answer.status_code, answer.json()["error"]) == (status, error)
    assert answer.json().keys() == {"error", "error_description"}
    assert answer.headers["cache-control"] == "no-store"


# --- what is answered ------------------------------------------------------------------------------


async def test_a_secret_in_the_form_gives_a_token(client, world, ann):
    answer = await client.post(TOKENS_PATH, data=form_of(ann))

    body = answer.json()
    assert body.pop("access_token").count(".") == 2
    assert body == {
        "token_type": "bearer",
        "issued_token_type": ACCESS_TOKEN,
        "expires_in": 3600,
        "scope": "PRINCIPAL_ROLE:ALL",
    }
    assert (answer.headers["cache-control"], answer.headers["pragma"]) == ("no-store", "no-cache")
    assert await is_for(world, answer, "ann")


@pytest.mark.parametrize("scope", [None, "", "catalog"])
async def test_clients_that_ask_for_no_roles_get_all(client, ann, scope):
    answer = await client.post(TOKENS_PATH, data=form_of(ann, scope=scope))

    assert answer.json()["scope"] == "PRINCIPAL_ROLE:ALL"


async def test_a_secret_in_a_basic_header_gives_a_token(client, world, ann):
    answer = await client.post(TOKENS_PATH, data={"grant_type": "client_credentials"}, headers=basic(ann))

    assert await is_for(world, answer, "ann")


async def test_a_token_gives_another_token(client, world, ann):
    first = (await client.post(TOKENS_PATH, data=form_of(ann))).json()["access_token"]

    answer = await client.post(
        TOKENS_PATH,
        data={"grant_type": EXCHANGE, "subject_token": first, "subject_token_type": ACCESS_TOKEN},
        # Iceberg's Java client sends the token it is about to replace as well.
        headers={"authorization": f"Bearer {first}"},
    )

    assert await is_for(world, answer, "ann")
    assert answer.json()["access_token"] != first


async def test_an_exchange_with_a_basic_header_needs_no_good_token(client, world, ann):
    form = {"grant_type": EXCHANGE, "subject_token": "expired", "subject_token_type": ACCESS_TOKEN}

    answer = await client.post(TOKENS_PATH, data=form, headers=basic(ann))

    assert await is_for(world, answer, "ann")


async def test_a_trusted_service_gets_a_token_on_behalf_of_a_user(client, world, ann):
    gateway = await world.add_principal("gateway")
    await world.trust("gateway")
    form = {
        "grant_type": EXCHANGE,
        "subject_token": await world.login(ann),
        "subject_token_type": ACCESS_TOKEN,
        "actor_token": await world.login(gateway),
        "actor_token_type": ACCESS_TOKEN,
    }

    answer = await client.post(TOKENS_PATH, data=form)

    token = answer.json()["access_token"]
    caller = await world.tokens.authenticator.authenticate(token, DEFAULT_REALM)
    assert (caller.principal, caller.actor) == ("ann", "gateway")


async def test_a_token_is_of_the_realm_in_the_header(client, world):
    other = await world.add_realm("other")
    bob = await world.add_principal("bob", realm=other)

    assert_refused(await client.post(TOKENS_PATH, data=form_of(bob)), 401, "unauthorized_client")
    answer = await client.post(TOKENS_PATH, data=form_of(bob), headers={"polaris-realm": "other"})

    caller = await world.tokens.authenticator.authenticate(answer.json()["access_token"], other)
    assert caller.principal == "bob"


async def test_the_published_keys_check_our_tokens(client, ann):
    for path in ("/api/catalog/v1/oauth/jwks", "/.well-known/jwks.json"):
        assert (await client.get(path)).json() == {"keys": []}
    token = (await client.post(TOKENS_PATH, data=form_of(ann))).json()["access_token"]

    for path in ("/api/catalog/v1/oauth/jwks", "/.well-known/jwks.json"):
        answer = await client.get(path)
        keys = jwt.PyJWKSet.from_dict(answer.json())
        key = keys[jwt.get_unverified_header(token)["kid"]]
        claims = jwt.decode(
            token, key, algorithms=["RS256"], audience="cynosure/default", options={"verify_exp": False}
        )
        assert claims["sub"] == "ann"
        assert answer.headers["vary"] == "Polaris-Realm"
        assert "d" not in answer.json()["keys"][0]


# --- what is refused -------------------------------------------------------------------------------


async def test_an_unknown_client_and_a_wrong_secret_get_the_same_answer(client, ann, denials):
    answers = [
        await client.post(TOKENS_PATH, data=form_of(ann, **changed))
        for changed in ({"client_secret": "wrong"}, {"client_id": "unknown"})
    ]

    for answer in answers:
        assert_refused(answer, 401, "unauthorized_client")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert answers[0].content == answers[1].content
    assert {name for name in answers[0].headers if name != "x-request-id"} == {
        name for name in answers[1].headers if name != "x-request-id"
    }
    assert [(each.is_authentication, each.operation) for each in denials.all] == [(True, "get-token")] * 2
    assert ann.client_secret.reveal() not in repr(denials.all)


async def test_a_wrong_basic_header_is_answered_with_its_scheme(client, ann):
    headers = {"authorization": "Basic " + b64encode(b"x:y").decode()}

    answer = await client.post(TOKENS_PATH, data={"grant_type": "client_credentials"}, headers=headers)

    assert_refused(answer, 401, "unauthorized_client")
    assert answer.headers["www-authenticate"] == "Basic"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"grant_type": None}, "invalid_request"),
        ({"grant_type": ""}, "invalid_request"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "authorization_code"}, "unsupported_grant_type"),
        ({"client_id": None}, "invalid_client"),
        ({"client_secret": None}, "invalid_client"),
        ({"client_secret": ""}, "invalid_client"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"scope": "PRINCIPAL_ROLE:service_admin"}, "invalid_scope"),
        ({"grant_type": EXCHANGE}, "invalid_request"),
        ({"grant_type": EXCHANGE, "subject_token": "x"}, "invalid_grant"),
        ({"grant_type": EXCHANGE, "subject_token": "x", "subject_token_type": "saml2"}, "invalid_request"),
        ({"grant_type": EXCHANGE, "subject_token": "x", "requested_token_type": "saml2"}, "invalid_request"),
        ({"grant_type": EXCHANGE, "subject_token": "x", "actor_token": "y"}, "invalid_grant"),
        ({"grant_type": EXCHANGE, "subject_token": "x", "actor_token": ""}, "invalid_request"),
    ],
)
async def test_a_form_that_asks_for_nothing_that_is_given(client, ann, changed, error):
    assert_refused(await client.post(TOKENS_PATH, data=form_of(ann, **changed)), 400, error)


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        ("{}", "application/json"),
        ("grant_type=client_credentials", ""),
        ("grant_type=client_credentials&grant_type=password", "application/x-www-form-urlencoded"),
        ("grant_type=%zz", "application/x-www-form-urlencoded"),
        ("grant_type=%ff", "application/x-www-form-urlencoded"),
    ],
)
async def test_what_is_no_form(client, body, media_type):
    answer = await client.post(TOKENS_PATH, content=body, headers={"content-type": media_type})

    assert_refused(answer, 400, "invalid_request")


@pytest.mark.parametrize("header", ["Basic", "Basic ", "Basic !!!", "Basic eA==", "Basic Og==", "Basic /w=="])
async def test_a_basic_header_that_names_no_client(client, header):
    answer = await client.post(
        TOKENS_PATH, data={"grant_type": "client_credentials"}, headers={"authorization": header}
    )

    assert_refused(answer, 400, "invalid_client")


async def test_a_client_that_authenticates_twice(client, ann):
    assert_refused(
        await client.post(TOKENS_PATH, data=form_of(ann), headers=basic(ann)), 400, "invalid_request"
    )


async def test_a_stranger_cannot_make_us_hold_much(client):
    form = urlencode({"grant_type": "x" * 70_000})
    headers = {"content-type": "application/x-www-form-urlencoded"}

    answer = await client.post(TOKENS_PATH, content=form, headers=headers)

    assert answer.status_code == 413


async def test_guessing_is_slowed_down(client, ann):
    form = form_of(ann, client_secret="wrong")
    for _ in range(BURST):
        assert_refused(await client.post(TOKENS_PATH, data=form), 401, "unauthorized_client")

    answer = await client.post(TOKENS_PATH, data=form)

    assert_refused(answer, 429, "slow_down")
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("path", [TOKENS_PATH, "/.well-known/jwks.json"])
@pytest.mark.parametrize(("realm", "status"), [("nowhere", 404), ("_system", 404), ("a,b", 400), ("", 400)])
async def test_an_unknown_realm_is_told_in_the_usual_envelope(client, ann, path, realm, status):
    headers = {"polaris-realm": realm}
    if path == TOKENS_PATH:
        answer = await client.post(path, data=form_of(ann), headers=headers)
    else:
        answer = await client.get(path, headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, status)


async def test_no_answer_or_log_holds_a_secret_that_was_sent(client, ann, caplog):
    secret = ann.client_secret.reveal()
    with caplog.at_level(0):
        for changed in (
            {"client_id": "unknown"},
            {"scope": secret},
            {"grant_type": secret},
            {"grant_type": EXCHANGE, "subject_token": secret},
        ):
            answer = await client.post(TOKENS_PATH, data=form_of(ann, **changed))
            assert answer.status_code >= 400
            assert secret not in answer.text + repr(dict(answer.headers))

    assert secret not in "".join(repr(record.__dict__) for record in caplog.records)


def test_the_form_and_the_errors_are_described(world_routes):
    operation = world_routes["paths"][TOKENS_PATH]["post"]

    assert operation["requestBody"]["content"].keys() == {"application/x-www-form-urlencoded"}
    assert operation["responses"].keys() == {"200", "400", "401", "429", "default"}


@pytest.fixture
def world_routes():
    return describe_routes(oauth_routes(None, None, None), title="t", version="1")
