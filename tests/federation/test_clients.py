"""Clients of remotes: opened when needed, replaced when their connection is, and cheap when nobody asks."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from cynosure.catalog.directory import Directory
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring import Keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.federation.clients import Clients
from cynosure.federation.errors import RemoteUnavailable
from cynosure.federation.remote import RemoteCatalog
from cynosure.federation.settings import FederationSettings
from cynosure.testing.harness.clock import ManualClock
from cynosure.testing.harness.held import find_new, list_held
from cynosure.testing.small_catalog import open_directory_in
from tests.federation.federated import make_federated
from tests.federation.guard.scripted_remote import ScriptedRemote

pytestmark = pytest.mark.anyio


class Opened:
    """The remotes that were opened, in their order."""

    def __init__(self) -> None:
        self.remotes: list[ScriptedRemote] = []

    def __call__(self, catalog: OpenCatalog) -> RemoteCatalog:
        self.remotes.append(ScriptedRemote())
        return self.remotes[-1]


def no_keyring() -> Keyring:
    raise AssertionError("nothing is to be unsealed")


@pytest.fixture
async def directory(tmp_path: Path) -> AsyncIterator[Directory]:
    async with open_directory_in(tmp_path) as opened:
        yield opened


@pytest.fixture
async def catalog(directory: Directory, tmp_path: Path) -> OpenCatalog:
    return await make_federated(directory, tmp_path)


def with_uri(catalog: OpenCatalog, uri: str) -> OpenCatalog:
    """The catalog after its connection was changed."""
    connection = msgspec.structs.replace(catalog.entity.connection, uri=uri)
    entity = msgspec.structs.replace(catalog.entity, connected_to=connection)
    return OpenCatalog(catalog.realm, entity, catalog.shared, catalog.storage)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_client_is_opened_by_the_first_request_and_kept(catalog: OpenCatalog) -> None:
    clients = Clients(FederationSettings(), no_keyring, ManualClock(), opening=(opened := Opened()))
    client = clients.get(catalog)
    assert opened.remotes == []

    await client.load_namespace(("ns",))
    again = OpenCatalog(catalog.realm, catalog.entity, catalog.shared, catalog.storage)
    await clients.get(again).load_namespace(("ns",))

    assert clients.get(again) is client
    assert len(opened.remotes) == 1
    await clients.close()
    assert opened.remotes[0].is_closed


async def test_a_changed_connection_is_used_by_the_next_request(catalog: OpenCatalog) -> None:
    clients = Clients(FederationSettings(), no_keyring, ManualClock(), opening=(opened := Opened()))
    old = clients.get(catalog)
    await old.load_namespace(("ns",))
    held = asyncio.Event()
    opened.remotes[0].script.append(held)
    running = asyncio.create_task(old.load_namespace(("running",)))
    await settle()

    await clients.get(with_uri(catalog, "http://127.0.0.1:2/")).load_namespace(("next",))
    await settle()

    assert opened.remotes[1].order == [("next",)]
    assert not opened.remotes[0].is_closed
    held.set()
    await running
    assert opened.remotes[0].is_closed


async def test_who_still_has_an_old_client_is_served(catalog: OpenCatalog) -> None:
    clients = Clients(FederationSettings(), no_keyring, ManualClock(), opening=(opened := Opened()))
    old = clients.get(catalog)
    await old.load_namespace(("ns",))
    clients.get(with_uri(catalog, "http://127.0.0.1:2/"))
    await settle()
    assert opened.remotes[0].is_closed

    await old.load_namespace(("late",))

    assert opened.remotes[1].order == [("late",)]
    assert opened.remotes[1].is_closed


async def test_rotated_secrets_are_another_version(catalog: OpenCatalog) -> None:
    clients = Clients(FederationSettings(), no_keyring, ManualClock(), opening=Opened())
    connection = msgspec.structs.replace(catalog.entity.connection, sealed_secrets=b"others")
    entity = msgspec.structs.replace(catalog.entity, connected_to=connection)
    rotated = OpenCatalog(catalog.realm, entity, catalog.shared, catalog.storage)

    assert clients.get(catalog) is not clients.get(rotated)


async def test_the_least_recently_used_make_room(directory: Directory, tmp_path: Path) -> None:
    catalogs = [await make_federated(directory, tmp_path, f"far{number}") for number in range(3)]
    opened = Opened()
    clients = Clients(FederationSettings(clients=2), no_keyring, ManualClock(), opening=opened)
    for catalog in catalogs:
        await clients.get(catalog).load_namespace(("ns",))
    await settle()

    assert [remote.is_closed for remote in opened.remotes] == [True, False, False]
    assert clients.find_health(catalogs[0]) is None
    assert clients.find_health(catalogs[1]).breaker == "closed"


async def test_a_client_that_nobody_uses_ends_its_connections_and_keeps_its_health(
    catalog: OpenCatalog, directory: Directory, tmp_path: Path
) -> None:
    clock, opened = ManualClock(), Opened()
    clients = Clients(FederationSettings(), no_keyring, clock, opening=opened)
    await clients.get(catalog).load_namespace(("ns",))
    await clock.advance(61)
    clients.get(await make_federated(directory, tmp_path, "busy"))
    await settle()

    assert opened.remotes[0].is_closed
    assert clients.find_health(catalog).last_success_ms > 0
    await clients.get(catalog).load_namespace(("ns",))
    assert len(opened.remotes) == 2


async def test_a_hundred_idle_catalogs_hold_no_threads_sockets_or_memory(
    directory: Directory, tmp_path: Path, catalog: OpenCatalog
) -> None:
    keyring = cache(lambda: open_keyring(KeyringSettings(), tmp_path))
    first = Clients(FederationSettings(retries=0), keyring, ManualClock())
    await _check(first, catalog)  # what is imported and kept once is not what a catalog costs
    entities = [
        msgspec.structs.replace(catalog.entity, id=f"{number + 1_000}", name=f"far{number}")
        for number in range(100)
    ]
    held = list_held()
    clients = Clients(FederationSettings(), no_keyring, ManualClock())
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for entity in entities:
            clients.get(OpenCatalog(catalog.realm, entity, catalog.shared, catalog.storage))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert after - before < 10 * 2**20
    assert not await find_new(held)
    await clients.close()
    await first.close()


async def _check(clients: Clients, catalog: OpenCatalog) -> None:
    with pytest.raises(RemoteUnavailable):  # nobody listens there
        await clients.get(catalog).load_namespace(("ns",))
