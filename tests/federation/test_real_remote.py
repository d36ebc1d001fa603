"""Lists and the guard against a real server: a second Cynosure, which is stopped, goes on, and is killed."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from cynosure.catalog.connection import Connection, ConnectionSecrets, OAuth
from cynosure.catalog.listing import Paging
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.common.clock import SystemClock
from cynosure.common.errors import OutcomeUnknown
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.common.secrets import Secret
from cynosure.federation import lists
from cynosure.federation.clients import Clients
from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.reconcile import reconcile
from cynosure.federation.remote import RemoteCatalog
from cynosure.federation.seeing import Federation
from cynosure.federation.settings import FederationSettings
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.storage.config import FileStorage
from cynosure.testing.catalog_server import CatalogServer, start_catalog_server
from cynosure.testing.harness.processes import Processes
from cynosure.testing.login import ALL_ROLES
from cynosure.testing.remote_samples import Stage, plan_table
from cynosure.testing.small_catalog import ROOT, open_directory_in

pytestmark = pytest.mark.anyio

NS = ("ns",)
SETTINGS = FederationSettings(retries=0, break_after=2, break_for=timedelta(seconds=1))
IMPATIENT = msgspec.structs.replace(SETTINGS, timeout=timedelta(seconds=5), break_after=1)


class Far(NamedTuple):
    server: CatalogServer
    catalog: OpenCatalog
    clients: Clients
    impatient: Clients
    """Another process's, which waits less long."""
    stage: Stage


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    with Processes(tmp_path) as processes:
        (tmp_path / "second").mkdir()
        server = await start_catalog_server(processes, tmp_path / "second")
        there = await server.create_catalog(f"c{uuid.uuid4().hex[:12]}")
        place = (server.warehouse / there.name).as_uri()
        async with open_directory_in(tmp_path) as directory:
            credential = server.credential
            wanted = NewCatalog(
                name="far",
                base_location=place,
                storage=FileStorage(allowed_locations=(place,)),
                kind="EXTERNAL",
                connection=Connection(
                    type="ICEBERG_REST",
                    uri=server.root,
                    authentication=OAuth(client_id=credential.client_id, scopes=(ALL_ROLES,)),
                    remote_name=there.name,
                ),
                connection_secrets=ConnectionSecrets(client_secret=Secret(credential.secret)),
            )
            await create_catalog(directory, ROOT, wanted)
            catalog = await directory.open(DEFAULT_REALM, "far")
            keyring = cache(lambda: open_keyring(KeyringSettings(), tmp_path))
            clients = Clients(SETTINGS, keyring, SystemClock())
            impatient = Clients(IMPATIENT, keyring, SystemClock())
            yield Far(server, catalog, clients, impatient, Stage(clients.get(catalog), place))
            await clients.close()
            await impatient.close()


async def ask_until_answered(remote: RemoteCatalog) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                return await remote.check()
            except RemoteUnavailable:
                await asyncio.sleep(0.05)


async def test_pages_of_a_real_remote_and_what_is_different_there(far: Far) -> None:
    remote = far.stage.remote
    await remote.create_namespace(NS, {})
    tables = [Identifier(NS, f"t{number}") for number in range(5)]
    for table in tables:
        await remote.create_table(plan_table(far.stage, table))

    names, sizes, token = [], [], ""
    while token is not None:
        body = await lists.list_tables(far.clients, far.catalog, ROOT, NS, Paging(token, 2))
        page = msgspec.json.decode(body)
        names += [each["name"] for each in page["identifiers"]]
        sizes.append(len(page["identifiers"]))
        token = page.get("next-page-token")
    assert (names, sizes) == ([table.name for table in tables], [2, 2, 1])

    federation = Federation(far.clients, SETTINGS, SystemClock())
    for table in tables[:3]:
        await federation.see_table(far.catalog, ROOT, table)
    await remote.drop_table(tables[0], is_purge=False)
    await remote.rename_table(tables[1], Identifier(NS, "renamed"))
    found = await reconcile(far.clients, far.catalog, ROOT, is_mending=True)
    assert [
        (each.path[-1], each.difference, each.moved_to[-1:], each.is_mended) for each in found.drifts
    ] == [
        ("t0", "gone", (), True),
        ("t1", "moved", ("renamed",), True),
    ]
    assert (await reconcile(far.clients, far.catalog, ROOT, is_mending=False)).drifts == ()


async def test_a_server_that_stops_is_left_alone_and_asked_again_when_it_goes_on(far: Far) -> None:
    remote, process = far.impatient.get(far.catalog), far.server.process
    await ask_until_answered(remote)
    process.sigstop()
    try:
        with pytest.raises(OutcomeUnknown):
            await remote.create_namespace(("late",), {})
        health = far.impatient.find_health(far.catalog)
        # By now it may be time to try again.
        assert health.breaker != "closed"
        assert health.last_error == "OutcomeUnknown"
        with pytest.raises(RemoteUnavailable):
            await remote.load_namespace(NS)
    finally:
        process.sigcont()

    await ask_until_answered(remote)
    assert far.impatient.find_health(far.catalog).breaker == "closed"


async def test_a_server_that_is_killed_is_unavailable_and_served_again_when_it_is_back(far: Far) -> None:
    remote, process = far.stage.remote, far.server.process
    await remote.create_namespace(NS, {})
    process.kill9()
    with pytest.raises(RemoteUnavailable):
        await lists.list_tables(far.clients, far.catalog, ROOT, NS, Paging())

    await process.restart()
    await ask_until_answered(remote)
    assert await lists.list_tables(far.clients, far.catalog, ROOT, NS, Paging()) == b'{"identifiers":[]}'
