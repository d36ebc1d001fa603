"""Restore something dropped: the same id, the same state, and so the same history and grants."""

from typing import Final

from cynosure.auth.caller import Caller
from cynosure.auth.rbac import operations as ops
from cynosure.auth.receipts import Recall, Sealed
from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import claim, claimant_of, join_places
from cynosure.catalog.dropped import DROPPED, DroppedEntity
from cynosure.catalog.errors import NamespaceExists, NoSuchDropped
from cynosure.catalog.locations import parse_place
from cynosure.catalog.names import (
    Identifier,
    check_namespace,
    generic_key,
    namespace_key,
    namespace_text,
    table_key,
    view_key,
)
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import (
    require_free_generic_name,
    require_free_name,
    require_namespace,
    require_open,
)
from cynosure.common.errors import Expired
from cynosure.common.quantities import format_duration
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_RECALL: Final[Recall[DroppedEntity]] = Sealed(DroppedEntity)


async def restore_dropped(
    catalog: OpenCatalog, caller: Caller, drop_id: ObjId, *, path: tuple[str, ...] | None = None
) -> DroppedEntity:
    """Restore it, under the path it had or another; what was restored, with the path it has now.

    Its namespace must exist, its name and location must be free.
    """
    key = encode_id_key(drop_id)

    async def prepare(view: View) -> Prepared[DroppedEntity]:
        await require_open(view)
        value = await view.find("dropped", key)
        if value is None:
            raise NoSuchDropped(str(drop_id))
        dropped = (await view.load_many(DROPPED, [ObjRef.unpack(value).id]))[0]
        _require_in_window(catalog, dropped)
        target = check_namespace(path or dropped.path, field="path")
        name_key = await _claim_name(view, dropped, target)
        state = dropped.state.pack()
        changes: Changes = {
            "names": {name_key: state},
            "ids": {encode_id_key(dropped.entity_id): name_key},
            "dropped": {key: None},
        }
        if dropped.location:
            # Not checked against what is allowed now: its metadata can be read, and access is checked then.
            others = [parse_place(text) for text in dropped.claims]
            places = join_places(parse_place(dropped.location), others)
            merge(changes, (await claim(view, claimant_of(catalog, dropped.entity_id), places)).changes)
        feed = Change(
            kind=f"{dropped.kind}-restored",
            index="names",
            key=name_key,
            after=state,
            detail=raw_detail({"id": dropped.entity_id, "path": target}),
        )
        return Prepared(dropped.at(target), changes, feed=[feed])

    target = catalog.target()
    return (await catalog.commit(caller, ops.RESTORE_DROPPED, (target,), prepare, _RECALL)).result


async def _claim_name(view: View, dropped: DroppedEntity, path: tuple[str, ...]) -> bytes:
    if dropped.kind == "namespace":
        if len(path) > 1:
            await require_namespace(view, path[:-1])
        key = namespace_key(path)
        if await view.find("names", key) is not None:
            raise NamespaceExists(namespace_text(path))
        return key
    name = Identifier(path[:-1], path[-1])
    await require_namespace(view, check_namespace(name.namespace))
    if dropped.kind == "generic-table":
        await require_free_generic_name(view, name)
        return generic_key(name)
    await require_free_name(view, name, for_view=dropped.kind == "view")
    return view_key(name) if dropped.kind == "view" else table_key(name)


def _require_in_window(catalog: OpenCatalog, dropped: DroppedEntity) -> None:
    if dropped.dropped_us < catalog.dropped_since_us():
        window = catalog.shared.persistence.settings.gc.undrop_window
        raise Expired(
            "It was dropped too long ago to be restored",
            fix="Register its metadata file, if its files are still there.",
            window=format_duration(window),
        )
