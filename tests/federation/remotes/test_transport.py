"""Whether a request has left, and pieces of answers (I115)."""

import asyncio
import gzip
import ssl
from pathlib import Path

import httpx
import pytest

from cynosure.common.clock import SystemClock
from cynosure.federation.remotes import transport
from cynosure.federation.remotes.failures import METADATA_SERVICE
from cynosure.federation.remotes.transport import Answered, Lost, Transport, Unusable
from cynosure.federation.settings import FederationSettings
from cynosure.server.certs import CA_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY, init_certs
from cynosure.testing import lying_remote as lies
from cynosure.testing.harness.processes import Processes
from cynosure.testing.lying_remote import Lie, LyingRemote

pytestmark = pytest.mark.anyio


async def send(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    limit: int = 1000,
    settings: FederationSettings | None = None,
) -> object:
    wire = Transport(settings or FederationSettings())
    try:
        return await wire.send("POST", httpx.URL(url), headers=headers or {}, body=b"{}", limit=limit)
    finally:
        await wire.close()


async def ask(lie: Lie, **options: int) -> object:
    async with LyingRemote() as remote:
        remote.says("POST", "/", lie)
        return await send(f"{remote.url}/", **options)


async def test_a_connection_that_nobody_accepts_lets_nothing_leave(processes: Processes):
    answer = await send(f"http://127.0.0.1:{processes.reserve_port()}/")

    assert isinstance(answer, Lost)
    assert not answer.has_left


@pytest.mark.parametrize("headers", [{"x-bad": "line\r\nend"}, {"x bad": "name"}, {"x-bad": "\udc80"}])
async def test_what_no_request_can_hold_does_not_leave(headers: dict[str, str]):
    async with LyingRemote() as remote:
        answer = await send(remote.url, headers=headers)

    assert isinstance(answer, Lost)
    assert remote.heard == []


async def test_a_request_whose_answer_is_lost_has_left():
    answer = await ask(lies.cut())

    assert isinstance(answer, Lost)
    assert answer.has_left


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
async def test_packed_answers_are_unpacked(size: int):
    body = bytes(size)
    answer = await ask(lies.raw(gzip.compress(body), content_encoding="gzip"))

    assert isinstance(answer, Answered)
    assert answer.body == body


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
async def test_one_byte_too_much_is_too_much(pack):
    coding = {} if pack is bytes else {"content_encoding": "gzip"}

    assert await ask(lies.raw(pack(bytes(1001)), **coding)) == Unusable(200, "too large")


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data + b"more", lambda data: b""])
async def test_packed_answers_are_read_to_their_end(damage):
    packed = damage(gzip.compress(b"{}"))

    assert await ask(lies.raw(packed, content_encoding="gzip")) == Unusable(200, "damaged compression")


async def test_a_status_without_a_body_has_none():
    answer = await ask(lies.raw(b"", 204, content_encoding="gzip"))

    assert isinstance(answer, Answered)
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize("status", ["200 OK", "204 No Content", "304 Not Modified", "404 Not Found"])
async def test_a_connection_is_used_again_whatever_was_answered(status: str):
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        length = "" if status[:3] in ("204", "304") else "content-length: 0\r\n"
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {status}\r\n{length}\r\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = httpx.URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    transport = Transport(FederationSettings())
    async with server:
        answers = [await transport.send("GET", url, headers={}) for _ in range(3)]
        await transport.close()

    assert [isinstance(each, Answered) and each.status for each in answers] == [int(status[:3])] * 3
    assert len(connections) == 1


async def test_cookies_are_not_kept():
    async with LyingRemote() as remote:
        remote.says("POST", "/", lies.raw(b"", set_cookie="a=b; Path=/"))
        transport = Transport(FederationSettings())
        for _ in range(2):
            await transport.send("POST", httpx.URL(f"{remote.url}/"), headers={}, body=b"")
        await transport.close()

    assert not any("cookie" in heard.headers for heard in remote.heard)


@pytest.fixture
def certificates(tmp_path: Path) -> Path:
    """Of an authority of our own, and of a server for this machine's address."""
    folder = tmp_path / "certs"
    init_certs(folder, hosts=["127.0.0.1"], client="client", days=1, clock=SystemClock())
    return folder


@pytest.fixture
def stranger(certificates: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates / SERVER_CERTIFICATE, certificates / SERVER_KEY)
    return context


async def test_a_server_that_nobody_vouches_for_is_told_nothing(stranger: ssl.SSLContext):
    async with LyingRemote(stranger) as remote:
        answer = await send(remote.url)

    assert isinstance(answer, Lost)
    assert not answer.has_left
    assert remote.heard == []


async def test_an_authority_of_the_operators_own_is_believed_for_its_names(
    certificates: Path, stranger: ssl.SSLContext
):
    settings = FederationSettings(ca_file=certificates / CA_CERTIFICATE)
    async with LyingRemote(stranger) as remote:
        remote.says("POST", "/", lies.raw(b"hello"))
        known = await send(f"{remote.url}/", settings=settings)
        other_name = await send(f"{remote.url.replace('127.0.0.1', 'localhost')}/", settings=settings)

    assert isinstance(known, Answered)
    assert isinstance(other_name, Lost)
    assert not other_name.has_left


async def test_an_authority_that_cannot_be_read_is_told_as_no_answer(tmp_path: Path):
    answer = await send("https://127.0.0.1:1/", settings=FederationSettings(ca_file=tmp_path / "none"))

    assert answer == Lost(False, "FileNotFoundError")


async def test_a_name_that_leads_to_a_clouds_secrets_is_sent_nothing(monkeypatch: pytest.MonkeyPatch):
    # What this machine's own address stands for: nobody listens at the real ones here.
    monkeypatch.setattr(transport, "is_metadata_service", lambda host: host == "127.0.0.1")
    async with LyingRemote() as remote:
        remote.says("POST", "/", lies.raw(b"hello"))
        answer = await send(f"{remote.url.replace('127.0.0.1', 'localhost')}/")

    assert answer == Lost(has_left=False, reason=METADATA_SERVICE)
    assert remote.heard == []
