"""Drop a table: its name is free at once, its files stay, and it can be restored for a while."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.claims import may_read, releasing, retaining
from cynosure.catalog.dropped import Removal
from cynosure.catalog.managed.identity import load_held
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_open, require_table_ref
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef


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
    await catalog.commit(caller, operation, (catalog.table(table),), prepare, NOTHING)


async def prepare_drop(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef,
    *,
    is_purge_requested: bool = False,
    is_given_up: bool = False,
) -> Prepared[None]:
    """The change that drops a table.

    It keeps what it holds for as long as it can be restored, unless it is `is_given_up`: left to others.
    """
    held, target = await load_held(view, ref), catalog.table(table)
    # What is restricted comes back only as the table it was: another one would be without its restrictions.
    is_heir = not await catalog.restrictions.has_own(view, target) and await may_read(
        catalog, view, caller, ops.LOAD_TABLE_TO_READ, target
    )
    persistence = catalog.shared.persistence
    key, drop_id = table_key(table), persistence.ids.next()
    removal = Removal(
        "table",
        drop_id=drop_id,
        entity_id=held.id,
        path=(*table.namespace, table.name),
        name_key=key,
        state=ref,
        caller=caller,
        now_us=persistence.clock.now_us(),
        location=held.location,
        claims=held.claims,
        is_purge_requested=is_purge_requested,
        is_reader=is_heir,
    )
    changes: dict[str, dict[bytes, bytes | None]] = {
        "names": {key: None},
        "ids": {encode_id_key(held.id): None},
        "locations": releasing(held) if is_given_up else retaining(held, drop_id),
        "dropped": {**removal.entry},
    }
    return Prepared(None, changes, [removal.new], [removal.change])
