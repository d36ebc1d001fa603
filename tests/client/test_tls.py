"""Whom clients trust. Handshakes are in tests/server/test_tls.py."""

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest

from cynosure.client.tls import NO_TLS, ClientTls, make_context
from cynosure.common.clock import SystemClock
from cynosure.common.errors import Misconfigured
from cynosure.server import certs


@pytest.mark.anyio
async def test_who_speaks_plain_http_believes_no_certificate(tmp_path: Path) -> None:
    certs.init_certs(tmp_path, hosts=["127.0.0.1"], client="c", days=1, clock=SystemClock())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / certs.SERVER_CERTIFICATE, tmp_path / certs.SERVER_KEY)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]

    async with server, httpx.AsyncClient(verify=NO_TLS, trust_env=False) as client:
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            await client.get(f"https://127.0.0.1:{port}/")


def test_files_that_cannot_be_used_are_refused_with_their_names(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as refused:
        make_context(ClientTls(ca=tmp_path / "none.pem"))

    assert refused.value.details["ca"] == str(tmp_path / "none.pem")
