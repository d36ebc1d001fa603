"""Drop a table: its name is free at once, its files stay, and it can be restored for a while."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.dropped import Removal
from cynosure.catalog.locations import location_key
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_open, require_table_ref
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.storage.location import Location


async def drop_table(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, is_purge_requested: bool = False
) -> None:
    """Drop a table. A request to purge is noted with it; no file is removed here."""

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_table_ref(view, table)
        return await prepare_drop(catalog, caller, view, table, ref, is_purge_requested=is_purge_requested)

    # To purge is to delete data.
    operation = ops.PURGE_TABLE if is_purge_requested else ops.DROP_TABLE
    await catalog.commit(caller, operation, (catalog.table(table),), prepare)


async def prepare_drop(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef,
    *,
    is_purge_requested: bool = False,
) -> Prepared[None]:
    """The change that drops a table."""
    entity_id, location = await load_identity(view, ref)
    persistence = catalog.shared.persistence
    key = table_key(table)
    removal = Removal(
        "table",
        drop_id=persistence.ids.next(),
        entity_id=entity_id,
        path=(*table.namespace, table.name),
        name_key=key,
        state=ref,
        caller=caller,
        now_us=persistence.clock.now_us(),
        location=location,
        is_purge_requested=is_purge_requested,
    )
    changes: dict[str, dict[bytes, bytes | None]] = {
        "names": {key: None},
        "ids": {encode_id_key(entity_id): None},
        "locations": {location_key(Location.parse(location)): None},
        "dropped": {**removal.entry},
    }
    return Prepared(None, changes, [removal.new], [removal.change])
