"""The places of something new, in the commit that takes what had its name away.

Must not break: only what goes in the same commit gives its places up. All others' stay theirs.
"""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import Claimed, Places, changer_of, claim, creator_of
from cynosure.catalog.locations import location_key
from cynosure.catalog.managed.identity import Held, load_held
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import Identifier, table_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.federation.errors import NotShown
from cynosure.persistence.commit import View
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

OUTSIDE: Final = "its files are outside what this catalog may use, or another's"


def require_part(catalog: OpenCatalog, name: Identifier, places: Places) -> None:
    """Refuse something that says it is everywhere: whoever may read it could read all others' files."""
    if any(catalog.base.is_within(each) for each in (places.location, *places.others)):
        raise NotShown(str(name), problem=OUTSIDE)


async def find_held(view: View, name: Identifier) -> Held | None:
    """What the table or view of this name holds; `None` when there is neither."""
    value = await view.find("names", table_key(name))
    if value is not None:
        return await load_held(view, ObjRef.unpack(value))
    value = await view.find("names", view_key(name))
    if value is None:
        return None
    (state,) = await view.load_many(VIEW, [ObjRef.unpack(value).id])
    return Held(state.id, state.location, state.claims)


async def take_places(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    name: Identifier,
    entity_id: ObjId,
    places: Places,
    replaced: Held | None,
) -> Claimed:
    """Give these places to `entity_id`. `LocationRefused` when one is another's than that of `replaced`.

    What the caller reserved for this very name gives way: it cannot be created any more.
    """
    if replaced is None:
        return await claim(view, creator_of(catalog, caller, name, entity_id), places)
    claimed = await claim(view, changer_of(catalog, caller, replaced.id), places, before=replaced)
    changes: Changes = {}
    merge(changes, claimed.changes)
    owner = encode_id_key(entity_id)
    merge(changes, {"locations": {location_key(each): owner for each in (places.location, *places.others)}})
    return Claimed(claimed.claims, changes)
