"""Requests to token services: what is sent, and what may come of it."""

import asyncio
import gzip
import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from msgspec.structs import replace

from cynosure.storage.access.exchange import TokenService
from cynosure.storage.errors import StorageUnavailable
from cynosure.storage.settings import StorageSettings
from tests.storage.recorded_service import RecordedService, Reply

pytestmark = pytest.mark.anyio

HASTY = StorageSettings(
    connect_timeout=timedelta(seconds=0.5),
    stall_timeout=timedelta(seconds=0.3),
    operation_timeout=timedelta(seconds=1),
)


async def test_a_request_arrives_as_it_was_given_and_the_answer_comes_back():
    async with RecordedService(lambda _: Reply(b"yes", 203)) as service:
        answer = await TokenService(HASTY).post(f"{service.url}/a?b=c", headers={"x-one": "1"}, body=b"body")

    [heard] = service.heard
    assert (heard.method, heard.path, heard.headers["x-one"], heard.body) == ("POST", "/a?b=c", "1", b"body")
    assert (answer.status, answer.body, answer.is_success) == (203, b"yes", True)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
async def test_a_refusal_is_an_answer(status: int):
    async with RecordedService(lambda _: Reply(b"no", status)) as service:
        answer = await TokenService(HASTY).post(service.url, headers={}, body=b"")

    assert (answer.status, answer.is_success) == (status, False)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_failure_is_unavailable(status: int):
    async with RecordedService(lambda _: Reply(b"no", status)) as service:
        with pytest.raises(StorageUnavailable):
            await TokenService(HASTY).post(service.url, headers={}, body=b"")


async def test_an_answer_is_not_unpacked():
    packed = gzip.compress(b"x" * 50_000_000)
    reply = Reply(packed, headers={"content-encoding": "gzip"})
    async with RecordedService(lambda _: reply) as service:
        answer = await TokenService(HASTY).post(service.url, headers={}, body=b"")

    assert answer.body == packed
    assert service.heard[0].headers["accept-encoding"] == "identity"


async def test_a_redirect_is_not_followed_because_a_secret_would_go_with_it():
    async with RecordedService(lambda _: Reply(b"")) as other:
        away = Reply(b"", 307, {"location": f"{other.url}/elsewhere"})
        async with RecordedService(lambda _: away) as service:
            answer = await TokenService(HASTY).post(service.url, headers={}, body=b"secret")

    assert answer.status == 307
    assert not answer.is_success
    assert other.heard == []


async def test_no_answer_and_no_server_are_unavailable_within_the_timeout():
    async with asyncio.timeout(20), RecordedService(lambda _: None) as service:
        with pytest.raises(StorageUnavailable):
            await TokenService(HASTY).post(service.url, headers={}, body=b"")
        url = service.url

    with pytest.raises(StorageUnavailable):
        await TokenService(HASTY).post(url, headers={}, body=b"")


async def test_an_answer_without_end_is_not_taken_into_memory():
    async with RecordedService(lambda _: Reply(b"x" * (2 << 20))) as service:
        with pytest.raises(StorageUnavailable, match="too large"):
            await TokenService(HASTY).post(service.url, headers={}, body=b"")


async def test_nothing_that_is_sent_or_answered_is_shown():
    async with RecordedService(lambda _: Reply(b"hunter3", 500)) as service:
        with pytest.raises(StorageUnavailable) as failed:
            await TokenService(HASTY).post(
                f"{service.url}/?token=hunter1", headers={"authorization": "hunter2"}, body=b"hunter4"
            )
        service.answer = lambda _: Reply(b"hunter5")
        answer = await TokenService(HASTY).post(service.url, headers={}, body=b"")

    assert "hunter" not in str(failed.value) + repr(answer)


async def test_a_certificate_is_verified_and_a_further_authority_can_be_named(azure_url: str):
    parts = urlsplit(azure_url)
    url = f"https://{parts.netloc}{parts.path}/?restype=service&comp=userdelegationkey"
    ca_file = Path(parse_qs(parts.query)["ca"][0])
    # A busy emulator takes its time to shake hands, and who gives up before has not seen the certificate.
    patient = StorageSettings(connect_timeout=timedelta(seconds=60), operation_timeout=timedelta(seconds=60))

    with pytest.raises(StorageUnavailable, match="ConnectError"):
        await TokenService(patient).post(url, headers={}, body=b"")
    answer = await TokenService(replace(patient, ca_file=ca_file)).post(url, headers={}, body=b"")

    assert answer.status in (400, 403)


async def test_of_the_environment_no_netrc_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login poison password poison\n")
    os.chmod(tmp_path / ".netrc", 0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))

    async with RecordedService(lambda _: Reply(b"")) as service:
        await TokenService(HASTY).post(service.url, headers={}, body=b"")

    assert "authorization" not in service.heard[0].headers
