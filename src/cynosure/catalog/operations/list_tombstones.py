"""What is to be purged, or is being purged, by the ids of the tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.tombstone import IDS, PURGES, TOMBSTONE, Tombstone
from cynosure.persistence.commit import State
from cynosure.persistence.listing import list_page
from cynosure.persistence.objects import ObjRef


@dataclass(frozen=True, slots=True)
class TombstonePage:
    """One page of tombstones."""

    entries: Sequence[Tombstone]
    next_token: str | None


async def list_tombstones(
    catalog: OpenCatalog, caller: Caller, *, size: int, token: str | None = None
) -> TombstonePage:
    """One page."""
    await catalog.authorize(await catalog.read(), caller, ops.LIST_TOMBSTONES, catalog.target())
    page = await list_page(
        catalog.committer,
        catalog.shared.persistence.page_tokens,
        index=PURGES,
        prefix=b"",
        size=size,
        token=token,
        scan=_scan,
    )
    ids = [ObjRef.unpack(value).id for _, value in page.entries]
    return TombstonePage(await page.state.load_many(TOMBSTONE, ids), page.next_token)


async def _scan(state: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
    # Behind the entries by path, and the traces of those that were lifted.
    return await state.scan(PURGES, start=max(start, IDS), limit=limit)
