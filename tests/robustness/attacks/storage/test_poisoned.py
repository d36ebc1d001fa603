"""A machine that offers other keys everywhere: its environment, its metadata service, its home. I68.

None of it may be used or even asked: a catalog's storage is reached with what its configuration says.
"""

import asyncio
import secrets
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.s3_servers import find_s3_servers
from tests.robustness.attacks.storage.lakes import VENDED, Lake, connect_with, key_of, make_table

pytestmark = pytest.mark.anyio


class _Metadata(BaseHTTPRequestHandler):
    """Answers everything with a key, and remembers that it was asked."""

    asked: list[str]

    def _answer(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        body = b'{"AccessKeyId":"POISON","SecretAccessKey":"poison","Token":"poison","access_token":"poison"}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = _answer

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def metadata_service() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    handler = type("Metadata", (_Metadata,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def poison(url: str, home: Path) -> dict[str, str]:
    """Keys and addresses in every place that drivers of object stores look into by themselves."""
    (home / ".aws").mkdir(parents=True)
    (home / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = POISON\naws_secret_access_key = poison\n"
    )
    (home / ".aws" / "config").write_text(f"[default]\nregion = mars-1\nendpoint_url = {url}\n")
    (home / ".config" / "gcloud").mkdir(parents=True)
    adc = home / ".config" / "gcloud" / "application_default_credentials.json"
    adc.write_text('{"type":"authorized_user","client_id":"x","client_secret":"x","refresh_token":"x"}')
    (home / ".azure").mkdir()
    (home / ".azure" / "config").write_text("[cloud]\nname = x\n")
    return {
        "HOME": str(home),
        "AWS_ACCESS_KEY_ID": "POISON",
        "AWS_SECRET_ACCESS_KEY": "poison",
        "AWS_SESSION_TOKEN": "poison",
        "AWS_REGION": "mars-1",
        "AWS_DEFAULT_REGION": "mars-1",
        "AWS_PROFILE": "default",
        "AWS_ENDPOINT_URL": url,
        "AWS_ENDPOINT_URL_S3": url,
        "AWS_ENDPOINT_URL_STS": url,
        "AWS_ROLE_ARN": "arn:aws:iam::000000000000:role/poison",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(adc),
        "AWS_EC2_METADATA_SERVICE_ENDPOINT": url,
        "AWS_METADATA_ENDPOINT": url,
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/credentials",
        "GOOGLE_APPLICATION_CREDENTIALS": str(adc),
        "GOOGLE_SERVICE_ACCOUNT": str(adc),
        "GCE_METADATA_HOST": url.removeprefix("http://"),
        "AZURE_STORAGE_ACCOUNT_NAME": "poison",
        "AZURE_STORAGE_ACCOUNT_KEY": "cG9pc29u",
        "AZURE_CLIENT_ID": "poison",
        "AZURE_CLIENT_SECRET": "poison",
        "AZURE_TENANT_ID": "poison",
        "IDENTITY_ENDPOINT": url,
        "MSI_ENDPOINT": url,
    }


async def test_a_server_asks_nobody_but_its_configuration(
    tmp_path: Path, metadata_service: tuple[str, list[str]]
) -> None:
    url, asked = metadata_service
    env = poison(url, tmp_path / "home")
    with Processes(tmp_path) as processes:
        server = await start_catalog_server(processes, tmp_path, env=env)
        for store in find_s3_servers().values():
            name, base = f"on-{store.name}", store.fresh_location()
            await server.create_catalog(name, location=base, storage=store.storage())
            await _use(server, Lake(server, store, name, base))

    assert asked == []


async def _use(server: CatalogServer, lake: Lake) -> None:
    async with server.client() as http:
        made = await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
        assert made.status_code == 200, made.text
        name = f"t{secrets.token_hex(4)}"
        table = await make_table(http, lake, name, headers=VENDED)
        assert table.status_code == 200, table.text
        found = table.json()
        assert "POISON" not in table.text
        assert found["config"]["client.region"] == lake.store.region
        bucket, key = key_of(found["metadata-location"])
        if lake.store.has_sts:
            s3 = connect_with(lake.store, found["storage-credentials"][0]["config"])
            await asyncio.to_thread(s3.get_object, Bucket=bucket, Key=key)
        else:
            assert found["config"]["s3.remote-signing-enabled"] == "true"


async def test_a_storage_without_a_key_uses_none(
    tmp_path: Path, metadata_service: tuple[str, list[str]]
) -> None:
    url, asked = metadata_service
    env = poison(url, tmp_path / "home")
    with Processes(tmp_path) as processes:
        server = await start_catalog_server(processes, tmp_path, env=env)
        for store in find_s3_servers().values():
            storage = {
                k: v for k, v in store.storage().items() if k not in ("accessKeyId", "secretAccessKey")
            }
            name, base = f"on-{store.name}", store.fresh_location()
            await server.create_catalog(name, location=base, storage=storage)
            lake = Lake(server, store, name, base)
            async with server.client() as http:
                await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
                refused = await make_table(http, lake, "t", headers=VENDED)
            assert refused.status_code == 403, refused.text
            assert "access key" in refused.text

    assert asked == []
