"""What the remote has under another name: the same table, with its grants, policies and restrictions.

Restrictions of what had the new name come on top, and those of namespaces that it was in and left; those of
the table also wait for the next of its old name.

Must not break: only what has the same uuid is moved, and only when the remote has it under the old name no
more. Who calls has asked. And an id that is granted on by name does not leave its name.
"""

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import merge
from cynosure.catalog.managed.identity import load_identity
from cynosure.catalog.managed.loading import load_table_at
from cynosure.catalog.managed.view_state import VIEW
from cynosure.catalog.names import Identifier, table_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_table_ref, require_open
from cynosure.federation.mirror.changing import Collected, commit_mirror
from cynosure.federation.mirror.facades import find_facade
from cynosure.federation.mirror.forgetting import removing_table, removing_view
from cynosure.federation.mirror.namespaces import make_levels
from cynosure.federation.mirror.returning import find_returning
from cynosure.federation.mirror.seen import Seen, SeenMeanwhile, erasing, find_seen, noting
from cynosure.federation.mirror.tables import prepare_table
from cynosure.federation.mirror.views import prepare_view
from cynosure.federation.mirror.waiting import (
    end_inherited,
    find_inherited,
    leave_restrictions,
    take_restrictions,
)
from cynosure.federation.remote import RemoteTable, RemoteView
from cynosure.iceberg.views import parse_view
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.commit.view import Overlay
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId


async def move_table(
    catalog: OpenCatalog, caller: Caller, source: Identifier, target: Identifier, uuid: str
) -> None:
    """Give a table the name that it has at the remote now. Nothing is committed when it is not here.

    Which version it is stays as it was; what had the new name is given up. `SeenMeanwhile` when another table
    has the old name by now.
    """

    async def prepare(view: View) -> Prepared[None]:
        await _require_same(view, table_key(source), uuid, source)
        return await prepare_moved_table(catalog, caller, view, source, target, uuid)

    await commit_mirror(catalog, caller, "mirror-move-table", prepare)


async def prepare_moved_table(
    catalog: OpenCatalog,
    caller: Caller,
    view: View,
    source: Identifier,
    target: Identifier,
    uuid: str,
    *,
    is_by_caller: bool = False,
) -> Prepared[None]:
    """The change that `move_table` commits. Nothing but what has this uuid is moved.

    `is_by_caller`: somebody renamed it who may see all of it; then restrictions of the namespaces that it
    leaves stay behind, as they do in a catalog of our own.
    """
    await require_open(view)
    old, new = table_key(source), table_key(target)
    ref, seen = await find_table_ref(view, source), await find_seen(view, old)
    if ref is None or _is_another(seen, uuid):
        return await _prepare_returned_table(catalog, caller, view, target, uuid, is_by_caller=is_by_caller)
    if seen is not None and seen.is_by_name:
        # The id is the name's, and all that is granted on it: the table comes anew under the other one.
        return (await removing_table(catalog, caller, view, source)).prepared(None)
    entity_id, _ = await load_identity(view, ref)
    there = await find_table_ref(view, target)
    gone = [] if there is None else [(await load_identity(view, there))[0]]
    moved, below = await make_levels(catalog, view, target.namespace), Overlay(view)
    moved.add(await removing_table(catalog, caller, view, target))
    moved.add(await removing_view(catalog, caller, view, target))
    below.add(moved.changes, moved.objects)
    facade = await find_facade(below, target)
    if facade is not None:
        # A name that is granted on by name: what comes there by a rename has an id of its own.
        merge(moved.changes, facade.changes)
        merge(moved.changes, {"ids": {encode_id_key(facade.id): None}})
        gone.append(facade.id)
    schema = (await load_table_at(view, ref.id, catalog.shared.tables)).metadata.current_schema()
    merge(moved.changes, await leave_restrictions(view, source, entity_id))
    inherited = [] if is_by_caller else await find_inherited(view, source.namespace)
    moved.add(
        await take_restrictions(
            catalog, view, target, uuid, entity_id, schema, replaced=gone, inherited=inherited
        )
    )
    _add_move(moved, "table", entity_id, ref, (source, old), (target, new))
    _add_notes(moved, seen, old, new)
    return moved.prepared(None)


