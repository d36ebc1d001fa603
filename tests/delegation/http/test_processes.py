"""A catalog and a delegation service as processes of their own, over mutual TLS, on a real S3 server."""

import asyncio
import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import httpx
import obstore
import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from obstore.exceptions import BaseError
from obstore.store import S3Store

from cynosure.client.appends import append
from cynosure.client.profiles import Profile
from cynosure.client.tls import ClientTls, make_context
from cynosure.common.clock import SystemClock
from cynosure.server import certs
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, bootstrap_environment
from cynosure.testing.delegation_server import Pair, start_pair
from cynosure.testing.harness.processes import ManagedProcess, Processes
from cynosure.testing.login import Credential, make_credential
from cynosure.testing.s3_servers import VARIABLES, S3Server, parse_s3_server
from tests.delegation.http.conftest import BASE
from tests.names import unique

pytestmark = [pytest.mark.anyio, pytest.mark.s3]

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}


@pytest.fixture(scope="module")
def minio() -> S3Server:
    return parse_s3_server("minio", os.environ[VARIABLES["minio"]])


class Running(NamedTuple):
    pair: Pair
    lake: ServedCatalog
    service: ManagedProcess


@pytest.fixture(scope="module")
async def running(
    tmp_path_factory: pytest.TempPathFactory, anyio_backend: str, minio: S3Server
) -> AsyncIterator[Running]:
    """A catalog and its service, for tests that leave both running."""
    directory = tmp_path_factory.mktemp("pair")
    with Processes(directory) as processes:
        pair = await start_pair(processes, directory)
        lake = await pair.catalog.create_catalog_on(minio)
        assert "lake" in await pair.init()
        yield Running(pair, lake, await pair.start_service())


async def make_table(server: CatalogServer, lake: ServedCatalog, name: str, *, appends: int = 2) -> str:
    """A table with some snapshots; where it is."""
    async with lake.client() as http:
        await http.post(f"{lake.url}/namespaces", json={"namespace": ["ns"]})
        made = await http.post(f"{lake.url}/namespaces/ns/tables", json={"name": name, "schema": SCHEMA})
    assert made.status_code == 200, made.text
    root = server.credential
    profile = Profile(url=server.url, client_id=root.client_id, client_secret=root.secret)
    for number in range(appends):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        await asyncio.to_thread(append, f"ns.{name}", rows, catalog=lake.name, server=profile)
    return made.json()["metadata"]["location"]


async def drop(lake: ServedCatalog, name: str) -> httpx.Response:
    async with lake.client(timeout=90) as http:
        return await http.delete(f"{lake.url}/namespaces/ns/tables/{name}", params={"purgeRequested": "true"})


async def exists(lake: ServedCatalog, name: str) -> bool:
    async with lake.client() as http:
        return (await http.head(f"{lake.url}/namespaces/ns/tables/{name}")).status_code < 300


async def test_a_purge_travels_over_mutual_tls_and_outlives_restarts_of_either_side(
    running: Running, minio: S3Server
) -> None:
    pair, lake, service = running
    a, b, c, beside = names = [unique(word) for word in ("a", "b", "c", "beside")]
    places = {name: await make_table(pair.catalog, lake, name) for name in names}
    untouched = minio.list_below(places[beside])
    assert len(minio.list_below(places[a])) >= 6

    assert (await drop(lake, a)).status_code == 204
    assert not minio.list_below(places[a])
    assert not await exists(lake, a)

    # The service is away: nothing is lost, and nothing half done.
    assert await service.stop() == 0
    refused = await drop(lake, b)
    assert refused.status_code >= 500
    assert minio.list_below(places[b])
    await service.restart()
    await _until_purged(lake, minio, b, places[b])

    await pair.catalog.process.restart()
    assert (await drop(lake, c)).status_code == 204
    assert not minio.list_below(places[c])
    assert minio.list_below(places[beside]) == untouched
    assert await exists(lake, beside)
    assert "Traceback" not in service.log()


async def _until_purged(lake: ServedCatalog, server: S3Server, name: str, location: str) -> None:
    """Ask for it until it is done: who was refused tries again."""
    give_up_s = time.monotonic() + 60
    while server.list_below(location) or await exists(lake, name):
        assert time.monotonic() < give_up_s
        await drop(lake, name)
        await asyncio.sleep(0.2)


