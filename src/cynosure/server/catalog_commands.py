"""Operator commands on catalogs, `catalogs.*`: create, look at, change and drop them.

A maintainer must not break: parameters and results are read by a command line of another version; fields are
only ever added, with defaults. No result holds a secret.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from cynosure.api.operator import OperatorCommand
from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.listed import check_catalog_name
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.drop_catalog import drop_catalog, reopen_catalog
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.operations.load_catalog import load_catalog
from cynosure.catalog.operations.update_catalog import CatalogUpdate, update_catalog
from cynosure.common.progress import Report
from cynosure.server.catalog_storage import S3Params, change_storage, choose_storage, default_location
from cynosure.server.settings import Settings
from cynosure.storage.config import S3Storage

OpenDirectory = Callable[[bool], AbstractAsyncContextManager[Directory]]
"""Opens the catalogs of a store, or hands out the open ones. The argument: initialise it if it is empty."""

OPERATOR: Final = Caller("operator")


class CreateParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `catalogs.create`."""

    name: str
    location: str = ""
    """Empty: a directory of this name below the server's own warehouse."""
    allowed_locations: tuple[str, ...] = ()
    """Further places where tables may be."""
    properties: dict[str, str] = {}
    s3: S3Params = S3Params()


class ListParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `catalogs.list`."""


class NameParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For commands on one catalog."""

    name: str


class UpdateParams(Struct, frozen=True, forbid_unknown_fields=True):
    """For `catalogs.update`; what is left out stays."""

    name: str
    location: str = ""
    allowed_locations: tuple[str, ...] = ()
    """To be added."""
    set_properties: dict[str, str] = {}
    remove_properties: tuple[str, ...] = ()
    s3: S3Params = S3Params()


class CatalogInfo(Struct, frozen=True):
    """One catalog."""

    name: str
    id: str
    location: str
    storage: str
    """`FILE` or `S3`."""
    allowed_locations: tuple[str, ...]
    properties: dict[str, str]
    version: int
    created: str
    updated: str
    storage_options: dict[str, str] = {}


def catalog_commands(open_directory: OpenDirectory, settings: Settings) -> list[OperatorCommand[Struct]]:
    """The commands, on the catalogs that `open_directory` gives."""
    commands = _Commands(open_directory, settings)
    listed: list[tuple[str, type[Struct], object, str]] = [
        ("catalogs.create", CreateParams, commands.create, "Create a catalog"),
        ("catalogs.list", ListParams, commands.list, "All catalogs"),
        ("catalogs.show", NameParams, commands.show, "One catalog"),
        ("catalogs.update", UpdateParams, commands.update, "Change properties, locations or storage"),
        ("catalogs.drop", NameParams, commands.drop, "Drop an empty catalog"),
        ("catalogs.reopen", NameParams, commands.reopen, "Open a catalog again that was half dropped"),
    ]
    return [OperatorCommand(name, params, run, summary) for name, params, run, summary in listed]  # type: ignore[arg-type]


class _Commands:
    def __init__(self, open_directory: OpenDirectory, settings: Settings) -> None:
        self._open = open_directory
        self._settings = settings

    async def create(self, params: CreateParams, report: Report) -> CatalogInfo:
        # Before the name is made a part of a path.
        check_catalog_name(params.name)
        base = params.location or default_location(self._settings, params.name)
        storage = choose_storage(base, params.allowed_locations, params.s3)
        wanted = NewCatalog(
            name=params.name,
            base_location=storage.base,
            storage=storage.config,
            s3_keys=storage.keys,
            properties=params.properties,
        )
        async with self._open(True) as directory:
            return describe(await create_catalog(directory, OPERATOR, wanted))

    async def list(self, params: ListParams, report: Report) -> list[CatalogInfo]:
        async with self._open(False) as directory:
            return [describe(entity) for entity in await list_catalogs(directory, OPERATOR)]

    async def show(self, params: NameParams, report: Report) -> CatalogInfo:
        async with self._open(False) as directory:
            return describe(await load_catalog(directory, OPERATOR, params.name))

    async def update(self, params: UpdateParams, report: Report) -> CatalogInfo:
        async with self._open(False) as directory:
            entity = await load_catalog(directory, OPERATOR, params.name)
            storage = change_storage(entity, params.location, params.allowed_locations, params.s3)
            wanted = CatalogUpdate(
                set_properties=params.set_properties,
                remove_properties=params.remove_properties,
                base_location=storage.base,
                storage=storage.config,
                s3_keys=storage.keys,
                version=entity.version,
            )
            return describe(await update_catalog(directory, OPERATOR, params.name, wanted))

    async def drop(self, params: NameParams, report: Report) -> CatalogInfo:
        async with self._open(False) as directory:
            entity = await load_catalog(directory, OPERATOR, params.name)
            await drop_catalog(directory, OPERATOR, params.name)
            return describe(entity)

    async def reopen(self, params: NameParams, report: Report) -> CatalogInfo:
        async with self._open(False) as directory:
            await reopen_catalog(directory, OPERATOR, params.name)
            return describe(await load_catalog(directory, OPERATOR, params.name))


def describe(entity: CatalogEntity) -> CatalogInfo:
    """A catalog for operators, without its keys."""
    storage = entity.storage
    options: dict[str, str] = {}
    if isinstance(storage, S3Storage):
        options = {
            "region": storage.region,
            "endpoint": storage.endpoint or "",
            "path-style": str(storage.path_style_access).lower(),
        }
    return CatalogInfo(
        name=entity.name,
        id=entity.id,
        location=entity.base_location,
        storage="S3" if isinstance(storage, S3Storage) else "FILE",
        allowed_locations=storage.allowed_locations,
        properties=entity.properties,
        version=entity.version,
        created=_time(entity.created_us),
        updated=_time(entity.updated_us),
        storage_options=options,
    )


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat(timespec="milliseconds")
