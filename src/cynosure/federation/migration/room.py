"""Room in the other catalog for the places that it gets: a catalog has only so many locations.

Must not break: room is kept in the other catalog's own state, before anything is given away. Several may move
tables into it at once, and whoever finds too little room here can still give up; behind the cession nobody
can.
"""

from msgspec import structs

from cynosure.auth.committing import commit_part
from cynosure.catalog.adopting import find_mark, keeping_room
from cynosure.catalog.listed import MAX_LOCATIONS, list_held
from cynosure.catalog.operations.update_catalog import with_locations
from cynosure.catalog.resolve import require_open
from cynosure.common.errors import Conflict
from cynosure.federation.handover import Moving
from cynosure.federation.migration.steps import Into, Scene
from cynosure.federation.migration.target import list_coming
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import decode_key, encode_key
from cynosure.persistence.spi import CatalogId
from cynosure.storage.location import Location

_NAME = "adopt-tables"


def fits(into: Into, places: list[Location]) -> bool:
    """Whether the other catalog can have these places besides those that it has, or gets from others."""
    wider = with_locations(into.catalog.entity, [*into.all_coming, *places])
    return len(list_held(wider)) <= MAX_LOCATIONS


async def keep_room(scene: Scene, into: Into, moving: Moving, places: list[Location]) -> None:
    """Keep room for these places. `Conflict` when there is too little, with who has how much of it."""
    source = scene.catalog.entity.id

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        if await find_mark(view, source) != moving.begun_us:
            raise Conflict(
                "The migration was given up", fix="Begin it again.", catalog=scene.catalog.entity.name
            )
        coming = await list_coming(view, scene.catalog)
        # Read behind these: what came and is no more to come is among the locations by now.
        catalog = await into.directory.open_for(scene.caller, into.catalog.entity.name)
        now = into._replace(catalog=catalog, coming=coming)
        if not fits(now, places):
            raise await _refuse(scene, now, places)
        return Prepared(None, keeping_room(source, tuple(each.text for each in places)))

    await commit_part(into.catalog.committer, structs.replace(scene.caller, key=None), _NAME, prepare)


async def _refuse(scene: Scene, into: Into, places: list[Location]) -> Conflict:
    held = {
        await _name(scene, into, giver): len(new)
        for giver, theirs in into.coming.items()
        if (new := [each for each in theirs if each not in into.catalog.allowed])
    }
    others = {"kept_for": ", ".join(f"{name}: {count}" for name, count in held.items())} if held else {}
    return Conflict(
        "The other catalog would have too many locations",
        fix="Give it up with --cancel; move whole namespaces, fewer tables, or the catalog in place.",
        into=into.catalog.entity.name,
        locations=len(places),
        room=into.room,
        **others,
    )


async def _name(scene: Scene, into: Into, giver: CatalogId) -> str:
    key = await (await into.directory.read(scene.caller.realm)).find("ids", encode_key(giver))
    return giver if key is None else decode_key(key)[0]
