"""A federated catalog with a remote in memory behind it, people with rights, and what asks the remote."""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cynosure.auth.caller import Caller
from cynosure.auth.settings import AuthSettings
from cynosure.catalog.consistency import find_disagreements
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.catalog.resolve import require_any_table_ref
from cynosure.common.clock import Clock
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.federation.clients import Clients
from cynosure.federation.remote import RemoteTable
from cynosure.federation.seeing import Federation
from cynosure.federation.settings import FederationSettings
from cynosure.federation.stages.together import Together
from cynosure.iceberg.metadata import TableMetadata, parse_metadata
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.spi import ObjId
from cynosure.testing.memory_remote import MemoryRemote
from cynosure.testing.small_access import People
from cynosure.testing.small_catalog import ROOT, directory_on, open_directory_in
from tests.catalog.external import table_metadata
from tests.federation.federated import make_federated

NS = ("ns",)
T = Identifier(NS, "orders")
FIRST_LOOK = ["load-table", "load-namespace", "load-table"]
"""What a remote is asked when the first table of a namespace is seen: also whether it minds spellings."""
OTHER_UUID = "11111111-2222-4333-8444-555555555555"
THIRD_UUID = "99999999-2222-4333-8444-555555555555"


class Far:
    """One federated catalog."""

    def __init__(self, directory: Directory, catalog: OpenCatalog, remote: MemoryRemote, asks: Federation):
        self.directory = directory
        self.catalog = catalog
        self.remote = remote
        self.federation = asks
        self.people = People(directory)

    def metadata(self, at: str = "orders", uuid: str | None = None, **more: Any) -> TableMetadata:
        """A version of a table, in a directory of the catalog."""
        location = f"{self.catalog.base.text}/{at}"
        given = () if uuid is None else (uuid,)
        name = more.pop("name", "v1")
        return parse_metadata(msgspec.json.encode(table_metadata(location, name, *given, **more)))

    def put(self, table: Identifier = T, at: str = "orders", **more: Any) -> RemoteTable:
        """Somebody else commits a version at the remote."""
        return self.remote.put(table, self.metadata(at, **more))

    async def see(self, caller: Caller = ROOT, table: Identifier = T) -> None:
        await self.federation.see_table(self.catalog, caller, table)

    async def set_properties(self, **properties: str) -> None:
        """Set properties of the catalog, called without what they begin with."""
        entity = self.catalog.entity
        wanted = {f"cynosure.federation.{name.replace('_', '-')}": v for name, v in properties.items()}
        update = CatalogUpdate(set_properties=wanted)
        await update_catalog(self.directory, ROOT, entity.name, update)
        self.catalog = await self.directory.open(DEFAULT_REALM, entity.name)

    async def id_of(self, table: Identifier = T) -> ObjId:
        view = await self.catalog.read()
        ref = await require_any_table_ref(view, table)
        return await self.catalog.any_table(table).load_id(view, ref)

    async def count_commits(self) -> int:
        return (await self.catalog.read()).commit.record.sequence

    async def disagreements(self) -> list[str]:
        return await find_disagreements(await self.catalog.read())


def make_federation(
    folder: Path, remote: MemoryRemote, clock: Clock, settings: FederationSettings | None = None
) -> Federation:
    """What one process asks remotes with; all of them are this one."""
    # Without retries: nobody moves the clock that they would wait by.
    settings = settings or FederationSettings(retries=0)
    keyring = cache(lambda: open_keyring(KeyringSettings(), folder))
    clients = Clients(settings, keyring, clock, opening=lambda _: remote)
    return Federation(clients, settings, clock)


@asynccontextmanager
async def open_far(
    folder: Path,
    *,
    clock: Clock | None = None,
    settings: FederationSettings | None = None,
    access: AuthSettings | None = None,
    remote: MemoryRemote | None = None,
) -> AsyncIterator[Far]:
    """A federated catalog in one process."""
    async with open_directory_in(folder, clock=clock, access=access) as directory:
        catalog = await make_federated(directory, folder)
        remote = remote or MemoryRemote()
        federation = make_federation(folder, remote, directory.shared.persistence.clock, settings)
        try:
            yield Far(directory, catalog, remote, federation)
        finally:
            await federation.close()


@asynccontextmanager
async def open_beside(
    far: Far, folder: Path, settings: FederationSettings | None = None
) -> AsyncIterator[Far]:
    """Another process on the same store, with the same remote."""
    persistence = far.directory.shared.persistence
    async with directory_on(persistence, folder) as directory:
        catalog = await directory.open(DEFAULT_REALM, far.catalog.entity.name)
        federation = make_federation(folder, far.remote, persistence.clock, settings)
        try:
            yield Far(directory, catalog, far.remote, federation)
        finally:
            await federation.close()


def answer_of(answer: Any) -> Mapping[str, Any]:
    """What a client would be told of a table."""
    found: Mapping[str, Any] = msgspec.json.decode(answer.load_body())["metadata"]
    return found


def count_who_comes(monkeypatch: pytest.MonkeyPatch) -> list[Hashable]:
    """What is asked together from now on, once for everybody who asks or waits."""
    come: list[Hashable] = []
    run = Together.run

    async def counted(self: Together, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        come.append(key)
        await run(self, key, work)

    monkeypatch.setattr(Together, "run", counted)
    return come
