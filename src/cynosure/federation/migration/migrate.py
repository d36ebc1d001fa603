"""One request of a migration: whichever step it names, for whoever may move the catalog."""

from typing import Literal

from msgspec import Struct

from cynosure.auth.caller import Caller
from cynosure.catalog.directory import Directory
from cynosure.catalog.names import Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.common.errors import Conflict
from cynosure.federation.handover import Chosen, Moving, find_moving
from cynosure.federation.lists import Remotes
from cynosure.federation.migration.begin import begin, moved_elsewhere
from cynosure.federation.migration.cancel import cancel
from cynosure.federation.migration.cede import cede
from cynosure.federation.migration.finish import finish
from cynosure.federation.migration.give import give
from cynosure.federation.migration.moved import tell_moved, tell_owned
from cynosure.federation.migration.release import release
from cynosure.federation.migration.settle import settle
from cynosure.federation.migration.steps import Into, Line, Scene, Told, authorize, require_moving
from cynosure.federation.migration.sweep import sweep
from cynosure.federation.migration.target import open_into, open_known
from cynosure.federation.reconcile import require_federated
from cynosure.federation.reconciling.drift import Kind
from cynosure.persistence.commit import State

StepName = Literal[
    "status", "survey", "moved", "begin", "take", "settle", "cede", "give", "release", "finish", "cancel"
]


class Step(Struct, frozen=True, kw_only=True):
    """What is asked for."""

    name: StepName
    kind: Kind = "namespace"
    """Of the survey and of taking: what is listed."""
    namespace: Namespace = ()
    """Where; for namespaces, their parent."""
    token: str | None = None
    chosen: Chosen = Chosen()
    """What is to be moved, of the survey, of what was moved, and of the begin."""
    into: str = ""
    """The catalog that gets it, of the same; empty: the catalog itself becomes ours."""
    keeps_remote: bool = False
    leaves_behind: bool = False
    leaves_policies: bool = False
    is_quiet: bool = False


async def migrate(
    directory: Directory, remotes: Remotes, catalog: OpenCatalog, caller: Caller, step: Step
) -> Told:
    """Do the step. In a catalog that a migration has made ours, all that is asked for is done already."""
    state = await authorize(catalog, caller)
    moving = await find_moving(state)
    if not catalog.is_federated and moving is not None:
        return await _tell_done(directory, catalog, caller, step, state, moving)
    require_federated(catalog)
    into = await _find_into(directory, catalog, caller, step, moving)
    if step.name == "status":
        return _told(moving, into)
    scene = Scene(catalog, caller, remotes.get(catalog), into)
    if step.name == "begin":
        return _told(await begin(directory, scene, _read(step, into), is_quiet=step.is_quiet), into)
    if step.name == "finish":
        await finish(directory, scene)
        return Told(phase="done", into=_name(into))
    if step.name == "cede":
        await cede(scene)
        return _told(await find_moving(await catalog.read()), into)
    lines, token = await _page(scene, step)
    return _told(await find_moving(await catalog.read()), into, lines, token)


async def _tell_done(
    directory: Directory, catalog: OpenCatalog, caller: Caller, step: Step, state: State, moving: Moving
) -> Told:
    if step.name != "moved":
        return Told(phase="done")
    into = await _open_wanted(directory, catalog, caller, step)
    if into is None:
        return Told(phase="done", lines=await tell_owned(state, moving, step.chosen))
    lines, token = await tell_moved(state, into.catalog, step.chosen, step.token)
    return Told(phase="done", lines=lines, next_token=token, into=_name(into))


async def _find_into(
    directory: Directory, catalog: OpenCatalog, caller: Caller, step: Step, moving: Moving | None
) -> Into | None:
    """The catalog that gets the tables: that of the migration under way, or the one that is asked for."""
    if moving is None or step.name in ("survey", "moved") or (not moving.into and step.name == "begin"):
        return await _open_wanted(directory, catalog, caller, step)
    if not moving.into:
        return None
    leaves_policies = moving.leaves_policies or step.leaves_policies
    try:
        into = await open_known(directory, catalog, caller, moving.into, leaves_policies=leaves_policies)
    except Conflict:
        # It was dropped before it knew that it is to get something: nothing there has to be undone.
        if step.name == "cancel":
            return None
        raise
    if step.into and step.into != into.catalog.entity.name:
        raise moved_elsewhere(catalog)
    return into


async def _open_wanted(directory: Directory, catalog: OpenCatalog, caller: Caller, step: Step) -> Into | None:
    if not step.into:
        return None
    return await open_into(directory, catalog, caller, step.into, leaves_policies=step.leaves_policies)


def _read(step: Step, into: Into | None) -> Moving:
    """What is chosen, as the mark keeps it."""
    return Moving(
        begun_us=0,
        keeps_remote=step.keeps_remote,
        leaves_behind=step.leaves_behind,
        namespaces=step.chosen.namespaces,
        tables=step.chosen.tables,
        into="" if into is None else into.catalog.entity.id,
        leaves_policies=step.leaves_policies,
    )


async def _page(scene: Scene, step: Step) -> tuple[tuple[Line, ...], str | None]:
    where = (step.kind, step.namespace, step.token)
    if step.name == "survey":
        return await sweep(scene, *where, chosen=step.chosen, is_dry=True)
    if step.name == "take":
        moving = await require_moving(await scene.catalog.read(), scene.catalog, "taking")
        return await sweep(scene, *where, chosen=moving.chosen, is_dry=False)
    if step.name == "moved":
        if scene.into is None:
            return (), None
        return await tell_moved(await scene.catalog.read(), scene.into.catalog, step.chosen, step.token)
    do = {"settle": settle, "give": give, "release": release, "cancel": cancel}[step.name]
    return await do(scene, step.token)


def _told(
    moving: Moving | None, into: Into | None, lines: tuple[Line, ...] = (), token: str | None = None
) -> Told:
    return Told(
        phase="none" if moving is None else moving.phase,
        lines=lines,
        next_token=token,
        into=_name(into),
        room=None if into is None else into.room,
    )


def _name(into: Into | None) -> str | None:
    return None if into is None else into.catalog.entity.name
