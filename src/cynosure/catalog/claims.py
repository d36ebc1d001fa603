"""The places that tables and views hold, each to itself.

A table holds its location; every place that its properties send files to; every place where it was before,
because its files are still there; and what its metadata names elsewhere. The index `locations` maps each of
them to the table's stable id, and no place of one table is equal to, above or below one of another. What is
inside the location, or inside another claim, is held with it and has no entry of its own.

A claim does not end when a property is taken back, the table moves on or is overwritten: nobody here knows
whether files are left, or who still has credentials to write some. It ends when the table is unregistered by
who may read all of it, and when it has been dropped for so long that it cannot be restored. Until then its
entries also name the drop, and give way to whoever dropped it and might read it: nobody else gets the files
of a table by waiting for its end.

Must not break: inside `prepare` the index is asked through the tracked view, so two tables that are created
at once cannot get overlapping places.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from cynosure.auth.caller import Caller
from cynosure.auth.ports import Target
from cynosure.auth.rbac.operations import Operation
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.locations import (
    ID_BYTES,
    check_allowed,
    check_paths,
    location_key,
    parse_place,
    require_allowed,
)
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.seeing import find_permission
from cynosure.catalog.staged import (
    StagedTable,
    expired_before_us,
    find_staged_by_id,
    removing,
)
from cynosure.common.errors import BadInput
from cynosure.persistence.commit import View
from cynosure.persistence.commit.view import find_object
from cynosure.persistence.index import after, decode_id_key, encode_id_key, encode_key, prefix_of
from cynosure.persistence.spi import ObjId
from cynosure.storage.location import Location, is_allowed

MAX_CLAIMS: Final = 100
"""Of one table, besides its location."""
_PAGE: Final = MAX_CLAIMS + 2


class Places(NamedTuple):
    """All that a version of a table holds."""

    location: Location
    others: tuple[Location, ...] = ()
    """None of them inside the location or another; the location may be inside one."""

    @property
    def claims(self) -> tuple[str, ...]:
        """As the table's state keeps them."""
        return tuple(each.text for each in self.others)


class Claimant(NamedTuple):
    """Who wants places, and who gives way to it."""

    id: ObjId
    expired_before_us: int
    """Reservations older than this."""
    principal_id: int | None = None
    """What this principal dropped; `None` where it is not known who asks."""
    path: tuple[str, ...] = ()
    """What this principal reserved for this very path; empty where no reservation is to be given up."""
    places: tuple[Location, ...] = ()
    """All that is wanted, where it is claimed: a reservation of which some would be left over stays."""


class Claimed(NamedTuple):
    """What a table holds after a change."""

    claims: tuple[str, ...]
    changes: Changes
    """Of the indexes `locations` and `staged`; join them into the commit that changes the table."""


def claimant_of(catalog: OpenCatalog, stable_id: ObjId) -> Claimant:
    """A table that has to find its places free."""
    return Claimant(stable_id, expired_before_us(catalog))


def changer_of(catalog: OpenCatalog, caller: Caller, stable_id: ObjId) -> Claimant:
    """A table that the caller makes or changes: what it dropped gives way."""
    return Claimant(stable_id, expired_before_us(catalog), caller.principal_id)


def creator_of(catalog: OpenCatalog, caller: Caller, table: Identifier, stable_id: ObjId) -> Claimant:
    """A table that is begun anew: also what the caller reserved for it, and did not use, gives way."""
    path = (*table.namespace, table.name)
    return changer_of(catalog, caller, stable_id)._replace(path=path)


def places_of(
    catalog: OpenCatalog,
    location: str,
    properties: Mapping[str, str],
    *,
    former: Held | None = None,
    files: Sequence[Location] = (),
    field: str = "location",
) -> Places:
    """The places of a version with this location and these properties.

    `former` is what the version before it held, `files` what it names elsewhere. `LocationRefused` when one
    of them, but for the former, is outside what the catalog allows now.
    """
    if former is not None and former.location == location:
        # Almost every commit: it was understood before, but what is allowed may have changed.
        own = parse_place(location)
        require_allowed(catalog, own, field=field)
    else:
        own = check_allowed(catalog, location, field=field)
    wanted = [*check_paths(catalog, properties), *files]
    if former is not None:
        wanted += [parse_place(text) for text in (former.location, *former.claims)]
    return join_places(own, wanted)


def join_places(location: Location, others: Iterable[Location]) -> Places:
    """These places, without those that are held with another one."""
    kept: list[Location] = []
    for each in others:
        if each.is_within(location) or any(each.is_within(other) for other in kept):
            continue
        kept = [other for other in kept if not other.is_within(each)]
        kept.append(each)
    if len(kept) > MAX_CLAIMS:
        raise BadInput(
            "A table holds too many places outside its location",
            field="location",
            fix="Copy its files to one location and register the copy.",
            places=len(kept),
            limit=MAX_CLAIMS,
        )
    return Places(location, tuple(kept))


