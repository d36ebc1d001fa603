"""Asking a remote about entries of the mirror, a few at a time.

A maintainer must not break: what a remote does not say is not gone. Only its own word that it has no such
thing counts, never an error.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from cynosure.catalog.errors import NoSuchNamespace, NoSuchTable, NoSuchView
from cynosure.catalog.managed.identity import load_identity, load_view_id
from cynosure.catalog.names import Identifier, Namespace, namespace_key, path_of, table_key, view_key
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.resolve import find_namespace
from cynosure.common.errors import CynosureError, Unavailable
from cynosure.federation.mirror import Seen, find_seen
from cynosure.federation.mirror.namespaces import shown_properties
from cynosure.federation.reconciling.drift import Difference, Kind
from cynosure.federation.remote import RemoteCatalog, RemoteTable, RemoteView, Unchanged
from cynosure.persistence.commit import State
from cynosure.persistence.objects import ObjRef
from cynosure.persistence.spi import ObjId

_AT_ONCE: Final = 8
_KINDS: Final[Mapping[bytes, Kind]] = {b"n": "namespace", b"t": "table", b"v": "view"}


class Entry(NamedTuple):
    """Something in the mirror."""

    kind: Kind
    path: tuple[str, ...]
    id: ObjId
    seen: Seen | None

    @property
    def name(self) -> Identifier:
        """Of a table or view."""
        return Identifier(self.path[:-1], self.path[-1])


class Look(NamedTuple):
    """What the remote said about an entry. `difference` is `None`: all is well."""

    entry: Entry
    difference: Difference | None
    table: RemoteTable | None = None
    view: RemoteView | None = None
    properties: Mapping[str, str] | None = None


async def load_entry(state: State, key: bytes) -> Entry | None:
    """The entry that a key of `names` has in a state; `None` when it has none (any more)."""
    value = await state.find("names", key)
    if value is None:
        return None
    kind, ref = _KINDS[key[:1]], ObjRef.unpack(value)
    seen = await find_seen(state, key)
    if kind == "table":
        return Entry(kind, path_of(key), (await load_identity(state, ref))[0], seen)
    if kind == "view":
        return Entry(kind, path_of(key), await load_view_id(state, ref), seen)
    entity = await find_namespace(state, path_of(key))
    return None if entity is None else Entry(kind, path_of(key), entity.id, seen)


def key_of(kind: Kind, path: tuple[str, ...]) -> bytes:
    """The key in `names` of something of this kind."""
    if kind == "namespace":
        return namespace_key(path)
    name = Identifier(path[:-1], path[-1])
    return table_key(name) if kind == "table" else view_key(name)


async def look_at_all(
    remote: RemoteCatalog, catalog: OpenCatalog, state: State, entries: list[Entry]
) -> list[Look]:
    """What the remote says about each of them, in their order."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def look(entry: Entry) -> Look:
        async with turns:
            return await _look(remote, catalog, state, entry)

    return list(await asyncio.gather(*map(look, entries)))


async def _look(remote: RemoteCatalog, catalog: OpenCatalog, state: State, entry: Entry) -> Look:
    try:
        if entry.kind == "table":
            return await _look_at_table(remote, entry)
        if entry.kind == "view":
            return await _look_at_view(remote, entry)
        return await _look_at_namespace(remote, catalog, state, entry, entry.path)
    except (NoSuchTable, NoSuchView, NoSuchNamespace):
        return Look(entry, "gone")
    except Unavailable:
        return Look(entry, "unreachable")
    except CynosureError:
        return Look(entry, "unusable")


async def _look_at_table(remote: RemoteCatalog, entry: Entry) -> Look:
    known = None if entry.seen is None else entry.seen.tag
    found = await remote.load_table(entry.name, known)
    if isinstance(found, Unchanged):
        return Look(entry, None)
    return Look(entry, _compare(entry, found.uuid), table=found)


async def _look_at_view(remote: RemoteCatalog, entry: Entry) -> Look:
    if not remote.abilities.has_views:
        return Look(entry, "gone")
    known = None if entry.seen is None else entry.seen.tag
    found = await remote.load_view(entry.name, known)
    if isinstance(found, Unchanged):
        return Look(entry, None)
    return Look(entry, _compare(entry, found.uuid), view=found)


def _compare(entry: Entry, uuid: str) -> Difference:
    is_same = entry.seen is None or entry.seen.uuid == uuid
    return "changed" if is_same else "re-created"


async def _look_at_namespace(
    remote: RemoteCatalog, catalog: OpenCatalog, state: State, entry: Entry, namespace: Namespace
) -> Look:
    properties = await remote.load_namespace(namespace)
    known = await find_namespace(state, namespace)
    # One that was only passed on the way to a table was never looked at: what it has is no difference.
    if known is None or entry.seen is None or known.properties == shown_properties(catalog, properties):
        return Look(entry, None)
    return Look(entry, "changed", properties=properties)
