"""One catalog, as a thing: its entry in the realm's list."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity


async def load_catalog(directory: Directory, caller: Caller, name: str) -> CatalogEntity:
    """The catalog; `NoSuchCatalog` when there is none."""
    view = await directory.read(caller.realm)
    listed, _ = await directory.authorize_on(view, caller, ops.LOAD_CATALOG, name)
    return listed.entity
