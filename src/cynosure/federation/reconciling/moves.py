"""What is gone under one name and may be there under another, as its uuid says.

Looked for in the namespace that it was in, then in the others of the remote: first what has kept its name.
Only names that the mirror has not are candidates, and only a bounded number of namespaces is listed and of
candidates loaded for one page: a rename among very many new tables is told as gone here, and found by its
uuid when somebody loads the table under its new name.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from cynosure.catalog.names import Identifier, Namespace, path_of, tables_prefix, views_prefix
from cynosure.common.errors import CynosureError
from cynosure.federation.reconciling.drift import Kind
from cynosure.federation.reconciling.looking import Entry, Look, key_of
from cynosure.federation.reconciling.names import FEW_PAGES, read_names, read_namespaces
from cynosure.federation.remote import RemoteCatalog, RemoteTable, RemoteView, Unchanged
from cynosure.persistence.commit import State
from cynosure.persistence.listing import scan_all

MOST_LOADS: Final = 50
"""Candidates that are loaded for one page of entries."""
MOST_NAMESPACES: Final = 50
"""Of the remote, that are listed for one page of entries."""
_AT_ONCE: Final = 8

_KINDS: Final[tuple[Kind, ...]] = ("table", "view")


class Moved(NamedTuple):
    """Something under its new name, as the remote has it."""

    path: tuple[str, ...]
    table: RemoteTable | None = None
    view: RemoteView | None = None

    @property
    def uuid(self) -> str:
        """By which it is known."""
        there = self.table or self.view
        return "" if there is None else there.uuid


async def find_moves(remote: RemoteCatalog, state: State, gone: Iterable[Look]) -> dict[bytes, Moved]:
    """By the key of what is gone: the same thing, as it is under its new name."""
    search = _Search(remote, state, gone)
    for kind in _KINDS:
        homes = sorted({entry.path[:-1] for entry in search.missed[kind].values()})
        for namespace in homes:
            await search.look_in(kind, await search.list_new(kind, namespace))
        if search.missed[kind]:
            await search.look_elsewhere(kind, homes)
    return search.found


class _Search:
    """What is looked for, what was found, and how much may still be asked."""

    def __init__(self, remote: RemoteCatalog, state: State, gone: Iterable[Look]) -> None:
        self._remote = remote
        self._state = state
        self.missed: dict[Kind, dict[str, Entry]] = {kind: {} for kind in _KINDS}
        """What was not found yet, by uuid."""
        for entry in (look.entry for look in gone):
            if entry.kind in self.missed and entry.seen is not None and entry.seen.uuid:
                self.missed[entry.kind][entry.seen.uuid] = entry
        self._loads = MOST_LOADS
        self._namespaces: list[Namespace] | None = None
        self.found: dict[bytes, Moved] = {}

    async def list_new(self, kind: Kind, namespace: Namespace, **pages: int) -> list[tuple[str, ...]]:
        """The paths of what a namespace has at the remote and the mirror has not."""
        try:
            names = (await read_names(self._remote, namespace, kind, **pages)).fitting
        except CynosureError:
            return []
        prefix = tables_prefix(namespace) if kind == "table" else views_prefix(namespace)
        known = {path_of(key)[-1] for key, _ in await scan_all(self._state, "names", prefix)}
        return [(*namespace, name) for name in names - known]

    async def look_elsewhere(self, kind: Kind, homes: list[Namespace]) -> None:
        """Look in all other namespaces of the remote at once, so that the likeliest of them all is first."""
        if self._namespaces is None:
            self._namespaces = await read_namespaces(self._remote, MOST_NAMESPACES)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def list_new(namespace: Namespace) -> list[tuple[str, ...]]:
            async with turns:
                return await self.list_new(kind, namespace, most_pages=FEW_PAGES)

        lists = await asyncio.gather(*(list_new(each) for each in self._namespaces if each not in homes))
        await self.look_in(kind, [path for paths in lists for path in paths])

    async def look_in(self, kind: Kind, paths: list[tuple[str, ...]]) -> None:
        """Load them, until all is found or enough was asked."""
        missed = self.missed[kind]
        names = {entry.path[-1] for entry in missed.values()}
        for path in sorted(paths, key=lambda each: (each[-1] not in names, each)):
            if self._loads <= 0 or not missed:
                return
            self._loads -= 1
            moved = await self._load(kind, path)
            entry = None if moved is None else missed.pop(moved.uuid, None)
            if moved is not None and entry is not None:
                self.found[key_of(kind, entry.path)] = moved

    async def _load(self, kind: Kind, path: tuple[str, ...]) -> Moved | None:
        name = Identifier(path[:-1], path[-1])
        try:
            if kind == "table":
                table = await self._remote.load_table(name)
                return None if isinstance(table, Unchanged) else Moved(path, table=table)
            view = await self._remote.load_view(name)
        except CynosureError:
            return None
        return None if isinstance(view, Unchanged) else Moved(path, view=view)
