"""Remove what was dropped longer ago than the undrop window. Its objects are garbage from then on.

Done by the server itself: no right is asked for.

Must not break: what has a tombstone is not forgotten, however old it is: its purge has not ended. Reports
of a table go after its entry has gone, so a table that is restored keeps them; what was attached to it goes
with its entry, so that nothing names what is gone.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.claims import forgetting
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import MAPPINGS, remove_mappings_of_target
from cynosure.catalog.purging.tombstone import find_tombstone_of
from cynosure.catalog.reports import forget_reports
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import after, decode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_BATCH = 500


async def forget_dropped(catalog: OpenCatalog, caller: Caller) -> int:
    """Remove all that is past the window; how many."""
    forgotten, start = 0, b""
    while True:
        batch, start = await _forget_batch(catalog, caller, start)
        forgotten += len(batch)
        for entity in batch:
            if entity.kind == "table":
                await forget_reports(catalog, caller, entity.entity_id)
        if not start:
            return forgotten


async def _forget_batch(
    catalog: OpenCatalog, caller: Caller, start: bytes
) -> tuple[list[DroppedEntity], bytes]:
    """Remove some; they, and where to go on, if there may be more."""

    async def prepare(view: View) -> Prepared[tuple[list[DroppedEntity], bytes]]:
        # Keys are in the order of time, so the oldest come first.
        entries = await view.scan("dropped", start=start, limit=_BATCH)
        entities = await view.load_many(DROPPED, [ObjRef.unpack(value).id for _, value in entries])
        since_us = catalog.dropped_since_us()
        pairs = zip(entries, entities, strict=True)
        old = {key: entity for (key, _), entity in pairs if entity.dropped_us < since_us}
        doomed: list[DroppedEntity] = []
        changes: dict[str, dict[bytes, bytes | None]] = {"dropped": {}, "locations": {}, MAPPINGS: {}}
        for key, entity in old.items():
            drop_id = ObjId(decode_id_key(key))
            if await find_tombstone_of(view, entity.entity_id, drop_id) is not None:
                continue
            doomed.append(entity)
            changes["dropped"][key] = None
            changes["locations"] |= await forgetting(view, drop_id, entity)
            changes[MAPPINGS] |= await remove_mappings_of_target(view, entity.entity_id)
        is_more = len(old) == _BATCH
        return Prepared((doomed, after(entries[-1][0]) if is_more else b""), changes)

    return await commit_part(catalog.committer, caller, "forget-dropped", prepare)
