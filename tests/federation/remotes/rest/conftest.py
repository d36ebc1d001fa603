"""Remotes of the REST protocol for these tests: a second server of ours, and one that lies."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from cynosure.catalog.connection import Connection, ConnectionSecrets, OAuth
from cynosure.common.clock import SystemClock
from cynosure.common.secrets import Secret
from cynosure.federation.remotes.rest import RestRemote, open_rest
from cynosure.federation.settings import FederationSettings
from cynosure.testing.catalog_server import CatalogServer, ServedCatalog, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES
from cynosure.testing.lying_remote import LyingRemote

from .liars import Liar


@pytest.fixture(scope="module")
def second_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    """A server of ours that is somebody else's."""
    directory = tmp_path_factory.mktemp("second")
    with Processes(directory) as processes:
        yield asyncio.run(start_catalog_server(processes, directory))


@pytest.fixture(scope="module")
def second_catalog(second_server: CatalogServer) -> ServedCatalog:
    """A catalog there."""
    return asyncio.run(second_server.create_catalog(f"c{uuid.uuid4().hex[:12]}"))


def connect_to(served: ServedCatalog) -> tuple[Connection, ConnectionSecrets]:
    """A connection to a catalog of a second server, as its root."""
    credential = served.login.credential
    authentication = OAuth(client_id=credential.client_id, scopes=(ALL_ROLES,))
    connection = Connection(
        type="ICEBERG_REST", uri=served.root, authentication=authentication, remote_name=served.name
    )
    return connection, ConnectionSecrets(client_secret=Secret(credential.secret))


@pytest.fixture
async def second_remote(second_catalog: ServedCatalog) -> AsyncIterator[RestRemote]:
    """A client of the catalog there."""
    connection, secrets = connect_to(second_catalog)
    remote = open_rest(connection, secrets, FederationSettings(), SystemClock(), "near")
    yield remote
    await remote.close()


@pytest.fixture
async def liar() -> AsyncIterator[Liar]:
    """A remote that lies, and clients of it."""
    async with LyingRemote() as server:
        liar = Liar(server)
        yield liar
        await liar.close()