async def test_only_the_catalog_gives_orders_to_a_service_that_runs(running: Running) -> None:
    """I98."""
    pair, lake, _ = running
    root = {"Authorization": f"Bearer {pair.catalog.token()}"}
    async with pair.client("catalog") as catalog, pair.client("client") as other:
        assert (await catalog.get("/health/ready")).json() == {"status": "ready", "not_ready": {}}
        assert "cynosure_delegation_" in (await catalog.get("/metrics")).text
        # A token of a principal, though signed with the same key, is not one of the catalog.
        assert (await catalog.get(f"{BASE}/tasks", headers=root)).status_code == 401
        assert (await catalog.get(f"{BASE}/tasks")).status_code == 401
        assert (await other.get(f"{BASE}/tasks", headers=root)).json()["error_code"] == "WRONG_CLIENT"
    with pytest.raises(httpx.TransportError):
        async with httpx.AsyncClient(verify=False, trust_env=False) as stranger:
            await stranger.get(f"{pair.url}/health/live")
    # The service's principal may work in catalogs, and no more.
    principal = json.loads(pair.credentials.read_text())
    assert stat.S_IMODE(pair.credentials.stat().st_mode) == 0o600
    login = pair.catalog.login_as(Credential(principal["clientId"], principal["clientSecret"]))
    async with pair.catalog.client(login) as service:
        assert (await service.get(f"{lake.url}/namespaces")).status_code == 200
        assert (await service.get("/api/management/v1/principals")).status_code == 403
    again = await pair.init()
    assert "lake" in again
    assert json.loads(pair.credentials.read_text()) == principal


async def test_dropped_tables_are_shown_to_the_service_to_read_and_not_to_delete(
    running: Running, minio: S3Server
) -> None:
    pair, lake, _ = running
    name = unique("restorable")
    place = await make_table(pair.catalog, lake, name, appends=1)
    principal = json.loads(pair.credentials.read_text())
    login = pair.catalog.login_as(Credential(principal["clientId"], principal["clientSecret"]))
    ours = f"/api/catalog/cynosure/v1/{lake.name}"
    asks = {"X-Iceberg-Access-Delegation": "vended-credentials"}
    async with lake.client() as http:
        await http.delete(f"{lake.url}/namespaces/ns/tables/{name}")
    async with pair.catalog.client(login) as service:
        dropped = (await service.get(f"{ours}/dropped")).json()["dropped"]
        [drop_id] = [each["id"] for each in dropped if each.get("name") == name]
        loaded = await service.get(f"{ours}/dropped/{drop_id}", headers=asks)
        missing = [await service.get(f"{ours}/dropped/{number}") for number in ("1", "x")]

    assert loaded.status_code == 200, loaded.text
    assert loaded.headers["cache-control"] == "no-store"
    said = loaded.json()
    assert (said["location"], said["places"]) == (place, [place])
    assert said["metadata"]["table-uuid"] == said["table-uuid"]
    [credential] = said["storage-credentials"]
    keys = credential["config"]
    reader = S3Store(
        minio.bucket,
        endpoint=minio.endpoint,
        region=minio.region,
        access_key_id=keys["s3.access-key-id"],
        secret_access_key=keys["s3.secret-access-key"],
        session_token=keys["s3.session-token"],
        client_options={"allow_http": True},
    )
    [some, *_] = minio.list_below(place)
    assert len(obstore.get(reader, some).bytes()) > 0
    with pytest.raises(BaseError, match="AccessDenied"):
        obstore.delete(reader, some)
    assert [each.status_code for each in missing] == [404, 400]


@pytest.mark.parametrize(("days", "is_let_in"), [(1, True), (-1, False)])
async def test_a_certificate_of_the_catalog_that_has_ended_is_refused_by_a_service_that_runs(
    running: Running, tmp_path: Path, days: int, is_let_in: bool
) -> None:
    made = running.pair.certs
    shown = tmp_path / "again.pem"
    shown.write_bytes(sign_again(made / "catalog.pem", made / "ca.pem", made / "ca.key", days=days))

    answered = await ask_with(running.pair, ClientTls(made / "ca.pem", shown, made / "catalog.key"))

    assert answered == is_let_in


async def test_a_certificate_of_another_authority_is_refused_by_a_service_that_runs(
    running: Running, tmp_path: Path
) -> None:
    certs.init_certs(tmp_path, hosts=["127.0.0.1"], client="somebody", days=2, clock=SystemClock())
    theirs = ClientTls(running.pair.certs / "ca.pem", tmp_path / "catalog.pem", tmp_path / "catalog.key")

    assert not await ask_with(running.pair, theirs)


def sign_again(certificate: Path, ca: Path, ca_key: Path, *, days: int) -> bytes:
    """The same certificate of the same authority, that ends in so many days."""
    old, issuer = (x509.load_pem_x509_certificate(file.read_bytes()) for file in (certificate, ca))
    key = serialization.load_pem_private_key(ca_key.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(extensions=list(old.extensions))
        .subject_name(old.subject)
        .issuer_name(issuer.subject)
        .public_key(old.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=3))
        .not_valid_after(now + timedelta(days=days))
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


