"""All catalogs of a realm."""

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CATALOG, CatalogEntity
from cynosure.persistence.index import after
from cynosure.persistence.objects import ObjRef

_BATCH = 500


async def list_catalogs(directory: Directory, caller: Caller) -> list[CatalogEntity]:
    """The catalogs in the order of their names, all as of one moment."""
    state = (await directory.committer(caller.realm).read()).state
    found: list[CatalogEntity] = []
    start = b""
    while entries := await state.scan("names", start=start, limit=_BATCH):
        found += await state.load_many(CATALOG, [ObjRef.unpack(value).id for _, value in entries])
        start = after(entries[-1][0])
    return found
