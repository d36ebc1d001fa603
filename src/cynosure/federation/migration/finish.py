"""The end of a migration: the catalog is ours, or goes on as the remote's without what was moved.

In place, one commit of the realm's list takes the connection away and the catalog takes writes. The mark
stays: a request that began before and was on its way to the remote all the time finds it, and does not write
what the remote had over what is ours now.

Into another catalog, what was written down is forgotten, but for names that the remote still has for what was
set aside; then the mark ends, and the catalog asks its remote again.
"""

from typing import Final

from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier, path_of
from cynosure.catalog.operations.update_catalog import own_catalog
from cynosure.common.errors import Conflict
from cynosure.federation.handover import INDEX, Moving, closing_taken, decode_taken, marking
from cynosure.federation.migration.kinds import TABLES, VIEWS
from cynosure.federation.migration.release import require_all_held
from cynosure.federation.migration.reserve import clear_target
from cynosure.federation.migration.settle import scan_ordered
from cynosure.federation.migration.steps import Into, Scene, require_moving
from cynosure.federation.migration.take import commit_step
from cynosure.persistence.commit import Prepared, View

_ORDER: Final = (TABLES.prefix, VIEWS.prefix)
_BATCH: Final = 500


async def finish(directory: Directory, scene: Scene) -> None:
    """End it. `Conflict` when it is not released yet."""
    catalog = scene.catalog
    state = await catalog.read()
    await require_moving(state, catalog, "releasing")
    if scene.into is not None:
        await _finish_into(scene, scene.into)
        return
    await require_all_held(scene, state)
    await own_catalog(directory, scene.caller, catalog.entity.name, catalog.entity.id)


async def _finish_into(scene: Scene, into: Into) -> None:
    while await commit_step(scene, _prepare_forgotten):
        pass
    await clear_target(scene, into)
    await commit_step(scene, _prepare_end)


async def _prepare_forgotten(view: View, moving: Moving) -> Prepared[bool]:
    """Forget some of what was written down; whether there may be more."""
    entries = await scan_ordered(view, INDEX, _ORDER, None, _BATCH)
    changes: Changes = {}
    for key, value in entries:
        record, (*namespace, last) = decode_taken(value), path_of(key)
        if moving.phase != "releasing" or not record.is_given:
            raise Conflict("Not everything is given yet", fix="Run it again.", name=last)
        merge(changes, closing_taken(key, Identifier(tuple(namespace), last), record))
    return Prepared(len(entries) == _BATCH, changes)


async def _prepare_end(view: View, moving: Moving) -> Prepared[None]:
    return Prepared(None, marking(None) if moving.phase == "releasing" else {})
