"""What strangers could do to the token endpoint: each attempt costs them more than us."""

from base64 import b64encode

import pytest

from cynosure.api.oauth import TOKENS_PATH, oauth_routes
from cynosure.auth.audit.denials import Denial
from tests.auth.tokens.world import TokenWorld

pytestmark = pytest.mark.anyio


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


WRONG = {"grant_type": "client_credentials", "client_id": "nobody", "client_secret": "wrong"}


@pytest.mark.parametrize(
    "form",
    [
        {"grant_type": "no such grant"},
        {**WRONG, "scope": "not of this server"},
        {**WRONG, "client_id": ""},
        WRONG,
    ],
)
async def test_nothing_is_recorded_for_a_realm_that_does_not_exist(client, denials, form):
    """The audit remembers so many realms at once: invented ones would crowd out those that are attacked."""
    answer = await client.post(TOKENS_PATH, data=form, headers={"polaris-realm": "invented"})

    assert answer.status_code == 404
    assert denials.all == []


async def test_a_stranger_cannot_make_us_remember_long_client_ids(client, world: TokenWorld):
    """Of so many clients failures are remembered; nobody decides how large each of them is."""
    for number in range(3):
        form = {**WRONG, "client_id": f"{number}{'x' * 50_000}"}
        assert (await client.post(TOKENS_PATH, data=form)).status_code == 401

    remembered = world.tokens.issuer.failures._full_s
    assert len(remembered) == 3
    assert max(len(part) for who in remembered for part in who) < 1_000


async def test_of_two_authorization_headers_none_counts(client, world: TokenWorld):
    """Whatever stands in front of us may have looked at the other one."""
    ann = await world.add_principal("ann")
    text = f"{ann.client_id}:{ann.client_secret.reveal()}"
    basic = f"Basic {b64encode(text.encode()).decode()}"

    answer = await client.post(
        TOKENS_PATH,
        data={"grant_type": "client_credentials"},
        headers=[("authorization", basic), ("authorization", "Basic bm9ib2R5OndoYXRldmVy")],
    )

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("client_id", ["a\0b", "\x01", "ä" * 100, "\U0010ffff", "x" * 60_000, " ", "a/b"])
async def test_odd_client_ids_are_unknown_and_no_more(client, client_id):
    answer = await client.post(TOKENS_PATH, data={**WRONG, "client_id": client_id})

    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized_client")
