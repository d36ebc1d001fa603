"""Whether a table or view can go into another catalog: all of it is tried out there, and nothing is kept.

Must not break: row filters and masks are not shed by a move. Who may not detach them cannot leave them
behind.
"""

from collections.abc import Iterable
from typing import Any, Final

from cynosure.catalog.adopting import dismissing, find_adopted
from cynosure.catalog.attaching import authorize_mapping
from cynosure.catalog.files.importing import read_metadata_file
from cynosure.catalog.locations import check_namespace_location, parse_place
from cynosure.catalog.managed.state import TABLE
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import Identifier, Namespace
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.policies.attached import Attached, load_attached
from cynosure.catalog.policies.types import Attachable
from cynosure.catalog.policy_types import detach_operations
from cynosure.catalog.resolve import find_namespace
from cynosure.catalog.restrictions.in_force import restricting
from cynosure.catalog.restrictions.types import ensure_parser
from cynosure.common.errors import BadInput, CynosureError
from cynosure.federation.migration.kinds import TABLES, VIEWS, Kept, Movable
from cynosure.federation.migration.steps import Into, Scene
from cynosure.federation.mirror.changing import Collected
from cynosure.federation.mirror.namespaces import make_levels
from cynosure.persistence.commit import View
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.objects import ObjRef

_UNREADABLE: Final = "The storage of the other catalog cannot read its metadata file"


async def require_fitting(
    scene: Scene, into: Into, kind: Movable[Any], name: Identifier, mirror: View
) -> str:
    """Refuse what cannot go into the other catalog, as this state of the mirror has it.

    What it leaves behind there, in words; empty for nothing.
    """
    left = await check_policies(scene, into, kind, name, mirror)
    kept = await kind.find_kept(mirror, name)
    if kept is not None:
        await _require_readable(into, name, kept)
        below = await without_reserved(scene, await into.catalog.read(), kind.key(name))
        await _require_other(into, name, kept, below)
        entity_id = into.catalog.shared.persistence.ids.next()
        await kind.prepare_given(into.reader, scene.caller, below, name, entity_id, mirror)
    return left


async def _require_other(into: Into, name: Identifier, kept: Kept, there: View) -> None:
    """Refuse what has the name of a table or view there, saying which two these are."""
    for kind, stored in ((TABLES, TABLE.name), (VIEWS, VIEW.name)):
        value = await there.find("names", kind.key(name))
        if value is None or ObjRef.unpack(value).type != stored:
            continue
        has = await kind.find_kept(there, name)
        if has is None:
            continue
        if has.uuid == kept.uuid:
            message = f"{into.catalog.entity.name} has this very {kind.kind}, and the remote, too: {has.uuid}"
            raise _cannot_go(name, message, fix="Drop it at the remote, without a purge.")
        raise _cannot_go(
            name,
            f"{into.catalog.entity.name} has another {kind.kind} of this name: {has.uuid}; "
            f"the remote has {kept.uuid}",
            fix="Rename one of them.",
        )


async def without_reserved(scene: Scene, view: View, key: bytes) -> Overlay:
    """A state of the other catalog as if nothing were reserved there by this migration under this key."""
    adopted, below = await find_adopted(view, key), Overlay(view)
    if adopted is not None and adopted.source == scene.catalog.entity.id:
        below.add(dismissing(key, adopted))
    return below


async def make_namespaces(
    target: OpenCatalog, below: Overlay, namespace: Namespace, mirror: View
) -> Collected:
    """What makes the levels of a namespace in the other catalog that it has not, with their properties.

    A `location` that is not one for it is left out: new tables go where that catalog puts them.
    """
    properties: dict[Namespace, dict[str, str]] = {}
    for depth in range(1, len(namespace) + 1):
        path = namespace[:depth]
        entity = await find_namespace(mirror, path)
        kept = {} if entity is None else dict(entity.properties)
        try:
            await check_namespace_location(target, below, kept)
        except CynosureError:
            kept.pop("location", None)
        properties[path] = kept
    return await make_levels(target, below, namespace, properties)


async def check_policies(scene: Scene, into: Into, kind: Movable[Any], name: Identifier, mirror: View) -> str:
    """Which policies it leaves behind, in words. Refused where one hides something, unless that is wanted."""
    if kind is not TABLES:
        return ""
    attached = await load_attached(mirror, scene.catalog.table(name))
    if not attached:
        return ""
    await ensure_parser()
    hiding = restricting(attached)
    if hiding and not into.leaves_policies:
        raise _cannot_go(
            name,
            "Row filters or masks that count for it would not count in the other catalog: " + _names(hiding),
            fix="Attach such policies there, and say that these may stay behind.",
        )
    for each in hiding:
        await _authorize_detaching(scene, name, mirror, each)
    return f"policies that stay behind: {_names(attached)}"


async def _authorize_detaching(scene: Scene, name: Identifier, mirror: View, attached: Attached) -> None:
    catalog = scene.catalog
    target: Attachable = catalog.table(name)
    if attached.depth == 0:
        target = catalog.target()
    elif attached.depth <= len(name.namespace):
        target = catalog.namespace(name.namespace[: attached.depth])
    operations = detach_operations(attached.on_kind)
    await authorize_mapping(catalog, scene.caller, mirror, operations, attached.path, target)


async def _require_readable(into: Into, name: Identifier, kept: Kept) -> None:
    try:
        await read_metadata_file(into.reader, parse_place(kept.metadata_location))
    except CynosureError as error:
        raise _cannot_go(
            name,
            f"{_UNREADABLE}: {error.message}",
            fix="Give that catalog keys that reach the files, or leave it behind.",
        ) from error


def _names(attached: Iterable[Attached]) -> str:
    return ", ".join(dict.fromkeys(str(each.path) for each in attached))


def _cannot_go(name: Identifier, message: str, *, fix: str) -> BadInput:
    return BadInput(message, field="into", fix=fix, name=str(name))
