"""Keys to sign with: those of the connection, or of a role that a real token service gives."""

from datetime import UTC, datetime

import pytest

from cynosure.catalog.connection import ConnectionSecrets, SigV4
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.federation.errors import RemoteRefused, RemoteUnavailable
from cynosure.federation.remotes.aws_keys import RoleKeys, open_aws_keys
from cynosure.federation.settings import FederationSettings
from cynosure.storage.access.s3.keys import S3KeySource
from cynosure.testing import lying_remote as lies
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.lying_remote import Lie, LyingRemote
from cynosure.testing.s3_servers import S3Server
from tests.storage.traps import poisoned, trap

__all__ = ["poisoned", "trap"]

pytestmark = pytest.mark.anyio

SECRETS = ConnectionSecrets(access_key_id=Secret("KEY"), secret_access_key=Secret("the-secret-key"))
GRANTED = b"""<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA%d</AccessKeyId>
<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>"""


def open_keys(
    endpoint: str, secrets: ConnectionSecrets = SECRETS, role: str | None = "arn:aws:iam::1:role/x"
) -> S3KeySource:
    wanted = SigV4(
        signing_region="eu-west-1",
        role_arn=role,
        external_id="id-1",
        session_policy='{"Version":"2012-10-17"}',
        sts_endpoint=endpoint,
    )
    return open_aws_keys(wanted, secrets, FederationSettings(), SystemClock(), "near")


async def test_without_a_role_the_keys_of_the_connection_sign():
    session = await open_keys("http://127.0.0.1:1", role=None).load()

    assert (session.access_key_id, session.session_token) == ("KEY", None)


async def test_without_keys_there_are_none(poisoned: list[bytes]):
    with pytest.raises(RemoteUnavailable):
        open_keys("http://127.0.0.1:1", ConnectionSecrets())

    assert poisoned == []


async def test_a_role_is_assumed_with_the_keys_of_the_connection(poisoned: list[bytes], sts_server: S3Server):
    secrets = ConnectionSecrets(
        access_key_id=Secret(sts_server.access_key_id), secret_access_key=Secret(sts_server.secret_access_key)
    )
    keys = open_aws_keys(
        SigV4(
            signing_region=sts_server.region,
            role_arn=sts_server.role_arn or "arn:aws:iam::1:role/any",
            sts_endpoint=sts_server.endpoint,
        ),
        secrets,
        FederationSettings(),
        SystemClock(),
        "near",
    )

    first, second = await keys.load(), await keys.load()

    assert first is second
    assert first.access_key_id != sts_server.access_key_id
    assert first.session_token is not None
    assert poisoned == []


async def test_the_role_is_asked_for_as_the_connection_says():
    async with LyingRemote() as service:
        service.says("POST", "/", lies.raw(GRANTED % (1, b"2099-01-01T00:00:00Z")))
        session = await open_keys(service.url).load()

    [heard] = service.heard
    assert session.access_key_id == "ASIA1"
    assert heard.form() == {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": "arn:aws:iam::1:role/x",
        "RoleSessionName": "cynosure-federation",
        "ExternalId": "id-1",
        "Policy": '{"Version":"2012-10-17"}',
    }
    assert "Credential=KEY/" in heard.headers["authorization"]


async def test_keys_of_a_role_are_renewed_before_they_end(manual_clock: ManualClock):
    now_s = manual_clock.now_us() // 1_000_000
    answers = [lies.raw(GRANTED % (number, _iso(now_s + 3600 * number))) for number in (1, 2)]
    async with LyingRemote() as service:
        service.says("POST", "/", lies.in_turn(*answers))
        wanted = SigV4(signing_region="r", role_arn="arn:aws:iam::1:role/x", sts_endpoint=service.url)
        keys = open_aws_keys(wanted, SECRETS, FederationSettings(), manual_clock, "near")
        first = await keys.load()
        await manual_clock.advance(3590)
        second = await keys.load()

    assert (first.access_key_id, second.access_key_id) == ("ASIA1", "ASIA2")


@pytest.mark.parametrize(
    ("lie", "expected"),
    [
        (
            lies.raw(b"<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>", 403),
            RemoteRefused,
        ),
        (lies.raw(b"<html>"), RemoteRefused),
        (lies.raw(b"", 503), RemoteUnavailable),
        (lies.huge(1 << 30), RemoteUnavailable),
        (lies.redirect("http://127.0.0.1:1/"), RemoteUnavailable),
        (lies.cut(), RemoteUnavailable),
    ],
)
async def test_a_token_service_that_gives_nothing_is_told_as_the_remote(lie: Lie, expected: type[Exception]):
    async with LyingRemote() as service:
        service.says("POST", "/", lie)
        keys = open_keys(service.url)
        with pytest.raises(expected) as raised:
            await keys.load()
        assert isinstance(keys, RoleKeys)
        await keys.close()

    assert "the-secret-key" not in repr(raised.value)


async def test_a_role_is_not_asked_for_in_clear_text_elsewhere():
    with pytest.raises(RemoteUnavailable):
        open_keys("http://sts.example.com")


def _iso(time_s: int) -> bytes:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