async def claim(view: View, claimant: Claimant, places: Places, *, before: Held | None = None) -> Claimed:
    """Give these places to a table and free what it held `before` and does not now.

    `LocationRefused` when one of them overlaps with another table's.
    """
    claimant = claimant._replace(places=(places.location, *places.others))
    if before is not None and before[1:] == (places.location.text, places.claims):
        return Claimed(before.claims, {})
    had = () if before is None else (before.location, *before.claims)
    freed = {location_key(parse_place(text)) for text in had}
    wanted = {location_key(each): each for each in (places.location, *places.others)}
    changes: Changes = {}
    for key, place in wanted.items():
        if key in freed:
            continue
        merge(changes, await require_free(view, place, claimant))
    owner = encode_id_key(claimant.id)
    # Order: what gives way first, because the same place may be claimed anew.
    merge(changes, {"locations": dict.fromkeys(freed - wanted.keys())})
    merge(changes, {"locations": {key: owner for key in wanted if key not in freed}})
    return Claimed(places.claims, changes)


def releasing(held: Held) -> dict[bytes, bytes | None]:
    """Changes of the index `locations` that free all that a table holds."""
    return dict.fromkeys(_keys(held))


def retaining(held: Held, drop_id: ObjId) -> dict[bytes, bytes | None]:
    """Changes of the index `locations` that leave a table what it holds when it is dropped."""
    return dict.fromkeys(_keys(held), encode_id_key(held.id) + encode_id_key(drop_id))


async def may_read(
    catalog: OpenCatalog, view: View, caller: Caller, reading: Operation, target: Target
) -> bool:
    """Whether somebody who drops a table might read it, so that its places are no secret to them."""
    authorizer = catalog.shared.authorizer
    return await find_permission(authorizer, caller, reading, (target,), view, is_hiding=False) is not None


async def forgetting(view: View, drop_id: ObjId, dropped: DroppedEntity) -> dict[bytes, bytes | None]:
    """Changes of the index `locations` that free what something dropped still holds."""
    if not dropped.location:
        return {}
    mine = retaining(Held(dropped.entity_id, dropped.location, dropped.claims), drop_id)
    # Others may have got some of it meanwhile.
    return {key: None for key, value in mine.items() if await view.find("locations", key) == value}


async def claiming_alone(catalog: OpenCatalog, view: View, drop_id: ObjId, dropped: DroppedEntity) -> Changes:
    """Make sure that something dropped still holds all of its places, and nobody else anything in them.

    `LocationRefused` when not. Reservations for nobody are taken away by the changes that this answers with.
    """
    changes: Changes = {}
    mine = retaining(Held(dropped.entity_id, dropped.location, dropped.claims), drop_id)
    for text in dropped.places:
        place = parse_place(text)
        if await view.find("locations", location_key(place)) != mine[location_key(place)]:
            raise _taken(place)
        merge(changes, await require_free(view, place, claimant_of(catalog, dropped.entity_id)))
    return changes


async def require_free(view: View, place: Location, claimant: Claimant) -> Changes:
    """Refuse a place that somebody else holds, or something above or below it.

    What gives way is taken away by the changes that this answers with.
    """
    parts = place.key()
    own = encode_id_key(claimant.id)
    seen: set[bytes] = set()
    changes: Changes = {}

    async def look_at(holder: bytes | None) -> None:
        if holder is not None and not holder.startswith(own) and holder not in seen:
            seen.add(holder)
            merge(changes, await _give_way(view, place, holder, claimant))

    for length in range(2, len(parts) + 1):
        await look_at(await view.find("locations", encode_key(*parts[:length])))
    prefix = prefix_of(*parts)
    start, is_full = b"", True
    # What a table holds itself is less than a page. There are more only of others that give way.
    while is_full:
        page = await view.scan("locations", prefix=prefix, start=start, limit=_PAGE)
        for _, holder in page:
            await look_at(holder)
        is_full = len(page) == _PAGE
        start = after(page[-1][0]) if page else b""
    return changes


async def _give_way(view: View, place: Location, holder: bytes, claimant: Claimant) -> Changes:
    """What frees all that this holder has, if it is no table and the claimant may have it."""
    if len(holder) == ID_BYTES:
        staged = await find_staged_by_id(view, ObjId(decode_id_key(holder)))
        if staged is None or not _is_stale(staged, claimant):
            raise _taken(place)
        return removing(staged)
    drop_id = ObjId(decode_id_key(holder[ID_BYTES:]))
    dropped = await find_object(view, "dropped", encode_id_key(drop_id), DROPPED)
    if dropped is None:
        raise _taken(place)
    if claimant.principal_id != dropped.heir_id:
        raise LocationRefused(
            "The location is still that of a table that was dropped and can be restored",
            fix="Have the table restored, choose another location, or wait until it cannot be restored.",
            field="location",
            location=place.text,
        )
    return {"locations": await forgetting(view, drop_id, dropped)}


def _is_stale(staged: StagedTable, claimant: Claimant) -> bool:
    if staged.created_us < claimant.expired_before_us:
        return True
    if (staged.path, staged.principal_id) != (claimant.path, claimant.principal_id):
        return False
    # Credentials for all of it are still good: none of it may become somebody else's.
    reserved = (parse_place(text) for text in (staged.location, *staged.claims))
    return not claimant.places or all(is_allowed(each, claimant.places) for each in reserved)


def _keys(held: Held) -> list[bytes]:
    return [location_key(parse_place(text)) for text in (held.location, *held.claims)]


def _taken(place: Location) -> LocationRefused:
    return LocationRefused(
        "The location overlaps with another table's",
        fix="Choose one that no table has or had, or leave it out where the catalog can choose.",
        field="location",
        location=place.text,
    )
