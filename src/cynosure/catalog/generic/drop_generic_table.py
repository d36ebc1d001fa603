"""Drop a generic table: its name is free at once, its files stay, and it can be restored for a while."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.claims import may_read, retaining
from cynosure.catalog.dropped import Removal
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.names import Identifier, generic_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import load_generic, require_generic_ref, require_open
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef


async def drop_generic_table(catalog: OpenCatalog, caller: Caller, table: Identifier) -> None:
    """Drop it; `NoSuchGenericTable` when there is none."""

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_generic_ref(view, table)
        return await prepare_generic_drop(catalog, caller, view, table, ref)

    await catalog.commit(caller, ops.DROP_GENERIC_TABLE, (catalog.generic_table(table),), prepare, NOTHING)


async def prepare_generic_drop(
    catalog: OpenCatalog, caller: Caller, view: View, table: Identifier, ref: ObjRef
) -> Prepared[None]:
    """The change that drops a generic table."""
    entity = await load_generic(view, ref)
    persistence = catalog.shared.persistence
    key, drop_id = generic_key(table), persistence.ids.next()
    removal = Removal(
        "generic-table",
        drop_id=drop_id,
        entity_id=entity.id,
        path=(*table.namespace, table.name),
        name_key=key,
        state=ref,
        caller=caller,
        now_us=persistence.clock.now_us(),
        location=entity.location,
        is_reader=await may_read(
            catalog, view, caller, ops.LOAD_GENERIC_TABLE_TO_READ, catalog.generic_table(table)
        ),
    )
    changes: dict[str, dict[bytes, bytes | None]] = {
        "names": {key: None},
        "ids": {encode_id_key(entity.id): None},
        "dropped": {**removal.entry},
    }
    if entity.location:
        changes["locations"] = retaining(Held(entity.id, entity.location), drop_id)
    return Prepared(None, changes, [removal.new], [removal.change])
