"""The mirror, brought up to what the remote has now: before a change, and behind it.

Must not break: a change is never judged by what was seen some time ago, however long that may count for
readers.
"""

from cynosure.catalog.errors import NoSuchTable, NoSuchView
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import Identifier, Namespace, table_key, view_key
from cynosure.catalog.resolve import find_table_ref
from cynosure.federation.mirror import find_seen
from cynosure.federation.remote import RemoteTable, RemoteView
from cynosure.federation.writes.write import Before, Scene
from cynosure.iceberg.views import parse_view
from cynosure.persistence.commit import View
from cynosure.persistence.objects import ObjRef


async def look_at_table(scene: Scene, table: Identifier) -> None:
    """Have the table as the remote has it, or none."""
    await scene.federation.see_table(scene.catalog, scene.caller, table, is_fresh=True)


async def look_at_view(scene: Scene, name: Identifier) -> None:
    """Have the view as the remote has it, or none."""
    await scene.federation.see_view(scene.catalog, scene.caller, name, is_fresh=True)


async def look_at_namespace(scene: Scene, namespace: Namespace) -> None:
    """Have the namespace as the remote has it, or none."""
    await scene.federation.see_namespace(scene.catalog, scene.caller, namespace, is_fresh=True)


async def look_at_name(scene: Scene, name: Identifier) -> None:
    """Have whatever has a name that something is to get, as far as the caller may know: a table or a view."""
    await look_at_table(scene, name)
    await look_at_view(scene, name)


async def load_known_table(scene: Scene, view: View, table: Identifier) -> RemoteTable | None:
    """The version that the mirror has; `None` when it has none."""
    ref = await find_table_ref(view, table)
    seen = await find_seen(view, table_key(table))
    if ref is None or seen is None:
        return None
    known = await load_table_at(view, ref.id, scene.catalog.shared.tables)
    return RemoteTable(known.metadata, seen.tag)


async def load_known_view(scene: Scene, view: View, name: Identifier) -> RemoteView | None:
    """The version that the mirror has; `None` when it has none."""
    value = await view.find("names", view_key(name))
    seen = await find_seen(view, view_key(name))
    if value is None or seen is None:
        return None
    (state,) = await view.load_many(VIEW, [ObjRef.unpack(value).id])
    return RemoteView(parse_view(state.json, limits=scene.catalog.limits), seen.tag)


def before_of(known: RemoteTable | RemoteView) -> Before:
    """What is kept of a version to tell later whether it was changed."""
    return Before(known.uuid, known.tag)


async def find_table(scene: Scene, table: Identifier) -> RemoteTable | None:
    """The table as the remote has it now, whatever the mirror has."""
    try:
        found = await scene.remote.load_table(table)
    except NoSuchTable:
        return None
    return found if isinstance(found, RemoteTable) else None


async def find_view(scene: Scene, name: Identifier) -> RemoteView | None:
    """The view as the remote has it now, whatever the mirror has."""
    try:
        found = await scene.remote.load_view(name)
    except NoSuchView:
        return None
    return found if isinstance(found, RemoteView) else None
