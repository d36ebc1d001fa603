"""Places that a caller chooses for what a remote is to make or to change.

In our own catalogs no place is given twice. Of a remote only what was seen is known here: a table that nobody
loaded yet holds nothing, and many remotes give its directory to the next table without a word. Whoever got it
would get the files of both. So places are chosen only by those who may write all tables that could be there,
or take them wherever they like by a rename; and not by those from whom rows or columns are hidden.

Must not break: a place that the remote chose, or that a table held before, is nobody's choice. All others
come through here before the remote hears of them.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from cynosure.auth.rbac import operations as ops
from cynosure.auth.rbac.operations import Operation
from cynosure.auth.rbac.privileges import Privilege
from cynosure.catalog.claims import Claimant, Places, require_free
from cynosure.catalog.entities import NamespaceEntity
from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.locations import check_allowed, find_levels_location, parse_place
from cynosure.catalog.managed.identity import Held
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.resolve import find_namespace
from cynosure.catalog.seeing import find_permission
from cynosure.catalog.targets import CatalogTarget, NamespaceTarget
from cynosure.common.errors import BadInput
from cynosure.federation.writes.write import Scene
from cynosure.persistence.commit import View
from cynosure.storage.location import Location, is_allowed

_RIGHTS: Final = (Privilege.TABLE_WRITE_DATA, Privilege.TABLE_DROP)
"""Of which one is needed. Who may drop a table may rename it."""


async def require_choosable(
    scene: Scene, view: View, namespace: Namespace, places: Places, *, held: Held | None = None
) -> None:
    """Refuse places that a caller may not choose for something in a namespace; `held` is not chosen."""
    had = [] if held is None else [parse_place(text) for text in (held.location, *held.claims)]
    chosen = [each for each in (places.location, *places.others) if not is_allowed(each, had)]
    if not chosen:
        return
    _require_part(scene, chosen)
    await _require_unrestricted(scene, view, namespace)
    if await _may(scene, view, scene.catalog.target()):
        return
    own = await _list_own(scene, view, namespace)
    is_inside = all(is_allowed(each, own) for each in chosen)
    if not is_inside or not await _may(scene, view, scene.catalog.namespace(namespace)):
        raise _refusal("location", chosen)


async def is_usual_place_taken(
    scene: Scene, view: View, claimant: Claimant, namespace: NamespaceEntity, table: Identifier
) -> bool:
    """Whether a table of ours is where most remotes would put one of this name, as after a rename.

    They would put both into one directory, and two tables in one place are not shown here.
    """
    homes = [find_levels_location(scene.catalog, table.namespace)]
    with suppress(BadInput):
        homes.append(Location.parse(namespace.properties.get("location", "")))
    for home in homes:
        try:
            if home is not None:
                await require_free(view, home.child(table.name), claimant)
        except LocationRefused:
            return True
        except BadInput:
            # No name of a directory: remotes have other ones for it.
            continue
    return False


async def require_choosable_home(
    scene: Scene, view: View, namespace: Namespace, properties: Mapping[str, str], *, field: str
) -> None:
    """Refuse a namespace's location that its caller may not choose: the remote puts tables there."""
    text = properties.get("location")
    if not text:
        return
    await _require_unrestricted(scene, view, namespace)
    if await _may(scene, view, scene.catalog.target()):
        return
    chosen, parent = check_allowed(scene.catalog, text, field=f"{field}.location"), namespace[:-1]
    is_inside = parent and is_allowed(chosen, await _list_own(scene, view, parent))
    if not is_inside or not await _may(scene, view, scene.catalog.namespace(parent)):
        raise _refusal(f"{field}.location", [chosen])


def _require_part(scene: Scene, chosen: Iterable[Location]) -> None:
    """Refuse what the mirror would not show (`mirror.places.require_part`), before it is made."""
    for each in chosen:
        if scene.catalog.base.is_within(each):
            raise LocationRefused(
                "Nothing in a federated catalog can be where all of it is",
                fix="Choose a directory below the catalog's base location, or leave the location out.",
                field="location",
                location=each.text,
            )


async def _list_own(scene: Scene, view: View, namespace: Namespace) -> list[Location]:
    """Where the tables of a namespace are: who may write all of them gains nothing by choosing there."""
    entity, own = await find_namespace(view, namespace), [find_levels_location(scene.catalog, namespace)]
    if entity is not None:
        own.append(_find_home(scene, entity))
    return [each for each in own if each is not None]


def _find_home(scene: Scene, namespace: NamespaceEntity) -> Location | None:
    """Where a remote says that a namespace is, unless that is where all of them are, as Hive's `default`."""
    try:
        home = Location.parse(namespace.properties.get("location", ""))
    except BadInput:
        return None
    return None if scene.catalog.base.is_within(home) else home


async def _require_unrestricted(scene: Scene, view: View, namespace: Namespace) -> None:
    """As for who registers a file: nobody looks at what is in it."""
    target = scene.catalog.namespace(namespace)
    await scene.catalog.restrictions.check(view, scene.caller, ops.REGISTER_TABLE, (target,))


async def _may(scene: Scene, view: View, target: CatalogTarget | NamespaceTarget) -> bool:
    authorizer = scene.catalog.shared.authorizer
    for right in _RIGHTS:
        operation = Operation("choose-place", ((right,),), (target.kind,))
        allowed = await find_permission(authorizer, scene.caller, operation, (target,), view, is_hiding=True)
        if allowed is not None:
            return True
    return False


def _refusal(field: str, chosen: Iterable[Location]) -> LocationRefused:
    return LocationRefused(
        "Locations of a federated catalog are chosen by those who may write or drop all tables there",
        fix="Leave the location out, or ask for TABLE_WRITE_DATA or TABLE_DROP on the catalog, or on the "
        "namespace for what is inside its location.",
        field=field,
        location=next(iter(chosen)).text,
    )
