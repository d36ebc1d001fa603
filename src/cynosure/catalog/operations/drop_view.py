"""Drop a view: its name is free at once, and it can be restored for a while."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.claims import may_read
from cynosure.catalog.dropping import make_drop_of
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import Identifier, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_open, require_view_ref
from cynosure.persistence.commit import Prepared, View


async def drop_view(catalog: OpenCatalog, caller: Caller, name: Identifier) -> None:
    """Drop it; `NoSuchView` when there is none."""

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_view_ref(view, name)
        (state,) = await view.load_many(VIEW, [ref.id])
        path, held = (*name.namespace, name.name), Held(state.id, state.location, state.claims)
        is_heir = await may_read(catalog, view, caller, ops.LOAD_VIEW, catalog.view(name))
        key = view_key(name)
        return make_drop_of("view", catalog, caller, path, key, ref, held, is_heir=is_heir).prepared()

    await catalog.commit(caller, ops.DROP_VIEW, (catalog.view(name),), prepare, NOTHING)
