"""Rename a view, also into another namespace. It keeps its id, its location and its history."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import Identifier, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_free_target, require_namespace, require_open, require_view_ref
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key


async def rename_view(
    catalog: OpenCatalog, caller: Caller, source: Identifier, destination: Identifier
) -> None:
    """Give a view another name; a table or view that has it already is in the way."""

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_view_ref(view, source)
        await require_namespace(view, destination.namespace)
        await require_free_target(view, source, destination)
        (state,) = await view.load_many(VIEW, [ref.id])
        old, new, value = view_key(source), view_key(destination), ref.pack()
        changes: dict[str, dict[bytes, bytes | None]] = {
            "names": {old: None, new: value},
            "ids": {encode_id_key(state.id): new},
        }
        detail = raw_detail({"id": state.id, "path": (*destination.namespace, destination.name)})
        feed = Change(kind="view-renamed", index="names", key=old, before=value, after=value, detail=detail)
        return Prepared(None, changes, feed=[feed])

    targets = (catalog.view(source), catalog.namespace(destination.namespace))
    await catalog.commit(caller, ops.RENAME_VIEW, targets, prepare, NOTHING)
