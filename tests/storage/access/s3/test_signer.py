"""Signatures against Amazon's own code, and on real stores with Amazon's own client."""

import asyncio
from collections.abc import Mapping
from urllib.parse import quote

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.credentials import Credentials
from hypothesis import given, settings
from hypothesis import strategies as st

from cynosure.common.secrets import Secret
from cynosure.storage.access.ports import Scope, Signed, StoreRequest
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.signer import S3Signer
from cynosure.storage.config import S3Storage
from cynosure.storage.location import Location
from cynosure.storage.settings import StorageSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.vendor_kit import ALICE

from .signed_client import SignedClient

NOW_US = 1_794_768_159_000_000
STORE = "https://s3.eu-central-1.amazonaws.com"
CONFIG = S3Storage(allowed_locations=("s3://lake/",), region="eu-central-1")
TABLE = Scope((Location.parse("s3://lake/t"),), is_writable=True)
SESSIONS = {
    "lasting": S3Session("AKIAEXAMPLE", Secret("lasting-secret")),
    "passing": S3Session("ASIAEXAMPLE", Secret("passing-secret"), Secret("token+/="), 1),
}


def make_signer(session: S3Session) -> S3Signer:
    clock = ManualClock(now_us=NOW_US)
    return S3Signer(CONFIG, StaticKeys(session), StorageSettings(), clock)


async def sign_there(
    method: str, target: str, headers: Mapping[str, list[str]] | None = None, session: str = "lasting"
) -> Signed:
    request = StoreRequest(method, STORE + target, headers or {}, "eu-central-1")
    return await make_signer(SESSIONS[session]).inspect(request).sign(TABLE, ALICE)


@pytest.mark.anyio
async def test_a_client_gets_its_own_headers_and_those_of_the_signature() -> None:
    own = {"Range": ["bytes=1-"], "x-amz-te": ["append-md5"]}
    signed = await sign_there("GET", "/lake/t/a?versionId=1", own)

    authorization = signed.headers["authorization"][0]
    assert signed.uri == f"{STORE}/lake/t/a?versionId=1"
    assert signed.headers["Range"] == ["bytes=1-"]
    assert signed.headers["host"] == ["s3.eu-central-1.amazonaws.com"]
    assert signed.headers["x-amz-date"] == ["20261115T184239Z"]
    assert "/20261115/eu-central-1/s3/aws4_request" in authorization
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-te," in authorization
    assert "x-amz-security-token" not in signed.headers


@pytest.mark.anyio
async def test_a_token_of_the_session_goes_along_and_is_signed() -> None:
    signed = await sign_there("GET", "/lake/t/a", session="passing")

    assert signed.headers["x-amz-security-token"] == ["token+/="]
    assert "x-amz-security-token" in signed.headers["authorization"][0]


@pytest.mark.anyio
async def test_a_header_that_the_client_has_is_not_given_twice() -> None:
    own = {"Host": ["s3.eu-central-1.amazonaws.com"], "X-Amz-Content-Sha256": ["UNSIGNED-PAYLOAD"]}
    signed = await sign_there("GET", "/lake/t/a", own)

    names = [name.lower() for name in signed.headers]
    assert len(names) == len(set(names))


@pytest.mark.anyio
async def test_no_secret_is_in_what_is_given() -> None:
    for session in SESSIONS:
        assert "-secret" not in str(await sign_there("GET", "/lake/t/a", session=session))


def sign_with_botocore(signed: Signed, method: str, session: S3Session) -> str:
    """The header `Authorization` that Amazon's own code makes of the same request."""
    covered = signed.headers["authorization"][0].split("SignedHeaders=")[1].split(",")[0].split(";")
    headers = {name.lower(): values[0] for name, values in signed.headers.items()}
    token = session.session_token
    signer = S3SigV4Auth(
        Credentials(
            session.access_key_id, session.secret_access_key.reveal(), token.reveal() if token else None
        ),
        "s3",
        CONFIG.region,
    )
    request = AWSRequest(method, signed.uri, headers={name: headers[name] for name in covered})
    request.context["timestamp"] = headers["x-amz-date"]
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    return f"Credential={signer.scope(request)}, SignedHeaders={';'.join(covered)}, Signature={signature}"


KEYS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp"), exclude_characters="?#\\/.")
)


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("GET", {}),
        ("GET", {"versionId": "~+/"}),
        ("PUT", {"uploadId": "a=&b", "partNumber": "12"}),
        ("POST", {"uploads": ""}),
    ],
)
@settings(max_examples=25)
@given(key=KEYS, meta=st.text(st.characters(codec="ascii", exclude_categories=("Cc",))))
def test_the_signature_is_that_of_amazons_own_code(
    session: str, method: str, query: dict[str, str], key: str, meta: str
) -> None:
    target = f"/lake/t/a{quote(key)}"
    if query:
        target += "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())
    signed = asyncio.run(sign_there(method, target, {"x-amz-meta-a": [meta]}, session))

    expected = sign_with_botocore(signed, method, SESSIONS[session])
    assert signed.headers["authorization"][0] == f"AWS4-HMAC-SHA256 {expected}"


@pytest.mark.anyio
async def test_a_body_that_python_sends_in_pieces_is_signed_as_such() -> None:
    asked: list[StoreRequest] = []

    async def sign(request: StoreRequest) -> Signed:
        asked.append(request)
        return await make_signer(SESSIONS["lasting"]).inspect(request).sign(TABLE, ALICE)

    client = SignedClient(None, CONFIG.region, sign)
    client.s3.meta.events.register("before-send.s3", lambda **_: AWSResponse("", 200, {}, _Nothing()))
    await client.put(TABLE.locations[0].child("a"), b"rows")

    assert "X-Amz-Trailer" in asked[0].headers
    given = {name.lower(): values for name, values in (await sign(asked[0])).headers.items()}
    assert given["x-amz-content-sha256"] == ["STREAMING-UNSIGNED-PAYLOAD-TRAILER"]


class _Nothing:
    """The body of an empty answer."""

    def stream(self) -> list[bytes]:
        return []
