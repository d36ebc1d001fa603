"""The places of what was taken become another catalog's: the point behind which there is no way back.

    1. in the taker's own state: room for so many places (`room.py`)
    2. in the giver's own state: phase `giving`, and the places are written down as given away
    3. in the realm's list: the other catalog may use them

Must not break: this order, and that everything is reserved in the other catalog before. Between the last two
nobody has the places; the other way round both had.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import structs

from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import RealmTarget
from cynosure.catalog.ceding import HOLDER, Cession, ceding
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.listed import outermost
from cynosure.catalog.locations import location_key
from cynosure.catalog.names import Identifier, Namespace, path_of
from cynosure.catalog.operations.update_catalog import adopt_locations
from cynosure.catalog.resolve import find_namespace
from cynosure.common.errors import BadInput, Conflict
from cynosure.federation.handover import INDEX, Moving, decode_taken, find_taken, marking
from cynosure.federation.migration.kinds import TABLES, VIEWS, movable_of
from cynosure.federation.migration.reserve import is_reserved
from cynosure.federation.migration.room import fits, keep_room
from cynosure.federation.migration.steps import Into, Scene, require_into, require_moving
from cynosure.federation.migration.take import commit_step
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import encode_id_key, prefix_of
from cynosure.persistence.listing import scan_all
from cynosure.persistence.spi import CatalogId, ObjId
from cynosure.storage.location import Location

_KINDS: Final = (TABLES.prefix, VIEWS.prefix)


class _Going(NamedTuple):
    """Something that goes, and its places."""

    id: ObjId
    namespace: Namespace
    places: tuple[Location, ...]


async def cede(scene: Scene) -> None:
    """Give the places of all that was taken to the other catalog. Begun already, it goes on."""
    into, caller = require_into(scene), scene.caller
    # Before the first of the two commits, because it is asked for by the second one.
    await into.directory.authorize(caller, ops.EXTEND_STORAGE, RealmTarget(caller.realm))
    moving = await require_moving(await scene.catalog.read(), scene.catalog, "taking", "giving")
    if moving.phase == "taking":
        reserved = await into.catalog.read()
        _, room = await _plan(scene, into, await scene.catalog.read(), moving, reserved)
        if room:
            await keep_room(scene, into, moving, room)

        async def prepare(view: View, known: Moving) -> Prepared[Moving]:
            return await _prepare(scene, into, view, known, reserved, room)

        moving = await commit_step(scene, prepare)
    places = [Location.parse(text) for text in moving.ceded]
    if places:
        cession = Cession(scene.catalog.entity.id, into.catalog.entity.id)
        await adopt_locations(into.directory, caller, into.catalog.entity.name, cession, places)


async def _prepare(
    scene: Scene, into: Into, view: View, moving: Moving, reserved: State, room: list[Location]
) -> Prepared[Moving]:
    if moving.phase != "taking":
        return Prepared(moving)
    going, places = await _plan(scene, into, view, moving, reserved)
    if places != room:
        raise Conflict(
            "What is moved has changed meanwhile", fix="Run it again.", catalog=scene.catalog.entity.name
        )
    given = structs.replace(moving, phase="giving", ceded=tuple(each.text for each in places))
    changes: Changes = marking(given)
    merge(changes, ceding(places, CatalogId(moving.into)))
    held = {location_key(place) for each in going for place in each.places}
    # What a table holds itself it holds until it goes (`give.py`). A directory around several is held now.
    around = [key for each in places if (key := location_key(each)) not in held]
    merge(changes, {"locations": dict.fromkeys(around, HOLDER)})
    return Prepared(given, changes)


async def _plan(
    scene: Scene, into: Into, view: View, moving: Moving, reserved: State
) -> tuple[list[_Going], list[Location]]:
    """What goes, and the places that are given away with it."""
    if not moving.leaves_behind:
        await _require_all_taken(scene, view, moving)
    going = await _load_going(scene, view, reserved)
    return going, await _choose_places(scene, into, view, moving, going)


async def _require_all_taken(scene: Scene, view: View, moving: Moving) -> None:
    for prefix in _KINDS:
        for key, _ in await scan_all(view, "names", prefix):
            *namespace, last = path_of(key)
            if moving.chosen.has(Identifier(tuple(namespace), last)) and await find_taken(view, key) is None:
                raise _not_ready(scene, key)


async def _load_going(scene: Scene, view: View, reserved: State) -> list[_Going]:
    """All that was taken, on the very state that this is committed on: who puts something back is seen."""
    going: list[_Going] = []
    for prefix in _KINDS:
        for key, value in await scan_all(view, INDEX, prefix):
            kind, (*namespace, last) = movable_of(key), path_of(key)
            name = Identifier(tuple(namespace), last)
            if not decode_taken(value).is_held or not await is_reserved(scene, reserved, kind, name, view):
                raise _not_ready(scene, key)
            kept = await kind.find_kept(view, name)
            if kept is not None:
                places = (kept.places.location, *kept.places.others)
                going.append(_Going(kept.held.id, name.namespace, places))
    return going


async def _choose_places(
    scene: Scene, into: Into, view: View, moving: Moving, going: list[_Going]
) -> list[Location]:
    """The places that are given away: those of each table, or where these are too many, directories around.

    One by one if possible: nothing else in a directory gets another owner with the tables. A directory only
    for a namespace that goes as a whole: what the remote has besides and nobody has seen holds nothing here.
    """
    places = _outermost(place for each in going for place in each.places)
    if fits(into, places) or moving.leaves_behind:
        return places
    chosen: list[Location] = []
    for namespace in dict.fromkeys(each.namespace for each in going):
        of_it = _outermost(p for each in going if each.namespace == namespace for p in each.places)
        around = None
        if moving.chosen.has_whole(namespace):
            around = await _find_around(scene, view, namespace, of_it, {each.id for each in going})
        chosen += of_it if around is None else [around]
    return _outermost(chosen)


async def _find_around(
    scene: Scene, view: View, namespace: Namespace, places: list[Location], going: set[ObjId]
) -> Location | None:
    """A directory that holds these places and nothing that stays, if there is one that may be given away.

    It has the name of the namespace: the directory of Hive's default database has all others in it.
    """
    entity = await find_namespace(view, namespace)
    text = "" if entity is None else entity.properties.get("location", "")
    for candidate in (_parse(text), _common(places)):
        if candidate is None or not all(each.is_within(candidate) for each in places):
            continue
        if candidate.segments[-1:] not in ((namespace[-1],), (f"{namespace[-1]}.db",)):
            continue
        if any(each.is_within(candidate) for each in (scene.catalog.base, *outermost(scene.catalog.entity))):
            continue
        if not any(candidate.is_within(each) for each in scene.catalog.allowed):
            continue
        holders = await scan_all(view, "locations", prefix_of(*candidate.key()))
        if all(holder in {encode_id_key(each) for each in going} for _, holder in holders):
            return candidate
    return None


def _common(places: list[Location]) -> Location | None:
    first, *rest = places
    for up in range(1, len(first.segments)):
        text = first.text.rsplit("/", up)[0]
        parent = _parse(text)
        if parent is not None and all(each.is_within(parent) for each in rest):
            return parent
    return None


def _parse(text: str) -> Location | None:
    try:
        return Location.parse(text) if text else None
    except BadInput:
        return None


def _outermost(places: Iterable[Location]) -> list[Location]:
    """Without those that are inside another one."""
    ordered = sorted(set(places), key=Location.key)
    kept: list[Location] = []
    for each in ordered:
        # A place sorts before all that is inside it.
        if not kept or not each.is_within(kept[-1]):
            kept.append(each)
    return kept


def _not_ready(scene: Scene, key: bytes) -> Conflict:
    return Conflict(
        "Not everything that is to be moved is ready",
        fix="Mend what is told of it, or have what cannot be moved stay behind.",
        catalog=scene.catalog.entity.name,
        name=".".join(path_of(key)),
    )
