"""The catalog that tables are moved into: found, and asked for all that can be asked before anything is done.

Must not break: what it could not read or have is found out here and in `fitting.py`, before a table is set
aside at the remote; behind the cession there is no way back.
"""

from typing import Final

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.catalog.adopting import list_rooms
from cynosure.catalog.directory import Directory
from cynosure.catalog.listed import outermost
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.operations.update_catalog import with_locations
from cynosure.catalog.resolve import require_open
from cynosure.common.errors import BadInput, Conflict
from cynosure.federation.migration.steps import Into, authorize
from cynosure.persistence.commit import View
from cynosure.persistence.index import decode_key, encode_key
from cynosure.persistence.spi import CatalogId
from cynosure.storage.location import Location

_ANOTHER: Final = "Name another catalog of this realm, of type INTERNAL, with storage of the same kind."


async def open_into(
    directory: Directory, source: OpenCatalog, caller: Caller, name: str, *, leaves_policies: bool = False
) -> Into:
    """The catalog of this name, to who may move tables into it; `BadInput` when it cannot get them."""
    target = await directory.open_for(caller, name)
    state = await authorize(target, caller)
    if target.entity.id == source.entity.id:
        raise _refuse("A catalog cannot be moved into itself", source, target)
    if target.entity.kind != "INTERNAL" or target.is_facade:
        raise _refuse("Tables are moved only into a catalog that owns its tables", source, target)
    if type(target.entity.storage) is not type(source.entity.storage):
        raise _refuse("The storages of the two catalogs are of different kinds", source, target)
    await require_open(state)
    owner = (caller.realm, target.entity.id)
    wider = with_locations(target.entity, outermost(source.entity))
    try:
        storage = directory.storages.seal(wider.storage, None, owner)
        opened = directory.storages.get(storage, owner)
    except BadInput as error:
        message = f"The storage of the other catalog cannot have these locations: {error.message}"
        raise _refuse(message, source, target) from error
    reader = OpenCatalog(caller.realm, structs.replace(wider, storage=storage), directory.shared, opened)
    return Into(directory, target, reader, leaves_policies, await list_coming(state, source))


async def list_coming(state: View, source: OpenCatalog) -> dict[CatalogId, tuple[Location, ...]]:
    """The places that the other catalog gets by migrations from others than this one."""
    rooms = await list_rooms(state)
    others = {giver: texts for giver, texts in rooms.items() if giver != source.entity.id}
    return {giver: tuple(map(Location.parse, texts)) for giver, texts in others.items()}


async def open_known(
    directory: Directory, source: OpenCatalog, caller: Caller, catalog_id: str, *, leaves_policies: bool
) -> Into:
    """The catalog of this id, which a migration under way is into."""
    key = await (await directory.read(caller.realm)).find("ids", encode_key(catalog_id))
    if key is None:
        raise Conflict(
            "The catalog that gets the tables is gone",
            fix="Give the migration up with --cancel.",
            catalog=source.entity.name,
        )
    (name,) = decode_key(key)
    return await open_into(directory, source, caller, name, leaves_policies=leaves_policies)


def _refuse(message: str, source: OpenCatalog, target: OpenCatalog) -> BadInput:
    return BadInput(message, field="into", fix=_ANOTHER, catalog=source.entity.name, into=target.entity.name)
