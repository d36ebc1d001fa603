"""A dropped table that can be restored, for whoever looks after files that others left where it was.

Must not break: access is to read, to the places of this table alone, and only while it can be restored.
"""

from typing import NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.errors import NoSuchDropped
from cynosure.catalog.file_access.giving import Access, give_access
from cynosure.catalog.file_access.modes import ANY_WAY, Delegation
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.load_tombstone import load_last
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId


class LoadedDropped(NamedTuple):
    """A dropped table."""

    dropped: DroppedEntity
    table: ManagedTable
    """Its last version."""
    access: Access


async def load_dropped(
    catalog: OpenCatalog, caller: Caller, drop_id: ObjId, *, delegation: Delegation = ANY_WAY
) -> LoadedDropped:
    """The table of this drop; `NoSuchDropped` when there is none that can be restored."""
    view = await catalog.read()
    await catalog.authorize(view, caller, ops.LOAD_TOMBSTONE, catalog.target())
    dropped = await find_object(view, "dropped", encode_id_key(drop_id), DROPPED)
    if dropped is None or dropped.kind != "table" or dropped.dropped_us < catalog.dropped_since_us():
        raise NoSuchDropped(str(drop_id))
    table = await load_last(catalog, view, dropped)
    name = Identifier(dropped.path[:-1], dropped.path[-1])
    access = await give_access(catalog, caller, name, table.state, delegation, is_writable=False)
    return LoadedDropped(dropped, table, access)
