"""Tables that nobody has seen yet, and on which something is granted: an id for a name.

A catalog with `cynosure.federation.grants=by-name` grants on names: also where the remote has no such table,
and on whatever it will have there. Such a facade has an entry of its own kind in `names`, which nothing finds
but grants (`catalog.names.facade_key`). When the table is seen it takes the id; when it goes it leaves it.

Must not break: a facade is no table. It is not listed, not loaded, and gives nobody anything.
"""

from typing import NamedTuple

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import Changes
from cynosure.catalog.entities import TABLE_FACADE, TableFacade
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.names import Identifier, facade_key, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_table_ref, require_open
from cynosure.federation.mirror.changing import Collected, commit_mirror
from cynosure.federation.mirror.namespaces import make_levels
from cynosure.federation.mirror.seen import find_seen, noting
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId
from cynosure.persistence.store import NewObject


class Facade(NamedTuple):
    """A facade that is there, and what takes it away."""

    id: ObjId
    changes: Changes


async def facade_table(catalog: OpenCatalog, caller: Caller, table: Identifier) -> ObjId:
    """The id that grants on this name are kept under, whatever the remote has there or will have."""
    key = table_key(table)

    async def prepare(view: View) -> Prepared[ObjId]:
        await require_open(view)
        ref = await find_table_ref(view, table)
        if ref is None:
            known = await find_facade(view, table)
            return Prepared(known.id) if known is not None else await _prepare(catalog, view, table)
        entity_id, _ = await load_identity(view, ref)
        seen = await find_seen(view, key)
        if seen is None or seen.is_by_name:
            return Prepared(entity_id)
        return Prepared(entity_id, noting(key, structs.replace(seen, is_by_name=True), seen))

    return await commit_mirror(catalog, caller, "mirror-facade", prepare)


async def find_facade(view: View, table: Identifier) -> Facade | None:
    """The facade of this name, if there is one."""
    key = facade_key(table)
    value = await view.find("names", key)
    if value is None:
        return None
    (facade,) = await view.load_many(TABLE_FACADE, [ObjRef.unpack(value).id])
    return Facade(facade.id, {"names": {key: None}})


def leaving_facade(catalog: OpenCatalog, table: Identifier, entity_id: ObjId) -> Collected:
    """What leaves the id of a table to its name."""
    persistence = catalog.shared.persistence
    facade = TableFacade(id=entity_id, created_us=persistence.clock.now_us())
    state_id, key = persistence.ids.next(), facade_key(table)
    left = Collected()
    left.changes = {
        "names": {key: ObjRef(state_id, TABLE_FACADE.name).pack()},
        "ids": {encode_id_key(entity_id): key},
    }
    left.objects.append(NewObject(TABLE_FACADE, state_id, facade))
    return left


async def _prepare(catalog: OpenCatalog, view: View, table: Identifier) -> Prepared[ObjId]:
    entity_id = catalog.shared.persistence.ids.next()
    made = await make_levels(catalog, view, table.namespace)
    made.add(leaving_facade(catalog, table, entity_id))
    return made.prepared(entity_id)
