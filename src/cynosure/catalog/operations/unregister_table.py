"""Unregister a table: give it up, and answer with its last metadata, so that others can take its files."""

from cynosure.auth.caller import Caller
from cynosure.auth.committing import end_rehearsal, find_recalled, refusing
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.claims import may_read
from cynosure.catalog.dropping import prepare_drop
from cynosure.catalog.files.importing import import_pointer
from cynosure.catalog.managed.answer import TableAnswer
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.recalling import RecalledTable
from cynosure.catalog.resolve import require_open, require_table_ref
from cynosure.persistence.commit import Prepared, View


async def unregister_table(catalog: OpenCatalog, caller: Caller, table: Identifier) -> TableAnswer:
    """Drop a table; its last version."""
    target, recall = catalog.table(table), RecalledTable(catalog, caller, ops.UNREGISTER_TABLE, table)
    check = catalog.checking(caller, ops.UNREGISTER_TABLE, target)
    recalled = await find_recalled(catalog.committer, caller, check=check, recall=recall)
    if recalled is not None:
        return recalled.result.answer()
    async with refusing(catalog.committer, caller, ops.UNREGISTER_TABLE.name):
        state = await catalog.read()
        await check(state)
        end_rehearsal(caller)
        if (await require_table_ref(state, table)).type == POINTER.name:
            await import_pointer(catalog, caller, table)

    async def prepare(view: View) -> Prepared[ManagedTable]:
        await require_open(view)
        ref = await require_table_ref(view, table)
        last = await load_table_at(view, ref.id, catalog.shared.tables)
        is_open = not await catalog.restrictions.has_any(view, target)
        is_given_up = is_open and await may_read(catalog, view, caller, ops.LOAD_TABLE_TO_READ, target)
        drop = await prepare_drop(catalog, caller, view, table, ref, is_given_up=is_given_up)
        return Prepared(last, drop.changes, drop.objects, drop.feed)

    committed = await catalog.commit(caller, ops.UNREGISTER_TABLE, (target,), prepare, recall)
    return committed.result.answer()
