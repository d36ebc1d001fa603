"""The name and the places of what was taken, kept for it in the other catalog before that may use them.

Must not break: every reservation is of this migration, whose mark is there: who gives up takes the mark away,
and nothing is reserved behind that.
"""

from typing import Any

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.catalog.adopting import (
    Adopted,
    decode_adopted,
    dismissing,
    find_adopted,
    find_mark,
    keeping_room,
    list_rooms,
    marking_source,
    reserving,
)
from cynosure.catalog.changes import merge
from cynosure.catalog.claims import changer_of, claim
from cynosure.catalog.names import ADOPTING, Identifier
from cynosure.catalog.resolve import require_open
from cynosure.common.errors import Conflict
from cynosure.federation.handover import Moving, Taken
from cynosure.federation.migration.fitting import require_fitting, without_reserved
from cynosure.federation.migration.kinds import TABLES, VIEWS, Movable
from cynosure.federation.migration.steps import Into, Scene
from cynosure.persistence.commit import Prepared, State, View
from cynosure.persistence.index import after

_NAME = "adopt-tables"
_BATCH = 200


async def mark_target(scene: Scene, into: Into, moving: Moving) -> None:
    """Have the other catalog know that it gets something: from now on it cannot be dropped."""
    source = scene.catalog.entity.id

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        if await find_mark(view, source) == moving.begun_us:
            return Prepared(None)
        return Prepared(None, marking_source(source, moving.begun_us))

    await _commit(into, scene.caller, prepare)


async def reserve(
    scene: Scene, into: Into, kind: Movable[Any], name: Identifier, record: Taken, moving: Moving
) -> str:
    """Keep its name and its places for something that was taken. What it leaves behind, in words.

    Refused, as anything that the other catalog cannot have, when somebody has the name there.
    """
    mirror = await scene.catalog.read()
    kept = await kind.find_kept(mirror, name)
    if kept is None:
        raise _given_up(scene)
    key, source = kind.key(name), scene.catalog.entity.id
    known = await find_adopted(await into.catalog.read(), key)
    wanted = Adopted(
        into.catalog.shared.persistence.ids.next() if known is None else known.id,
        record.uuid,
        source,
        kept.held.location,
        kept.held.claims,
    )
    if known == wanted:
        return ""
    left = ""
    if known is None:
        left = await require_fitting(scene, into, kind, name, mirror)

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        if await find_mark(view, source) != moving.begun_us:
            raise _given_up(scene)
        below = await without_reserved(scene, view, key)
        # As it will be registered: what is in the way there is found out while there is a way back.
        await kind.prepare_given(into.reader, scene.caller, below, name, wanted.id, mirror)
        claimed = await claim(below, changer_of(into.reader, scene.caller, wanted.id), kept.places)
        changes = below.changes
        merge(changes, reserving(key, wanted, claimed))
        return Prepared(None, changes)

    await _commit(into, scene.caller, prepare)
    return left


async def is_reserved(scene: Scene, state: State, kind: Movable[Any], name: Identifier, mirror: View) -> bool:
    """Whether the other catalog, in this state, keeps all that the mirror has of something."""
    adopted, kept = await find_adopted(state, kind.key(name)), await kind.find_kept(mirror, name)
    if adopted is None or kept is None or adopted.source != scene.catalog.entity.id:
        return False
    return (adopted.location, adopted.claims) == (kept.held.location, kept.held.claims)


async def dismiss(scene: Scene, into: Into, key: bytes) -> None:
    """Give back what was reserved for something, if it was."""
    source = scene.catalog.entity.id

    async def prepare(view: View) -> Prepared[None]:
        adopted = await find_adopted(view, key)
        if adopted is None or adopted.source != source:
            return Prepared(None)
        return Prepared(None, dismissing(key, adopted))

    await _commit(into, scene.caller, prepare)


async def clear_target(scene: Scene, into: Into) -> None:
    """Take the mark away, and give back all that is still reserved."""
    source = scene.catalog.entity.id

    async def prepare(view: View) -> Prepared[None]:
        if await find_mark(view, source) is None:
            return Prepared(None)
        changes = marking_source(source, None)
        if source in await list_rooms(view):
            merge(changes, keeping_room(source, None))
        return Prepared(None, changes)

    # Order: the mark first, so that nobody who falls behind reserves something for ever.
    await _commit(into, scene.caller, prepare)
    for prefix in (TABLES.prefix, VIEWS.prefix):
        start = b""
        while page := await (await into.catalog.read()).scan(
            ADOPTING, prefix=prefix, start=start, limit=_BATCH
        ):
            for key, value in page:
                if decode_adopted(value).source == source:
                    await dismiss(scene, into, key)
            start = after(page[-1][0])


async def _commit(into: Into, caller: Caller, prepare: Any) -> None:
    await commit_part(into.catalog.committer, structs.replace(caller, key=None), _NAME, prepare)


def _given_up(scene: Scene) -> Conflict:
    return Conflict("The migration was given up", fix="Begin it again.", catalog=scene.catalog.entity.name)
