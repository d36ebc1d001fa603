"""Which client is opened for which connection, and what a closed one costs."""

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from cynosure.catalog.connection import (
    Bearer,
    Connection,
    ConnectionSecrets,
    Implicit,
    OAuth,
    Password,
    SigV4,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.federation.remotes.opening import open_remote
from cynosure.federation.remotes.pointer_remote import PointerRemote
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.held import find_new, list_held
from cynosure.testing.small_catalog import open_directory_in
from tests.federation.federated import make_federated

pytestmark = pytest.mark.anyio

SECRETS = ConnectionSecrets(
    client_secret=Secret("client-secret-of-a-test"),
    bearer_token=Secret("bearer-token-of-a-test"),
    access_key_id=Secret("access-key-of-a-test"),
    secret_access_key=Secret("secret-key-of-a-test"),
    password=Secret("password-of-a-test"),
)
REST = Connection(
    type="ICEBERG_REST", uri="https://127.0.0.1:1/", authentication=OAuth(client_id="us"), remote_name="there"
)
CONNECTIONS = {
    "oauth": REST,
    "bearer": msgspec.structs.replace(REST, authentication=Bearer()),
    "sigv4": msgspec.structs.replace(REST, authentication=SigV4(signing_region="eu-west-1")),
    "hive": Connection(type="HIVE", uri="thrift://127.0.0.1:1", authentication=Implicit()),
    "glue": Connection(
        type="GLUE", uri="https://127.0.0.1:1/", authentication=SigV4(signing_region="eu-west-1")
    ),
    "sql": Connection(type="SQL", uri="postgresql://127.0.0.1:1/db", authentication=Password(user="us")),
}


def connected(catalog: OpenCatalog, connection: Connection) -> OpenCatalog:
    entity = msgspec.structs.replace(catalog.entity, connected_to=connection)
    return OpenCatalog(catalog.realm, entity, catalog.shared, catalog.storage)


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[OpenCatalog]:
    async with open_directory_in(tmp_path) as directory:
        yield await make_federated(directory, tmp_path)


@pytest.mark.parametrize("kind", CONNECTIONS)
async def test_every_kind_is_opened_without_asking_anybody(catalog: OpenCatalog, kind: str) -> None:
    before = list_held()
    settings = FederationSettings(allow_implicit=True)

    remote = open_remote(connected(catalog, CONNECTIONS[kind]), SECRETS, settings, SystemClock())

    assert isinstance(remote, PointerRemote) is (kind in ("hive", "glue", "sql"))
    assert not await find_new(before)
    await remote.close()


@pytest.mark.parametrize("kind", CONNECTIONS)
async def test_a_hundred_open_clients_that_are_idle_are_small(catalog: OpenCatalog, kind: str) -> None:
    settings, clock = FederationSettings(allow_implicit=True), SystemClock()
    opened = [open_remote(connected(catalog, CONNECTIONS[kind]), SECRETS, settings, clock)]
    before = list_held()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(100):
            opened.append(open_remote(connected(catalog, CONNECTIONS[kind]), SECRETS, settings, clock))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 25 * 2**20
    assert not await find_new(before)
    for remote in opened:
        await remote.close()


def test_only_the_kind_that_is_used_is_imported() -> None:
    code = (
        "import sys\n"
        "import cynosure.federation.clients\n"
        "kinds = [name for name in sys.modules if name.startswith('cynosure.federation.remotes.')]\n"
        "assert kinds == ['cynosure.federation.remotes.opening'], kinds\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
