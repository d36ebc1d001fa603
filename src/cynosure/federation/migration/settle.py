"""What the mirror has and no list of the remote named: taken after all, or given up.

Only the remote's own word that it has something no more gives it up here; or the choice that what cannot be
moved stays behind. Where tables go into another catalog nothing is given up for that, since the rest stays
federated; and what was taken is reserved there.
"""

from typing import Final

from cynosure.catalog.cascading.contents import Kind, walk_contents
from cynosure.catalog.changes import Changes
from cynosure.catalog.entities import TABLE_FACADE
from cynosure.catalog.names import Identifier, Namespace, path_of
from cynosure.common.errors import BadInput, CynosureError, OutcomeUnknown, Unavailable
from cynosure.federation.handover import Moving, find_taken
from cynosure.federation.migration.kinds import TABLES, VIEWS, movable_of
from cynosure.federation.migration.reserve import dismiss, reserve
from cynosure.federation.migration.steps import Into, Line, Scene, require_moving
from cynosure.federation.migration.take import commit_step, explain, forget, put_back, take
from cynosure.federation.mirror import prepare_forgotten_namespace
from cynosure.persistence.commit import Prepared, View
from cynosure.persistence.index import after, encode_id_key
from cynosure.persistence.objects import ObjRef

_FACADES: Final = b"f"
_NAMESPACES: Final = b"n"
_MOVABLE: Final = (TABLES.prefix, VIEWS.prefix)
_ORDER: Final = (*_MOVABLE, _FACADES, _NAMESPACES)
_SIZE: Final = 25
_SCANNED: Final = 500


async def settle(scene: Scene, token: str | None) -> tuple[tuple[Line, ...], str | None]:
    """Lines of what was left of one page of the mirror, and the token of the next."""
    state = await scene.catalog.read()
    moving = await require_moving(state, scene.catalog, "taking")
    if scene.into is not None:
        return await _settle_into(scene, scene.into, moving, token)
    entries = await scan_ordered(state, "names", _ORDER, token, _SCANNED)
    lines: list[Line] = []
    for at, (key, value) in enumerate(entries):
        if len(lines) >= _SIZE:
            return tuple(lines), entries[at - 1][0].hex()
        if key.startswith(_FACADES):
            await _forget_facade(scene, key, ObjRef.unpack(value))
            continue
        if key.startswith(_NAMESPACES):
            await _forget_namespace(scene, moving, path_of(key))
            continue
        record = await find_taken(state, key)
        if record is None or not record.is_held:
            lines.append(await _settle(scene, moving, key))
    return tuple(lines), entries[-1][0].hex() if len(entries) == _SCANNED else None


async def _settle_into(
    scene: Scene, into: Into, moving: Moving, token: str | None
) -> tuple[tuple[Line, ...], str | None]:
    state = await scene.catalog.read()
    entries = await scan_ordered(state, "names", _MOVABLE, token, _SCANNED)
    lines: list[Line] = []
    for at, (key, _) in enumerate(entries):
        if len(lines) >= _SIZE:
            return tuple(lines), entries[at - 1][0].hex()
        *namespace, last = path_of(key)
        name = Identifier(tuple(namespace), last)
        if moving.chosen.has(name):
            lines.append(await _reserve(scene, into, moving, key, name))
    return tuple(lines), entries[-1][0].hex() if len(entries) == _SCANNED else None


async def _reserve(scene: Scene, into: Into, moving: Moving, key: bytes, name: Identifier) -> Line:
    """Take it if it was not, and reserve it. What cannot be reserved goes on at the remote as before."""
    movable = movable_of(key)
    line = await take(scene, movable, name)
    record = await find_taken(await scene.catalog.read(), key)
    if line.outcome == "taken" and record is not None:
        try:
            left = await reserve(scene, into, movable, name, record, moving)
            line = Line(line.kind, line.path, "taken", left)
        except (Unavailable, OutcomeUnknown):
            raise
        except CynosureError as error:
            await put_back(scene, movable, name, is_held=True)
            await dismiss(scene, into, key)
            line = Line(line.kind, line.path, "obstacle", explain(error))
    if line.outcome == "obstacle" and moving.leaves_behind:
        return Line(line.kind, line.path, "left-behind", line.reason)
    return line


async def scan_ordered(
    state: View, index: str, order: tuple[bytes, ...], token: str | None, limit: int
) -> list[tuple[bytes, bytes]]:
    """Up to `limit` entries of an index, of these kinds of keys, behind the key that a token is."""
    try:
        start = after(bytes.fromhex(token)) if token else b""
    except ValueError as error:
        raise BadInput("Not a page token", field="pageToken", fix="Pass it as it was given.") from error
    found: list[tuple[bytes, bytes]] = []
    first = order.index(start[:1]) if start[:1] in order else 0
    for prefix in order[first:]:
        begin = start if start.startswith(prefix) else b""
        found += await state.scan(index, prefix=prefix, start=begin, limit=limit - len(found))
        if len(found) >= limit:
            break
    return found


async def _settle(scene: Scene, moving: Moving, key: bytes) -> Line:
    movable, (*namespace, last) = movable_of(key), path_of(key)
    name = Identifier(tuple(namespace), last)
    if not moving.chosen.has(name):
        await forget(scene, movable, name)
        return Line(movable.kind, (*namespace, last), "left-behind", "not chosen")
    line = await take(scene, movable, name)
    if line.outcome == "obstacle" and moving.leaves_behind:
        await forget(scene, movable, name)
        return Line(line.kind, line.path, "left-behind", line.reason)
    return line


async def _forget_namespace(scene: Scene, moving: Moving, namespace: Namespace) -> None:
    """Give a namespace up that was not chosen, and those below it, unless something of ours is in them."""
    if moving.chosen.leads_to(namespace):
        return
    state = await scene.catalog.read()
    below = [each.path async for each in walk_contents(state, namespace, Kind.NAMESPACE)]
    for path in (*below, namespace):

        async def prepare(view: View, _: Moving, path: Namespace = path) -> Prepared[None]:
            return await prepare_forgotten_namespace(scene.catalog, scene.caller, view, path)

        await commit_step(scene, prepare)


async def _forget_facade(scene: Scene, key: bytes, ref: ObjRef) -> None:
    """A name that was granted on and that no table has: in a catalog of ours there is nothing like it."""

    async def prepare(view: View, moving: Moving) -> Prepared[None]:
        if await view.find("names", key) != ref.pack():
            return Prepared(None)
        (facade,) = await view.load_many(TABLE_FACADE, [ref.id])
        changes: Changes = {"names": {key: None}, "ids": {encode_id_key(facade.id): None}}
        return Prepared(None, changes)

    await commit_step(scene, prepare)
