"""Rename a table, also into another namespace. It keeps its id, its location and its history."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_free_target, require_namespace, require_open, require_table_ref
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key


async def rename_table(
    catalog: OpenCatalog, caller: Caller, source: Identifier, destination: Identifier
) -> None:
    """Give a table another name."""

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_table_ref(view, source)
        await require_namespace(view, destination.namespace)
        await require_free_target(view, source, destination)
        entity_id, _ = await load_identity(view, ref)
        old, new, value = table_key(source), table_key(destination), ref.pack()
        changes: dict[str, dict[bytes, bytes | None]] = {
            "names": {old: None, new: value},
            "ids": {encode_id_key(entity_id): new},
        }
        detail = raw_detail({"id": entity_id, "path": (*destination.namespace, destination.name)})
        feed = Change(kind="table-renamed", index="names", key=old, before=value, after=value, detail=detail)
        return Prepared(None, changes, feed=[feed])

    targets = (catalog.table(source), catalog.namespace(destination.namespace))
    await catalog.commit(caller, ops.RENAME_TABLE, targets, prepare, NOTHING)
