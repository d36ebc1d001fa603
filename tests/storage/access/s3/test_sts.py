"""One request to a token service: what is sent, what may come back, and what is never looked at."""

import asyncio
from urllib.parse import parse_qs

import pytest

from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.storage.access.exchange import TokenService
from cynosure.storage.access.ports import Scope
from cynosure.storage.access.s3.keys import S3Session, StaticKeys
from cynosure.storage.access.s3.sts import AssumeRole, SecurityTokens
from cynosure.storage.config import S3Sts
from cynosure.storage.errors import StorageRefused, StorageUnavailable
from cynosure.storage.settings import StorageSettings
from cynosure.testing.harness.faults import LoseAnswer, Respond
from cynosure.testing.vendor_kit import ALICE
from tests.storage.backends.s3_corner import HASTY

from .sts_corner import StsCorner

pytestmark = pytest.mark.anyio
KEYS = StaticKeys(S3Session("KEY", Secret("the-secret-key")))
WANTED = AssumeRole("cynosure-alice", "{}", 900, role_arn="arn:aws:iam::1:role/x", external_id="id/1")
GOOD = b"""<?xml version="1.0"?><AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleResult><AssumedRoleUser><Arn>a</Arn></AssumedRoleUser><Credentials>
<AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s&amp;cret</SecretAccessKey><SessionToken>to
ken</SessionToken><Expiration>2026-01-01T00:00:01Z</Expiration></Credentials></AssumeRoleResult>
</AssumeRoleResponse>"""


def tokens(url: str, *, settings: StorageSettings = HASTY, retries: int = 0) -> SecurityTokens:
    return SecurityTokens(url, "eu-west-1", KEYS, TokenService(settings), SystemClock(), retries=retries)


@pytest.fixture
async def proxy(fault_proxy, trap: tuple[str, list[bytes]]):
    """In front of a server that must never be asked: every answer is made here."""
    return await fault_proxy(trap[0])


async def test_a_session_is_read_from_the_answer(proxy):
    seen: list[bytes] = []
    proxy.add(Respond(200, GOOD), when=lambda request: seen.append(request.data) is None)

    session = await tokens(proxy.url).assume(WANTED)

    assert session.access_key_id == "ASIA"
    assert session.secret_access_key.reveal() == "s&cret"
    assert session.session_token is not None
    assert session.session_token.reveal() == "to\nken"
    assert session.expires_ms == 1_767_225_601_000
    head, _, body = seen[0].decode().partition("\r\n\r\n")
    assert "the-secret-key" not in head + body
    assert parse_qs(body) == {
        "Action": ["AssumeRole"],
        "Version": ["2011-06-15"],
        "RoleSessionName": ["cynosure-alice"],
        "DurationSeconds": ["900"],
        "Policy": ["{}"],
        "RoleArn": ["arn:aws:iam::1:role/x"],
        "ExternalId": ["id/1"],
    }


async def test_tags_and_what_is_left_out(proxy):
    seen: list[bytes] = []
    proxy.add(Respond(200, GOOD), when=lambda request: seen.append(request.data) is None)

    await tokens(proxy.url).assume(AssumeRole("name", "{}", tags={"a": "1", "b": "&2"}))

    fields = parse_qs(seen[0].decode().partition("\r\n\r\n")[2])
    assert fields["Tags.member.1.Key"] == ["a"]
    assert fields["Tags.member.2.Value"] == ["&2"]
    assert not {"RoleArn", "ExternalId", "DurationSeconds"} & set(fields)


@pytest.mark.parametrize(
    ("status", "body", "expected", "code"),
    [
        (403, b"<E><Error><Code>AccessDenied</Code></Error></E>", StorageRefused, "AccessDenied"),
        (400, b"<Error><Code>Throttling</Code></Error>", StorageUnavailable, "Throttling"),
        (501, b"<Error><Code>NotImplemented</Code></Error>", StorageRefused, "NotImplemented"),
        (404, b"not xml at all", StorageRefused, ""),
        (400, b"<Error><Code>a secret sentence of the store</Code></Error>", StorageRefused, ""),
        (503, b"<Error><Code>SlowDown</Code></Error>", StorageUnavailable, None),
        (500, b"", StorageUnavailable, None),
    ],
)  # fmt: skip
async def test_refusals_and_failures_are_kept_apart(proxy, status, body, expected, code):
    proxy.add(Respond(status, body))

    with pytest.raises(expected) as caught:
        await tokens(proxy.url).assume(WANTED)

    assert type(caught.value) is expected
    assert caught.value.details.get("code") == code
    assert "sentence" not in str(caught.value)


BOMB = b"""<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "xx"><!ENTITY c "&b;&b;&b;&b;">]>
<AssumeRoleResponse><AccessKeyId>&c;</AccessKeyId><SecretAccessKey>x</SecretAccessKey>
<SessionToken>x</SessionToken><Expiration>2026-01-01T00:00:01Z</Expiration></AssumeRoleResponse>"""


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>a page</html>",
        GOOD.replace(b"SessionToken", b"Other"),
        GOOD.replace(b"2026-01-01T00:00:01Z", b"tomorrow"),
        GOOD[:-30],
        BOMB,
        BOMB.replace(b"&c;", b"plain"),
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd">' + GOOD.partition(b"?>")[2],
    ],
)
async def test_an_answer_that_is_none_is_refused_without_being_shown(proxy, body):
    proxy.add(Respond(200, body))

    with pytest.raises(StorageRefused) as refused:
        await tokens(proxy.url).assume(WANTED)

    assert "none" in refused.value.message
    assert "ASIA" not in str(refused.value)


async def test_an_answer_without_end_is_not_read(proxy):
    proxy.add(Respond(200, b"<a>" + b"x" * 2_000_000))

    with pytest.raises(StorageUnavailable):
        await tokens(proxy.url).assume(WANTED)


async def test_a_redirect_is_not_followed_with_our_signature(proxy, trap):
    url, heard = trap
    proxy.add(Respond(307, b"", headers=(("location", url),)))

    with pytest.raises(StorageRefused):
        await tokens(proxy.url).assume(WANTED)

    assert heard == []


async def test_what_is_not_answered_is_unavailable_within_the_timeout(proxy):
    proxy.add(LoseAnswer(hangs=True), times=None)

    async with asyncio.timeout(30):
        with pytest.raises(StorageUnavailable):
            await tokens(proxy.url).assume(WANTED)


async def test_a_failure_is_repeated_and_a_refusal_is_not(proxy):
    failing = proxy.add(Respond(503), times=2)
    refusing = proxy.add(Respond(403), times=None)

    with pytest.raises(StorageRefused):
        await tokens(proxy.url, retries=5).assume(WANTED)

    assert failing.hits == 2
    assert refusing.hits == 1


async def test_nothing_but_the_configuration_is_consulted(poisoned: list[bytes], sts: StsCorner, fault_proxy):
    proxy = await fault_proxy(sts.server.endpoint)
    seen: list[bytes] = []
    proxy.add(Respond(), when=lambda request: bool(seen.append(request.data)))
    role = S3Sts(role_arn=sts.server.role_arn)
    vendor = sts.vendor(endpoint=proxy.url, sts=role)

    vended = await vendor.mint(Scope((sts.base,), is_writable=True), ALICE)

    assert poisoned == []
    assert vended.credentials
    sent = b"".join(seen).lower()
    assert len(seen) == 1
    assert b"poison" not in sent
    assert b"x-amz-security-token" not in sent
    assert f"credential={sts.keys.access_key_id.lower()}/".encode() in sent
