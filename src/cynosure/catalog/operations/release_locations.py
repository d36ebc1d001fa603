"""Let other catalogs have the locations that were taken from this one, when nothing of it is there any more.

Not before a day or so has passed (`catalog.staging_lifetime`): until then a request that was on its way may
put a table there, and somebody may still have credentials. After that nothing new can come to be there, so
what is looked at before the commit is still true in it.

Done by the server itself: no right is asked for.

Must not break: a location is held as long as a table, a view, a reservation or something that can be restored
holds a place in it.
"""

from datetime import timedelta
from typing import Final

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes
from cynosure.catalog.directory import Directory
from cynosure.catalog.entities import CATALOG
from cynosure.catalog.listed import find_listed, location_keys
from cynosure.catalog.locations import find_holder, parse_place
from cynosure.catalog.opened import OpenCatalog
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import encode_key, prefix_of
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject
from cynosure.storage.location import Location

_US: Final = timedelta(microseconds=1)


async def release_locations(directory: Directory, caller: Caller, catalog: OpenCatalog) -> int:
    """Give up what can be given up; how many locations."""
    persistence = directory.shared.persistence
    since_us = persistence.clock.now_us() - directory.shared.settings.staging_lifetime // _US
    due = {each for each in catalog.entity.kept if each.since_us < since_us}
    if not due:
        return 0
    state = await catalog.read()
    free = {each for each in due if not await _is_held(state, parse_place(each.location))}
    if not free:
        return 0
    key = encode_key(catalog.entity.name)

    async def prepare(view: View) -> Prepared[int]:
        listed = await find_listed(view, catalog.entity.name)
        if listed is None or listed.entity.id != catalog.entity.id:
            return Prepared(0)
        # Those that it may use again meanwhile are not among them any more.
        rest = tuple(each for each in listed.entity.kept if each not in free)
        if rest == listed.entity.kept:
            return Prepared(0)
        entity = structs.replace(listed.entity, kept=rest)
        new = NewObject(CATALOG, persistence.ids.next(), entity)
        given_up = location_keys(listed.entity) - location_keys(entity)
        gained = location_keys(entity) - location_keys(listed.entity)
        claims: dict[bytes, bytes | None] = {
            **dict.fromkeys(given_up),
            **dict.fromkeys(gained, entity.id.encode()),
        }
        changes: Changes = {"names": {key: ObjRef(new.id, CATALOG.name).pack()}, "locations": claims}
        return Prepared(len(listed.entity.kept) - len(rest), changes, [new])

    committer = directory.committer(caller.realm)
    return await commit_part(committer, caller, "release-locations", prepare)


async def _is_held(state: State, location: Location) -> bool:
    if await find_holder(state, location) is not None:
        return True
    return bool(await state.scan("locations", prefix=prefix_of(*location.key()), limit=1))
