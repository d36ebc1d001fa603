"""Real handshakes against the server's own TLS and protocol classes, in this process."""

import asyncio
import os
import random
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import uvicorn

from cynosure.api.app import make_service
from cynosure.api.messages import Request, Response
from cynosure.api.operator_gate import OperatorGate
from cynosure.api.router import Route
from cynosure.client.http import HttpClient
from cynosure.client.tls import ClientTls
from cynosure.common.clock import SystemClock
from cynosure.common.errors import Misconfigured, Unavailable
from cynosure.server import certs
from cynosure.server.http_server import HttpServer
from cynosure.server.listen import listen_tcp
from cynosure.server.protocol import GuardedProtocol
from cynosure.server.settings import TlsSettings
from cynosure.server.tls import ServerTls

pytestmark = pytest.mark.anyio


class PastClock(SystemClock):
    def now_us(self) -> int:
        return super().now_us() - timedelta(days=30) // timedelta(microseconds=1)


def make(
    directory: Path, *, clock: SystemClock | None = None, client: str = "worker-7", days: int = 1
) -> Path:
    certs.init_certs(directory, hosts=["127.0.0.1"], client=client, days=days, clock=clock or SystemClock())
    return directory


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    return make(tmp_path / "ours")


def server_files(directory: Path, *, asks_client: bool = True) -> TlsSettings:
    return TlsSettings(
        directory / certs.SERVER_CERTIFICATE,
        directory / certs.SERVER_KEY,
        directory / certs.CA_CERTIFICATE if asks_client else None,
    )


def client_files(directory: Path, trusted: Path | None = None) -> ClientTls:
    return ClientTls(
        (trusted or directory) / certs.CA_CERTIFICATE,
        directory / certs.CLIENT_CERTIFICATE,
        directory / certs.CLIENT_KEY,
    )


async def show_peer(request: Request) -> Response:
    tls = request.scope["extensions"]["tls"]
    return Response.json(
        {
            "name": tls["client_cert_name"],
            "version": tls["tls_version"],
            "pem": request.client_certificate_pem,
        }
    )


@asynccontextmanager
async def serving(tls: ServerTls) -> AsyncIterator[str]:
    routes = [Route("GET", "/", show_peer, operation_id="show")]
    service = make_service(
        routes, title="t", version="1", clock=SystemClock(), rng=random.Random(1), gate=OperatorGate()
    )
    listener = listen_tcp("127.0.0.1", 0)
    config = uvicorn.Config(
        service.app,  # type: ignore[arg-type]
        http=GuardedProtocol,
        lifespan="off",
        log_config=None,
        ssl_context_factory=lambda config, default: tls.context,
    )
    server = HttpServer(config)
    task = asyncio.create_task(server.run_until_stopped(listener))
    await server.listening.wait()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


async def ask(url: str, tls: ClientTls, timeout_s: float = 30.0) -> dict[str, object]:
    async with HttpClient(url, clock=SystemClock(), rng=random.Random(1), tls=tls) as client:
        return (await client.request("GET", "/", timeout_s=timeout_s)).decode(dict[str, object])


async def test_the_peers_certificate_reaches_the_handler(ours: Path) -> None:
    async with serving(ServerTls(server_files(ours))) as url:
        seen = await ask(url, client_files(ours))

    assert seen["name"] == "CN=worker-7"
    assert seen["version"] == 0x0304
    assert str(seen["pem"]).strip() == (ours / certs.CLIENT_CERTIFICATE).read_text().strip()


async def test_without_a_client_authority_no_certificate_is_asked_for(ours: Path) -> None:
    async with serving(ServerTls(server_files(ours, asks_client=False))) as url:
        seen = await ask(url, client_files(ours))

    assert seen == {"name": None, "version": 0x0304, "pem": None}


async def test_a_client_without_certificate_is_turned_away(ours: Path) -> None:
    async with serving(ServerTls(server_files(ours))) as url:
        with pytest.raises(Unavailable):
            await ask(url, ClientTls(ours / certs.CA_CERTIFICATE), timeout_s=0.5)


async def test_a_client_of_another_authority_is_turned_away(ours: Path, tmp_path: Path) -> None:
    strangers = make(tmp_path / "strangers")

    async with serving(ServerTls(server_files(ours))) as url:
        with pytest.raises(Unavailable):
            await ask(url, client_files(strangers, trusted=ours), timeout_s=0.5)


@pytest.mark.parametrize(("days", "is_answered"), [(60, True), (1, False)])
async def test_a_client_is_turned_away_when_and_only_when_its_certificate_has_expired(
    tmp_path: Path, days: int, is_answered: bool
) -> None:
    made_30_days_ago = make(tmp_path / "old", clock=PastClock(), days=days)
    # The server's own certificate is as old; this client looks away, so only the server can refuse.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(made_30_days_ago / certs.CLIENT_CERTIFICATE, made_30_days_ago / certs.CLIENT_KEY)

    def talk(port: int) -> bytes:
        try:
            with (
                socket.create_connection(("127.0.0.1", port)) as plain,
                context.wrap_socket(plain) as secured,
            ):
                secured.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return secured.recv(100)
        except OSError:
            return b""

    async with serving(ServerTls(server_files(made_30_days_ago))) as url:
        answer = await asyncio.to_thread(talk, int(url.rsplit(":", 1)[1]))

    assert (b"200 OK" in answer) is is_answered


async def test_old_tls_versions_are_refused(ours: Path) -> None:
    context = ServerTls(server_files(ours)).context

    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


async def test_renewed_files_are_used_for_new_connections_also_the_client_authority(
    ours: Path, tmp_path: Path
) -> None:
    renewed = make(tmp_path / "renewed", client="worker-8")
    tls = ServerTls(server_files(ours))

    async with serving(tls) as url:
        assert (await ask(url, client_files(ours)))["name"] == "CN=worker-7"
        for name in (certs.CA_CERTIFICATE, certs.SERVER_CERTIFICATE, certs.SERVER_KEY):
            shutil.copy(renewed / name, ours / name)
        tls.reload()

        assert (await ask(url, client_files(renewed)))["name"] == "CN=worker-8"
        with pytest.raises(Unavailable):
            await ask(url, client_files(ours, trusted=renewed), timeout_s=0.5)


async def test_a_changed_file_is_noticed_without_a_signal(ours: Path, manual_clock, caplog) -> None:
    caplog.set_level("INFO")
    tls = ServerTls(server_files(ours))
    watching = asyncio.create_task(tls.watch(manual_clock, every_s=10))
    await manual_clock.advance(10)
    assert caplog.messages == []

    os.utime(ours / certs.SERVER_CERTIFICATE, ns=(1, 1))
    await manual_clock.advance(10)
    await manual_clock.advance(10)
    watching.cancel()

    assert caplog.messages == ["tls.renewed"]


async def test_a_renewal_that_cannot_be_read_changes_nothing(ours: Path, caplog) -> None:
    tls = ServerTls(server_files(ours))

    async with serving(tls) as url:
        (ours / certs.SERVER_CERTIFICATE).write_text("half a file")
        tls.reload()

        assert (await ask(url, client_files(ours)))["name"] == "CN=worker-7"
    assert caplog.messages == ["tls.renewal_refused"]


@pytest.mark.parametrize("broken", [certs.SERVER_CERTIFICATE, certs.SERVER_KEY, certs.CA_CERTIFICATE])
def test_files_that_cannot_be_used_are_refused_at_the_start(ours: Path, broken: str) -> None:
    (ours / broken).write_text("nonsense")

    with pytest.raises(Misconfigured, match="TLS files cannot be used"):
        ServerTls(server_files(ours))
