"""Traps for whoever looks for credentials where none may be taken from; metrics of one test."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from cynosure.common.telemetry.metrics import start_metrics, stop_metrics
from cynosure.storage.metrics import TALLIES


@pytest.fixture
async def trap(anyio_backend: str):
    """A server that nobody may ever ask for anything."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Who hangs up has asked for no more than was heard. Where many ports are in use, a client of an
        # earlier test may still try this one.
        with suppress(ConnectionError):
            heard.append(await reader.readline())
            writer.write(b"HTTP/1.1 418 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", heard
    server.close()
    await server.wait_closed()


@pytest.fixture
def poisoned(trap: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[bytes]:
    """Environment, home directory and instance metadata that all lead into the trap."""
    url, heard = trap
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = HOME\naws_secret_access_key = home\n"
    )
    (tmp_path / ".aws" / "config").write_text(f"[default]\nregion = home-1\nendpoint_url = {url}\n")
    (tmp_path / "token").write_text("token")
    monkeypatch.setenv("HOME", str(tmp_path))
    variables = {
        "ACCESS_KEY_ID": "POISON",
        "SECRET_ACCESS_KEY": "poison",
        "SESSION_TOKEN": "poison",
        "TOKEN": "poison",
        "REGION": "poison-1",
        "DEFAULT_REGION": "poison-1",
        "BUCKET": "poison",
        "BUCKET_NAME": "poison",
        "ENDPOINT": url,
        "ENDPOINT_URL": url,
        "ENDPOINT_URL_S3": url,
        "ENDPOINT_URL_STS": url,
        "STS_ENDPOINT": url,
        "METADATA_ENDPOINT": url,
        "EC2_METADATA_SERVICE_ENDPOINT": url,
        "CONTAINER_CREDENTIALS_FULL_URI": url,
        "CONTAINER_CREDENTIALS_RELATIVE_URI": "/poison",
        "CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token"),
        "WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "ROLE_ARN": "arn:aws:iam::1:role/poison",
        "ROLE_SESSION_NAME": "poison",
        "PROFILE": "default",
        "SHARED_CREDENTIALS_FILE": str(tmp_path / ".aws" / "credentials"),
        "CONFIG_FILE": str(tmp_path / ".aws" / "config"),
        "SKIP_SIGNATURE": "true",
        "UNSIGNED_PAYLOAD": "true",
        "S3_EXPRESS": "true",
        "REQUEST_PAYER": "true",
        "VIRTUAL_HOSTED_STYLE_REQUEST": "true",
        "DISABLE_BULK_DELETE": "true",
        "IMDSV1_FALLBACK": "true",
        "PROXY_URL": url,
        "ALLOW_HTTP": "false",
        "TIMEOUT": "1ms",
        "CONNECT_TIMEOUT": "1ns",
        "USER_AGENT": "poison",
        "DEFAULT_CONTENT_TYPE": "poison/poison",
    }
    for name, value in variables.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    return heard


@pytest.fixture
def metrics() -> Iterator[None]:
    """Metrics are recorded, of this test only."""
    TALLIES.publish()
    start_metrics()
    yield
    stop_metrics()
