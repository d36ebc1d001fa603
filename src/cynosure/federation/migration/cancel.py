"""Give a migration up: everything gets its name back at the remote, and the catalog is as it was.

Possible until something was dropped at the remote, or its places are another catalog's (`Phase`).

Must not break: where that one has reserved something, the end is written down first, then the reservations
go, then the mark. So nothing is taken or reserved for a migration that nobody knows of any more.
"""

from msgspec import structs

from cynosure.catalog.names import Identifier, path_of
from cynosure.common.errors import CynosureError, OutcomeUnknown, Unavailable
from cynosure.federation.handover import INDEX, Moving, marking
from cynosure.federation.migration.kinds import TABLES, VIEWS, movable_of
from cynosure.federation.migration.reserve import clear_target
from cynosure.federation.migration.settle import scan_ordered
from cynosure.federation.migration.steps import Line, Scene, require_moving
from cynosure.federation.migration.take import commit_step, explain, put_back
from cynosure.persistence.commit import Prepared, View

_ORDER = (TABLES.prefix, VIEWS.prefix)
_SIZE = 25


async def cancel(scene: Scene, token: str | None) -> tuple[tuple[Line, ...], str | None]:
    """Lines of one page of what was set aside, and the token of the next.

    The last page takes the mark away, unless something could not be put back.
    """
    state = await scene.catalog.read()
    await require_moving(state, scene.catalog, "taking", "ending")
    entries = await scan_ordered(state, INDEX, _ORDER, token, _SIZE)
    lines: list[Line] = []
    for key, _ in entries:
        movable, (*namespace, last) = movable_of(key), path_of(key)
        path = (*namespace, last)
        try:
            await put_back(scene, movable, Identifier(tuple(namespace), last), is_held=True)
        except (Unavailable, OutcomeUnknown):
            raise
        except CynosureError as error:
            lines.append(Line(movable.kind, path, "obstacle", explain(error)))
            continue
        lines.append(Line(movable.kind, path, "put-back"))
    if len(entries) == _SIZE:
        return tuple(lines), entries[-1][0].hex()
    if await commit_step(scene, _prepare_end):
        if scene.into is not None:
            await clear_target(scene, scene.into)
        await commit_step(scene, _prepare_ended)
    return tuple(lines), None


async def _prepare_end(view: View, moving: Moving) -> Prepared[bool]:
    left = [await view.scan(INDEX, prefix=prefix, limit=1) for prefix in _ORDER]
    if any(left):
        return Prepared(False)
    return Prepared(True, marking(structs.replace(moving, phase="ending")))


async def _prepare_ended(view: View, moving: Moving) -> Prepared[None]:
    return Prepared(None, marking(None) if moving.phase == "ending" else {})
