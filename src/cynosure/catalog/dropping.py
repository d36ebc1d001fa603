"""The change that drops a table.

What is dropped with its files: `purging/entombing.py`.
"""

from typing import NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.changes import Changes
from cynosure.catalog.claims import may_read, releasing, retaining
from cynosure.catalog.dropped import Removal
from cynosure.catalog.managed.identity import load_held
from cynosure.catalog.names import Identifier, table_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


class Dropping(NamedTuple):
    """What a drop consists of."""

    drop_id: ObjId
    entity_id: ObjId
    location: str
    removal: Removal
    changes: Changes


async def prepare_drop(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef,
    *,
    is_given_up: bool = False,
) -> Prepared[None]:
    """The change that drops a table and leaves its files alone.

    It keeps what it holds for as long as it can be restored, unless it is `is_given_up`: left to others.
    """
    # What is restricted comes back only as the table it was: another one would be without its restrictions.
    target = catalog.table(table)
    is_heir = not await catalog.restrictions.has_own(view, target) and await may_read(
        catalog, view, caller, ops.LOAD_TABLE_TO_READ, target
    )
    drop = await make_drop(catalog, caller, view, table, ref, is_heir=is_heir, is_given_up=is_given_up)
    return Prepared(None, drop.changes, [drop.removal.new], [drop.removal.change])


async def make_drop(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    table: Identifier,
    ref: ObjRef,
    *,
    is_heir: bool = False,
    is_given_up: bool = False,
    is_purge_requested: bool = False,
) -> Dropping:
    """What drops a table, not yet put together."""
    held = await load_held(view, ref)
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
    changes: Changes = {
        "names": {key: None},
        "ids": {encode_id_key(held.id): None},
        "locations": releasing(held) if is_given_up else retaining(held, drop_id),
        "dropped": {**removal.entry},
    }
    return Dropping(drop_id, held.id, held.location, removal, changes)
