"""A catalog with something of everything in it, and people who may do something of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from cynosure.auth.settings import AuthSettings
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.create_namespace import create_namespace
from cynosure.catalog.operations.create_view import CreateView, create_view
from cynosure.persistence.spi import ObjId, RefKey
from cynosure.testing.small_access import People
from cynosure.testing.small_catalog import ROOT, SCHEMA, make_catalog, open_directory_in
from tests.catalog.tables import T, make

NS, DEEP, OTHER = ("ns",), ("ns", "deep"), ("other",)
V = Identifier(NS, "v")
VERSION = msgspec.Raw(
    b'{"version-id":1,"timestamp-ms":1,"schema-id":0,"summary":{},"default-namespace":[],'
    b'"representations":[{"type":"sql","sql":"SELECT 1","dialect":"spark"}]}'
)


class Lake(NamedTuple):
    """The catalog and its people."""

    directory: Directory
    catalog: OpenCatalog
    people: People
    folder: Path

    async def heads(self) -> dict[RefKey, ObjId]:
        """What the store holds: the same heads, the same content."""
        refs = await self.directory.shared.persistence.backend.list_refs()
        return {ref.key: ref.head for ref in refs}


@asynccontextmanager
async def open_lake(
    folder: Path, access: AuthSettings | None = None, *, url: str = "memory:"
) -> AsyncIterator[Lake]:
    """Namespaces `ns`, `ns.deep`, `other`; table `ns.t`; view `ns.v`."""
    async with open_directory_in(folder, access=access, url=url) as directory:
        people = People(directory)
        await people.root()
        catalog = await make_catalog(directory, folder)
        for namespace in (NS, DEEP, OTHER):
            await create_namespace(catalog, ROOT, namespace, {})
        await make(catalog, T)
        await create_view(catalog, ROOT, CreateView(V, SCHEMA, VERSION))
        yield Lake(directory, catalog, people, folder)
