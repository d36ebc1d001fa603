"""A table that is to be purged, for whoever does that: what it is, where its files are, and access to them.

Must not break: access is to the places of this table alone, and only while it has a tombstone.
"""

from typing import NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.file_access.giving import Access, give_access, load_vended
from cynosure.catalog.file_access.modes import ANY_WAY, Delegation
from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.state import POINTER
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.purge_errors import NoSuchTombstone, PurgeConflict
from cynosure.catalog.purging.tombstone import Tombstone, find_tombstone
from cynosure.persistence.commit import View
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId
from cynosure.storage.access.ports import Vended


class LoadedTombstone(NamedTuple):
    """A table that is to be purged."""

    tombstone: Tombstone
    dropped: DroppedEntity
    table: ManagedTable
    """Its last version."""
    access: Access


async def load_tombstone(
    catalog: OpenCatalog, caller: Caller, entity_id: ObjId, *, delegation: Delegation = ANY_WAY
) -> LoadedTombstone:
    """The tombstone of the table that had this id; `NoSuchTombstone` when there is none."""
    view = await catalog.read()
    await catalog.authorize(view, caller, ops.LOAD_TOMBSTONE, catalog.target())
    tombstone, dropped = await require_tombstone(view, entity_id)
    table = await load_last(catalog, view, dropped)
    name = _identifier(tombstone)
    access = await give_access(catalog, caller, name, table.state, delegation, is_writable=True)
    return LoadedTombstone(tombstone, dropped, table, access)


async def load_tombstone_credentials(catalog: OpenCatalog, caller: Caller, entity_id: ObjId) -> Vended | None:
    """Newer credentials for its files; `None` where the store gives none."""
    view = await catalog.read()
    await catalog.authorize(view, caller, ops.LOAD_TOMBSTONE, catalog.target())
    tombstone, dropped = await require_tombstone(view, entity_id)
    table = await load_last(catalog, view, dropped)
    scope = table_scope(catalog, table.state, is_writable=True)
    return await load_vended(catalog, caller, _identifier(tombstone), scope)


async def require_tombstone(view: View, entity_id: ObjId) -> tuple[Tombstone, DroppedEntity]:
    """A tombstone, with what was dropped."""
    tombstone = await find_tombstone(view, entity_id)
    if tombstone is None:
        raise NoSuchTombstone(str(entity_id))
    dropped = await find_object(view, "dropped", encode_id_key(tombstone.drop_id), DROPPED)
    if dropped is None:
        raise NoSuchTombstone(str(entity_id))
    return tombstone, dropped


async def load_last(catalog: OpenCatalog, view: View, dropped: DroppedEntity) -> ManagedTable:
    """The last version of a dropped table. `PurgeConflict` when nobody has ever read what it says."""
    if dropped.state.type == POINTER.name:
        raise PurgeConflict(
            "Only the metadata file of this table is known, not what it says",
            fix="Restore the table, load it once, and drop it again.",
            table=".".join(dropped.path),
        )
    return await load_table_at(view, dropped.state.id, catalog.shared.tables)


def _identifier(tombstone: Tombstone) -> Identifier:
    return Identifier(tombstone.path[:-1], tombstone.path[-1])
