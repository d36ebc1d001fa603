"""Drop a view: its name is free at once, and it can be restored for a while."""

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import NOTHING
from cynosure.catalog.claims import may_read, retaining
from cynosure.catalog.dropped import Removal
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import Identifier, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_open, require_view_ref
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key


async def drop_view(catalog: OpenCatalog, caller: Caller, name: Identifier) -> None:
    """Drop it; `NoSuchView` when there is none."""
    persistence = catalog.shared.persistence
    key = view_key(name)

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        ref = await require_view_ref(view, name)
        (state,) = await view.load_many(VIEW, [ref.id])
        drop_id = persistence.ids.next()
        removal = Removal(
            "view",
            drop_id=drop_id,
            entity_id=state.id,
            path=(*name.namespace, name.name),
            name_key=key,
            state=ref,
            caller=caller,
            now_us=persistence.clock.now_us(),
            location=state.location,
            claims=state.claims,
            is_reader=await may_read(catalog, view, caller, ops.LOAD_VIEW, catalog.view(name)),
        )
        changes: dict[str, dict[bytes, bytes | None]] = {
            "names": {key: None},
            "ids": {encode_id_key(state.id): None},
            "locations": retaining(Held(state.id, state.location, state.claims), drop_id),
            "dropped": {**removal.entry},
        }
        return Prepared(None, changes, [removal.new], [removal.change])

    await catalog.commit(caller, ops.DROP_VIEW, (catalog.view(name),), prepare, NOTHING)
