"""Remove what was dropped longer ago than the undrop window. Its objects are garbage from then on."""

from cynosure.catalog.caller import Caller
from cynosure.catalog.dropped import DROPPED
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef

_BATCH = 500


async def forget_dropped(catalog: OpenCatalog, caller: Caller) -> int:
    """Remove all that is past the window; how many."""
    forgotten = 0
    while count := await _forget_batch(catalog, caller):
        forgotten += count
    return forgotten


async def _forget_batch(catalog: OpenCatalog, caller: Caller) -> int:
    async def prepare(view: View) -> Prepared[int]:
        # Keys are in the order of time, so the oldest come first.
        entries = await view.scan("dropped", limit=_BATCH)
        entities = await view.load_many(DROPPED, [ObjRef.unpack(value).id for _, value in entries])
        since_us = catalog.dropped_since_us()
        doomed: dict[bytes, bytes | None] = {
            key: None
            for (key, _), entity in zip(entries, entities, strict=True)
            if entity.dropped_us < since_us
        }
        return Prepared(len(doomed), {"dropped": doomed})

    return (await catalog.commit(caller, "forget-dropped", prepare)).result
