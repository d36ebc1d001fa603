"""Take one table or view: set aside at the remote, then its last version here.

Must not break: it is written down under which name it will be at the remote before it is renamed there, and
its last version is read under that name only, which is never given a second time. What cannot be taken is put
back, so that it goes on there as before. Several may move the same catalog at once: every commit asks how far
the others are, and nothing is given up or put back that another one has here.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from msgspec import structs

from cynosure.auth.committing import commit_part
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.errors import NoSuchNamespace, NoSuchTable, NoSuchView
from cynosure.catalog.names import Identifier, path_of
from cynosure.common.errors import AlreadyExists, Conflict, CynosureError, OutcomeUnknown, Unavailable
from cynosure.federation.handover import (
    Moving,
    Taken,
    erasing_taken,
    find_moving,
    find_taken,
    name_aside,
    noting_taken,
    set_aside,
)
from cynosure.federation.migration.fitting import require_fitting
from cynosure.federation.migration.kinds import Movable
from cynosure.federation.migration.steps import Line, Outcome, Scene
from cynosure.federation.mirror.seen import find_by_uuid
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.commit.view import Overlay

R = TypeVar("R")
_NAME: Final = "migrate-catalog"
GONE: Final = (NoSuchTable, NoSuchView, NoSuchNamespace)
"""The remote's own word that it has something not. A file that is missing is another matter."""


async def take(scene: Scene, kind: Movable[Any], name: Identifier) -> Line:
    """Have it here and set aside at the remote, however far it was.

    `Unavailable` or `OutcomeUnknown` when the remote does not say: then it is to be asked for again.
    """
    record = await find_taken(await scene.catalog.read(), kind.key(name))
    if record is not None and record.is_held:
        return _tell(kind, name, "taken")
    try:
        if record is not None and record.is_returning:
            await put_back(scene, kind, name)
            record = None
        if record is None:
            record = await _begin(scene, kind, name)
        await _set_aside(scene, kind, name, record)
        await _hold(scene, kind, name, record)
    except GONE:
        return await _give_up(scene, kind, name)
    except (Unavailable, OutcomeUnknown):
        raise
    except CynosureError as error:
        line = _tell(kind, name, "obstacle", error)
        if record is None or await _try_to_put_back(scene, kind, name, record):
            return line
        told = f"{line.reason}; the remote may have it as {set_aside(name, record)}"
        return structs.replace(line, reason=told)
    return _tell(kind, name, "taken")


async def _give_up(scene: Scene, kind: Movable[Any], name: Identifier) -> Line:
    try:
        await forget(scene, kind, name)
    except Conflict as error:
        return _tell(kind, name, "obstacle", error)
    return _tell(kind, name, "gone")


async def survey(scene: Scene, kind: Movable[Any], name: Identifier) -> Line:
    """Whether it could be taken, as the remote has it now. Nothing is changed."""
    try:
        left = await _rehearse(scene, kind, name, await kind.load(scene.remote, name))
    except GONE:
        return _tell(kind, name, "gone")
    except Unavailable:
        raise
    except CynosureError as error:
        return _tell(kind, name, "obstacle", error)
    return Line(kind.kind, (*name.namespace, name.name), "ready", left)


async def _rehearse(scene: Scene, kind: Movable[Any], name: Identifier, found: Any) -> str:
    """Do all that taking it would commit, and leave that. What it would leave behind, in words."""
    below = Overlay(await scene.catalog.read())
    former = await _find_former(scene, kind, name, found.uuid)
    if former is not None:
        moved = await kind.prepare_moved(scene.catalog, scene.caller, below, former, name, found.uuid)
        below.add(moved.changes, moved.objects)
    kept = await kind.prepare(scene.catalog, scene.caller, below, name, found)
    below.add(kept.changes, kept.objects)
    if scene.into is None:
        return ""
    return await require_fitting(scene, scene.into, kind, name, below)


