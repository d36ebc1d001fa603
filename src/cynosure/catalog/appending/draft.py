"""A table on its way to its next version: several snapshots may be put on it before it is written once.

Must not break: a manifest or list is named in the draft before it is stored, and stored before the draft is
committed (`write`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from uuid import uuid4

from cynosure.catalog.files.export import Export, place_beside
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.manifests.table_files import TableFiles
from cynosure.catalog.opened import OpenCatalog
from cynosure.iceberg.appending.merging import choose_merges, merged_entries
from cynosure.iceberg.appending.own_manifests import carried, numbered
from cynosure.iceberg.appending.snapshot import NewSnapshot, find_head
from cynosure.iceberg.appending.writing import find_codec, manifest_kind
from cynosure.iceberg.manifests.content_file import Entry
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestFile
from cynosure.iceberg.manifests.read_manifest import read_manifest
from cynosure.iceberg.manifests.write_manifest import write_manifest
from cynosure.iceberg.metadata import TableMetadata
from cynosure.iceberg.partitioning import partition_types
from cynosure.iceberg.updates import TableUpdate, apply_updates

R = TypeVar("R")
_SMALL_BYTES: Final = 64 * 1024
"""Manifests up to here are decoded for those who read them next, on the way."""
_MANY_FILES: Final = 200
"""A file takes up to a tenth of a millisecond to check, merge or write."""


class Written:
    """Manifests that one attempt has made so far, whatever the state: they stay good on the next one."""

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}
        """Of all manifests, by where they go."""
        self._stored: set[str] = set()
        self._manifests: dict[object, ManifestFile] = {}

    def get(self, key: object) -> ManifestFile | None:
        """A manifest that was made for this before."""
        return self._manifests.get(key)

    def add(self, key: object, listed: ManifestFile, data: bytes) -> None:
        """Remember a manifest that is yet to be stored."""
        self._manifests[key] = listed
        self._data[listed.path] = data

    def find_data(self, path: str) -> bytes | None:
        """The bytes of a manifest that was made here."""
        return self._data.get(path)

    def note_stored(self, paths: Iterable[str]) -> None:
        """These need not be stored again."""
        self._stored.update(paths)

    def is_stored(self, path: str) -> bool:
        """Whether an earlier draft has stored it."""
        return path in self._stored


class TableDraft:
    """A version of a table and the updates that lead to it."""

    def __init__(self, catalog: OpenCatalog, base: ManagedTable, written: Written, *, now_ms: int) -> None:
        self.files = TableFiles(catalog, base)
        self.metadata: TableMetadata = base.metadata
        self.updates: list[TableUpdate] = []
        self.now_ms = now_ms
        self.written = written
        self._catalog = catalog
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}
        """Lists of snapshots of this draft, by path."""
        self._carried: dict[tuple[str, int | None], Manifest] = {}
        """Manifests of clients that are used as they are, read with their numbers open; by path and by the
        snapshot that adds them: what a manifest means depends on who names it."""
        self._new: dict[str, bytes] = {}
        """Everything that is ours and that the draft names, by where it goes."""

    def apply(self, updates: Sequence[TableUpdate]) -> None:
        """Apply updates of one request."""
        self.metadata = apply_updates(self.metadata, updates, now_ms=self.now_ms, limits=self._catalog.limits)
        self.updates += updates

    async def load_head(self, branch: str) -> tuple[ManifestFile, ...]:
        """The manifests of the snapshot that a branch is at."""
        head = find_head(self.metadata, branch)
        if head is None:
            return ()
        drafted = self._lists.get(head.manifest_list or "")
        return await self.files.list_manifests(head) if drafted is None else drafted

    def name_list(self, snapshot_id: int) -> str:
        """Where a new list of a snapshot goes: a place of its own, whoever else has written one for it."""
        return place_beside(self.metadata, f"snap-{snapshot_id}-1-{uuid4()}.avro")

    def make_manifest(
        self, spec_id: int, entries: Iterable[Entry], snapshot_id: int, *, key: object = None
    ) -> ManifestFile:
        """A new manifest of this snapshot. `key` names what is in it, so that it is made once."""
        metadata = self.metadata
        path = place_beside(metadata, f"{uuid4()}-m0.avro")
        if key is not None:
            # A table that was moved, or is another one of the same name by now, needs one of its own.
            key = (key, metadata.table_uuid, metadata.current_schema_id, path.rpartition("/")[0])
        known = None if key is None else self.written.get(key)
        if known is None:
            data, known = write_manifest(
                manifest_kind(metadata, spec_id),
                entries,
                path=path,
                snapshot_id=snapshot_id,
                codec=find_codec(metadata.properties),
            )
            self.written.add(key or known.path, known, data)
        return known

    def carry(self, listed: ManifestFile, manifest: Manifest) -> ManifestFile:
        """Use a client's manifest as it is. It was read with its numbers open."""
        self._carried[listed.path, listed.added_snapshot_id] = manifest
        return carried(listed)

    async def merge(
        self, new: Sequence[ManifestFile], kept: Sequence[ManifestFile], snapshot_id: int
    ) -> tuple[list[ManifestFile], list[ManifestFile]]:
        """The new manifests and the others of a snapshot, merged as the table's properties say."""
        made: list[ManifestFile] = []
        left: list[ManifestFile] = []
        is_new = {one.path for one in new}
        for group in choose_merges(self.metadata, new, kept):
            manifests = None if len(group) == 1 else await self._load_group(group)
            if manifests is not None:
                entries = merged_entries(manifests, snapshot_id)
                make = partial(self.make_manifest, group[0].spec_id, entries, snapshot_id)
                made.append(await off_loop(sum(each.count for each in manifests), make))
                continue
            for one in group:
                (made if one.path in is_new else left).append(one)
        return made, left

    async def _load_group(self, group: Sequence[ManifestFile]) -> list[Manifest] | None:
        """Manifests that are to become one; None when they are too large for that in memory."""
        found = {one.path: manifest for one in group if (manifest := self._find(one)) is not None}
        stored = [one for one in group if one.path not in found]
        loaded = await self.files.load_within(stored)
        if loaded is None:
            return None
        found |= zip([one.path for one in stored], loaded, strict=True)
        return [found[one.path] for one in group]

    def add_snapshot(self, snapshot: NewSnapshot, branch: str) -> None:
        """Put a snapshot on a branch."""
        # First: what the table does not take leaves nothing that would be stored.
        self.apply(snapshot.as_updates(self.metadata, branch))
        self._lists[snapshot.list_path] = snapshot.listed
        self._new[snapshot.list_path] = snapshot.list_data
        for one in snapshot.listed:
            data = self.written.find_data(one.path)
            if data is not None:
                self._new[one.path] = data

    async def write(self, export: Export) -> tuple[str, ...]:
        """Store what the draft names; where it is."""
        missing = [path for path in self._new if not self.written.is_stored(path)]
        await run_all(
            *(
                export.write_beside(self.metadata, path.rpartition("/")[2], self._new[path])
                for path in missing
            )
        )
        self.written.note_stored(missing)
        for path, listed in self._lists.items():
            self.files.remember_list(path, listed)
        # Once each: a line stays the same in the lists of all snapshots that come after.
        for line in {line.path: line for listed in self._lists.values() for line in listed}.values():
            self._remember(line)
        return tuple(self._new)

    def _remember(self, line: ManifestFile) -> None:
        """What the next append, or a plan, would read again."""
        if (manifest := self._carried.get((line.path, line.added_snapshot_id))) is not None:
            self.files.remember(line, numbered(manifest, line))
        elif line.path in self._new and len(self._new[line.path]) <= _SMALL_BYTES:
            self.files.remember(line, self._decode(line))

    async def load_all(self, listed: Sequence[ManifestFile]) -> list[Manifest]:
        """Manifests of the table, and those that are made here and not stored yet."""
        found = {one.path: manifest for one in listed if (manifest := self._find(one)) is not None}
        stored = [one for one in listed if one.path not in found]
        found |= zip([one.path for one in stored], await self.files.load_all(stored), strict=True)
        return [found[one.path] for one in listed]

    def _find(self, listed: ManifestFile) -> Manifest | None:
        """A manifest that is in this draft, and so need not be read."""
        if (manifest := self._carried.get((listed.path, listed.added_snapshot_id))) is not None:
            return numbered(manifest, listed)
        return None if self.written.find_data(listed.path) is None else self._decode(listed)

    def _decode(self, listed: ManifestFile) -> Manifest:
        data = self.written.find_data(listed.path)
        assert data is not None  # noqa: S101 - else it was loaded
        kind = manifest_kind(self.metadata, listed.spec_id)
        types = partition_types(kind.spec, self.metadata.current_schema())
        ids = (field.field_id or 0 for field in kind.spec.fields)
        return read_manifest(data, listed, partition=tuple(zip(ids, types, strict=True)))


async def off_loop(files: int, work: Callable[[], R]) -> R:
    """Work that is done for each of so many files; where they are many, the requests of others go on."""
    return work() if files < _MANY_FILES else await asyncio.to_thread(work)


async def run_all(*work: Awaitable[Any]) -> list[Any]:
    """Everything side by side. After an error too, all of it is done when this is."""
    outcomes = await asyncio.gather(*work, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes
