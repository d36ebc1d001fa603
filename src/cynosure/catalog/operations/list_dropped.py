"""What was dropped and can still be restored, or is being purged, the oldest first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.tombstone import Tombstone, find_tombstone_of
from cynosure.persistence.index import decode_id_key
from cynosure.persistence.listing import list_page
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


@dataclass(frozen=True, slots=True)
class DroppedPage:
    """One page of dropped things, each with the id of its drop."""

    entries: Sequence[tuple[ObjId, DroppedEntity]]
    next_token: str | None
    tombstones: Mapping[ObjId, Tombstone]
    """Of those whose files are to go, by the id of the drop."""


async def list_dropped(
    catalog: OpenCatalog, caller: Caller, *, size: int, token: str | None = None
) -> DroppedPage:
    """One page. What is past the window is left out, also before it is removed, unless its purge goes on."""
    await catalog.authorize(await catalog.read(), caller, ops.LIST_DROPPED, catalog.target())
    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index="dropped",
        prefix=b"",
        size=size,
        token=token,
    )
    ids = [ObjId(decode_id_key(key)) for key, _ in page.entries]
    entities = await page.state.load_many(DROPPED, [ObjRef.unpack(value).id for _, value in page.entries])
    dropped = list(zip(ids, entities, strict=True))
    tombstones = {
        drop_id: tombstone
        for drop_id, entity in dropped
        if entity.is_purge_requested
        and (tombstone := await find_tombstone_of(page.state, entity.entity_id, drop_id)) is not None
    }
    since_us = catalog.dropped_since_us()
    kept = [
        (drop_id, entity)
        for drop_id, entity in dropped
        if entity.dropped_us >= since_us or drop_id in tombstones
    ]
    return DroppedPage(kept, page.next_token, tombstones)
