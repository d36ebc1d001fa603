"""A namespace as the remote has it.

Must not break: no property of a remote's namespace begins as ours do: those are read by this server. What
its `location` says is checked wherever something is put there, as any other.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from cynosure.auth.caller import Caller
from cynosure.catalog.changes import merge
from cynosure.catalog.entities import NAMESPACE, NamespaceEntity
from cynosure.catalog.names import Namespace, namespace_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.properties import OURS
from cynosure.catalog.resolve import find_namespace, require_open
from cynosure.federation.mirror.changing import Collected, commit_mirror
from cynosure.federation.mirror.seen import Seen, find_seen, noting
from cynosure.federation.mirror.waiting import take_to_namespace
from cynosure.persistence.commit import Change, Prepared, View
from cynosure.persistence.commit.records import raw_detail
from cynosure.persistence.index import encode_id_key
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.store import NewObject

_LEVELS_PROPERTIES: Final[Mapping[str, str]] = {}
_UNKNOWN: Final[Mapping[Namespace, Mapping[str, str]]] = {}


async def backfill_namespace(
    catalog: OpenCatalog, caller: Caller, namespace: Namespace, properties: Mapping[str, str]
) -> NamespaceEntity:
    """Have the namespace as the remote has it. Nothing is committed when it is so already."""

    async def prepare(view: View) -> Prepared[NamespaceEntity]:
        return await prepare_namespace(catalog, view, namespace, properties)

    return await commit_mirror(catalog, caller, "mirror-namespace", prepare)


async def prepare_namespace(
    catalog: OpenCatalog, view: View, namespace: Namespace, properties: Mapping[str, str]
) -> Prepared[NamespaceEntity]:
    """The change that `backfill_namespace` commits."""
    await require_open(view)
    wanted, key = shown_properties(catalog, properties), namespace_key(namespace)
    entity, seen = await find_namespace(view, namespace), await find_seen(view, key)
    if entity is not None and entity.properties == wanted and seen is not None:
        return Prepared(entity)
    changed = await make_levels(catalog, view, namespace[:-1])
    now_us = catalog.shared.persistence.clock.now_us()
    if entity is None:
        entity = await _add_level(catalog, view, changed, namespace, wanted)
    elif entity.properties != wanted:
        before = await view.find("names", key)
        entity = structs.replace(entity, updated_us=now_us, properties=wanted)
        _add_version(catalog, changed, namespace, entity, before)
    merge(changed.changes, noting(key, Seen(seen_us=now_us), seen))
    return changed.prepared(entity)


async def make_levels(
    catalog: OpenCatalog,
    view: View,
    namespace: Namespace,
    properties: Mapping[Namespace, Mapping[str, str]] = _UNKNOWN,
) -> Collected:
    """What makes the levels of a namespace that are not there yet: there is to be something in it.

    `properties`: what they are to have, where that is known.
    """
    made = Collected()
    for depth in range(1, len(namespace) + 1):
        path = namespace[:depth]
        if await view.find("names", namespace_key(path)) is None:
            await _add_level(catalog, view, made, path, properties.get(path, _LEVELS_PROPERTIES))
    return made


def shown_properties(catalog: OpenCatalog, properties: Mapping[str, str]) -> dict[str, str]:
    """What is kept of a remote namespace's properties: as many as fit, and none that are ours to set."""
    limit = catalog.shared.settings.sizes.properties_bytes
    kept: dict[str, str] = {}
    for name in sorted(properties):
        value = properties[name]
        limit -= len((name + value).encode("utf-8", "surrogatepass"))
        if limit < 0:
            break
        if name and not name.strip().lower().startswith(OURS) and _is_text(name + value):
            kept[name] = value
    return kept


def _is_text(text: str) -> bool:
    """Whether it can be stored and sent: a metastore may have bytes that are no letters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


async def _add_level(
    catalog: OpenCatalog, view: View, made: Collected, path: Namespace, properties: Mapping[str, str]
) -> NamespaceEntity:
    persistence = catalog.shared.persistence
    now_us, key = persistence.clock.now_us(), namespace_key(path)
    entity = NamespaceEntity(
        id=persistence.ids.next(), created_us=now_us, updated_us=now_us, properties=dict(properties)
    )
    value = ObjRef(entity.id, NAMESPACE.name).pack()
    made.changes.setdefault("names", {})[key] = value
    made.changes.setdefault("ids", {})[encode_id_key(entity.id)] = key
    made.objects.append(NewObject(NAMESPACE, entity.id, entity))
    detail = raw_detail({"id": entity.id, "path": path})
    made.feed.append(Change(kind="namespace-created", index="names", key=key, after=value, detail=detail))
    made.add(await take_to_namespace(catalog, view, path, entity.id))
    return entity


def _add_version(
    catalog: OpenCatalog, made: Collected, path: Namespace, entity: NamespaceEntity, before: bytes | None
) -> None:
    state_id, key = catalog.shared.persistence.ids.next(), namespace_key(path)
    after = ObjRef(state_id, NAMESPACE.name).pack()
    made.changes.setdefault("names", {})[key] = after
    made.objects.append(NewObject(NAMESPACE, state_id, entity))
    detail = raw_detail({"id": entity.id, "path": path})
    made.feed.append(
        Change(kind="namespace-updated", index="names", key=key, before=before, after=after, detail=detail)
    )
