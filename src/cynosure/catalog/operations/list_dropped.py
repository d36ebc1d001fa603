"""What was dropped and can still be restored, the oldest first."""

from collections.abc import Sequence
from dataclasses import dataclass

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.index import decode_id_key
from cynosure.persistence.listing import list_page
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


@dataclass(frozen=True, slots=True)
class DroppedPage:
    """One page of dropped things, each with the id of its drop."""

    entries: Sequence[tuple[ObjId, DroppedEntity]]
    next_token: str | None


async def list_dropped(
    catalog: OpenCatalog, caller: Caller, *, size: int, token: str | None = None
) -> DroppedPage:
    """One page. What is past the window is left out, also before it is removed."""
    await catalog.authorize(await catalog.read(), caller, ops.LIST_DROPPED, catalog.target())
    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index="dropped",
        prefix=b"",
        size=size,
        token=token,
    )
    ids = [decode_id_key(key) for key, _ in page.entries]
    entities = await page.state.load_many(DROPPED, [ObjRef.unpack(value).id for _, value in page.entries])
    since_us = catalog.dropped_since_us()
    kept = [
        (ObjId(id_), entity)
        for id_, entity in zip(ids, entities, strict=True)
        if entity.dropped_us >= since_us
    ]
    return DroppedPage(kept, page.next_token)
