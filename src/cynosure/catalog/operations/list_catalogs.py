"""The catalogs of a realm.

Who may not list them is refused, or, where lists are filtered, shown those in which it has a role.
"""

from collections.abc import Sequence

from msgspec import Struct

from cynosure.auth.access.visible import has_catalog_role
from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.require import AccessDenied
from cynosure.auth.targets import RealmTarget
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CATALOG, CatalogEntity
from cynosure.persistence.commit import State
from cynosure.persistence.index import after
from cynosure.persistence.listing import MAX_PAGE, Paging, list_page
from cynosure.persistence.objects import ObjRef

_BATCH = 500
_ALL = Paging()


class CatalogPage(Struct, frozen=True):
    """Catalogs, and how to go on."""

    catalogs: Sequence[CatalogEntity]
    next_token: str | None = None


async def list_catalogs(directory: Directory, caller: Caller, paging: Paging = _ALL) -> CatalogPage:
    """The catalogs in the order of their names, all as of one moment."""
    is_whole = await _sees_all(directory, caller)

    async def scan(state: State, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        while len(found) < limit:
            entries = await state.scan("names", start=start, limit=_BATCH)
            if not entries:
                break
            found += entries if is_whole else await _seen_of(directory, caller, state, entries)
            start = after(entries[-1][0])
        return found[:limit]

    if paging.token is None and paging.size is None:
        state = await directory.read(caller.realm)
        found: list[CatalogEntity] = []
        start = b""
        while entries := await scan(state, start, _BATCH):
            found += await _load(state, entries)
            start = after(entries[-1][0])
        return CatalogPage(found)
    page = await list_page(
        directory.committer(caller.realm),
        directory.shared.persistence.page_tokens,
        index="names",
        prefix=b"",
        size=MAX_PAGE if paging.size is None else min(paging.size, MAX_PAGE),
        token=paging.token or None,
        scan=scan,
    )
    return CatalogPage(await _load(page.state, page.entries), page.next_token)


async def _sees_all(directory: Directory, caller: Caller) -> bool:
    try:
        await directory.authorize(caller, ops.LIST_CATALOGS, RealmTarget(caller.realm))
    except AccessDenied:
        if not directory.shared.access.filter_lists:
            raise
        return False
    return True


async def _seen_of(
    directory: Directory, caller: Caller, state: State, entries: list[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes]]:
    authorizer = directory.shared.authorizer
    catalogs = await _load(state, entries)
    return [
        entry
        for entry, catalog in zip(entries, catalogs, strict=True)
        if await has_catalog_role(authorizer, caller, catalog.id)
    ]


async def _load(state: State, entries: Sequence[tuple[bytes, bytes]]) -> list[CatalogEntity]:
    return await state.load_many(CATALOG, [ObjRef.unpack(value).id for _, value in entries])