async def forget(scene: Scene, kind: Movable[Any], name: Identifier) -> None:
    """Give up here what the remote keeps, or has no more. `Conflict` when its last version is here."""
    key = kind.key(name)

    async def prepare(view: View, moving: Moving) -> Prepared[None]:
        known = await find_taken(view, key)
        if known is not None and known.is_held:
            raise _taken_meanwhile(scene)
        gone = await kind.prepare_forgotten(scene.catalog, scene.caller, view, name)
        return gone if known is None else _with(gone, erasing_taken(key, name, known))

    await commit_step(scene, prepare)


async def put_back(scene: Scene, kind: Movable[Any], name: Identifier, *, is_held: bool = False) -> None:
    """Give it its name at the remote again, if it was set aside, and forget that it was on its way.

    `is_held`: also if its last version is here. `Conflict` when it is, else; or nothing can be put back.
    """
    key = kind.key(name)

    async def prepare_return(view: View, moving: Moving) -> Prepared[Taken | None]:
        known = await find_taken(view, key)
        if known is None:
            return Prepared(None)
        if moving.phase != "taking" or (known.is_held and not is_held):
            raise _taken_meanwhile(scene)
        # From here on nobody takes it to be here, so that nobody has the remote drop it.
        returning = structs.replace(known, is_held=False, is_returning=True)
        return Prepared(returning, noting_taken(key, name, returning))

    record = await commit_step(scene, prepare_return)
    if record is None:
        return
    returning = record
    await _rename_back(scene, kind, name, returning)

    async def prepare_end(view: View, moving: Moving) -> Prepared[None]:
        is_same = await find_taken(view, key) == returning
        return Prepared(None, erasing_taken(key, name, returning) if is_same else {})

    await commit_step(scene, prepare_end)


async def _rename_back(scene: Scene, kind: Movable[Any], name: Identifier, record: Taken) -> None:
    aside = set_aside(name, record)
    try:
        found = await kind.load(scene.remote, aside)
        await _require_one_name(scene, kind, name, aside, found.uuid)
        await kind.rename(scene.remote, aside, name)
    except GONE:
        # It was not set aside, or somebody else has put it back.
        return


async def _try_to_put_back(scene: Scene, kind: Movable[Any], name: Identifier, record: Taken) -> bool:
    """Whether it has its name again at the remote."""
    try:
        known = await find_taken(await scene.catalog.read(), kind.key(name))
        if known is None or known.aside != record.aside:
            # It was given up before this was set aside: nobody else knows of it.
            await _rename_back(scene, kind, name, record)
        else:
            await put_back(scene, kind, name)
    except (Unavailable, OutcomeUnknown):
        raise
    except CynosureError:
        # It stays written down, so whoever goes on, or gives up, finds it.
        return False
    return True


async def commit_step(scene: Scene, prepare: Callable[[View, Moving], Awaitable[Prepared[R]]]) -> R:
    """Commit a part of the migration; `Conflict` when somebody gave it up meanwhile."""

    async def checked(view: View) -> Prepared[R]:
        moving = await find_moving(view)
        if moving is None:
            raise _given_up(scene)
        return await prepare(view, moving)

    caller = structs.replace(scene.caller, key=None)
    return await commit_part(scene.catalog.committer, caller, _NAME, checked)


async def _begin(scene: Scene, kind: Movable[Any], name: Identifier) -> Taken:
    """Have it in the mirror, with the name that it will get at the remote."""
    found = await kind.load(scene.remote, name)
    if scene.into is not None:
        # Before anything is set aside.
        await _rehearse(scene, kind, name, found)
    await _follow(scene, kind, name, found.uuid)
    record = Taken(name_aside(found.uuid, scene.catalog.shared.persistence.ids.next()), found.uuid)
    await _keep(scene, kind, name, found, record)
    return record


async def _follow(scene: Scene, kind: Movable[Any], name: Identifier, uuid: str) -> None:
    """Have what the remote renamed under its new name here too, with its grants and policies."""
    source = await _find_former(scene, kind, name, uuid)
    if source is None:
        return
    former = source

    async def prepare(view: View, moving: Moving) -> Prepared[None]:
        if await find_taken(view, kind.key(former)) is not None:
            raise _taken_meanwhile(scene)
        return await kind.prepare_moved(scene.catalog, scene.caller, view, former, name, uuid)

    await commit_step(scene, prepare)


