"""Drop a table: its name is free at once.

Its files stay, and it can be restored for a while, unless they are to go as well (`catalog.purging`).
"""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.dropping import prepare_drop
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.purge import purge_table
from cynosure.catalog.resolve import require_open, require_table_ref
from cynosure.persistence.commit import Prepared, View


async def drop_table(
    catalog: OpenCatalog, caller: Caller, table: Identifier, *, is_purge_requested: bool = False
) -> None:
    """Drop a table, with its files if that is requested."""
    if is_purge_requested:
        await purge_table(catalog, caller, table)
        return

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_table_ref(view, table)
        return await prepare_drop(catalog, caller, view, table, ref)

    await catalog.commit(caller, ops.DROP_TABLE, (catalog.table(table),), prepare, NOTHING)
