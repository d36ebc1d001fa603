"""Drop a generic table: its name is free at once, its files stay, and it can be restored for a while."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.claims import may_read
from cynosure.catalog.dropping import make_drop_of
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.names import Identifier, generic_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import load_generic, require_generic_ref, require_open
from cynosure.persistence.commit import Prepared, View
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
    entity, target = await load_generic(view, ref), catalog.generic_table(table)
    path, held = (*table.namespace, table.name), Held(entity.id, entity.location)
    is_heir = await may_read(catalog, view, caller, ops.LOAD_GENERIC_TABLE_TO_READ, target)
    key = generic_key(table)
    return make_drop_of("generic-table", catalog, caller, path, key, ref, held, is_heir=is_heir).prepared()
