"""The change that drops a table whose files are to go.

Must not break: what is to be purged has no heir. Whoever got its places before the last file is gone would
lose files of their own.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import merge
from cynosure.catalog.dropping import make_drop
from cynosure.catalog.managed.state import POINTER, TABLE
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purging.tombstone import Tombstone, correlation_of, putting
from cynosure.common.delegated.payload import make_task_id
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.objects import ObjRef


async def prepare_purge(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef,
    *,
    traceparent: str = "",
) -> Prepared[Tombstone]:
    """The change that drops a table whose files are to go: its result is the tombstone."""
    drop = await make_drop(catalog, caller, view, table, ref, is_purge_requested=True)
    persistence = catalog.shared.persistence
    correlation_id = correlation_of(catalog.entity.id, drop.drop_id)
    metadata_location, table_uuid, format_version = await _load_facts(view, ref)
    tombstone = Tombstone(
        entity_id=drop.entity_id,
        drop_id=drop.drop_id,
        path=(*table.namespace, table.name),
        mode=catalog.shared.delegation.mode,
        correlation_id=correlation_id,
        task_id=make_task_id(catalog.realm, correlation_id),
        created_us=persistence.clock.now_us(),
        principal=caller.principal,
        location=drop.location,
        metadata_location=metadata_location,
        table_uuid=table_uuid,
        format_version=format_version,
        traceparent=traceparent,
    )
    new, changes = putting(tombstone, persistence.ids.next())
    merge(drop.changes, changes)
    return Prepared(tombstone, drop.changes, [drop.removal.new, new], [drop.removal.change])


async def _load_facts(view: View, ref: ObjRef) -> tuple[str, str, int]:
    """Metadata file, uuid and format version, as far as they are known."""
    if ref.type == POINTER.name:
        pointer = (await view.load_many(POINTER, [ref.id]))[0]
        return pointer.metadata_location, "", 0
    state = (await view.load_many(TABLE, [ref.id]))[0]
    return state.metadata_location, state.table_uuid, state.format_version