async def _find_former(scene: Scene, kind: Movable[Any], name: Identifier, uuid: str) -> Identifier | None:
    """The name under which the mirror has what has this one at the remote now."""
    key, holder = kind.key(name), await find_by_uuid(await scene.catalog.read(), uuid)
    if holder is None or holder == key or holder[:1] != key[:1]:
        return None
    *namespace, last = path_of(holder)
    source = Identifier(tuple(namespace), last)
    try:
        found = await kind.load(scene.remote, source)
    except GONE:
        return source
    # Two names of one table: its places are those of the first one.
    return None if found.uuid == uuid else source


async def _set_aside(scene: Scene, kind: Movable[Any], name: Identifier, record: Taken) -> None:
    """Rename it at the remote. Done already, by an attempt that was cut off, it is done."""
    aside = set_aside(name, record)
    try:
        await kind.rename(scene.remote, name, aside)
    except (*GONE, AlreadyExists, OutcomeUnknown) as refusal:
        # The name may be missing because we took it, or be there again because somebody used it since. Nobody
        # but us gives this other name, so what has it is what had the name.
        try:
            found = await kind.load(scene.remote, aside)
        except GONE:
            raise refusal from None
        await _require_one_name(scene, kind, name, aside, found.uuid)


async def _require_one_name(
    scene: Scene, kind: Movable[Any], name: Identifier, aside: Identifier, uuid: str
) -> None:
    """Refuse what a rename in two steps (Glue) that was cut off has left under both names.

    Which of the steps is to be undone only they know who can see that nobody is at it any more.
    """
    try:
        found = await kind.load(scene.remote, name)
    except GONE:
        return
    if found.uuid == uuid:
        raise Conflict(
            "A rename was cut off, and the remote has it under two names",
            problem=f"drop {aside} there, without a purge, and run it again",
            catalog=scene.catalog.entity.name,
        )


async def _hold(scene: Scene, kind: Movable[Any], name: Identifier, record: Taken) -> None:
    """Have here what is set aside: nobody can change it there under the name that it had."""
    found = await kind.load(scene.remote, set_aside(name, record))
    held = structs.replace(record, uuid=found.uuid, is_held=True)
    await _keep(scene, kind, name, found, held, is_begun=True)


async def _keep(
    scene: Scene, kind: Movable[Any], name: Identifier, found: Any, record: Taken, *, is_begun: bool = False
) -> None:
    async def prepare(view: View, moving: Moving) -> Prepared[None]:
        known = await find_taken(view, kind.key(name))
        is_known = known is not None and not known.is_returning and known.aside == record.aside
        if moving.phase != "taking" or (is_begun and not is_known):
            # Who gives up has been here, and may have looked at the remote before this was set aside.
            raise _given_up(scene)
        if not is_begun and known is not None:
            raise _taken_meanwhile(scene)
        prepared = await kind.prepare(scene.catalog, scene.caller, view, name, found)
        return _with(prepared, noting_taken(kind.key(name), name, record))

    await commit_step(scene, prepare)


def _taken_meanwhile(scene: Scene) -> Conflict:
    return Conflict(
        "Somebody else moves this at the same time", fix="Run it again.", catalog=scene.catalog.entity.name
    )


def _given_up(scene: Scene) -> Conflict:
    return Conflict("The migration was given up", fix="Begin it again.", catalog=scene.catalog.entity.name)


def _with(prepared: Prepared[Any], more: Changes) -> Prepared[None]:
    changes: Changes = {index: dict(entries) for index, entries in prepared.changes.items()}
    merge(changes, more)
    return Prepared(None, changes, prepared.objects, prepared.feed)


def _tell(kind: Movable[Any], name: Identifier, outcome: Outcome, error: CynosureError | None = None) -> Line:
    path = (*name.namespace, name.name)
    return Line(kind.kind, path, outcome, "" if error is None else explain(error))


def explain(error: CynosureError) -> str:
    """Why something cannot be moved, in words for who moves it."""
    problem = error.details.get("problem")
    return error.message if problem is None else f"{error.message}: {problem}"
