"""Signed requests to a REST remote, held to botocore's signatures."""

import hashlib

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from cynosure.catalog.connection import SigV4
from cynosure.catalog.names import Identifier
from cynosure.federation.errors import RemoteRefused
from cynosure.testing import lying_remote as lies
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.lying_remote import Heard
from cynosure.testing.remote_samples import setting

from .liars import ORDERS, SECRETS, Liar, table_answer

pytestmark = pytest.mark.anyio

SIGV4 = SigV4(signing_region="eu-west-1", signing_name="glue")
SIGNED = ("x-amz-date", "x-amz-content-sha256")


def sign_with_botocore(url: str, heard: Heard) -> str:
    """What botocore would have sent, with explicit keys, at the time of the request."""
    assert SECRETS.access_key_id
    assert SECRETS.secret_access_key
    query = "&".join(f"{name}={value}" for name, value in heard.query.items())
    request = AWSRequest(
        heard.method,
        f"{url}{heard.path}{'?' if query else ''}{query}",
        data=heard.body,
        headers={name: heard.headers[name] for name in SIGNED},
    )
    request.context["timestamp"] = heard.headers["x-amz-date"]
    keys = Credentials(SECRETS.access_key_id.reveal(), SECRETS.secret_access_key.reveal())
    auth = SigV4Auth(keys, SIGV4.signing_name, SIGV4.signing_region)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    covered = auth.signed_headers(auth.headers_to_sign(request))
    return f"SignedHeaders={covered}, Signature={auth.signature(text, request)}"


async def test_a_signature_is_that_of_botocore(liar: Liar, manual_clock: ManualClock):
    liar.server.says("GET", "/tables/o r/d+ers", lies.answer(table_answer()))
    liar.server.says("POST", "/tables/orders", lies.answer(table_answer()))
    remote = liar.open(SIGV4, clock=manual_clock)

    await remote.load_table(Identifier(("a", "b", "ü"), "o r/d+ers"))
    await remote.commit_table(setting(ORDERS, None, color="red"))

    assert len(liar.server.heard) == 3
    for heard in liar.server.heard:
        expected = sign_with_botocore(liar.server.url, heard)
        assert heard.headers["authorization"].endswith(expected), heard.path
        assert heard.headers["x-amz-content-sha256"] == hashlib.sha256(heard.body).hexdigest()
        assert "/eu-west-1/glue/aws4_request" in heard.headers["authorization"]
        assert "the-secret-key" not in str(heard.headers)


async def test_a_signature_that_is_refused_is_not_made_again(liar: Liar):
    liar.server.says("GET", "/v1/config", lies.refusal(403, "AccessDeniedException"))
    remote = liar.open(SIGV4)

    with pytest.raises(RemoteRefused):
        await remote.load_table(ORDERS)

    assert len(liar.server.heard) == 1
