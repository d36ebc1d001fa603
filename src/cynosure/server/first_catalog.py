"""A catalog to begin with, so that a newcomer's first command leads to something usable.

Its `catalog_admin`, and with it `root`, may also read and write data: engines ask for that with their first
request. Catalogs that are created by hand begin without, as Apache Polaris has it.

A maintainer must not break: it is created only where there is none at all, never beside others.
"""

from contextlib import suppress
from typing import Final

from cynosure.auth.caller import operator_caller
from cynosure.auth.entities import CATALOG_ADMIN
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.directory import Directory
from cynosure.catalog.errors import CatalogExists
from cynosure.catalog.operations.create_catalog import NewCatalog, create_catalog
from cynosure.catalog.operations.list_catalogs import list_catalogs
from cynosure.catalog.roles.grant_privilege import grant_privilege
from cynosure.catalog.roles.securables import Grant
from cynosure.server.catalog_storage import default_location
from cynosure.server.settings import Settings
from cynosure.storage.config import FileStorage

FIRST: Final = "main"
"""What `cynosure up` calls it."""
_SHOWN: Final = 5


async def ensure_first_catalog(directory: Directory, settings: Settings) -> tuple[str, ...]:
    """Create the catalog that the settings name, if there is none; the names of the first few there are."""
    caller = operator_caller("system")
    names = [entity.name for entity in (await list_catalogs(directory, caller)).catalogs]
    name = settings.catalog.first
    if name and not names:
        location = default_location(settings, name)
        wanted = NewCatalog(name=name, base_location=location, storage=FileStorage((location,)))
        with suppress(CatalogExists):  # Another process was faster.
            await create_catalog(directory, caller, wanted)
        opened = await directory.open(caller.realm, name)
        content = Grant(kind="catalog", privilege=Privilege.CATALOG_MANAGE_CONTENT)
        await grant_privilege(opened, caller, CATALOG_ADMIN, content)
        names = [name]
    return tuple(names[:_SHOWN])
