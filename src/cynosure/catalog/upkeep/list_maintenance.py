"""What was done to keep tables in shape: the newest tasks per table and kind, with what became of them."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.listing import choose_size
from cynosure.catalog.names import path_of
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.reports import reports_committer
from cynosure.catalog.upkeep.ends import with_ends
from cynosure.catalog.upkeep.plan_maintenance import About
from cynosure.catalog.upkeep.runs import INDEX, Upkeep, load_entries
from cynosure.persistence.commit import State
from cynosure.persistence.index import after, encode_id_key, encode_key
from cynosure.persistence.listing import MAX_PAGE, Paging, list_page


class Kept(Struct, frozen=True):
    """One kind of maintenance of one table."""

    upkeep: Upkeep
    path: tuple[str, ...]
    """What the table is called now; of one that is gone, what it was called."""
    is_gone: bool


class KeptPage(Struct, frozen=True):
    """Some of it."""

    entries: Sequence[Kept]
    next_token: str | None


async def list_maintenance(
    catalog: OpenCatalog, caller: Caller, paging: Paging, about: About | None = None
) -> KeptPage:
    """One page, in the order of the tables' ids: the oldest table first."""
    about = about or About()
    about.check()
    state = await catalog.read()
    await catalog.authorize(state, caller, ops.LIST_MAINTENANCE, catalog.target())
    found: dict[bytes, Kept] = {}

    async def scan(kept_in: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        while True:
            entries = await kept_in.scan(INDEX, prefix=b"", start=start, limit=MAX_PAGE)
            for (key, _), upkeep in zip(
                entries, await load_entries(kept_in, [value for _, value in entries]), strict=True
            ):
                kept = await _name(state, upkeep)
                if about.includes(kept.path) and upkeep.runs:
                    found[key] = kept
            if len(entries) < MAX_PAGE or len(found) >= limit:
                return [(key, b"") for key in sorted(found)][:limit]
            start = after(entries[-1][0])

    page = await list_page(
        reports_committer(catalog),
        catalog.shared.persistence.page_tokens,
        index=INDEX,
        prefix=encode_key("runs", about.name or "", *about.namespace),
        size=choose_size(catalog, paging),
        token=paging.token or None,
        scan=scan,
    )
    shown = [found[key] for key, _ in page.entries]
    keys = [(each.upkeep.table_id, each.upkeep.task_type) for each in shown]
    known = await with_ends(catalog, {key: each.upkeep for key, each in zip(keys, shown, strict=True)})
    return KeptPage(
        [replace(each, upkeep=known[key]) for key, each in zip(keys, shown, strict=True)], page.next_token
    )


async def _name(state: State, upkeep: Upkeep) -> Kept:
    key = await state.find("ids", encode_id_key(upkeep.table_id))
    return Kept(upkeep, upkeep.path if key is None else path_of(key), is_gone=key is None)
