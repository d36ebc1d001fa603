"""A catalog in one process, for tests of operations: a store in memory and files in a directory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import msgspec

from cynosure.auth.access.authorizer import InternalAuthorizer
from cynosure.auth.caller import operator_caller
from cynosure.auth.settings import AuthSettings
from cynosure.auth.standing import Standings
from cynosure.catalog.background import Background
from cynosure.catalog.check_connection import ConnectionRules
from cynosure.catalog.connections import Connections
from cynosure.catalog.directory import Directory
from cynosure.catalog.managed.recent import RecentTables
from cynosure.catalog.opened import OpenCatalog, Shared
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.settings import CatalogSettings
from cynosure.catalog.single_flight import SingleFlight
from cynosure.common.clock import Clock
from cynosure.common.delegated.settings import DelegationSettings
from cynosure.common.key_file import open_keyring
from cynosure.common.keyring_settings import KeyringSettings
from cynosure.persistence.lifecycle import Persistence, open_persistence
from cynosure.persistence.references import DEFAULT_REALM
from cynosure.persistence.settings import PersistenceSettings
from cynosure.storage.config import FileStorage
from cynosure.storage.location import Location
from cynosure.storage.open_storage import Storages
from cynosure.storage.settings import StorageSettings
from cynosure.testing.small_purger import use_small_purger

ROOT = operator_caller("root")
"""May do everything, without any realm having a principal."""
SCHEMA = msgspec.Raw(
    b'{"type":"struct","schema-id":0,"fields":['
    b'{"id":1,"name":"id","required":true,"type":"long"},'
    b'{"id":2,"name":"data","required":false,"type":"string"}]}'
)


@asynccontextmanager
async def open_directory_in(
    folder: Path,
    *,
    url: str = "memory:",
    settings: PersistenceSettings | None = None,
    catalog_settings: CatalogSettings | None = None,
    clock: Clock | None = None,
    access: AuthSettings | None = None,
    storage: StorageSettings | None = None,
    delegation: DelegationSettings | None = None,
    connections: ConnectionRules | None = None,
) -> AsyncIterator[Directory]:
    """The catalogs of a fresh store; their files go below `folder`."""
    opened = open_persistence(url, settings or PersistenceSettings(), initialise=True, clock=clock)
    async with (
        opened as persistence,
        directory_on(
            persistence,
            folder,
            catalog_settings,
            access=access,
            storage=storage,
            delegation=delegation,
            connections=connections,
        ) as directory,
    ):
        yield directory


@asynccontextmanager
async def directory_on(
    persistence: Persistence,
    folder: Path,
    catalog_settings: CatalogSettings | None = None,
    *,
    access: AuthSettings | None = None,
    storage: StorageSettings | None = None,
    delegation: DelegationSettings | None = None,
    connections: ConnectionRules | None = None,
) -> AsyncIterator[Directory]:
    """Another process's view of the catalogs of a store that is open already."""
    catalog_settings = catalog_settings or CatalogSettings()
    access = access or AuthSettings()
    background = Background()
    shared = Shared(
        persistence,
        tables=RecentTables(catalog_settings.answers_bytes),
        settings=catalog_settings,
        background=background,
        authorizer=InternalAuthorizer(persistence, Standings(persistence), access),
        imports=SingleFlight(),
        access=access,
        delegation=delegation or DelegationSettings(),
    )
    keyring = cache(lambda: open_keyring(KeyringSettings(), folder))
    file_roots = [Location.parse(str(folder))]
    storages = Storages(keyring, storage or StorageSettings(), persistence.clock, file_roots=file_roots)
    directory = Directory(shared, storages, Connections(keyring, connections or ConnectionRules()))
    use_small_purger(directory)
    try:
        yield directory
    finally:
        await background.close()
        storages.close()


async def make_catalog(directory: Directory, folder: Path, name: str = "lake") -> OpenCatalog:
    """A catalog with its files below `folder`."""
    location = f"file://{folder / name}"
    storage = FileStorage(allowed_locations=(location,))
    await create_catalog(directory, ROOT, NewCatalog(name=name, base_location=location, storage=storage))
    return await directory.open(DEFAULT_REALM, name)
