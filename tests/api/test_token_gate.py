import pytest
from msgspec import structs

from cynosure.api import asgi
from cynosure.api.messages import Request, Response
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.router import Route
from cynosure.api.token_gate import TokenGate
from cynosure.auth.audit.denials import Denial
from cynosure.auth.caller import Caller
from cynosure.auth.ports import Decision, Missing
from cynosure.auth.rbac import operations as ops
from cynosure.auth.require import AccessDenied
from cynosure.auth.targets import RealmTarget
from cynosure.common.errors import BadInput
from cynosure.common.telemetry.request_scope import current_scope
from cynosure.persistence.references import DEFAULT_REALM, realm_reference
from cynosure.persistence.spi import RealmId
from tests.auth.tokens.world import TokenWorld

pytestmark = pytest.mark.anyio


class Recorded:
    """Denials, kept for the test."""

    def __init__(self) -> None:
        self.all: list[Denial] = []

    async def record(self, denial: Denial) -> None:
        self.all.append(denial)


@pytest.fixture
def denials() -> Recorded:
    return Recorded()


@pytest.fixture
async def ann(world: TokenWorld) -> str:
    await world.add_role("analyst")
    return await world.login(await world.add_principal("ann", "analyst"))


@pytest.fixture
def client(client_for, world, denials):
    seen: list[Caller] = []

    async def show(request: Request) -> Response:
        caller: Caller = request.scope[asgi.CALLER]
        seen.append(caller)
        if "denied" in request.scope["raw_path"].decode():
            missing = (Missing("SERVICE_MANAGE_ACCESS", "realm", "default"),)
            decision = Decision(is_allowed=False, missing=missing)
            raise AccessDenied(caller, ops.READ_EVENTS, (RealmTarget("default"),), decision)
        scope = current_scope()
        return Response.json([caller.principal, caller.realm, scope.principal, scope.realm])

    async def read(request: Request) -> Response:
        raise AssertionError("nothing of a stranger's request may be read")

    gate = TokenGate(world.tokens.authenticator, denials)
    made = client_for(
        Route("GET", "/show", show, operation_id="show"),
        Route("GET", "/denied", show, operation_id="denied"),
        Route("POST", "/read", read, operation_id="read", request=dict),
        gate=gate,
    )
    made.seen = seen
    return made


async def test_a_bearer_token_lets_its_principal_in(client, ann):
    answer = await client.get("/show", headers={"authorization": f"Bearer {ann}"})

    assert answer.json() == ["ann", "default", "ann", "default"]
    assert client.seen[0].request_id == answer.headers["x-request-id"]


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
async def test_the_scheme_may_be_written_in_any_case(client, ann, scheme):
    assert (await client.get("/show", headers={"authorization": f"{scheme} {ann}"})).status_code == 200


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic eDp5", "{token}", "Token {token}", "Bearer x, Bearer {token}"]
)
async def test_any_other_authorization_is_none(client, ann, denials, header):
    answer = await client.get("/show", headers={"authorization": header.format(token=ann)})

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["type"] == "NotAuthorizedException"
    assert ann not in answer.text
    assert client.seen == []
    (denial,) = denials.all
    assert (denial.is_authentication, denial.principal, denial.operation) == (True, "", "show")


async def test_of_two_tokens_none_counts(client, ann):
    headers = [("authorization", f"Bearer {ann}"), ("authorization", f"Bearer {ann}")]

    assert (await client.get("/show", headers=headers)).status_code == 401


async def test_nothing_is_read_or_decoded_for_strangers(client, ann):
    answer = await client.post("/read", content=b"not even JSON")

    assert answer.status_code == 401


async def test_an_unknown_realm_is_404_before_anything_is_said_about_the_token(client, ann):
    for authorization in ("", "Bearer x", f"Bearer {ann}"):
        answer = await client.get(
            "/show", headers={"polaris-realm": "nowhere", "authorization": authorization}
        )
        assert (answer.status_code, answer.json()["error"]["type"]) == (404, "NotFoundException")


async def test_the_case_of_a_realm_matters(client, ann):
    headers = {"polaris-realm": "Default", "authorization": f"Bearer {ann}"}

    assert (await client.get("/show", headers=headers)).status_code == 404


async def test_a_token_does_not_open_another_realm(client, ann, world):
    await world.add_realm("other")

    headers = {"polaris-realm": "other", "authorization": f"Bearer {ann}"}

    assert (await client.get("/show", headers=headers)).status_code == 401


async def test_a_request_for_two_realms_is_refused(client, ann):
    headers = [("polaris-realm", "default"), ("polaris-realm", "other"), ("authorization", f"Bearer {ann}")]

    assert (await client.get("/show", headers=headers)).status_code == 400
    assert client.seen == []


async def test_a_denial_is_recorded_before_it_is_answered(client, ann, denials):
    answer = await client.get("/denied", headers={"authorization": f"Bearer {ann}"})

    assert answer.status_code == 403
    assert "www-authenticate" not in answer.headers
    (denial,) = denials.all
    assert structs.replace(denial, targets=()) == Denial(
        realm=DEFAULT_REALM,
        principal="ann",
        actor="",
        roles=("analyst",),
        operation="read-events",
        target="realm default",
        request_id=answer.headers["x-request-id"],
        reason=denial.reason,
        missing=("SERVICE_MANAGE_ACCESS",),
    )


async def test_heads_are_read_ahead_before_the_token_is_looked_at(world, ann, denials):
    asked = []

    class Heads:
        def read_ahead(self, keys):
            asked.append(tuple(keys))

    further = realm_reference(DEFAULT_REALM, "catalogs")
    gate = TokenGate(world.tokens.authenticator, denials, heads=Heads(), ahead=lambda scope, realm: [further])

    await gate.admit({"headers": [(b"authorization", f"Bearer {ann}".encode())]})

    (keys,) = asked
    assert set(keys) == {realm_reference(DEFAULT_REALM, "principals"), further}


async def test_whoever_opens_the_operator_socket_is_an_operator_of_the_realm_in_the_header():
    gate = OperatorGate()

    caller = await gate.admit({"headers": [(b"polaris-realm", b"acme")], asgi.REQUEST_ID: "r-1"})

    assert caller == Caller("operator", RealmId("acme"), "r-1", is_operator=True)
    with pytest.raises(BadInput):
        await gate.admit({"headers": [(b"polaris-realm", b"a,b")]})
