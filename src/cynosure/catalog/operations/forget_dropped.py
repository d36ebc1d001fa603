"""Remove what was dropped longer ago than the undrop window. Its objects are garbage from then on.

Done by the server itself: no right is asked for.

Must not break: reports of a table go after its entry has gone, so a table that is restored keeps them; what
was attached to it goes with its entry, so that nothing names what is gone.
"""

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.claims import forgetting
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.mappings import MAPPINGS, remove_mappings_of_target
from cynosure.catalog.reports import reports_committer, reports_prefix
from cynosure.persistence.commit import AlreadyCommitted, Prepared, Request, View
from cynosure.persistence.index import decode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_BATCH = 500


async def forget_dropped(catalog: OpenCatalog, caller: Caller) -> int:
    """Remove all that is past the window; how many."""
    forgotten = 0
    while batch := await _forget_batch(catalog, caller):
        forgotten += len(batch)
        for entity in batch:
            if entity.kind == "table":
                await _forget_reports(catalog, caller, entity.entity_id)
    return forgotten


async def _forget_batch(catalog: OpenCatalog, caller: Caller) -> list[DroppedEntity]:
    async def prepare(view: View) -> Prepared[list[DroppedEntity]]:
        # Keys are in the order of time, so the oldest come first.
        entries = await view.scan("dropped", limit=_BATCH)
        entities = await view.load_many(DROPPED, [ObjRef.unpack(value).id for _, value in entries])
        since_us = catalog.dropped_since_us()
        pairs = zip(entries, entities, strict=True)
        doomed = {key: entity for (key, _), entity in pairs if entity.dropped_us < since_us}
        mappings: dict[bytes, bytes | None] = {}
        places: dict[bytes, bytes | None] = {}
        for key, entity in doomed.items():
            mappings |= await remove_mappings_of_target(view, entity.entity_id)
            places |= await forgetting(view, ObjId(decode_id_key(key)), entity)
        changes: dict[str, dict[bytes, bytes | None]] = {
            "dropped": dict.fromkeys(doomed),
            "locations": places,
            MAPPINGS: mappings,
        }
        return Prepared(list(doomed.values()), changes)

    return await commit_part(catalog.committer, caller, "forget-dropped", prepare)


async def _forget_reports(catalog: OpenCatalog, caller: Caller, table_id: ObjId) -> None:
    async def prepare(view: View) -> Prepared[int]:
        entries = await view.scan("reports", prefix=reports_prefix(table_id), limit=_BATCH)
        return Prepared(len(entries), {"reports": dict.fromkeys(key for key, _ in entries)})

    request = Request(prepare, caller.principal, operation="forget-reports", request_id=caller.request_id)
    committer = reports_committer(catalog)
    while True:
        outcome = await committer.commit(request)
        if isinstance(outcome, AlreadyCommitted) or outcome.result < _BATCH:
            return
