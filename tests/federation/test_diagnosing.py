"""What operators are told of a remote that does not work: which part of the connection, and what to do."""

import pytest
from msgspec import structs

from cynosure.catalog.check_connection import FIELD
from cynosure.catalog.connection import (
    Authentication,
    Bearer,
    Connection,
    ConnectionSecrets,
    Implicit,
    OAuth,
    Password,
    SigV4,
)
from cynosure.common.clock import SystemClock
from cynosure.common.errors import CynosureError
from cynosure.common.secrets import Secret
from cynosure.federation.diagnosing import advise
from cynosure.federation.errors import FederationOff, RemoteMisbehaved, RemoteRefused, RemoteUnavailable
from cynosure.federation.remotes import failures as why
from cynosure.federation.remotes.rest import open_rest
from cynosure.federation.settings import FederationSettings
from cynosure.testing import lying_remote as lies
from cynosure.testing.lying_remote import Lie, LyingRemote

pytestmark = pytest.mark.anyio

REST = Connection(type="ICEBERG_REST", uri="http://127.0.0.1:1", authentication=OAuth("us"))
PROOF = "authenticationParameters."


def field_of(error: CynosureError, connection: Connection = REST) -> str | None:
    advice = advise(error, connection)
    assert advice.fix
    return None if advice.field is None else advice.field.removeprefix(f"{FIELD}.")


def refused(reason: str) -> CynosureError:
    return RemoteRefused("far", status=400, reason=reason)


@pytest.mark.parametrize(
    ("authentication", "field"),
    [
        (OAuth("us"), "clientSecret"),
        (Bearer(), "bearerToken"),
        (SigV4("us-east-1"), "secretAccessKey"),
        (Password("us"), "password"),
        (Implicit(), "authenticationType"),
    ],
)
def test_who_is_not_let_in_looks_at_what_proves_it(authentication: Authentication, field: str) -> None:
    connection = structs.replace(REST, authentication=authentication)

    assert field_of(refused(why.NOT_LET_IN), connection) == PROOF + field


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (RemoteUnavailable("far", reason=why.HOST_UNKNOWN), "uri"),
        (RemoteUnavailable("far", reason=why.TOKENS + why.NOT_TRUSTED), "uri"),
        (RemoteUnavailable("far", reason=why.NO_TOKEN_SERVICE), PROOF + "stsEndpoint"),
        (RemoteUnavailable("far", reason="status 503"), None),
        (RemoteMisbehaved("far", problem=why.NO_TABLES), "uri"),
        (RemoteMisbehaved("far", problem="not JSON by its content type"), "uri"),
        (refused(why.NO_CATALOG), "remoteCatalogName"),
        (refused(why.NO_DATABASE), "uri"),
        (refused(why.NOT_UNDERSTOOD), "uri"),
        (refused(why.NO_TOKENS), "uri"),
        (refused(why.CLIENT_REFUSED), PROOF + "clientSecret"),
        (refused(why.ROLE_REFUSED), PROOF + "roleArn"),
        (refused(why.NOT_ALLOWED), None),
        (FederationOff("far"), None),
    ],
)
def test_the_part_that_is_wrong_is_named(error: CynosureError, field: str | None) -> None:
    assert field_of(error) == field


def test_tokens_of_another_address_are_looked_for_there() -> None:
    connection = structs.replace(REST, authentication=OAuth("us", token_uri="http://127.0.0.1:2"))

    for error in (RemoteUnavailable("far", reason=why.TOKENS + why.NO_TLS), refused(why.NO_TOKENS)):
        assert field_of(error, connection) == PROOF + "tokenUri"


@pytest.mark.parametrize(
    ("token", "config", "field"),
    [
        (lies.answer({"error": "invalid_client"}, status=401), None, PROOF + "clientSecret"),
        (lies.answer({}, status=404), None, "uri"),
        (lies.token(), lies.refusal(404, "NotFoundException"), "remoteCatalogName"),
        (lies.token(), lies.refusal(401, "NotAuthorizedException"), PROOF + "clientSecret"),
        (lies.token(), lies.raw(b"<html>", status=404), "uri"),
        (lies.token(), lies.raw(b"<html>"), "uri"),
    ],
    ids=["secret", "no-tokens", "catalog", "client", "path", "page"],
)
async def test_what_a_rest_remote_answers_leads_there(token: Lie, config: Lie | None, field: str) -> None:
    async with LyingRemote() as remote:
        remote.says("POST", "/v1/oauth/tokens", token)
        if config is not None:
            remote.says("GET", "/v1/config", config)
        connection = structs.replace(REST, uri=remote.url, remote_name="sales")
        secrets = ConnectionSecrets(client_secret=Secret("hunter2"))
        client = open_rest(connection, secrets, FederationSettings(), SystemClock(), "far")
        with pytest.raises(CynosureError) as raised:
            await client.check()
        await client.close()

    assert field_of(raised.value, connection) == field
    assert "hunter2" not in repr(advise(raised.value, connection))
