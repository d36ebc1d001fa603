"""Have the remote forget what is here: the last step before the catalog takes writes.

Must not break: nothing is dropped there before everything is here, nor anything with a purge: its files are
ours now. And only what has the uuid that was taken.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import structs

from cynosure.catalog.names import Identifier, path_of
from cynosure.common.errors import Conflict, CynosureError, OutcomeUnknown, Unavailable
from cynosure.federation.handover import (
    INDEX,
    Moving,
    Taken,
    decode_taken,
    find_taken,
    marking,
    noting_taken,
    set_aside,
)
from cynosure.federation.migration.give import are_all_given
from cynosure.federation.migration.kinds import TABLES, VIEWS, Movable, movable_of
from cynosure.federation.migration.settle import scan_ordered
from cynosure.federation.migration.steps import Line, Scene, require_moving
from cynosure.federation.migration.take import GONE, commit_step, explain
from cynosure.persistence.commit import Prepared, View

_ORDER = (TABLES.prefix, VIEWS.prefix)
_SIZE = 25
_SCANNED = 500
_BACK = "it has its name at the remote again; drop it there, without a purge, if nobody wrote to it"


async def release(scene: Scene, token: str | None) -> tuple[tuple[Line, ...], str | None]:
    """Lines of one page of what was set aside, and the token of the next.

    `Conflict` when not everything is here yet.
    """
    state = await scene.catalog.read()
    moving = await require_moving(state, scene.catalog)
    if moving.phase != "releasing":
        await commit_step(scene, _changing_phase(scene))
        state = await scene.catalog.read()
    entries = await scan_ordered(state, INDEX, _ORDER, token, _SCANNED)
    lines: list[Line] = []
    for at, (key, value) in enumerate(entries):
        if len(lines) >= _SIZE:
            return tuple(lines), entries[at - 1][0].hex()
        record, (*namespace, last) = decode_taken(value), path_of(key)
        if not record.is_released:
            name = Identifier(tuple(namespace), last)
            lines.append(await _release(scene, moving, movable_of(key), name, record))
    return tuple(lines), entries[-1][0].hex() if len(entries) == _SCANNED else None


async def require_all_held(scene: Scene, state: View) -> None:
    """Refuse while the mirror has something that is still the remote's."""
    token: str | None = None
    while True:
        entries = await scan_ordered(state, "names", _ORDER, token, _SCANNED)
        for key, _ in entries:
            record = await find_taken(state, key)
            if record is None or not record.is_held:
                raise Conflict(
                    "Not everything of the remote is here",
                    fix="Mend what is told of it, or have what cannot be moved stay behind.",
                    catalog=scene.catalog.entity.name,
                    name=".".join(path_of(key)),
                )
        if len(entries) < _SCANNED:
            return
        token = entries[-1][0].hex()


def _changing_phase(scene: Scene) -> Callable[[View, Moving], Awaitable[Prepared[None]]]:
    async def prepare(view: View, moving: Moving) -> Prepared[None]:
        if moving.phase == "releasing":
            return Prepared(None)
        # On the very state that it is committed on: who puts something back meanwhile is seen.
        if scene.into is None:
            await require_all_held(scene, view)
        elif moving.phase != "giving" or not await are_all_given(view):
            raise Conflict(
                "The other catalog does not have everything yet",
                fix="Go on with it: run 'cynosure migrate' again.",
                catalog=scene.catalog.entity.name,
            )
        return Prepared(None, marking(structs.replace(moving, phase="releasing")))

    return prepare


async def _release(scene: Scene, moving: Moving, kind: Movable[Any], name: Identifier, record: Taken) -> Line:
    path, aside = (*name.namespace, name.name), set_aside(name, record)
    try:
        if moving.keeps_remote:
            is_back = await _is_back(scene, kind, name, record)
            return Line(kind.kind, path, *(("obstacle", _BACK) if is_back else ("kept", f"as {aside}")))
        found = await kind.load(scene.remote, aside)
        if found.uuid == record.uuid:
            await kind.drop(scene.remote, aside)
    except GONE:
        # Dropped by an attempt whose answer was lost; unless somebody gave it its name back there.
        if await _is_back(scene, kind, name, record):
            return Line(kind.kind, path, "obstacle", _BACK)
    except (Unavailable, OutcomeUnknown):
        raise
    except CynosureError as error:
        # Nobody finds it under its old name: that it is still there does no harm.
        return Line(kind.kind, path, "kept", f"as {aside}: {explain(error)}")

    async def prepare(view: View, _: Moving) -> Prepared[None]:
        known = await find_taken(view, kind.key(name))
        if known is None:
            # Somebody else has come to the end meanwhile.
            return Prepared(None)
        done = structs.replace(known, is_released=True)
        return Prepared(None, noting_taken(kind.key(name), name, done))

    await commit_step(scene, prepare)
    return Line(kind.kind, path, "released")


async def _is_back(scene: Scene, kind: Movable[Any], name: Identifier, record: Taken) -> bool:
    """Whether the remote has it under its own name again: then it would have two owners."""
    try:
        return bool((await kind.load(scene.remote, name)).uuid == record.uuid)
    except GONE:
        return False
