"""Begin a migration: the mark that keeps everybody else from the mirror, and all changes from the remote.

Must not break: the catalog's own mark is set before that of the one its tables go into, and taken away after
it: there is no such one that only its drop could end.
"""

from typing import Any, Final

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.auth.committing import commit_part
from cynosure.auth.rbac import operations as ops
from cynosure.auth.targets import RealmTarget
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Identifier
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import require_open
from cynosure.common.errors import BadInput, Conflict
from cynosure.federation.handover import Moving, find_moving, marking
from cynosure.federation.migration.kinds import TABLES, VIEWS, Movable
from cynosure.federation.migration.moved import is_moved, is_moved_from
from cynosure.federation.migration.reserve import clear_target, mark_target
from cynosure.federation.migration.steps import Scene, authorize
from cynosure.federation.migration.take import GONE
from cynosure.federation.remotes.opening import require_connection
from cynosure.persistence.commit import Prepared, View

_RENAMES_IN_TWO_STEPS: Final = ("GLUE",)
"""Remotes that rename by a copy and a drop: a commit in between would be lost."""
_KINDS: Final[tuple[Movable[Any], ...]] = (TABLES, VIEWS)


async def begin(directory: Directory, scene: Scene, wanted: Moving, *, is_quiet: bool) -> Moving:
    """Set the mark; set already, it takes up what is chosen besides.

    `wanted`: the mark, without a time. `is_quiet`: nobody writes at the remote meanwhile. For who may move
    the catalog and may create catalogs: its end takes a connection away, or gives another one locations.
    """
    catalog, caller = scene.catalog, scene.caller
    state = await authorize(catalog, caller)
    await directory.authorize(caller, ops.EXTEND_STORAGE, RealmTarget(caller.realm))
    if require_connection(catalog).type in _RENAMES_IN_TWO_STEPS and not is_quiet:
        raise BadInput(
            "This kind of remote cannot keep writers off a table while it is moved",
            field="writersStopped",
            fix="Stop all writers of the remote, and say so.",
            catalog=catalog.entity.name,
        )
    if await find_moving(state) is None:
        await _require_there(scene, wanted)
    moving = await _mark(catalog, caller, wanted)
    if scene.into is not None and moving.phase == "taking":
        await mark_target(scene, scene.into, moving)
        now = await find_moving(await catalog.read())
        if now is None or now.begun_us != moving.begun_us:
            # Who gave it up meanwhile has been there before this mark.
            await clear_target(scene, scene.into)
            raise Conflict("The migration was given up", fix="Begin it again.", catalog=catalog.entity.name)
    return moving


async def _mark(catalog: OpenCatalog, caller: Caller, wanted: Moving) -> Moving:
    begun = structs.replace(wanted, begun_us=catalog.shared.persistence.clock.now_us())

    async def prepare(view: View) -> Prepared[Moving]:
        await require_open(view)
        known = await find_moving(view)
        moving = begun if known is None else _join(catalog, known, wanted)
        return Prepared(moving) if moving == known else Prepared(moving, marking(moving))

    return await commit_part(catalog.committer, structs.replace(caller, key=None), "begin-migration", prepare)


async def _require_there(scene: Scene, wanted: Moving) -> None:
    """Refuse names that the remote has not: whoever wrote one wanted something else.

    But for what was moved before, so that the same command can be given again.
    """
    state, into = await scene.catalog.read(), scene.into
    for *namespace, last in wanted.tables:
        name = Identifier(tuple(namespace), last)
        if into is not None and await is_moved(state, into.catalog, name):
            continue
        if not any([await _is_there(scene, kind, name) for kind in _KINDS]):
            raise _not_there(scene, "table or view", "tables", str(name))
    for path in wanted.namespaces:
        if into is not None and await is_moved_from(state, into.catalog, path):
            continue
        try:
            await scene.remote.load_namespace(path)
        except GONE as error:
            raise _not_there(scene, "namespace", "namespaces", ".".join(path)) from error


def _not_there(scene: Scene, what: str, field: str, name: str) -> BadInput:
    return BadInput(
        f"The remote has no {what} of this name",
        field=field,
        fix="Name one that it has.",
        name=name,
        catalog=scene.catalog.entity.name,
    )


async def _is_there(scene: Scene, kind: Movable[Any], name: Identifier) -> bool:
    if kind is VIEWS and not scene.remote.abilities.has_views:
        return False
    try:
        await kind.load(scene.remote, name)
    except GONE:
        return False
    return True


def moved_elsewhere(catalog: OpenCatalog) -> Conflict:
    """What is answered to who wants tables in another catalog than the migration under way."""
    return Conflict(
        "The tables of this catalog are being moved elsewhere",
        fix="Go on with that, or give it up first.",
        catalog=catalog.entity.name,
    )


def _join(catalog: OpenCatalog, known: Moving, wanted: Moving) -> Moving:
    """What was chosen, and what is chosen now besides. What is moved, and where to, does not change."""
    if known.phase == "ending":
        raise Conflict(
            "The migration is being given up",
            fix="Run 'cynosure migrate' with --cancel to its end first.",
            catalog=catalog.entity.name,
        )
    is_chosen = wanted.namespaces or wanted.tables
    if is_chosen and wanted.chosen != known.chosen:
        raise Conflict(
            "Other namespaces or tables of this catalog are being moved",
            fix="Go on with those, or give that up first.",
            catalog=catalog.entity.name,
        )
    if wanted.into and wanted.into != known.into:
        raise moved_elsewhere(catalog)
    known = structs.replace(known, leaves_policies=known.leaves_policies or wanted.leaves_policies)
    if known.phase != "taking":
        return known
    return structs.replace(
        known,
        keeps_remote=known.keeps_remote or wanted.keeps_remote,
        leaves_behind=known.leaves_behind or wanted.leaves_behind,
    )
