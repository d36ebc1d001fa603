"""A page of what the remote has: looked at, or taken.

Whoever moves a catalog goes through its namespaces, page by page, and again until a whole round finds nothing
new: names that are set aside meanwhile shift the remote's pages.
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from cynosure.catalog.names import MAX_LEVELS, Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_namespace
from cynosure.common.errors import CynosureError, Unavailable
from cynosure.federation.errors import RemoteMisbehaved
from cynosure.federation.handover import Chosen, Moving, find_taken, is_aside
from cynosure.federation.lists import is_fitting, told_of
from cynosure.federation.migration.kinds import TABLES, VIEWS, Movable
from cynosure.federation.migration.steps import Into, Line, Scene
from cynosure.federation.migration.take import GONE, commit_step, explain, survey, take
from cynosure.federation.mirror import prepare_namespace
from cynosure.federation.reconciling.drift import Kind
from cynosure.federation.remote import NamesPage
from cynosure.federation.turning import Turning
from cynosure.persistence.commit import Prepared, View

_SIZE: Final = 10
"""Objects of one page: the remote is asked several times for each."""
_UNFIT: Final = "the name cannot be one here"
_AGAIN: Final = "made at the remote since this name was set aside; it stays there"


class _Place(Struct, frozen=True, array_like=True):
    """Where a list goes on: the remote's token, and how many of its names were given."""

    token: str | None = None
    skip: int = 0
    turning: Turning = Turning()


async def sweep(
    scene: Scene, kind: Kind, namespace: Namespace, token: str | None, *, chosen: Chosen, is_dry: bool
) -> tuple[tuple[Line, ...], str | None]:
    """Lines of one page of a namespace, and the token of the next. `is_dry`: nothing is changed."""
    tokens, scope = scene.catalog.shared.persistence.page_tokens, _scope(scene.catalog, kind, namespace)
    place = msgspec.msgpack.decode(tokens.open(scope, token), type=_Place) if token else _Place()
    page = await _list(scene, kind, namespace, place.token)
    names = page.names[place.skip : place.skip + _SIZE]
    wanted = [name for name in names if _is_wanted(kind, namespace, name, chosen)]
    lines = [line for name in wanted if (line := await _do(scene, kind, namespace, name, is_dry=is_dry))]
    following = _follow(scene, page, place)
    next_token = None if following is None else tokens.seal(scope, msgspec.msgpack.encode(following))
    return tuple(lines), next_token


def _follow(scene: Scene, page: NamesPage, place: _Place) -> _Place | None:
    if len(page.names) > place.skip + _SIZE:
        return _Place(place.token, place.skip + _SIZE, place.turning)
    if not page.next_token:
        return None
    turning = place.turning.follow(page.next_token)
    if turning is None:
        raise RemoteMisbehaved(scene.catalog.entity.name, problem="its page tokens go round in circles")
    return _Place(page.next_token, 0, turning)


def _is_wanted(kind: Kind, namespace: Namespace, name: str, chosen: Chosen) -> bool:
    if kind == "namespace":
        return chosen.leads_to((*namespace, name))
    return chosen.has(Identifier(namespace, name))


async def _list(scene: Scene, kind: Kind, namespace: Namespace, token: str | None) -> NamesPage:
    remote = scene.remote
    if kind == "namespace":
        if namespace and not remote.abilities.has_nested_namespaces:
            return NamesPage(())
        return await remote.list_namespaces(namespace, token=token, size=_SIZE)
    return await _movable(kind).list_names(remote, namespace, token, _SIZE)


async def _do(scene: Scene, kind: Kind, namespace: Namespace, name: str, *, is_dry: bool) -> Line | None:
    """What becomes of one of the remote's names; `None`: nothing, it is one that was given by us."""
    path = (*namespace, name)
    if not is_fitting(name) or (kind == "namespace" and len(path) > MAX_LEVELS):
        return Line(kind, (*namespace, told_of(name)), "obstacle", _UNFIT)
    if kind == "namespace":
        return await _do_namespace(scene, path, is_dry=is_dry)
    movable, identifier, state = _movable(kind), Identifier(namespace, name), await scene.catalog.read()
    if await is_aside(state, identifier):
        return None
    if is_dry:
        return await survey(scene, movable, identifier)
    record = await find_taken(state, movable.key(identifier))
    if record is not None and record.is_held:
        return Line(kind, path, "obstacle", _AGAIN)
    return await take(scene, movable, identifier)


async def _do_namespace(scene: Scene, namespace: Namespace, *, is_dry: bool) -> Line:
    async def prepare(view: View, moving: Moving) -> Prepared[None]:
        made = await prepare_namespace(scene.catalog, view, namespace, properties)
        return Prepared(None, made.changes, made.objects, made.feed)

    try:
        properties = await scene.remote.load_namespace(namespace)
        if not is_dry:
            await commit_step(scene, prepare)
    except GONE:
        return Line("namespace", namespace, "gone")
    except Unavailable:
        raise
    except CynosureError as error:
        return Line("namespace", namespace, "obstacle", explain(error))
    if not is_dry:
        return Line("namespace", namespace, "taken")
    is_there = scene.into is not None and await _has(scene.into, namespace)
    return Line("namespace", namespace, "there" if is_there else "ready")


async def _has(into: Into, namespace: Namespace) -> bool:
    return await find_namespace(await into.catalog.read(), namespace) is not None


def _movable(kind: Literal["table", "view"]) -> Movable[Any]:
    return TABLES if kind == "table" else VIEWS


def _scope(catalog: OpenCatalog, kind: Kind, namespace: Namespace) -> str:
    return "\x00".join(("migration", *catalog.committer.key, kind, *namespace))