async def ask_with(pair: Pair, tls: ClientTls) -> bool:
    """Whether the service answers to who shows this."""
    async with httpx.AsyncClient(verify=make_context(tls), trust_env=False, timeout=20) as http:
        try:
            return (await http.get(f"{pair.url}/health/live")).status_code == 200
        except httpx.TransportError:
            return False


async def test_instances_share_a_store_and_each_task_is_done_once(
    processes: Processes, tmp_path: Path, minio: S3Server, postgres_schema_url: str
) -> None:
    env = {
        "CYNOSURE_DELEGATION__SERVICE__STORE": postgres_schema_url,
        "CYNOSURE_DELEGATION__SERVICE__POLLING": "200ms",
    }
    pair = await start_pair(processes, tmp_path, service_env=env)
    lake = await pair.catalog.create_catalog_on(minio)
    await pair.init()
    one = await pair.start_service()
    two = await pair.start_service("second", port="0")
    names = [f"t{number}" for number in range(4)]
    places = [await make_table(pair.catalog, lake, name, appends=1) for name in names]

    answers = await asyncio.gather(*(drop(lake, name) for name in names))

    assert [each.status_code for each in answers] == [204] * 4
    assert not any(minio.list_below(place) for place in places)
    assert [await one.stop(), await two.stop()] == [0, 0]
    assert (one.log() + two.log()).count('"task.succeeded"') == 4


async def test_both_sides_may_demand_certificates(processes: Processes, tmp_path: Path) -> None:
    """The catalog over TLS that asks for certificates, and a service that shows its own."""
    made = tmp_path / "certs"
    certs.init_certs(made, hosts=["127.0.0.1"], client="somebody", days=2, clock=SystemClock())
    catalog_port, service_port = processes.reserve_port(), processes.reserve_port()
    root = make_credential()
    prefix = "CYNOSURE_DELEGATION__"
    tls = {"CA": made / "ca.pem", "CERTIFICATE": made / "catalog.pem", "KEY": made / "catalog.key"}
    context = make_context(ClientTls(made / "ca.pem", made / "client.pem", made / "client.key"))

    async def is_ready(process: ManagedProcess) -> bool:
        return "ready at" in process.log()

    files = (
        *("--tls-cert", str(made / "server.pem"), "--tls-key", str(made / "server.key")),
        *("--tls-client-ca", str(made / "ca.pem")),
    )
    cynosure = (sys.executable, "-m", "cynosure")
    data = tmp_path / "data"
    await processes.start(
        "catalog",
        [*cynosure, "serve", "catalog", "--data", str(data), "--port", str(catalog_port), *files],
        ready=is_ready,
        cwd=tmp_path,
        env={
            **bootstrap_environment(root),
            "CYNOSURE_CATALOG__FIRST": "lake",
            f"{prefix}ENDPOINT": f"https://127.0.0.1:{service_port}",
            f"{prefix}PROVISION": str(tmp_path / "service.json"),
            **{f"{prefix}TLS__{name}": str(path) for name, path in tls.items()},
        },
    )
    service = await processes.start(
        "delegation",
        [
            *(*cynosure, "serve", "delegation", "--data", str(data), "--port", str(service_port), *files),
            *("--catalog", f"https://127.0.0.1:{catalog_port}"),
            *("--credentials-file", str(tmp_path / "service.json")),
        ],
        ready=is_ready,
        cwd=tmp_path,
        env={
            f"{prefix}SERVICE__CATALOG_TLS__CA": str(made / "ca.pem"),
            f"{prefix}SERVICE__CATALOG_TLS__CERTIFICATE": str(made / "delegation.pem"),
            f"{prefix}SERVICE__CATALOG_TLS__KEY": str(made / "delegation.key"),
            f"{prefix}SERVICE__FILE_LOCATIONS": str(data / "warehouse"),
        },
    )
    base = "/api/catalog/v1/lake/namespaces"
    url = f"https://127.0.0.1:{catalog_port}"
    async with httpx.AsyncClient(base_url=url, verify=context, trust_env=False, timeout=60) as http:
        form = {"grant_type": "client_credentials", "client_id": root.client_id, "client_secret": root.secret}
        token = (await http.post("/api/catalog/v1/oauth/tokens", data=form)).json()["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        await http.post(base, json={"namespace": ["ns"]})
        made_table = await http.post(f"{base}/ns/tables", json={"name": "t", "schema": SCHEMA})
        place = Path(made_table.json()["metadata"]["location"].removeprefix("file://"))
        dropped = await http.delete(f"{base}/ns/tables/t", params={"purgeRequested": "true"})

    assert dropped.status_code == 204, dropped.text
    assert not any(path.is_file() for path in place.rglob("*"))
    assert '"task.succeeded"' in service.log()
