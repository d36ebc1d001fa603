"""Drop an empty catalog, or open one again that was only half dropped.

What was dropped inside the catalog before cannot be restored afterwards. Order of the steps, and what a crash
between them leaves: `catalog.closing`.
"""

from collections.abc import Awaitable, Callable, Mapping

from cynosure.auth.caller import Caller
from cynosure.catalog.closing import close, find_mark, reopen
from cynosure.catalog.directory import Directory
from cynosure.catalog.listed import Listed, load_listed, location_keys
from cynosure.catalog.operations.update_catalog import touch_catalog
from cynosure.common.errors import Conflict
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_key


async def drop_catalog(directory: Directory, caller: Caller, name: str) -> None:
    """Drop it. `NoSuchCatalog` when there is none, `CatalogNotEmpty` when it holds namespaces."""
    seen = await load_listed((await directory.committer(caller.realm).read()).state, name)
    await close(directory.shared, caller, seen.entity.id, name)
    # Order: unlisted only after nothing can be written to it any more.
    await directory.commit(caller, "drop-catalog", _unlist(seen))


async def reopen_catalog(directory: Directory, caller: Caller, name: str) -> None:
    """Let a catalog that a drop closed and did not unlist be written to again."""
    catalogs = directory.committer(caller.realm)
    entity = (await load_listed((await catalogs.read()).state, name)).entity
    # Order: look at the mark, stop the drop that put it, and only then remove it.
    mark = await find_mark(directory.shared, caller, entity.id)
    if mark is None:
        return
    await touch_catalog(directory, caller, name, entity.id)
    await reopen(directory.shared, caller, entity.id, mark)


def _unlist(seen: Listed) -> Callable[[View], Awaitable[Prepared[None]]]:
    entity = seen.entity
    key = encode_key(entity.name)

    async def prepare(view: View) -> Prepared[None]:
        current = await load_listed(view, entity.name)
        if current.ref != seen.ref:
            raise Conflict("The catalog was changed while it was being dropped", fix="Drop it again.")
        change = Change(
            kind="catalog-dropped",
            index="names",
            key=key,
            before=seen.ref.pack(),
            detail=raw_detail({"id": entity.id, "name": entity.name}),
        )
        changes: Mapping[str, Mapping[bytes, None]] = {
            "names": {key: None},
            "ids": {encode_key(entity.id): None},
            "locations": dict.fromkeys(location_keys(entity)),
        }
        return Prepared(None, changes, feed=[change])

    return prepare
