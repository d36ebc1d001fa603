"""What is said of a remote that cannot be asked: by real sockets, and in our own words."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from cynosure.common.clock import SystemClock
from cynosure.federation.remotes import failures as why
from cynosure.federation.remotes.failures import name_failure
from cynosure.federation.remotes.transport import Lost, Transport
from cynosure.federation.settings import FederationSettings
from cynosure.server.certs import CA_CERTIFICATE, SERVER_CERTIFICATE, SERVER_KEY, init_certs
from cynosure.testing.harness.processes import Processes

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def listen(answer: bytes = b"", tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Something that says this to whoever asks, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65_536)
        writer.write(answer)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def find_reason(url: str, settings: FederationSettings | None = None) -> str:
    transport = Transport(settings or FederationSettings())
    try:
        answer = await transport.send("GET", httpx.URL(url), headers={})
    finally:
        await transport.close()
    assert isinstance(answer, Lost)
    return answer.reason


async def test_an_address_where_nobody_is(processes: Processes) -> None:
    port = processes.reserve_port()

    assert await find_reason(f"http://127.0.0.1:{port}/") == why.NOTHING_LISTENS
    assert await find_reason(f"http://localhost:{port}/") == why.NOTHING_LISTENS


async def test_something_else_is_there() -> None:
    async with listen() as port:
        assert await find_reason(f"http://127.0.0.1:{port}/") == why.CUT_OFF
    async with listen(b"SSH-2.0-OpenSSH\r\n") as port:
        assert await find_reason(f"http://127.0.0.1:{port}/") == why.CUT_OFF
        assert await find_reason(f"https://127.0.0.1:{port}/") == why.NO_TLS


async def test_certificates_of_strangers_and_of_other_hosts(tmp_path: Path) -> None:
    init_certs(tmp_path, hosts=["127.0.0.1"], client="client", days=1, clock=SystemClock())
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / SERVER_CERTIFICATE, tmp_path / SERVER_KEY)
    trusting = FederationSettings(ca_file=tmp_path / CA_CERTIFICATE)
    async with listen(tls=tls) as port:
        assert await find_reason(f"https://127.0.0.1:{port}/") == why.NOT_TRUSTED
        assert await find_reason(f"https://localhost:{port}/", trusting) == why.OTHER_HOST


async def test_a_name_that_nobody_knows() -> None:
    with pytest.raises(OSError, match=r".") as raised:
        # Refused by the resolver itself: no label is so long.
        await asyncio.open_connection(f"{'a' * 63}.{'b' * 63}.invalid", 1)

    assert name_failure(raised.value) == why.HOST_UNKNOWN


def test_what_nobody_foresaw_is_named_by_its_kind_alone() -> None:
    assert name_failure(OSError("a secret of the remote's")) == "OSError"
