"""The change that drops something: its name is free, and what it was is kept to be restored.

What is dropped with its files: `purging/entombing.py`.
"""

from typing import NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.changes import Changes
from cynosure.catalog.claims import may_read, releasing, retaining
from cynosure.catalog.dropped import Kind, Removal
from cynosure.catalog.managed.identity import Held, load_held
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

    def prepared(self) -> Prepared[None]:
        """All of it, as one change."""
        return Prepared(None, self.changes, [self.removal.new], [self.removal.change])


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
    return drop.prepared()


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
    held, path = await load_held(view, ref), (*table.namespace, table.name)
    return make_drop_of(
        "table",
        catalog,
        caller,
        path,
        table_key(table),
        ref,
        held,
        is_heir=is_heir,
        is_given_up=is_given_up,
        is_purge_requested=is_purge_requested,
    )


def make_drop_of(
    kind: Kind,
    catalog: OpenCatalog,
    caller: Caller,
    path: tuple[str, ...],
    key: bytes,
    ref: ObjRef,
    held: Held,
    *,
    is_heir: bool = False,
    is_given_up: bool = False,
    is_purge_requested: bool = False,
) -> Dropping:
    """What drops anything that has a name. What has no place of its own holds none."""
    persistence = catalog.shared.persistence
    drop_id = persistence.ids.next()
    removal = Removal(
        kind,
        drop_id=drop_id,
        entity_id=held.id,
        path=path,
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
        "dropped": {**removal.entry},
    }
    if held.location:
        changes["locations"] = releasing(held) if is_given_up else retaining(held, drop_id)
    return Dropping(drop_id, held.id, held.location, removal, changes)
