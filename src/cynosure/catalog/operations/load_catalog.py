"""One catalog, as a thing: its entry in the realm's list."""

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CatalogEntity
from cynosure.catalog.listed import load_listed


async def load_catalog(directory: Directory, caller: Caller, name: str) -> CatalogEntity:
    """The catalog; `NoSuchCatalog` when there is none."""
    state = (await directory.committer(caller.realm).read()).state
    return (await load_listed(state, name)).entity
