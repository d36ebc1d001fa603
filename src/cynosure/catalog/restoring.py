"""The change that puts something dropped back: the same id, the same state, the same history and grants.

Must not break: its namespace is there, its name free, and its places are its own, all asked of the state that
the change is made on.
"""

from cynosure.catalog.changes import Changes, merge
from cynosure.catalog.claims import claim, claimant_of, join_places
from cynosure.catalog.dropped import DroppedEntity
from cynosure.catalog.errors import NamespaceExists
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
from cynosure.catalog.resolve import require_free_generic_name, require_free_name, require_namespace
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.spi import ObjId


async def prepare_restore(
    catalog: OpenCatalog, view: View, drop_id: ObjId, dropped: DroppedEntity, path: tuple[str, ...]
) -> Prepared[DroppedEntity]:
    """Put it back under this path; what was restored, with that path."""
    target = check_namespace(path, field="path")
    name_key = await _claim_name(view, dropped, target)
    state = dropped.state.pack()
    changes: Changes = {
        "names": {name_key: state},
        "ids": {encode_id_key(dropped.entity_id): name_key},
        "dropped": {encode_id_key(drop_id): None},
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
