"""Table by table into the other catalog: registered there from what the mirror has, then given up here.

Must not break: a table is registered there only behind the cession, when nobody here can write to its places
any more; and its reservation ends in the very commit that registers it, so whoever goes on after a crash
finds none and knows that it is there, whatever became of it since.
"""

from typing import Any, Final

from msgspec import structs

from cynosure.auth.committing import commit_part
from cynosure.catalog.adopting import Adopted, find_adopted, fulfilling_adopted
from cynosure.catalog.ceding import HOLDER, is_ceded
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.names import Identifier, Namespace, path_of
from cynosure.catalog.resolve import require_open
from cynosure.common.errors import CynosureError, OutcomeUnknown, Unavailable
from cynosure.federation.handover import (
    INDEX,
    Given,
    Moving,
    decode_taken,
    find_taken,
    noting_given,
    noting_taken,
)
from cynosure.federation.migration.fitting import check_policies, make_namespaces
from cynosure.federation.migration.kinds import TABLES, VIEWS, Movable, movable_of
from cynosure.federation.migration.settle import scan_ordered
from cynosure.federation.migration.steps import Into, Line, Scene, require_into, require_moving
from cynosure.federation.migration.take import commit_step, explain
from cynosure.federation.mirror.changing import Collected
from cynosure.federation.mirror.returning import end_id
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.spi import ObjId

_ORDER: Final = (TABLES.prefix, VIEWS.prefix)
_NAMESPACES: Final = b"n"
_SIZE: Final = 25
_SCANNED: Final = 500
_NAME: Final = "adopt-tables"


async def give(scene: Scene, token: str | None) -> tuple[tuple[Line, ...], str | None]:
    """Lines of one page of what is given, and the token of the next. `Conflict` before the cession.

    Chosen namespaces come last, without lines: also those that hold nothing.
    """
    into, state = require_into(scene), await scene.catalog.read()
    moving = await require_moving(state, scene.catalog, "giving")
    if token is not None and token.startswith(_NAMESPACES.hex()):
        return (), await _give_namespaces(scene, into, moving, token)
    entries = await scan_ordered(state, INDEX, _ORDER, token, _SCANNED)
    lines: list[Line] = []
    for at, (key, value) in enumerate(entries):
        if len(lines) >= _SIZE:
            return tuple(lines), entries[at - 1][0].hex()
        if not decode_taken(value).is_given:
            *namespace, last = path_of(key)
            lines.append(await _give(scene, into, movable_of(key), Identifier(tuple(namespace), last)))
    if len(entries) == _SCANNED:
        return tuple(lines), entries[-1][0].hex()
    return tuple(lines), await _give_namespaces(scene, into, moving, None)


async def _give(scene: Scene, into: Into, kind: Movable[Any], name: Identifier) -> Line:
    path = (*name.namespace, name.name)
    adopted = await _find_own(scene, await into.catalog.read(), kind.key(name))
    try:
        left = "" if adopted is None else await _register(scene, into, kind, name)
    except (Unavailable, OutcomeUnknown):
        raise
    except CynosureError as error:
        return Line(kind.kind, path, "obstacle", explain(error))
    there = ObjId(0) if adopted is None else adopted.id
    await commit_step(scene, lambda view, _: _prepare_gone(scene, into, kind, name, view, there))
    return Line(kind.kind, path, "given", left)


async def _find_own(scene: Scene, view: View, key: bytes) -> Adopted | None:
    """What is reserved there for something of this catalog's: once it is there, another's may be next."""
    adopted = await find_adopted(view, key)
    return adopted if adopted is not None and adopted.source == scene.catalog.entity.id else None


async def _register(scene: Scene, into: Into, kind: Movable[Any], name: Identifier) -> str:
    """Have it in the other catalog, under the id that was reserved. What it leaves behind, in words."""
    mirror, key = await scene.catalog.read(), kind.key(name)
    # Again: somebody may have hidden something of it since it was taken.
    left = await check_policies(scene, into, kind, name, mirror)

    async def prepare(view: View) -> Prepared[None]:
        await require_open(view)
        adopted = await _find_own(scene, view, key)
        if adopted is None:
            return Prepared(None)
        below, made = Overlay(view), Collected()
        below.add(fulfilling_adopted(key, adopted))
        made.add(await make_namespaces(into.catalog, below, name.namespace, mirror))
        made.add(await kind.prepare_given(into.catalog, scene.caller, below, name, adopted.id, mirror))
        merge(made.changes, fulfilling_adopted(key, adopted))
        return made.prepared(None)

    caller = structs.replace(scene.caller, key=None)
    await commit_part(into.catalog.committer, caller, _NAME, prepare)
    return left


async def _prepare_gone(
    scene: Scene, into: Into, kind: Movable[Any], name: Identifier, view: View, there: ObjId
) -> Prepared[None]:
    """The change that gives it up here, and says who has it. Its places stay nobody's."""
    key = kind.key(name)
    record = await find_taken(view, key)
    if record is None or record.is_given:
        return Prepared(None)
    gone = await kind.prepare_forgotten(scene.catalog, scene.caller, view, name)
    changes: Changes = {index: dict(entries) for index, entries in gone.changes.items()}
    for place in changes.get("locations", {}):
        if await is_ceded(view, place):
            changes["locations"][place] = HOLDER
    merge(changes, end_id(record.uuid))
    merge(changes, noting_taken(key, name, structs.replace(record, is_given=True)))
    now_us = scene.catalog.shared.persistence.clock.now_us()
    given = Given(into.catalog.entity.id, record.uuid, now_us, there)
    merge(changes, noting_given(kind.kind, name, given))
    return Prepared(None, changes, gone.objects, gone.feed)


async def _give_namespaces(scene: Scene, into: Into, moving: Moving, token: str | None) -> str | None:
    """Have some of the chosen namespaces in the other catalog; the token of the next."""
    mirror, target = await scene.catalog.read(), await into.catalog.read()
    entries = await scan_ordered(mirror, "names", (_NAMESPACES,), token, _SCANNED)
    n_made = 0
    for key, _ in entries:
        path = path_of(key)
        if not moving.chosen.has_whole(path) or await target.find("names", key) is not None:
            continue

        async def prepare(view: View, namespace: Namespace = path) -> Prepared[None]:
            await require_open(view)
            made = await make_namespaces(into.catalog, Overlay(view), namespace, mirror)
            return made.prepared(None)

        caller = structs.replace(scene.caller, key=None)
        await commit_part(into.catalog.committer, caller, _NAME, prepare)
        n_made += 1
        if n_made >= _SIZE:
            return key.hex()
    return entries[-1][0].hex() if len(entries) == _SCANNED else None


async def are_all_given(view: View) -> bool:
    """Whether the other catalog has all that was taken."""
    token: str | None = None
    while True:
        entries = await scan_ordered(view, INDEX, _ORDER, token, _SCANNED)
        if not all(decode_taken(value).is_given for _, value in entries):
            return False
        if len(entries) < _SCANNED:
            return True
        token = entries[-1][0].hex()
