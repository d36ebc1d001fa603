"""The manifests of one version of a table, read through the catalog's storage, from memory where they are.

A maintainer must not break: every path is checked before it is looked for, in memory or in storage. A list
that somebody made up must not make us read the manifests of another table.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Final

from cynosure.catalog.errors import LocationRefused
from cynosure.catalog.file_access.scope import table_scope
from cynosure.catalog.managed.table import ManagedTable
from cynosure.catalog.opened import OpenCatalog
from cynosure.catalog.recent_manifests import Decoded
from cynosure.common.errors import BadInput, TooLarge
from cynosure.iceberg.errors import InvalidManifest
from cynosure.iceberg.manifests.manifest import Manifest
from cynosure.iceberg.manifests.manifest_list import ManifestFile, read_manifest_list
from cynosure.iceberg.manifests.read_manifest import read_manifest, read_spec_id
from cynosure.iceberg.partitioning import partition_types
from cynosure.iceberg.snapshots import Snapshot
from cynosure.iceberg.types import Type
from cynosure.storage.fileio import READ_LIMIT_BYTES
from cynosure.storage.location import Location, is_allowed

_LIST_BYTES: Final = 2**20
"""What a file is taken for whose length nobody has told us: most are smaller."""
_INDEXED_BYTES: Final = 500
"""About what a delete file takes in an index of them."""
_Fields = tuple[tuple[int, Type | None], ...]


class TableFiles:
    """The manifests of one version of a table."""

    def __init__(self, catalog: OpenCatalog, table: ManagedTable) -> None:
        self._catalog = catalog
        self._table = table
        self._recent = catalog.shared.manifests
        self.most_reads = self._recent.most_reads
        """How many manifests are read side by side, and should be in memory at once."""
        self._places = table_scope(catalog, table.state, is_writable=False).locations
        self._owner = (catalog.realm, catalog.entity.id)
        self._fields: dict[int, _Fields] = {}

    async def list_manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """The manifests of a snapshot, in the order in which it lists them."""
        if snapshot.key_id is not None:
            raise _encrypted(snapshot.manifest_list or "snapshot")
        if snapshot.manifest_list is None:
            return tuple([await self._find_line(path) for path in snapshot.manifests or ()])
        path = snapshot.manifest_list
        location = self._check(path, field="manifest-list")
        key = (*self._owner, path)
        manifests: tuple[ManifestFile, ...] = await self._recent.load(
            key, self._reader(location, READ_LIMIT_BYTES), partial(_decode_list, path), size_bytes=_LIST_BYTES
        )
        return manifests

    async def read_list(self, path: str) -> tuple[ManifestFile, ...]:
        """The manifests of a list that is in no snapshot yet. Read anew: its writer may still replace it."""
        location = self._check(path, field="manifest-list")
        decoded = await self._recent.read(
            self._reader(location, READ_LIMIT_BYTES), partial(_decode_list, path), size_bytes=_LIST_BYTES
        )
        manifests: tuple[ManifestFile, ...] = decoded.value
        return manifests

    def holds(self, path: str) -> bool:
        """Whether a file is inside what the table holds."""
        try:
            return is_allowed(Location.parse(path), self._places)
        except BadInput:
            return False

    def spells(self, path: str) -> bool:
        """Whether a path begins as a place of the table is written; `s3a://` is not how `s3://` is."""
        places = (self._table.metadata.location, *(place.text for place in self._places))
        return not path.endswith("/") and any(path.startswith(f"{text.rstrip('/')}/") for text in places)

    def remember_list(self, path: str, manifests: tuple[ManifestFile, ...]) -> None:
        """Keep a list that this process has just written: the next snapshot begins with it."""
        self._check(path, field="manifest-list")
        self._recent.put((*self._owner, path), Decoded(manifests, _weigh_list(manifests)))

    def remember(self, listed: ManifestFile, manifest: Manifest) -> None:
        """Keep a manifest that this process has just put into a list."""
        self._check(listed.path, field="manifest_path")
        key = self._key(listed, self._fields_of(listed))
        self._recent.put(key, Decoded(manifest, manifest.size_bytes))

    async def load(self, listed: ManifestFile) -> Manifest:
        """A manifest as its list sees it. `InvalidManifest` when it is not whole, or not what was listed."""
        location = self._check(listed.path, field="manifest_path")
        if listed.key_metadata:
            raise _encrypted(listed.path)
        if listed.length > READ_LIMIT_BYTES:
            raise InvalidManifest(
                "The manifest is larger than this server reads",
                path=listed.path,
                length=listed.length,
                limit_bytes=READ_LIMIT_BYTES,
            )
        fields = self._fields_of(listed)
        manifest: Manifest = await self._recent.load(
            self._key(listed, fields),
            self._reader(location, listed.length),
            partial(_decode_manifest, listed, fields),
            size_bytes=listed.length,
        )
        return manifest

    async def load_all(self, listed: Iterable[ManifestFile]) -> list[Manifest]:
        """Manifests in the order given, read side by side."""
        wanted = list(listed)
        found: dict[int, Manifest] = {}
        left = iter(range(len(wanted)))

        async def work() -> None:
            for at in left:
                found[at] = await self.load(wanted[at])

        workers = [asyncio.ensure_future(work()) for _ in range(min(len(wanted), self._recent.most_reads))]
        try:
            await asyncio.gather(*workers)
        finally:
            # After a failure or a cancellation nobody needs the rest.
            for each in workers:
                each.cancel()
        return [found[at] for at in range(len(wanted))]

    async def load_within(
        self, listed: Sequence[ManifestFile], *, more_bytes: int = 0
    ) -> list[Manifest] | None:
        """As `load_all`, for those that are needed all at once; None when that is more than is ever kept.

        What a list says of their size is no limit: few bytes may be very many files. `more_bytes` is what
        the caller makes of each file.
        """
        found: list[Manifest] = []
        size_bytes = 0
        for at in range(0, len(listed), self.most_reads):
            some = await self.load_all(listed[at : at + self.most_reads])
            size_bytes += sum(one.size_bytes + more_bytes * one.count for one in some)
            if size_bytes > self._recent.limit_bytes:
                return None
            found += some
        return found

    async def load_deletes(self, listed: Sequence[ManifestFile]) -> list[Manifest]:
        """The manifests of delete files; `BadInput` when a table has more than this server takes at once."""
        found = await self.load_within(listed, more_bytes=_INDEXED_BYTES)
        if found is None:
            raise BadInput(
                "The table has more delete files than this server takes into memory",
                field="table",
                fix="Compact the table, let clients plan scans, or raise catalog.manifests_bytes.",
                limit_bytes=self._recent.limit_bytes,
            )
        return found

    async def read_manifest(self, path: str) -> Manifest:
        """A manifest that is in no list yet. Read anew: its writer may still replace it."""
        location = self._check(path, field="manifests")

        def decode(data: bytes) -> Manifest:
            listed = _describe(path, data)
            return read_manifest(data, listed, partition=self._fields_of(listed))

        reader = self._reader(location, READ_LIMIT_BYTES)
        return await self._recent.read(reader, decode, size_bytes=_LIST_BYTES)

    async def _find_line(self, path: str) -> ManifestFile:
        """A line for a manifest that a snapshot of version 1 names by itself."""
        location = self._check(path, field="manifests")
        described: ManifestFile = await self._recent.load(
            (*self._owner, path, None),
            self._reader(location, READ_LIMIT_BYTES),
            partial(_describe_manifest, path),
            size_bytes=_LIST_BYTES,
        )
        return described

    def _check(self, path: str, *, field: str) -> Location:
        location = Location.parse(path, field=field)
        if not is_allowed(location, self._places):
            raise LocationRefused(
                "The file is outside of what its table holds",
                fix="Write manifests and their lists into the location of their table.",
                field=field,
                location=location.text,
            )
        return location

    def _reader(self, location: Location, limit_bytes: int) -> Callable[[], Awaitable[bytes]]:
        async def read() -> bytes:
            try:
                return await self._catalog.files.read(location, limit_bytes=limit_bytes)
            except TooLarge as error:
                raise InvalidManifest(
                    "The file is larger than it may be", path=location.text, limit_bytes=limit_bytes
                ) from error

        return read

    def _key(self, listed: ManifestFile, fields: _Fields) -> Hashable:
        # All that the line says of the files: another line makes another manifest of the same bytes, and who
        # made up a list must not change what others are told.
        return (
            *self._owner,
            listed.path,
            listed.length,
            listed.spec_id,
            listed.content,
            listed.added_snapshot_id,
            listed.sequence_number,
            listed.first_row_id,
            listed.added_files,
            listed.existing_files,
            listed.deleted_files,
            tuple([id_ for id_, _ in fields]),
        )

    def _fields_of(self, listed: ManifestFile) -> _Fields:
        """Ids and types of the partition values of a manifest."""
        known = self._fields.get(listed.spec_id)
        if known is not None:
            return known
        metadata = self._table.metadata
        specs = (one.value for one in metadata.partition_specs)
        spec = next((one for one in specs if one.spec_id == listed.spec_id), None)
        if spec is None:
            raise InvalidManifest(
                "The manifest is of a partition spec that its table does not have",
                path=listed.path,
                spec_id=listed.spec_id,
            )
        types = partition_types(spec, metadata.current_schema())
        ids = (field.field_id or 0 for field in spec.fields)
        fields = self._fields[listed.spec_id] = tuple(zip(ids, types, strict=True))
        return fields


# In the thread of `RecentManifests`.


def _decode_list(path: str, data: bytes) -> Decoded:
    manifests = read_manifest_list(data, path=path).manifests
    return Decoded(manifests, _weigh_list(manifests))


def _decode_manifest(listed: ManifestFile, fields: _Fields, data: bytes) -> Decoded:
    if len(data) != listed.length:
        raise InvalidManifest(
            "The manifest has another length than its list says",
            path=listed.path,
            length=len(data),
            listed_length=listed.length,
        )
    manifest = read_manifest(data, listed, partition=fields)
    return Decoded(manifest, manifest.size_bytes)


def _describe_manifest(path: str, data: bytes) -> Decoded:
    described = _describe(path, data)
    return Decoded(described, _weigh_list((described,)))


def _describe(path: str, data: bytes) -> ManifestFile:
    """What a manifest that no list describes has to be read with, and no more."""
    spec_id = read_spec_id(data, path=path)
    return ManifestFile(path=path, length=len(data), spec_id=spec_id, added_snapshot_id=None)


def _weigh_list(manifests: tuple[ManifestFile, ...]) -> int:
    return sum(600 + len(one.path) + 250 * len(one.partitions or ()) for one in manifests)


def _encrypted(path: str) -> BadInput:
    return BadInput(
        "The table is encrypted, and this server has no key to its manifests",
        field=path,
        fix="Let the engine read the manifests: it has the key.",
    )