async def move_view(
    catalog: OpenCatalog, caller: Caller, source: Identifier, target: Identifier, uuid: str
) -> None:
    """Give a view the name that it has at the remote now. `SeenMeanwhile`, as with tables."""

    async def prepare(view: View) -> Prepared[None]:
        await _require_same(view, view_key(source), uuid, source)
        return await prepare_moved_view(catalog, caller, view, source, target, uuid)

    await commit_mirror(catalog, caller, "mirror-move-view", prepare)


async def prepare_moved_view(
    catalog: OpenCatalog, caller: Caller, view: View, source: Identifier, target: Identifier, uuid: str
) -> Prepared[None]:
    """The change that `move_view` commits. Nothing but what has this uuid is moved."""
    await require_open(view)
    old, new = view_key(source), view_key(target)
    value, seen = await view.find("names", old), await find_seen(view, old)
    if value is None or _is_another(seen, uuid):
        return await _prepare_returned_view(catalog, caller, view, target, uuid)
    ref = ObjRef.unpack(value)
    (state,) = await view.load_many(VIEW, [ref.id])
    moved = await make_levels(catalog, view, target.namespace)
    moved.add(await removing_table(catalog, caller, view, target))
    moved.add(await removing_view(catalog, caller, view, target))
    _add_move(moved, "view", state.id, ref, (source, old), (target, new))
    _add_notes(moved, seen, old, new)
    return moved.prepared(None)


async def _prepare_returned_table(
    catalog: OpenCatalog, caller: Caller, view: View, target: Identifier, uuid: str, *, is_by_caller: bool
) -> Prepared[None]:
    """Its new name for a table that was given up meanwhile, because somebody asked for the old one."""
    returning = await find_returning(view, uuid, "table")
    if returning is None:
        return Prepared(None)
    last = await load_table_at(view, returning.state.id, catalog.shared.tables)
    below, changed = Overlay(view), Collected()
    if is_by_caller:
        merge(changed.changes, await end_inherited(view, uuid))
        below.add(changed.changes)
    remote = RemoteTable(last.metadata, returning.tag)
    changed.add(await prepare_table(catalog, caller, below, target, remote))
    return changed.prepared(None)


async def _prepare_returned_view(
    catalog: OpenCatalog, caller: Caller, view: View, target: Identifier, uuid: str
) -> Prepared[None]:
    """The same for a view."""
    returning = await find_returning(view, uuid, "view")
    if returning is None:
        return Prepared(None)
    (state,) = await view.load_many(VIEW, [returning.state.id])
    remote = RemoteView(parse_view(state.json, limits=catalog.limits), returning.tag)
    prepared = await prepare_view(catalog, caller, view, target, remote)
    return Prepared(None, prepared.changes, prepared.objects, prepared.feed)


async def _require_same(view: View, key: bytes, uuid: str, name: Identifier) -> None:
    """The remote was asked before this commit: what has the name now may be another one."""
    if _is_another(await find_seen(view, key), uuid):
        raise SeenMeanwhile(str(name))


def _is_another(seen: Seen | None, uuid: str) -> bool:
    return seen is not None and seen.uuid != uuid


def _add_move(
    moved: Collected,
    kind: str,
    entity_id: ObjId,
    ref: ObjRef,
    source: tuple[Identifier, bytes],
    target: tuple[Identifier, bytes],
) -> None:
    value, (_, old), (name, new) = ref.pack(), source, target
    merge(
        moved.changes,
        {"names": {old: None, new: value}, "ids": {encode_id_key(entity_id): new}},
    )
    detail = raw_detail({"id": entity_id, "path": (*name.namespace, name.name)})
    moved.feed.append(
        Change(kind=f"{kind}-renamed", index="names", key=old, before=value, after=value, detail=detail)
    )


def _add_notes(moved: Collected, seen: Seen | None, old: bytes, new: bytes) -> None:
    merge(moved.changes, erasing(old, seen))
    if seen is not None:
        merge(moved.changes, noting(new, Seen(seen.tag, seen.uuid, seen.seen_us)))
